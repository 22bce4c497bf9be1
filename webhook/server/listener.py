"""Connections: how many there may be, how long each may take to ask, and how they end.

An apiserver keeps up to 25 idle connections to a webhook for 90 seconds and expects them to be there. Others in the
cluster can reach the port as well, so connections are bounded: when there are too many, those that have never said
anything go first, the oldest before the others, then those of which no review was answered yet, then those that have
been idle for longest. Those that have proven themselves by a review keep a part of the places whatever comes; and none
is so busy between two reviews that a new connection waits for it. Where none may go, new ones wait in the kernel:
closing those that have just come would serve nobody in a rush.

An apiserver asks on the connections that it has. So none is kept for ever: else all would stay with the replica that
was there first, and with the certificate that it had then.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from webhook.server.intake import Intake

logger = logging.getLogger(__name__)

_BACKLOG = 256
# So many are accepted before those that came have a turn.
_BATCH = 16
# How long a connection may say nothing, may take until its first review is answered, or be idle after that, before it
# gives way; and how often it is looked who may.
_SILENT_SECONDS, _UNPROVEN_SECONDS, _IDLE_SECONDS, _ROOM_SECONDS = 0.1, 1.0, 0.1, 0.02
# The part of the places that connections without an answered review may have.
_UNPROVEN = 0.75
# While the machine has no more file descriptors or memory.
_ACCEPT_RETRY_SECONDS = 0.5
# How long a connection is kept that comes when the server is about to end.
_LEAVING_SECONDS = 1.0
# How long idle clients may ask once more while the server ends, and how often it looks whether all have.
_TELLING_SECONDS, _LOOK_SECONDS = 1.0, 0.02
# What is cut off may still clean up; twice as long at most.
_CUTTING_SECONDS = 0.1
# What a connection buffers of a body that nobody reads yet, in bytes.
_READ_BUFFER = 2**16
# The part of its time that a connection is kept at least: those that came together go one by one.
_EARLIEST = 0.8
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that a client may take: for the TLS handshake, for the head of a request, and until it asks (again).

    The apiserver keeps idle connections for 90 s; closing ours earlier would fail a call now and then. On some of them
    it has not asked yet: it dials when a call comes, and the call goes by another connection where one is free first. A
    connection that has been there for `whole` seconds ends with its next answer, which says so, and never between two.
    """

    handshake: float = 5.0
    head: float = 5.0
    idle: float = 120.0
    whole: float = 300.0


