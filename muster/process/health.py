"""Probes, metrics and the log level, on a port of their own and in a thread of their own.

A probe that waits for the event loop says no more than that the loop is busy, and a busy process is not to be killed or
left without calls for that. So a thread answers, by what the loop has written down last:

/healthz: the loop has turned within the last `_DEAD` seconds. A loop that is dead writes nothing, and the kubelet
restarts the process.
/readyz: nothing was missing when the loop looked last, and it has turned within the last `_STUCK` seconds: who would
wait for longer than any review may take had better ask another replica.
/metrics: asked of the loop, whose they are; 503 where it has no time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import threading
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from muster.process.logs import set_level

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from prometheus_client import CollectorRegistry

__all__ = ["Pulse", "is_loopback", "serve_health"]

logger = logging.getLogger(__name__)

# A level is one word.
_LONGEST_WORD = 64
# How often the loop writes down how it is, and for how long it may say nothing, in seconds.
_BEAT, _STUCK, _DEAD = 0.25, 5.0, 10.0
# How long the loop may take for its metrics; Prometheus waits 10 s.
_METRICS_SECONDS = 8.0


class Pulse:
    """How the event loop was when it turned last; read in any thread. `clock` counts seconds."""

    def __init__(self, ready: Callable[[], Mapping[str, str]], clock: Callable[[], float] = time.monotonic) -> None:
        self._ready = ready
        self._clock = clock
        self._last: tuple[float, Mapping[str, str]] = clock(), dict(ready())

    async def run(self) -> None:
        """Write down how it is, for ever."""
        while True:
            self.beat()
            await asyncio.sleep(_BEAT)

    def beat(self) -> None:
        """The loop turns."""
        self._last = self._clock(), dict(self._ready())

    @property
    def dead(self) -> str:
        """Why the process is to be restarted, "" where it is not."""
        return self._silent(_DEAD)

    @property
    def checks(self) -> Mapping[str, str]:
        """What is missing for calls to be answered, by name, "" for what holds."""
        stuck = self._silent(_STUCK)
        return {**self._last[1], **({"event loop": stuck} if stuck else {})}

    def _silent(self, most: float) -> str:
        seconds = self._clock() - self._last[0]
        return f"has not turned for {seconds:.0f} s" if seconds > most else ""


@asynccontextmanager
async def serve_health(
    address: str, port: int, *, ready: Callable[[], Mapping[str, str]], registry: CollectorRegistry
) -> AsyncIterator[None]:
    """Serve probes, metrics and the log level while the body runs, on all addresses where `address` is empty.

    `ready` says what is missing, by name, "" for what holds; it is asked on this event loop, as the metrics are. The
    log level is read by anybody, and changed (PUT) by whoever reaches the port from within the pod. Raises OSError when
    the port cannot be had.
    """
    pulse = Pulse(ready)
    server = _Server(_application(pulse, registry, asyncio.get_running_loop()), address, port)
    beating = asyncio.create_task(pulse.run())
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

    async def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._listen(), self._loop))

    async def stop(self) -> None:
        """End, and give the port back."""
        if self._runner is not None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def _listen(self) -> None:
        self._runner = web.AppRunner(self._application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address or None, self._port).start()


def _application(pulse: Pulse, registry: CollectorRegistry, loop: asyncio.AbstractEventLoop) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        dead = pulse.dead
        return web.Response(text=f"the event loop {dead}\n" if dead else "ok\n", status=503 if dead else 200)

    async def readyz(_: web.Request) -> web.Response:
        checks = pulse.checks
        text = "".join(f"{name}: {missing or 'ok'}\n" for name, missing in checks.items())
        return web.Response(text=text, status=503 if any(checks.values()) else 200)

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))

        async def collect() -> bytes:
            return encode(registry)

        with suppress(TimeoutError):
            async with asyncio.timeout(_METRICS_SECONDS):
                body = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(collect(), loop))
            return web.Response(body=body, headers={"Content-Type": content_type})
        return web.Response(text="the event loop has no time for its metrics\n", status=503)

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
    """Whether a caller's address is this pod's own."""
    if remote is None:
        return False
    address = ipaddress.ip_address(remote)
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
