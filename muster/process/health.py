"""Probes, metrics and the log level, on a port of their own and in a thread of their own.

A probe that waits for the event loop shows only that the loop is busy, which is no reason to kill a process or to send
it no calls. So a thread answers, from the state that the loop has recorded last:

/healthz: the loop has turned within the last `_DEAD` seconds. A loop that is dead writes nothing, and the kubelet
restarts the process.
/readyz: nothing was missing when the loop looked last, and it has turned within the last `_STUCK` seconds, longer than
any review may take: after that another replica should answer.
/metrics: collected by the thread, once for all requests that wait, in a share of its time, so that frequent requests do
not keep the loop from its work. The oldest connections are closed when there are more than a cluster needs.
"""

import asyncio
import ipaddress
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from muster.process.logs import set_level

logger = logging.getLogger(__name__)

# A level is one word.
_LONGEST_WORD = 64
# Seconds between two records of the loop, and the longest time without one.
_BEAT, _STUCK, _DEAD = 0.25, 5.0, 10.0
# The part of its time that the thread may spend on metrics, and the attempts when a number changes under it.
_SHARE, _TRIES = 1 / 20, 5
# Probes, and some that scrape; a new one closes the oldest, so that a probe always gets its answer.
_CONNECTIONS = 64


class Pulse:
    """The state of the event loop in its last turn; read in any thread. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._last: tuple[float, Mapping[str, str]] = float("inf"), {}

    def beat(self, now: float, ready: Mapping[str, str]) -> None:
        """Record a turn of the loop, with the conditions for answering calls as `serve_health` takes them."""
        self._last = now, dict(ready)

    def dead(self, now: float) -> str:
        """The reason to restart the process, "" for none."""
        return self._silent(now, _DEAD)

    def checks(self, now: float) -> Mapping[str, str]:
        """The conditions for answering calls, by name: what is missing, "" if nothing is."""
        stuck = self._silent(now, _STUCK)
        return {**self._last[1], **({"event loop": stuck} if stuck else {})}

    def _silent(self, now: float, most: float) -> str:
        seconds = now - self._last[0]
        return f"has not turned for {seconds:.0f} s" if seconds > most else ""


async def _beat(pulse: Pulse, ready: Callable[[], Mapping[str, str]]) -> None:
    """Record the state of the loop, for ever."""
    while True:
        pulse.beat(time.monotonic(), ready())
        await asyncio.sleep(_BEAT)


@asynccontextmanager
async def serve_health(
    address: str, port: int, *, ready: Callable[[], Mapping[str, str]], registry: CollectorRegistry
) -> AsyncIterator[None]:
    """Serve probes, metrics and the log level while the body runs, on all addresses where `address` is empty.

    `ready` returns conditions by name: what is missing, "" if nothing is. It is called on this event loop, and the
    metrics in the thread. Every client may read the log level; only clients within the pod may change it (PUT). Raises
    OSError when the port cannot be had.
    """
    pulse = Pulse()
    pulse.beat(time.monotonic(), ready())
    server = _Server(_application(pulse, registry), address, port)
    beating = asyncio.create_task(_beat(pulse, ready))
    try:
        await server.start()
        yield
    finally:
        beating.cancel()
        await server.stop()


class _Server:
    """An application served by an event loop in a thread."""

    def __init__(self, application: web.Application, address: str, port: int) -> None:
        self._application = application
        self._address = address
        self._port = port
        self._loop = asyncio.new_event_loop()
        # A process that ends does not wait for it.
        self._thread = threading.Thread(target=self._loop.run_forever, name="health", daemon=True)
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._listen(), self._loop))

    async def stop(self) -> None:
        """End, and give the port back."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._close(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _listen(self) -> None:
        self._runner = web.AppRunner(self._application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise AssertionError("set up, and no server")

        def close_oldest() -> None:
            there = server.connections
            for one in there[: max(0, len(there) - _CONNECTIONS)]:
                one.force_close()

        def connection() -> asyncio.Protocol:
            # Later: of many that are accepted at once the server knows none yet.
            asyncio.get_running_loop().call_later(0, close_oldest)
            return server()

        self._listening = await self._loop.create_server(connection, self._address or None, self._port)

    async def _close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        if self._runner is not None:
            await self._runner.cleanup()


class _Metrics:
    """The text of a registry; requests that wait for a collection get the same one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._due: dict[str, asyncio.Task[bytes]] = {}
        self._next = 0.0

    async def text(self, accept: str) -> tuple[bytes, str]:
        """Return metrics that are collected after this call, and their content type."""
        encode, content_type = choose_encoder(accept)
        if content_type not in self._due:
            self._due[content_type] = asyncio.create_task(self._collected(encode, content_type))
        return await asyncio.shield(self._due[content_type]), content_type

    async def _collected(self, encode: Callable[[CollectorRegistry], bytes], content_type: str) -> bytes:
        await asyncio.sleep(self._next - time.monotonic())
        del self._due[content_type]
        began = time.thread_time()
        try:
            for _ in range(_TRIES):
                # The event loop does not wait, and may change the numbers during the collection.
                with suppress(RuntimeError):
                    return encode(self._registry)
            return encode(self._registry)
        finally:
            self._next = time.monotonic() + (time.thread_time() - began) / _SHARE


def _application(pulse: Pulse, registry: CollectorRegistry) -> web.Application:
    collected = _Metrics(registry)

    async def healthz(_: web.Request) -> web.Response:
        dead = pulse.dead(time.monotonic())
        return web.Response(text=f"the event loop {dead}\n" if dead else "ok\n", status=503 if dead else 200)

    async def readyz(_: web.Request) -> web.Response:
        checks = pulse.checks(time.monotonic())
        text = "".join(f"{name}: {missing or 'ok'}\n" for name, missing in checks.items())
        return web.Response(text=text, status=503 if any(checks.values()) else 200)

    async def metrics(request: web.Request) -> web.Response:
        body, content_type = await collected.text(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application(client_max_size=_LONGEST_WORD)
    app.add_routes(
        [
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
            web.get("/metrics", metrics),
            web.get("/log-level", _show_level),
            web.put("/log-level", _change_level),
        ]
    )
    return app


async def _show_level(_: web.Request) -> web.Response:
    return web.Response(text=f"{logging.getLevelName(logging.getLogger().level).lower()}\n")


async def _change_level(request: web.Request) -> web.Response:
    """Set the level until the process ends. `kubectl port-forward` comes from loopback, and asks RBAC first."""
    if not is_loopback(request.remote):
        return web.Response(status=403, text="only from within the pod; use kubectl port-forward\n")
    try:
        level = (await request.text()).strip()
        set_level(level)
    except ValueError as error:
        return web.Response(status=400, text=f"{error}\n")
    logger.warning("log level set to %s", level, extra={"event": "log.level"})
    return await _show_level(request)


def is_loopback(remote: str | None) -> bool:
    """True if a caller's address is this pod's own."""
    if remote is None:
        return False
    address = ipaddress.ip_address(remote)
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