class Listener:
    """Has a handler answer requests over TLS on one address until `drain`."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        intake: Intake,
        context: Callable[[], ssl.SSLContext],
        *,
        connections: int = 256,
        patience: Patience | None = None,
    ) -> None:
        self._intake = intake
        self._context = context
        self._most = connections
        self._patience = patience or Patience()
        self._server = web.Server(handler)
        # In the order in which they came.
        self._connections: dict[_Connection, None] = {}
        self._handshakes: dict[_Connection, asyncio.Task[None]] = {}
        self._socket: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._leaving = False

    @property
    def connections(self) -> int:
        """How many connections there are, those in their handshake included."""
        return len(self._connections)

    @property
    def serving(self) -> bool:
        """Whether connections are taken."""
        return self._socket is not None and not self._intake.closing

    async def start(self, address: str, port: int) -> tuple[str, int]:
        """Listen, where `address` is empty on all addresses that the host has, IPv4 and IPv6.

        Returns the address and the port. Raises OSError when they cannot be had.
        """
        both = not address and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both or ":" in address else socket.AF_INET
        # Replicas on one host (the testbed) share the Service's address.
        self._socket = socket.create_server(
            (address, port), family=family, backlog=_BACKLOG, reuse_port=True, dualstack_ipv6=both
        )
        self._socket.setblocking(False)
        self._tasks = [asyncio.create_task(self._accept(self._socket)), asyncio.create_task(self._watch())]
        name = self._socket.getsockname()
        return name[0], name[1]

    async def drain(self, seconds: float, *, after: float = 0.0) -> None:
        """Take no more connections, answer what is under way, tell every client to close, and end within `seconds`.

        It begins `after` so many seconds, until when connections are taken, and each ends with its next answer. For a
        client that asks on an idle connection just as that is closed fails, and the more the busier the machine is: few
        are to be left by then, and those are granted another moment to be told. What is under way after `seconds` is
        cut off.
        """
        self._leaving = True
        for connection in self._connections:
            connection.retire()
        if after:
            await asyncio.sleep(after)
        self._intake.closing = True
        listening, self._socket = self._socket, None
        if listening is None:
            return
        clock = asyncio.get_running_loop().time
        accepting, watching = self._tasks
        accepting.cancel()
        await asyncio.wait({accepting})
        # Whoever the kernel has let in would be reset.
        with suppress(OSError):
            while accepted := _accepted(listening):
                self._admit(accepted)
        listening.close()
        end, told = clock() + seconds, clock() + min(_TELLING_SECONDS, seconds)
        while clock() < end and (self._under_way() or (self._connections and clock() < told)):  # noqa: ASYNC110 - once
            await asyncio.sleep(_LOOK_SECONDS)
        watching.cancel()
        shaking = list(self._handshakes.values())
        for task in shaking:
            task.cancel()
        if shaking:
            await asyncio.wait(shaking)
        self._server.pre_shutdown()
        await self._server.shutdown(_CUTTING_SECONDS)

    def _under_way(self) -> bool:
        new = asyncio.get_running_loop().time() - self._patience.head
        return any(
            one.busy or one.waiting_since != _NEVER or one in self._handshakes or (not one.asked and one.last > new)
            for one in self._connections
        )

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            await _readable(listening)
            try:
                # Not all that wait at once: those that came get their turn in between.
                for _ in range(_BATCH):
                    accepted = _accepted(listening)
                    if accepted is None:
                        break
                    try:
                        await self._room()
                    finally:
                        # Also at the end.
                        self._admit(accepted)
            except OSError as error:
                logger.warning(
                    "cannot accept connections for now: %s", error, extra={"event": "connection.not_accepted"}
                )
                await asyncio.sleep(_ACCEPT_RETRY_SECONDS)

    async def _room(self) -> None:
        """Wait until one more connection may be."""
        while not self._has_room():  # noqa: ASYNC110 - time makes room, too
            await asyncio.sleep(_ROOM_SECONDS)

    def _has_room(self) -> bool:
        """Whether one more connection may be, which is none of the proven ones yet; closes another where it must."""
        unproven = [one for one in self._connections if not one.proven]
        if len(unproven) >= int(self._most * _UNPROVEN):
            return self._make_room(unproven)
        return len(self._connections) < self._most or self._make_room(self._connections)

    def _admit(self, accepted: socket.socket) -> None:
        connection = _Connection(
            self,
            self._server,
            whole=_LEAVING_SECONDS if self._leaving else self._kept(),
            loop=asyncio.get_running_loop(),
            keepalive_timeout=self._patience.idle,
            access_log=None,
            read_bufsize=_READ_BUFFER,
            # A compressed body would be as large as its sender likes.
            auto_decompress=False,
            lingering_time=self._patience.head,
        )
        self._connections[connection] = None
        shaking = self._handshakes[connection] = asyncio.create_task(self._handshake(connection, accepted))
        # Called also for a task that is cancelled before it has begun.
        shaking.add_done_callback(lambda _: self._shaken(connection, accepted))

    def _kept(self) -> float:
        return self._patience.whole * random.uniform(_EARLIEST, 1)  # noqa: S311 - not a secret

    async def _handshake(self, connection: _Connection, accepted: socket.socket) -> None:
        try:
            async with asyncio.timeout(self._patience.handshake):
                # TLS takes a quarter of a megabyte: not for who says nothing.
                await _readable(accepted)
            connection.silent = False
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context(),
                ssl_handshake_timeout=self._patience.handshake,
                ssl_shutdown_timeout=self._patience.handshake,
            )
        except OSError as error:
            # Scanners, probes, clients that do not trust us: theirs to notice.
            logger.debug("TLS handshake failed: %s", error, extra={"event": "connection.tls"})

    def _shaken(self, connection: _Connection, accepted: socket.socket) -> None:
        del self._handshakes[connection]
        if not connection.connected:
            accepted.close()
            self.left(connection)

    def _make_room(self, connections: Iterable[_Connection]) -> bool:
        """Close that of these connections which is needed least; False when all are needed."""
        now = asyncio.get_running_loop().time()
        spare = [one for one in connections if not one.busy and now - one.last > one.patience]
        least = min(spare, key=lambda one: (one.proven, not one.silent, one.last), default=None)
        if least is None:
            return False
        self.left(least)
        if least in self._handshakes:
            self._handshakes[least].cancel()
        else:
            least.abort()
        return True

    async def _watch(self) -> None:
        """Close the connections on which a head takes too long, or on which none ever came."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(min(self._patience.head, self._patience.idle) / 4)
            late, idle = clock() - self._patience.head, clock() - self._patience.idle
            # aiohttp closes those on which something was answered.
            for connection in [
                one for one in self._connections if one.waiting_since < late or (not one.asked and one.last < idle)
            ]:
                connection.abort()

    def left(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)


