"""Requests and streams over HTTP: credentials, deadlines, and the rule for retries.

`Client` knows the verbs of Kubernetes; this module knows the network, and turns its failures into ApiError.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import aiohttp
from aiohttp.payload import BytesPayload
from yarl import URL

from muster.kube.backoff import Backoff
from muster.kube.clock import ServerClock, boottime
from muster.kube.config import ConfigError, Connection
from muster.kube.errors import ApiError, OversizedAnswer, Unreachable, WatchIdle, error_from_response

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter


logger = logging.getLogger(__name__)

_JSON = "application/json"
_CONNECTIONS = 64
# Seconds for which an idle connection is kept; an apiserver ends it after 90. A gang's gates are opened over 32 of
# them, and each handshake would delay its start.
_KEPT = 60.0
_UNAUTHORIZED = 401
_TOO_MANY_REQUESTS = 429
# As the apiserver writes warnings (RFC 7234, 5.5): 299 - "text", where a backslash goes before quotes.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: `path` is encoded already, empty `params` are left out, a `repeatable` one may happen twice.

    An answer of more than `most` bytes is OversizedAnswer.
    """

    method: str
    path: str
    params: Mapping[str, str]
    body: bytes | None = None
    content_type: str = _JSON
    repeatable: bool = True
    most: float = math.inf

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Transport:
    """One aiohttp session to one apiserver; made inside a running event loop, closed with `close`."""

    def __init__(self, connection: Connection, *, user_agent: str) -> None:
        self.connection = connection
        self.clock = ServerClock()
        self.on_warning: Callable[[str], None] | None = None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=_CONNECTIONS, keepalive_timeout=_KEPT, ssl=connection.ssl_context or True
            ),
            # Uncompressed: gzip costs more processor time, on both sides, than the network inside a cluster saves.
            headers=[
                *{"User-Agent": user_agent, "Accept": _JSON, "Accept-Encoding": "identity"}.items(),
                *connection.impersonation,
            ],
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # asyncio.timeout around each call counts instead
        )

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        await self._session.close()

    async def request(self, call: Call, deadline: float) -> bytes:
        """Return the body of a successful answer, after as many attempts as fit into `deadline` seconds.

        429, and 5xx with Retry-After, are obeyed for every call, as client-go does; without it 5xx and broken
        connections are tried again only when the call is repeatable. After the deadline nothing of a body is sent any
        more, and the apiserver is asked to give up by then. Raises ApiError, and Unreachable at the deadline.
        """
        backoff = Backoff(0.1, 5.0)
        last: ApiError | None = None
        asked_again = False
        latest = boottime() + deadline
        try:
            async with asyncio.timeout(deadline):
                while True:
                    authorization = None
                    try:
                        authorization = await self._authorization()
                        return await self._attempt(call, authorization, latest)
                    except ApiError as error:
                        last = error
                    if last.status == _UNAUTHORIZED and not asked_again:
                        asked_again = True
                        self.connection.expire(authorization)
                        continue
                    delay = _retry_delay(last, backoff, repeatable=call.repeatable)
                    if delay is None or boottime() + delay >= latest:
                        raise last
                    logger.debug("%s: %s; retrying in %.1f s", call, last, delay, extra={"event": "request.retry"})
                    await asyncio.sleep(delay)
        except TimeoutError as error:
            before = f"; before that: {last}" if last is not None else ""
            message = f"{call} at {self.connection.server}: no answer in {deadline:g} s{before}"
            raise Unreachable(message, reason="Timeout") from error
        finally:
            del last  # its traceback holds this frame

    async def once(self, call: Call, deadline: float) -> bytes:
        """Return the body of a successful answer to a single attempt, within `deadline` seconds.

        Credentials are loaded before the time starts. Raises ApiError, and Unreachable at the deadline.
        """
        authorization = await self._authorization()
        try:
            async with asyncio.timeout(deadline):
                return await self._attempt(call, authorization, boottime() + deadline)
        except TimeoutError as error:
            message = f"{call} at {self.connection.server}: no answer in {deadline:g} s"
            raise Unreachable(message, reason="Timeout") from error

    @asynccontextmanager
    async def stream(
        self, call: Call, *, open_deadline: float, silence: float, max_line: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an answer that goes on, and yield its lines; tried again only with other credentials, after a 401.

        Raises, on entering or from the iterator, ApiError, Unreachable, WatchIdle after `silence` seconds without a
        byte. A line above `max_line` bytes is an ApiError: resuming would meet it again, so list instead.
        """
        response: aiohttp.ClientResponse | None = None
        latest = boottime() + open_deadline
        try:
            try:
                async with asyncio.timeout(open_deadline):
                    response = await self._open(call, silence, latest)
                    if response.status == _UNAUTHORIZED:
                        response.close()
                        response = await self._open(call, silence, latest)
                    if not _succeeded(response):
                        raise _refusal(response, await response.read())
            except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
                raise self._broken(error) from error
            lines = self._lines(response, max_line, silence)
            try:
                yield lines
            finally:
                await lines.aclose()
        finally:
            if response is not None:
                # Left in the middle: an orderly end of TLS would wait for a server that may be gone.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()
                response.close()

    async def _open(self, call: Call, silence: float, latest: float) -> aiohttp.ClientResponse:
        authorization = await self._authorization()
        response = await self._send(call, authorization, aiohttp.ClientTimeout(sock_read=silence), latest)
        if response.status == _UNAUTHORIZED:
            self.connection.expire(authorization)
        return response

    async def _lines(
        self, response: aiohttp.ClientResponse, max_line: int, silence: float
    ) -> AsyncGenerator[bytes, None]:
        splitter = LineSplitter(max_line)
        try:
            async for chunk in response.content.iter_any():
                for line in splitter.feed(chunk):
                    yield line
        except aiohttp.SocketTimeoutError as error:
            raise WatchIdle(silence) from _without_frames(error)
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from error

    async def _authorization(self) -> str | None:
        try:
            return await self.connection.authorization()
        except ConfigError as error:
            raise _NeverSent(str(error), reason="NoCredentials") from error

    async def _attempt(self, call: Call, authorization: str | None, latest: float) -> bytes:
        try:
            response = await self._send(call, authorization, aiohttp.ClientTimeout(), latest)
            async with response:
                body = await _body(response, call.most)
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from error
        self.clock.note_date(response.headers.get("Date"))
        if self.on_warning is not None:
            for found in filter(None, map(_WARNING.match, response.headers.getall("Warning", ()))):
                self.on_warning(_ESCAPED.sub(r"\1", found[1]))
        # A proxy's page with status 200 is no answer of an apiserver either.
        if not _succeeded(response) or not response.content_type.endswith("json"):
            raise _refusal(response, body)
        return body

    async def _send(
        self, call: Call, authorization: str | None, silence: aiohttp.ClientTimeout, latest: float
    ) -> aiohttp.ClientResponse:
        headers = {"Content-Type": call.content_type} if call.body is not None else {}
        if authorization:
            headers["Authorization"] = authorization
        params = {key: value for key, value in call.params.items() if value}
        body = None
        if call.body is not None:
            body = _TimelyBody(call.body, latest)
            # Else a request that waits in the apiserver, for example for a webhook, may be done long after we gave up.
            params["timeout"] = f"{max(1, round((latest - boottime()) * 1000))}ms"
        query = urlencode(params)
        return await self._session.request(
            call.method,
            # Already encoded by Resource.path and urlencode; the server may have a path of its own in front.
            URL(f"{self.connection.server}{call.path}{'?' if query else ''}{query}", encoded=True),
            data=body,
            headers=headers,
            timeout=silence,
            allow_redirects=False,  # only the configured server gets our token
            proxy=self.connection.proxy,
            server_hostname=self.connection.server_hostname,
        )

    def _broken(self, error: aiohttp.ClientError | OSError) -> Unreachable:
        _without_frames(error)
        text = f"{self.connection.server}: {str(error) or type(error).__name__}"
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
            if isinstance(error, aiohttp.ClientConnectorCertificateError):
                self.connection.reload_trust()
            if isinstance(error, aiohttp.ClientProxyConnectionError):
                # A refusal by a proxy is none by the apiserver.
                return _NeverSent(f"no proxy answers: {text}")
            return _NeverSent(text, connection_refused=isinstance(error.os_error, ConnectionRefusedError))
        return Unreachable(text, reason="Timeout" if isinstance(error, TimeoutError) else "Unreachable")


class _TimelyBody(BytesPayload):
    """A body that is not sent after its time: a process that was stopped, or slept, must not go on where it was."""

    def __init__(self, body: bytes, latest: float) -> None:
        super().__init__(body)
        self._latest = latest

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send headers and body in one go, or raise TimeoutError and send nothing."""
        if boottime() >= self._latest:
            raise TimeoutError("too late to send")
        await super().write_with_length(writer, content_length)


class _NeverSent(Unreachable):
    """Credentials or a connection were not to be had, so nothing can have happened."""


def _without_frames(error: BaseException) -> BaseException:
    """Return the same error, and its causes, without tracebacks.

    aiohttp's frames hold the error whose traceback holds them. The cycle collector skips objects that it has seen
    before (`muster.process.lifecycle`), and would leave most of those that a watch or a retry has waited with.
    """
    one: BaseException | None = error
    while isinstance(one, aiohttp.ClientError | OSError):  # not what its caller is handling
        one.__traceback__ = None
        one = one.__cause__ if one.__cause__ is not None else one.__context__
    return error


async def _body(response: aiohttp.ClientResponse, most: float) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            # The rest would have to be read before the connection serves another call.
            response.close()
            raise OversizedAnswer(int(most))
        parts.append(part)
    return b"".join(parts)


def _succeeded(response: aiohttp.ClientResponse) -> bool:
    return 200 <= response.status < 300  # noqa: PLR2004 - aiohttp's `ok` lets redirects pass


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    quote = "/secrets" not in response.url.path
    return error_from_response(response.status, body, response.headers.get("Retry-After"), quote=quote)


def _retry_delay(error: ApiError, backoff: Backoff, *, repeatable: bool) -> float | None:
    """Seconds until the next attempt, or None when the error is the answer."""
    refused = error.status == _TOO_MANY_REQUESTS or (error.overloaded and error.retry_after is not None)
    broken = error.overloaded or isinstance(error, Unreachable)
    if refused or isinstance(error, _NeverSent) or (repeatable and broken):
        return (error.retry_after or 0.0) + backoff.next()
    return None


class LineSplitter:
    """Collects chunks and returns whole lines, without their newline; empty lines are skipped.

    A line is returned only after its newline: a broken connection leaves half an event, which is no JSON.
    `limit` bounds one line in bytes, and thereby the memory that a hostile or broken server can take.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk and return the lines that it completes. Raises ApiError for a longer one."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._keep(end)
            # Joined once per line: adding up bytes would copy a large line once per chunk.
            line = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            if line.strip():
                lines.append(line)
        self._keep(rest)
        return lines

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise ApiError(0, "OversizedLine", f"a watch event is longer than {self._limit} bytes")
        if part:
            self._parts.append(part)
