"""What both of muster's processes do alike: logs, probes and metrics on a port of their own, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from prometheus_client.exposition import choose_encoder

import muster
from muster.kube.config import ConfigError
from muster.logs import FORMATS, LEVELS, set_level
from muster.modes import GateMode

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from prometheus_client import CollectorRegistry

__all__ = [
    "Identity",
    "add_common_arguments",
    "identity",
    "is_loopback",
    "run",
    "serve_health",
    "spare_collector",
    "stop_signal",
]

logger = logging.getLogger(__name__)

# After so many objects more than were freed the collector looks at the youngest, after so many such looks at those that
# were left, and after so many of these at all. Python's own numbers are 700, 10, 10.
_COLLECTED_AFTER = (100_000, 50, 1000)
# A level is one word.
_LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class Identity:
    """Which pod this process is; the chart sets POD_NAME and POD_NAMESPACE from the downward API."""

    name: str
    namespace: str


def identity() -> Identity:
    """The identity of this process; exits with a clear line when the environment does not say it."""
    missing = [name for name in ("POD_NAME", "POD_NAMESPACE") if not os.environ.get(name)]
    if missing:
        sys.exit(f"muster: {' and '.join(missing)} must be set; the chart takes them from the pod's own metadata")
    return Identity(os.environ["POD_NAME"], os.environ["POD_NAMESPACE"])


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags that both processes take."""
    parser.add_argument("--kubeconfig", help="path of a kubeconfig; without it the pod's own ServiceAccount is used")
    parser.add_argument("--health-bind-address", default="", help="address of probes and metrics (all that there are)")
    parser.add_argument("--health-port", type=int, default=8080, help="port of probes and metrics")
    parser.add_argument("--log-level", default="info", choices=LEVELS, help="least level that is written")
    parser.add_argument("--log-format", default="console", choices=list(FORMATS), help="for people, or for machines")
    parser.add_argument("--default-queue", default="default", help="queue of workloads that name none")
    parser.add_argument(
        "--gate",
        type=GateMode,
        choices=list(GateMode),
        default=GateMode.QUEUE,
        help="what holds gangs back where neither their queue nor their namespace says",
    )
    parser.add_argument("--version", action="version", version=muster.__version__)


def spare_collector() -> None:
    """Have the cycle collector look seldom, and never at what is loaded by now.

    By its own numbers it goes through a hundred thousand objects of loaded modules and a whole store every few pages of
    a list, and everything waits meanwhile. What these processes drop is freed by its reference count at once.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)


def run(name: str, process: Coroutine[Any, Any, None]) -> None:
    """Run a process to its end; without a usable configuration it exits with one clear line."""
    spare_collector()
    try:
        asyncio.run(process)
    except ConfigError as error:
        sys.exit(f"{name}: {error}")


@asynccontextmanager
async def serve_health(
    address: str, port: int, *, ready: Callable[[], Mapping[str, str]], registry: CollectorRegistry
) -> AsyncIterator[None]:
    """Serve probes, metrics and the log level while the body runs, on all addresses where `address` is empty.

    /healthz: the event loop turns. /readyz: nothing is missing of what `ready` names; its text says what is, by name,
    "" for what holds. /log-level: read by anybody, changed (PUT) by whoever reaches the port from within the pod.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        checks = ready()
        text = "".join(f"{name}: {missing or 'ok'}\n" for name, missing in checks.items())
        return web.Response(text=text, status=503 if any(checks.values()) else 200)

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

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
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, address or None, port).start()
        yield
    finally:
        await runner.cleanup()


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
    logger.warning("log level: %s", level)
    return await _show_level(request)


def is_loopback(remote: str | None) -> bool:
    """Whether a caller's address is this pod's own."""
    if remote is None:
        return False
    address = ipaddress.ip_address(remote)
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def stop_signal() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; a second one ends the process at once, as Kubernetes' own do."""
    stop = asyncio.Event()

    def told(number: signal.Signals) -> None:
        if stop.is_set():
            logger.warning("told twice to end: ending at once")
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told, number)
    return stop