class _Connection(web.RequestHandler):
    """One connection, since when it owes the head of a request, and how long it is kept."""

    __slots__ = ("_listener", "_until", "asked", "busy", "last", "proven", "silent", "waiting_since")

    def __init__(
        self,
        listener: Listener,
        server: Any,  # noqa: ANN401 - as aiohttp's
        *,
        whole: float,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(server, **options)
        self._listener = listener
        self.busy = False
        # Not a byte came.
        self.silent = True
        # A byte of a request came.
        self.asked = False
        # A review that came on it was answered.
        self.proven = False
        self.last = self._loop.time()
        self._until = self.last + whole
        self.waiting_since = _NEVER

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.last = self._loop.time()

    def data_received(self, data: bytes) -> None:
        self.asked = True
        if self.waiting_since == _NEVER and not self.busy:
            self.waiting_since = self._loop.time()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.left(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.Response:
        """Answer what is no HTTP; aiohttp would log and echo what was sent."""
        del request, message
        logger.debug("malformed HTTP request: %s", type(exc).__name__, extra={"event": "connection.http"})
        response = web.Response(status=status, text="not understood\n")
        response.force_close()
        return response

    def __enter__(self) -> None:
        """Note that a head is complete."""
        self.busy = True
        self.waiting_since = _NEVER

    def __exit__(self, *_: object) -> None:
        """Note that its request is answered."""
        self.busy = False
        self.last = self._loop.time()

    @property
    def patience(self) -> float:
        """How long it may do nothing while others want its place, in seconds."""
        if self.silent:
            return _SILENT_SECONDS
        return _IDLE_SECONDS if self.proven else _UNPROVEN_SECONDS

    @property
    def outlived(self) -> bool:
        """Whether it has been there for long enough."""
        return self._loop.time() >= self._until

    def retire(self) -> None:
        """Have it end with its next answer."""
        self._until = self._loop.time()

    def abort(self) -> None:
        """Close it without waiting for anything."""
        if self.transport is not None:
            self.transport.abort()


def heard(protocol: object) -> AbstractContextManager[None]:
    """While the body runs a request of that connection is under way: its head has come."""
    return protocol if isinstance(protocol, _Connection) else nullcontext()


def proven(protocol: object) -> None:
    """A review that came on that connection was answered."""
    if isinstance(protocol, _Connection):
        protocol.proven = True


def outlived(protocol: object) -> bool:
    """Whether the answer to this request is to end its connection, for it has been there for long enough."""
    return isinstance(protocol, _Connection) and protocol.outlived


def _accepted(listening: socket.socket) -> socket.socket | None:
    """A connection that waits, or None."""
    try:
        accepted, _ = listening.accept()
    except (BlockingIOError, InterruptedError, ConnectionAbortedError):
        return None
    accepted.setblocking(False)
    return accepted


async def _readable(waited_for: socket.socket) -> None:
    """Wait until there is something to read, or to accept."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(waited_for, _wake, readable)
    try:
        await readable
    finally:
        loop.remove_reader(waited_for)


def _wake(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)
