"""A small HTTP server in place of the apiserver that does, on demand, what networks and overloaded servers do.

Answers are queued per kind of request; the last one of a queue stays, so a test says only what changes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from muster.kube.client import Client
from muster.kube.config import Connection

__all__ = [
    "Answer",
    "FaultyApiserver",
    "Request",
    "event",
    "eventually",
    "failure",
    "hang",
    "html",
    "listing",
    "manifest",
    "reply",
    "reset",
    "stream",
]

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Request:
    """What a client sent, and when by the monotonic clock."""

    kind: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    at: float


@dataclass
class FaultyApiserver:
    """Queues of answers by kind: LIST, WATCH, or the HTTP method; `requests` has everything that came."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    _answers: dict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def on(self, kind: str, *answers: Answer) -> None:
        """Replace what is left of the answers to this kind of request."""
        self._answers[kind] = deque(answers)

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
                time.monotonic(),
            )
        )
        answers = self._answers[kind]
        answer = answers.popleft() if len(answers) > 1 else answers[0]
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

    @classmethod
    @asynccontextmanager
    async def serving(cls) -> AsyncIterator[FaultyApiserver]:
        """Serve on a free port of the loopback address."""
        server = cls()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            server.url = f"http://{host}:{port}"
            yield server
        finally:
            server._closing.set()
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


async def eventually(condition: Callable[[], object], within: float = 5.0) -> None:
    """Wait until the condition holds; TimeoutError when it does not within so many seconds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - the conditions are about others' state, which sets no event
            await asyncio.sleep(0.002)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
