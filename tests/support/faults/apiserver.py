"""A small HTTP server that does, on demand, what networks and overloaded servers do.

Alone it stands in place of the apiserver, for rules about single answers; in front of a testbed's real apiserver it
passes on what it was not told to spoil. Answers are queued per kind of request; the last one of a queue stays, so a
test says only what changes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from hack.testbed import Testbed
from hack.testbed.waiting import PATIENCE
from muster.kube.client import Client
from muster.kube.config import Connection

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Body = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]
"""What comes out of a stream of bytes; it may raise ConnectionResetError to cut the connection."""


@dataclass(frozen=True)
class Request:
    """What a client sent, and when by the loop's clock."""

    kind: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    at: float


@dataclass
class FaultyApiserver:
    """Queues of answers by kind: LIST, WATCH, or the HTTP method.

    `requests` has everything that came, `statuses` what the real apiserver said to what was passed on, with the header
    Date of `date` where there is one. An API GROUP/VERSION in `renamed` is another one at the real apiserver.
    """

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    date: Callable[[], str] | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    _answers: dict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _upstream: aiohttp.ClientSession | None = None
    _behind: str = ""

    def on(self, kind: str, *answers: Answer) -> None:
        """Replace what is left of the answers to this kind of request; none: pass on to the real apiserver."""
        self._answers[kind] = deque(answers)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Pass on to the real apiserver, and its answer back."""
        return await self.spoiled(lambda chunks: chunks)(request)

    def spoiled(self, body: Body) -> Answer:
        """Pass on to the real apiserver, and do this to the body of its answer, if that is no refusal."""

        async def answer(request: web.Request) -> web.StreamResponse:
            assert self._upstream is not None, "there is no real apiserver behind"
            path = self._there(request.raw_path.encode()).decode()
            url = URL(f"{self._behind}{path}", encoded=True)
            headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
            # aiohttp would ask for gzip by itself, which the apiserver gives what is larger than 128 KiB.
            headers["Accept-Encoding"] = "identity"
            data = self._there(await request.read())
            try:
                async with self._upstream.request(
                    request.method, url, headers=headers, data=data or None, allow_redirects=False
                ) as real:
                    self.statuses.append(real.status)
                    given = {
                        name: real.headers[name] for name in ("Content-Type", "Retry-After") if name in real.headers
                    }
                    if self.date is not None:
                        given["Date"] = self.date()
                    response = web.StreamResponse(status=real.status, headers=given)
                    await response.prepare(request)
                    whole = self._here(real.content) if self.renamed else real.content.iter_any()
                    async for part in body(whole) if real.ok else whole:
                        await response.write(part)
                    return response
            except (aiohttp.ClientError, OSError):  # the apiserver is away, the client is, or we are told to cut
                _abort(request)
                return web.Response()

        return answer

    def _there(self, text: bytes) -> bytes:
        for ours, theirs in self.renamed.items():
            text = text.replace(ours.encode(), theirs.encode())
        return text

    async def _here(self, content: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        async for line in content:
            text = line
            for ours, theirs in self.renamed.items():
                text = text.replace(theirs.encode(), ours.encode())
            yield text

    def drop(self) -> None:
        """Cut every connection that is being served."""
        self._closing.set()
        self._closing = asyncio.Event()

    def seen(self, kind: str) -> list[Request]:
        """The requests of this kind, in order."""
        return [request for request in self.requests if request.kind == kind]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer as told."""
        kind = request.method
        if kind == "GET" and "watch" in request.query:
            kind = "WATCH"
        elif kind == "GET" and "limit" in request.query:
            kind = "LIST"
        body = await request.read()
        self.requests.append(
            Request(
                kind,
                request.raw_path.partition("?")[0],
                dict(request.query),
                dict(request.headers),
                json.loads(body) if body else None,
                asyncio.get_running_loop().time(),
            )
        )
        answers = self._answers[kind]
        answer = (answers.popleft() if len(answers) > 1 else answers[0]) if answers else self.forward
        serving = asyncio.ensure_future(answer(request))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({serving, closing}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                return await serving
            _abort(request)
            return web.Response()
        finally:
            serving.cancel()
            closing.cancel()
            await asyncio.wait({serving, closing})

    @classmethod
    @asynccontextmanager
    async def serving(cls) -> AsyncIterator[FaultyApiserver]:
        """Serve on a free port of the loopback address."""
        async with cls()._serving() as server:
            yield server

    @classmethod
    @asynccontextmanager
    async def in_front_of(cls, testbed: Testbed) -> AsyncIterator[FaultyApiserver]:
        """Serve, without TLS, what the testbed's apiserver answers."""
        context = ssl.create_default_context(cafile=str(testbed.ca_file))
        sockets: list[socket.socket] = []

        def opened(address: aiohttp.AddrInfoType) -> socket.socket:
            sockets.append(socket.socket(*address[:3]))
            return sockets[-1]

        # No limit: a request that is kept waiting must not keep others from theirs.
        connector = aiohttp.TCPConnector(ssl=context, limit=0, socket_factory=opened)
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(), auto_decompress=False
            ) as session,
            cls(_upstream=session, _behind=testbed.server)._serving() as server,
        ):
            yield server
        # An orderly end of TLS waits for the other side; it must not outlive the test.
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        await eventually(lambda: all(one.fileno() == -1 for one in sockets))

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[FaultyApiserver]:
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
            yield self
        finally:
            self._closing.set()
            await runner.cleanup()

    @asynccontextmanager
    async def client(self, connection: Connection | None = None) -> AsyncIterator[Client]:
        """Connect to it."""
        async with Client(connection or Connection(self.url), user_agent="muster-test") as client:
            yield client


