"""A small client of the testbed's own apiserver: kept connections, so that a call costs its work and no more.

kubectl costs 0.2 CPU seconds a call. It stays where a test is about what kubectl prints.
"""

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from hack.testbed.errors import TestbedError
from hack.testbed.waiting import PATIENCE

One = TypeVar("One")
Other = TypeVar("Other")


Manifest = dict[str, Any]

_BUSY_SECONDS = 0.5
# A CRD of a megabyte takes long on a busy machine.
_ANSWER_SECONDS, _HEALTH_SECONDS = 120, 10
# More only queue up: the apiserver and this process share the cores.
_THREADS = 4
_FIELD_MANAGER = "testbed"
# RFC 7234: warn-code, warn-agent, and the text between quotes with its escapes.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_APPLY = "apply"
_BUSY = {
    http.client.TOO_MANY_REQUESTS,
    http.client.BAD_GATEWAY,
    http.client.SERVICE_UNAVAILABLE,
    http.client.GATEWAY_TIMEOUT,
}


class NotFoundError(TestbedError):
    """The apiserver has no such object."""


class Answer(NamedTuple):
    """An answer of the apiserver: an HTTP status, the object or a Status, and its warnings."""

    status: int
    body: Manifest
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the apiserver accepted the call."""
        return self.status < http.client.BAD_REQUEST

    @property
    def busy(self) -> bool:
        """True if the apiserver, or its etcd, had no time for it.

        For a failing webhook it answers 500 in other words; for a new CRD it answers 429 until its storage is there.
        """
        return (
            self.status in _BUSY
            or self.body.get("reason") == "ServerTimeout"
            or (self.status >= http.client.INTERNAL_SERVER_ERROR and "etcdserver: " in self.message)
        )

    @property
    def message(self) -> str:
        """The apiserver's reason, when it refused."""
        return str(self.body.get("message", ""))


_NONE = Answer(0, {})


