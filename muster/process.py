"""What both of muster's processes do alike: logs, health probes on a port of their own, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

import muster
from muster.kube.config import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

__all__ = ["Identity", "add_common_arguments", "configure_logging", "identity", "run", "serve_health", "stop_signal"]


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
    parser.add_argument("--health-bind-address", default="0.0.0.0", help="address of /healthz and /readyz")  # noqa: S104
    parser.add_argument("--health-port", type=int, default=8080, help="port of /healthz and /readyz")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    parser.add_argument("--default-queue", default="default", help="queue of workloads that name none")
    parser.add_argument("--version", action="version", version=muster.__version__)


def configure_logging(level: str) -> None:
    """One line per record on standard error."""
    logging.basicConfig(
        level=level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


def run(name: str, process: Coroutine[Any, Any, None]) -> None:
    """Run a process to its end; without a usable configuration it exits with one clear line."""
    try:
        asyncio.run(process)
    except ConfigError as error:
        sys.exit(f"{name}: {error}")


@asynccontextmanager
async def serve_health(address: str, port: int, *, ready: Callable[[], Mapping[str, bool]]) -> AsyncIterator[None]:
    """Serve /healthz (the event loop turns) and /readyz (every named condition holds) while the body runs."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        checks = ready()
        text = "".join(f"{name}: {'ok' if holds else 'not yet'}\n" for name, holds in checks.items())
        return web.Response(text=text, status=200 if all(checks.values()) else 503)

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield
    finally:
        await runner.cleanup()


def stop_signal() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
