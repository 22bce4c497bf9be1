"""A very small client of the testbed's own apiserver, for what happens too often or too early for kubectl."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from hack.testbed.errors import TestbedError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Api", "NotFoundError", "answers"]

_NOT_FOUND, _BUSY = 404, 429
_TRIES, _BUSY_SECONDS = 120, 0.5
# A CRD of a megabyte takes long on a busy machine.
_ANSWER_SECONDS = 120


class NotFoundError(TestbedError):
    """The apiserver has no such object."""


class _BusyError(TestbedError):
    """The apiserver could not look at the request now (429)."""


class Api:
    """Calls the apiserver as one user; every method raises TestbedError with the apiserver's own words."""

    def __init__(self, server: str, token: str, ca_file: Path) -> None:
        self._server = server
        self._token = token
        self._ca_file = ca_file
        self._context: ssl.SSLContext | None = None

    def get(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        """Read an object or a list."""
        return self._call("GET", path, None, {"Accept": accept})

    def apply(self, path: str, manifest: bytes | dict[str, Any]) -> dict[str, Any]:
        """Server-side apply a manifest; bytes are YAML as they stand in a file."""
        body = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        headers = {"Content-Type": "application/apply-patch+yaml"}
        return self._call("PATCH", f"{path}?fieldManager=testbed&force=true", body, headers)

    def create(self, path: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create an object in the collection at `path`."""
        return self._call("POST", path, json.dumps(manifest).encode(), {"Content-Type": "application/json"})

    def _call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        # Of a CRD of a moment ago the apiserver says 429 until its storage is there: nothing was done, so ask again.
        for _ in range(_TRIES - 1):
            try:
                return self._call_once(method, path, body, headers)
            except _BusyError:
                time.sleep(_BUSY_SECONDS)
        return self._call_once(method, path, body, headers)

    def _call_once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        if self._context is None:
            self._context = ssl.create_default_context(cafile=str(self._ca_file))
        request = urllib.request.Request(  # noqa: S310 (always https, always ours)
            self._server + path, data=body, method=method, headers={"Authorization": f"Bearer {self._token}", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS, context=self._context) as response:  # noqa: S310
                answer: dict[str, Any] = json.loads(response.read())
                return answer
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            kind = {_NOT_FOUND: NotFoundError, _BUSY: _BusyError}.get(error.code, TestbedError)
            raise kind(f"{method} {path}: {error.code} {_message(text)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise TestbedError(f"{method} {path}: {error}") from error


def answers(url: str, ca_file: Path) -> bool:
    """Tell whether a health endpoint answers 200."""
    context = ssl.create_default_context(cafile=str(ca_file)) if url.startswith("https:") else None
    try:
        with urllib.request.urlopen(url, timeout=2, context=context):  # noqa: S310 (loopback)
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except (OSError, http.client.HTTPException):
        return False


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.strip()