class Api:
    """Calls the apiserver as one user, from any thread.

    Calling it returns the answer, a refusal too. The verbs below return the object, and raise TestbedError with the
    apiserver's own words (NotFoundError for 404) when it refuses.
    """

    def __init__(self, server: str, token: str, ca_file: Path) -> None:
        self._server = urlsplit(server)
        self._authorization = f"Bearer {token}"
        self._context = ssl.create_default_context(cafile=str(ca_file))
        self._idle: deque[http.client.HTTPSConnection] = deque()
        weakref.finalize(self, _close, self._idle)

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        patch: str = "",
        user: str = "",
        accept: str = "application/json",
        head: bool = False,
        once: bool = False,
    ) -> Answer:
        """Send `body`, an object or bytes as they are; `patch` is the kind of a PATCH (`merge`, `json`, `apply`).

        `user` is whom the caller impersonates; with `head` the answer's body, of a watch say, is not waited for. Where
        the apiserver is too busy, or the way to it breaks, it is asked again, but `once`. Raises TestbedError when no
        answer comes.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        kind = "json"
        if patch:
            kind = "apply-patch+yaml" if patch == _APPLY else f"{patch}-patch+json"
        headers = {"Authorization": self._authorization, "Content-Type": f"application/{kind}", "Accept": accept}
        if user:
            headers["Impersonate-User"] = user
        deadline, perhaps_done = time.monotonic() + PATIENCE, False
        while True:
            failure: Exception | None = None
            answer = _NONE
            try:
                answer = self._ask(method, path, data, headers, head=head)
            except (OSError, http.client.HTTPException) as error:
                failure = error
            again = _is_passing(failure) if failure else answer.busy
            if once or not again or time.monotonic() > deadline:
                break
            # After a 429 nothing was done; else it may have been, and its answer lost.
            perhaps_done = perhaps_done or answer.status != http.client.TOO_MANY_REQUESTS
            time.sleep(_BUSY_SECONDS)
        if failure:
            raise TestbedError(f"{method} {path}: {failure!r}") from failure
        return self._settled(method, path, answer) if perhaps_done else answer

    def _settled(self, method: str, path: str, answer: Answer) -> Answer:
        """The answer to what an attempt before has perhaps done: it did, where there is nothing left to do."""
        if method == "DELETE" and answer.status == http.client.NOT_FOUND:
            return Answer(http.client.OK, {"metadata": {}})
        if method == "POST" and answer.body.get("reason") == "AlreadyExists" and "dryRun" not in path:
            name = answer.body.get("details", {}).get("name")
            return self("GET", f"{path.partition('?')[0]}/{name}")
        return answer

    def get(self, path: str, accept: str = "application/json") -> Manifest:
        """Read an object or a list."""
        return self.done("GET", path, accept=accept)

    def find(self, path: str) -> Manifest:
        """Read an object; empty where there is none."""
        try:
            return self.get(path)
        except NotFoundError:
            return {}

    def apply(self, path: str, manifest: bytes | Manifest) -> Manifest:
        """Server-side apply a manifest; bytes are YAML as they stand in a file."""
        return self.done("PATCH", f"{path}?fieldManager={_FIELD_MANAGER}&force=true", manifest, patch=_APPLY)

    def create(self, path: str, manifest: Manifest) -> Manifest:
        """Create an object in the collection at `path`."""
        return self.done("POST", path, manifest)

    def merge(self, path: str, patch: Manifest) -> Manifest:
        """Change an object by a JSON merge patch."""
        return self.done("PATCH", path, patch, patch="merge")

    def delete(self, path: str, *, missing_ok: bool = False) -> None:
        """Delete an object, or all of a collection; with `missing_ok` it may be gone already."""
        try:
            self.done("DELETE", path)
        except NotFoundError:
            if not missing_ok:
                raise

    def done(
        self, method: str, path: str, body: object = None, *, patch: str = "", accept: str = "application/json"
    ) -> Manifest:
        """Return the object of an answer."""
        answer = self(method, path, body, patch=patch, accept=accept)
        if answer.ok:
            return answer.body
        kind = NotFoundError if answer.status == http.client.NOT_FOUND else TestbedError
        raise kind(f"{method} {path}: {answer.status} {answer.message}")

    def close(self) -> None:
        """Close every idle connection; the next call makes a new one."""
        _close(self._idle)

    @staticmethod
    def each(work: Callable[[One], Other], things: Iterable[One]) -> list[Other]:
        """Do the work for every thing, a few at a time, and return the results in order."""
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(work, things))

    def _ask(self, method: str, path: str, data: bytes, headers: dict[str, str], *, head: bool) -> Answer:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = http.client.HTTPSConnection(
                self._server.hostname or "", self._server.port, context=self._context, timeout=_ANSWER_SECONDS
            )
        keep = False
        try:
            response = self._send(connection, (method, path, data, headers))
            if head:
                return Answer(response.status, {})
            text = response.read()
            keep = True
        finally:
            if keep:
                self._idle.append(connection)
            else:
                connection.close()
        warnings = tuple(
            re.sub(r"\\(.)", r"\1", found)
            for value in response.headers.get_all("Warning", [])
            for found in _WARNING.findall(value)
        )
        return Answer(response.status, _decoded(text), warnings)

    @staticmethod
    def _send(
        connection: http.client.HTTPSConnection, request: tuple[str, str, bytes, dict[str, str]]
    ) -> http.client.HTTPResponse:
        kept = connection.sock is not None
        try:
            connection.request(*request)
            return connection.getresponse()
        except (ConnectionError, ssl.SSLError, http.client.RemoteDisconnected):
            if not kept:
                raise
            # Kept from before a restart of the apiserver.
            connection.close()
            connection.request(*request)
            return connection.getresponse()


def answers(url: str, ca_file: Path) -> bool:
    """True if a health endpoint answers 200."""
    context = ssl.create_default_context(cafile=str(ca_file)) if url.startswith("https:") else None
    try:
        with urllib.request.urlopen(url, timeout=_HEALTH_SECONDS, context=context):  # noqa: S310 (loopback)
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except (OSError, http.client.HTTPException):
        return False


def _is_passing(failure: Exception) -> bool:
    """True if it may be otherwise a moment later. A refused connection means that no apiserver runs."""
    return not isinstance(failure, ConnectionRefusedError | ssl.SSLCertVerificationError)


def _close(connections: deque[http.client.HTTPSConnection]) -> None:
    while connections:
        connections.pop().close()


def _decoded(text: bytes) -> Manifest:
    """Return an answer's object; a path that is not served, of a CRD that is gone, is answered in plain text."""
    try:
        answer: Manifest = json.loads(text)
    except ValueError:
        return {"message": text.decode(errors="replace").strip()}
    return answer


def _json(body: object) -> bytes:
    """JSON as Go writes it: non-ASCII stands for itself but for two line ends of Unicode."""
    text = json.dumps(body, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()