def reply(body: object, status: int = 200, **headers: str) -> Answer:
    """Give JSON; underscores in header names stand for hyphens."""

    async def answer(_: web.Request) -> web.StreamResponse:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body, status=status, headers=names)

    return answer


def failure(status: int, reason: str = "", message: str = "no", **headers: str) -> Answer:
    """Give a Kubernetes Status."""
    return reply({"kind": "Status", "reason": reason, "message": message, "code": status}, status, **headers)


def html(status: int) -> Answer:
    """Give a load balancer's page."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>502 Bad Gateway</html>", content_type="text/html", status=status)

    return answer


async def hang(_: web.Request) -> web.StreamResponse:
    """Accept, and never answer."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def reset(request: web.Request) -> web.StreamResponse:
    """Cut the connection without an answer."""
    _abort(request)
    return web.Response()


def stream(*parts: bytes, then: Answer | None = None) -> Answer:
    """Send the parts of a watch, then end it in order, or hang or reset."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if then is not None:
            await then(request)
        return response

    return answer


def only(path: str, answer: Answer, otherwise: Answer) -> Answer:
    """Give this answer to requests of this path alone."""

    async def chosen(request: web.Request) -> web.StreamResponse:
        return await (answer if request.path == path else otherwise)(request)

    return chosen


def cut(lines: int) -> Body:
    """Let so many lines pass, then half of the next one, and cut the connection."""

    async def body(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        left, rest = lines, b""
        async for chunk in chunks:
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                if left == 0:
                    yield line[: len(line) // 2]
                    raise ConnectionResetError
                left -= 1
                yield line + b"\n"

    return body


def crumbs(size: int) -> Body:
    """Send so many bytes at a time."""

    async def body(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            for start in range(0, len(chunk), size):
                yield chunk[start : start + size]
                await asyncio.sleep(0)

    return body


def paused(until: asyncio.Event) -> Body:
    """Take nothing from the apiserver, and so give nothing, until the event is set."""

    async def body(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        await until.wait()
        async for chunk in chunks:
            yield chunk

    return body


async def nothing(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Swallow everything, as a connection does whose other end is gone without a word."""
    async for _ in chunks:
        pass
    await asyncio.Event().wait()
    yield b""


def manifest(name: str, version: int, *, uid: str = "", namespace: str = "ns", **fields: object) -> dict[str, object]:
    """Give a small object."""
    metadata = {"name": name, "namespace": namespace, "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata, **fields}


def listing(version: int, *items: dict[str, object], continue_: str = "") -> dict[str, object]:
    """Give a list, or one page of it."""
    return {"metadata": {"resourceVersion": str(version), "continue": continue_}, "items": list(items)}


def event(kind: str, item: object) -> bytes:
    """Give a watch event's line."""
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


_PASSED_ON = ("Accept", "Authorization", "Content-Type", "User-Agent")


async def eventually(condition: Callable[[], object], within: float = PATIENCE) -> None:
    """Wait until the condition holds; TimeoutError when it does not within so many seconds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - the conditions are about others' state, which sets no event
            await asyncio.sleep(0.002)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
