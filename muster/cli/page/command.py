"""`muster page`: reads the cluster, follows it, and serves the page on loopback until Ctrl-C."""

import argparse
import asyncio
import errno
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from muster.cli.connecting import opened, reading
from muster.cli.page.guard import Door
from muster.cli.page.server import Listeners, application
from muster.cli.page.state import PageState, page_state
from muster.cli.ui import CommandError, as_long_as_read
from muster.process.lifecycle import stop_signal

# How often another free port is tried where one is free on 127.0.0.1 and taken on ::1.
_ATTEMPTS = 10
_NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster page`, which ends with Ctrl-C; 2 when the cluster does not answer, or the port is taken.

    Once it serves, the page shows that a cluster does not answer any more.
    """
    try:
        sockets = loopback(arguments.port)
    except OSError as error:
        raise CommandError(str(error.strerror)) from error
    try:
        asyncio.run(_serve(arguments, sockets))
    finally:
        for one in sockets:
            one.close()
    return 0


async def _serve(arguments: argparse.Namespace, sockets: Sequence[socket.socket]) -> None:
    secret = secrets.token_urlsafe(24)
    async with opened(arguments) as (client, settings):
        reading("page", client)
        async with page_state(client, settings, arguments.namespace or client.namespace) as state:
            # Not before: until there is an address, Ctrl-C ends the wait for an apiserver that does not answer.
            stop = stop_signal()
            async with serving(state, Door(secret), sockets):
                port = sockets[0].getsockname()[1]
                with as_long_as_read():
                    print(f"http://127.0.0.1:{port}/{secret}/")
                print("muster page: the address is a secret; Ctrl-C ends the page", file=sys.stderr, flush=True)
                await stop.wait()


@asynccontextmanager
async def serving(state: PageState, door: Door, sockets: Sequence[socket.socket]) -> AsyncIterator[Listeners]:
    """Serve the page on these sockets in the block, and keep it up to date."""
    listeners = Listeners(state)
    # No access log: it would have the secret in it.
    app = application(state, door, listeners)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    async with state.kept_up():
        try:
            await runner.setup()
            for one in sockets:
                await web.SockSite(runner, one).start()
            yield listeners
        finally:
            await runner.cleanup()


def loopback(port: int) -> list[socket.socket]:
    """Sockets bound to 127.0.0.1 and, where the machine has it, ::1, both with this port, 0 for a free one.

    Raises OSError when the port cannot be had on either.
    """
    for attempt in range(_ATTEMPTS):
        first = _bound(socket.AF_INET, "127.0.0.1", port)
        try:
            return [first, _bound(socket.AF_INET6, "::1", first.getsockname()[1])]
        except OSError as error:
            if error.errno in _NO_IPV6:
                return [first]
            first.close()
            if port or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returned or raised")


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind((host, port))
    except OSError as error:
        one.close()
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}") from error
    return one
