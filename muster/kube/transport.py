"""Requests and streams over HTTP: credentials, deadlines, and the rule for what may be tried again.

`Client` knows the verbs of Kubernetes; this module knows the network, and turns whatever it does into ApiError.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from muster.kube.backoff import Backoff
from muster.kube.config import ConfigError, Connection
from muster.kube.errors import ApiError, Unreachable, error_from_response
from muster.kube.lines import LineSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

__all__ = ["Call", "Transport"]

logger = logging.getLogger(__name__)

_JSON = "application/json"
_CONNECTIONS = 64
_UNAUTHORIZED = 401
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class Call:
    """One request: `path` is encoded already, empty `params` are left out, `repeatable` says it may happen twice."""

    method: str
    path: str
    params: Mapping[str, str]
    body: bytes | None = None
    content_type: str = _JSON
    repeatable: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """One aiohttp session to one apiserver; made inside a running event loop, closed with `close`."""

    def __init__(self, connection: Connection, *, user_agent: str) -> None:
        self.connection = connection
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=connection.ssl_context or True),
            # Uncompressed: gzip costs more processor time, on both sides, than the network inside a cluster saves.
            headers={"User-Agent": user_agent, "Accept": _JSON, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # asyncio.timeout around each call counts instead
        )

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        await self._session.close()

    async def request(self, call: Call, deadline: float) -> bytes:
        """Give the body of a successful answer, after as many attempts as fit into `deadline` seconds.

        429, and 5xx with Retry-After, are obeyed for every call, as client-go does; without it 5xx and broken
        connections are tried again only when the call is repeatable. Raises ApiError, and Unreachable at the deadline.
        """
        backoff = Backoff(0.1, 5.0)
        last: ApiError | None = None
        asked_again = False
        try:
            async with asyncio.timeout(deadline) as limit:
                while True:
                    try:
                        return await self._attempt(call)
                    except ApiError as error:
                        last = error
                    if last.status == _UNAUTHORIZED and not asked_again:
                        asked_again = True
                        self.connection.expire()
                        continue
                    delay = _retry_delay(last, backoff, repeatable=call.repeatable)
                    if delay is None or asyncio.get_running_loop().time() + delay >= (limit.when() or 0.0):
                        raise last
                    logger.debug("%s: %s; again in %.1f s", call, last, delay)
                    await asyncio.sleep(delay)
        except TimeoutError as error:
            before = f"; before that: {last}" if last is not None else ""
            message = f"{call} at {self.connection.server}: no answer in {deadline:g} s{before}"
            raise Unreachable(message, reason="Timeout") from error

    @asynccontextmanager
    async def stream(
        self, call: Call, *, open_deadline: float, silence: float, max_line: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an answer that goes on, and give its lines; never tried again, since only the caller can resume.

        Raises, on entering or from the iterator, ApiError, Unreachable (also after `silence` seconds without a byte),
        and OversizedLine.
        """
        response: aiohttp.ClientResponse | None = None
        try:
            try:
                async with asyncio.timeout(open_deadline):
                    response = await self._send(call, aiohttp.ClientTimeout(sock_read=silence))
                    if not _succeeded(response):
                        raise _refusal(response, await response.read())
            except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
                raise self._broken(error) from error
            lines = self._lines(response, max_line)
            try:
                yield lines
            finally:
                await lines.aclose()
        finally:
            if response is not None:
                response.close()

    async def _lines(self, response: aiohttp.ClientResponse, max_line: int) -> AsyncGenerator[bytes, None]:
        splitter = LineSplitter(max_line)
        try:
            async for chunk in response.content.iter_any():
                for line in splitter.feed(chunk):
                    yield line
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from error

    async def _attempt(self, call: Call) -> bytes:
        try:
            response = await self._send(call, aiohttp.ClientTimeout())
            async with response:
                body = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from error
        # A proxy's page with status 200 is no answer of an apiserver either.
        if not _succeeded(response) or not response.content_type.endswith("json"):
            raise _refusal(response, body)
        return body

    async def _send(self, call: Call, silence: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = {"Content-Type": call.content_type} if call.body is not None else {}
        try:
            authorization = await self.connection.authorization()
        except ConfigError as error:
            raise Unreachable(str(error), reason="NoCredentials") from error
        if authorization:
            headers["Authorization"] = authorization
        query = urlencode({key: value for key, value in call.params.items() if value})
        return await self._session.request(
            call.method,
            # Already encoded by Resource.path and urlencode; the server may have a path of its own in front.
            URL(f"{self.connection.server}{call.path}{'?' if query else ''}{query}", encoded=True),
            data=call.body,
            headers=headers,
            timeout=silence,
            allow_redirects=False,  # nobody but the configured server gets our token
            proxy=self.connection.proxy,
            server_hostname=self.connection.server_hostname,
        )

    def _broken(self, error: aiohttp.ClientError | OSError) -> Unreachable:
        text = f"{self.connection.server}: {str(error) or type(error).__name__}"
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
            if isinstance(error, aiohttp.ClientConnectorCertificateError):
                self.connection.reload_trust()
            return _NeverSent(text)
        return Unreachable(text, reason="Timeout" if isinstance(error, TimeoutError) else "Unreachable")


class _NeverSent(Unreachable):
    """The connection was never made, so nothing can have happened."""


def _succeeded(response: aiohttp.ClientResponse) -> bool:
    return 200 <= response.status < 300  # noqa: PLR2004 - aiohttp's `ok` lets redirects pass


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    return error_from_response(response.status, body, response.headers.get("Retry-After"))


def _retry_delay(error: ApiError, backoff: Backoff, *, repeatable: bool) -> float | None:
    """Seconds until the next attempt, or None when the error is the answer."""
    refused = error.status == _TOO_MANY_REQUESTS or (error.overloaded and error.retry_after is not None)
    broken = error.overloaded or isinstance(error, Unreachable)
    if refused or isinstance(error, _NeverSent) or (repeatable and broken):
        return (error.retry_after or 0.0) + backoff.next()
    return None
