"""Many small calls to the apiserver: one kept connection per thread, so that a call costs its work and no more."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from hack.testbed import Testbed

    One = TypeVar("One")
    Other = TypeVar("Other")

__all__ = ["Answer", "Calls"]

# More only queue up: the apiserver and this process share the cores.
_THREADS = 4


class Answer(NamedTuple):
    """What the apiserver said: an HTTP status, and the object or a Status."""

    status: int
    body: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the apiserver did as it was told."""
        return self.status < http.client.BAD_REQUEST

    @property
    def message(self) -> str:
        """The apiserver's reason, when it refused."""
        return str(self.body.get("message", ""))


class Calls:
    """Calls the apiserver of a testbed as its administrator, from any thread; a refusal is an answer, no error.

    With a `token` they are its holder's.
    """

    def __init__(self, testbed: Testbed, token: str = "") -> None:
        self._address = urlsplit(testbed.server)
        self._context = ssl.create_default_context(cafile=str(testbed.ca_file))
        self._authorization = f"Bearer {token or testbed.admin_token}"
        self._here = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []

    def __call__(
        self, method: str, path: str, body: object = None, *, patch: str = "", user: str = "", head: bool = False
    ) -> Answer:
        """Send `body`, an object or JSON bytes as they are; `patch` is the kind of a PATCH (`merge`).

        `user` is whom the administrator impersonates; with `head` the answer's body, of a watch say, is not waited for.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        kind = f"application/{patch}-patch+json" if patch else "application/json"
        headers = {"Authorization": self._authorization, "Content-Type": kind}
        if user:
            headers["Impersonate-User"] = user
        connection = self._connection()
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
        except (ConnectionError, ssl.SSLError, http.client.RemoteDisconnected):
            # Kept from before a restart of the apiserver: a new one is made by itself.
            connection.close()
            connection.request(method, path, data, headers)
            response = connection.getresponse()
        if head:
            connection.close()
            return Answer(response.status, {})
        text = response.read()
        # A path that is not served, of a CRD that is gone, is answered in plain text.
        plain = response.getheader("Content-Type", "").startswith("text/")
        return Answer(response.status, {"message": text.decode().strip()} if plain else json.loads(text))

    def done(self, method: str, path: str, body: object = None, *, patch: str = "") -> dict[str, Any]:
        """Return the object; here a refusal fails the test."""
        answer = self(method, path, body, patch=patch)
        assert answer.ok, f"{method} {path}: {answer.status} {answer.message}"
        return answer.body

    def close(self) -> None:
        """Close every connection."""
        for connection in self._opened:
            connection.close()

    @staticmethod
    def each(work: Callable[[One], Other], things: Iterable[One]) -> list[Other]:
        """Do the work for every thing, a few at a time, and return the results in order."""
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(work, things))

    def _connection(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._here, "connection", None)
        if connection is None:
            host, port = self._address.hostname or "", self._address.port
            connection = http.client.HTTPSConnection(host, port, timeout=60, context=self._context)
            self._here.connection = connection
            self._opened.append(connection)
        return connection


def _json(body: object) -> bytes:
    """JSON as Go writes it: non-ASCII stands for itself but for two line ends of Unicode."""
    text = json.dumps(body, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()
