"""Connections: how many there may be, how long each may take to ask, and how they end.

An apiserver keeps up to 25 idle connections to a webhook for 90 seconds and expects them to stay open. Other clients in
the cluster can reach the port as well, so connections are bounded. When there are too many, silent connections are
closed first, the oldest before the others, then connections without an answered review, then the ones that have been
idle for longest. A quarter of the connections is reserved for clients that completed a review, and a connection that is
idle between two reviews gives way to a new one. If none can be closed, new connections wait in the kernel: to close
connections that have just come would help no client in a rush.

An apiserver reuses its connections. So each has a maximum age: otherwise all would stay with the replica that was there
first, and with the certificate that it had then.
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

logger = logging.getLogger(__name__)

_BACKLOG = 256
# Connections that are accepted in a row before the event loop serves others.
_BATCH = 16
# Seconds that a connection may be silent, without an answered review, or idle after one, before it may be closed for
# a new one; and seconds between two searches for such a connection.
_SILENT_SECONDS, _UNPROVEN_SECONDS, _IDLE_SECONDS, _ROOM_SECONDS = 0.1, 1.0, 0.1, 0.02
# The share of the connections that may be without an answered review.
_UNPROVEN = 0.75
# After the machine had no more file descriptors or memory.
_ACCEPT_RETRY_SECONDS = 0.5
# Maximum age of a connection that comes when the server is about to end.
_LEAVING_SECONDS = 1.0
# How long idle clients may send one more request while the server ends, and how often it checks.
_LAST_REQUEST_SECONDS, _CHECK_SECONDS = 1.0, 0.02
# Time to clean up for a request that is cut off; twice as long at most.
_CUTTING_SECONDS = 0.1
# Bytes of an unread body that a connection buffers.
_READ_BUFFER = 2**16
# The shortest maximum age, as a share: connections that came together close one by one.
_EARLIEST = 0.8
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that a client may take.

    :ivar handshake: for the TLS handshake
    :ivar head: for the head of a request
    :ivar idle: until its first or next request. The apiserver keeps idle connections for 90 s, and a call would fail
        now and then if ours closed earlier; it has some on which it has sent nothing, because it dials for a call that
        another connection then takes
    :ivar age: from the begin of a connection until an answer closes it (`Connection: close`), never between two
    """

    handshake: float = 5.0
    head: float = 5.0
    idle: float = 120.0
    age: float = 300.0


class Listener:
    """Serves a handler over TLS on one address until `drain`.

    :ivar closing: every answer closes its connection
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        context: Callable[[], ssl.SSLContext],
        *,
        connections: int = 256,
        patience: Patience | None = None,
    ) -> None:
        self._context = context
        self._most = connections
        self._patience = patience or Patience()
        self._server = web.Server(handler)
        # The oldest first.
        self._connections: dict[_Connection, None] = {}
        self._handshakes: dict[_Connection, asyncio.Task[None]] = {}
        self._socket: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._leaving = False
        self.closing = False

    @property
    def connections(self) -> int:
        """The number of connections, including unfinished handshakes."""
        return len(self._connections)

    @property
    def serving(self) -> bool:
        """True while connections are accepted."""
        return self._socket is not None and not self.closing

    async def start(self, address: str, port: int) -> tuple[str, int]:
        """Listen on `address`; "" means all addresses of the host, IPv4 and IPv6.

        Returns the address and the port. Raises OSError if they are not available.
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
        """Accept no more connections, finish the requests in progress, close all connections, and end in `seconds`.

        This begins after `after` seconds, in which connections are accepted and each closes with its next answer. A
        request that a client sends just as its idle connection is closed fails, the more often the busier the machine
        is: so few connections should be left by then, and these get another moment for a last request. Requests in
        progress after `seconds` are cut off.
        """
        self._leaving = True
        for connection in self._connections:
            connection.retire()
        if after:
            await asyncio.sleep(after)
        self.closing = True
        listening, self._socket = self._socket, None
        if listening is None:
            return
        clock = asyncio.get_running_loop().time
        accepting, watching = self._tasks
        accepting.cancel()
        await asyncio.wait({accepting})
        # Connections that the kernel has accepted would be reset.
        with suppress(OSError):
            while accepted := _accepted(listening):
                self._admit(accepted)
        listening.close()
        end, last = clock() + seconds, clock() + min(_LAST_REQUEST_SECONDS, seconds)
        while clock() < end and (self._in_progress() or (self._connections and clock() < last)):  # noqa: ASYNC110 - once
            await asyncio.sleep(_CHECK_SECONDS)
        watching.cancel()
        shaking = list(self._handshakes.values())
        for task in shaking:
            task.cancel()
        if shaking:
            await asyncio.wait(shaking)
        self._server.pre_shutdown()
        await self._server.shutdown(_CUTTING_SECONDS)

    def _in_progress(self) -> bool:
        new = asyncio.get_running_loop().time() - self._patience.head
        return any(
            one.busy or one.waiting_since != _NEVER or one in self._handshakes or (not one.asked and one.last > new)
            for one in self._connections
        )

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            await _readable(listening)
            try:
                # Not all at once, so that the accepted ones are served in between.
                for _ in range(_BATCH):
                    accepted = _accepted(listening)
                    if accepted is None:
                        break
                    try:
                        await self._room()
                    finally:
                        # Also if it is cancelled, at the end.
                        self._admit(accepted)
            except OSError as error:
                logger.warning(
                    "cannot accept connections for now: %s", error, extra={"event": "connection.not_accepted"}
                )
                await asyncio.sleep(_ACCEPT_RETRY_SECONDS)

    async def _room(self) -> None:
        """Wait until there is room for one more connection."""
        while not self._has_room():  # noqa: ASYNC110 - the passing of time makes room, too
            await asyncio.sleep(_ROOM_SECONDS)

    def _has_room(self) -> bool:
        """True if there is room for a connection without an answered review; closes another one if it must."""
        unproven = [one for one in self._connections if not one.authenticated_by_review]
        if len(unproven) >= int(self._most * _UNPROVEN):
            return self._make_room(unproven)
        return len(self._connections) < self._most or self._make_room(self._connections)

    def _admit(self, accepted: socket.socket) -> None:
        connection = _Connection(
            self,
            self._server,
            age=_LEAVING_SECONDS if self._leaving else self._maximum_age(),
            loop=asyncio.get_running_loop(),
            keepalive_timeout=self._patience.idle,
            access_log=None,
            read_bufsize=_READ_BUFFER,
            # A compressed body may become as large as its sender likes.
            auto_decompress=False,
            lingering_time=self._patience.head,
        )
        self._connections[connection] = None
        shaking = self._handshakes[connection] = asyncio.create_task(self._handshake(connection, accepted))
        # Also runs if the task is cancelled before it has begun.
        shaking.add_done_callback(lambda _: self._shaken(connection, accepted))

    def _maximum_age(self) -> float:
        return self._patience.age * random.uniform(_EARLIEST, 1)  # noqa: S311 - not a secret

    async def _handshake(self, connection: _Connection, accepted: socket.socket) -> None:
        try:
            async with asyncio.timeout(self._patience.handshake):
                # TLS takes a quarter of a megabyte: not for a silent client.
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
            # Scanners, probes and clients that do not trust the certificate notice it themselves.
            logger.debug("TLS handshake failed: %s", error, extra={"event": "connection.tls"})

    def _shaken(self, connection: _Connection, accepted: socket.socket) -> None:
        del self._handshakes[connection]
        if not connection.connected:
            accepted.close()
            self.forget(connection)

    def _make_room(self, connections: Iterable[_Connection]) -> bool:
        """Close the least needed of these connections; False if all are needed."""
        now = asyncio.get_running_loop().time()
        spare = [one for one in connections if not one.busy and now - one.last > one.patience]
        least = min(spare, key=lambda one: (one.authenticated_by_review, not one.silent, one.last), default=None)
        if least is None:
            return False
        self.forget(least)
        if least in self._handshakes:
            self._handshakes[least].cancel()
        else:
            least.abort()
        return True

    async def _watch(self) -> None:
        """Close connections on which a head takes too long, or never comes."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(min(self._patience.head, self._patience.idle) / 4)
            late, idle = clock() - self._patience.head, clock() - self._patience.idle
            # aiohttp closes idle connections that have had an answer.
            for connection in [
                one for one in self._connections if one.waiting_since < late or (not one.asked and one.last < idle)
            ]:
                connection.abort()

    def forget(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)


class _Connection(web.RequestHandler):
    """One connection.

    :ivar busy: a request is in progress
    :ivar silent: no byte has come
    :ivar asked: a byte of a request has come
    :ivar authenticated_by_review: a review on it was answered
    :ivar last: loop time of its begin or of its last answer
    :ivar waiting_since: loop time since when a head is incomplete
    """

    __slots__ = ("_listener", "_until", "asked", "authenticated_by_review", "busy", "last", "silent", "waiting_since")

    def __init__(
        self,
        listener: Listener,
        server: Any,  # noqa: ANN401 - as aiohttp's
        *,
        age: float,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(server, **options)
        self._listener = listener
        self.busy = False
        self.silent = True
        self.asked = False
        self.authenticated_by_review = False
        self.last = self._loop.time()
        self._until = self.last + age
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
        self._listener.forget(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.Response:
        """Answer a malformed request; aiohttp would log and echo it."""
        del request, message
        logger.debug("malformed HTTP request: %s", type(exc).__name__, extra={"event": "connection.http"})
        response = web.Response(status=status, text="not understood\n")
        response.force_close()
        return response

    def __enter__(self) -> None:
        """A head is complete."""
        self.busy = True
        self.waiting_since = _NEVER

    def __exit__(self, *_: object) -> None:
        """Its request is answered."""
        self.busy = False
        self.last = self._loop.time()

    @property
    def patience(self) -> float:
        """Seconds that it may be idle while new connections need room."""
        if self.silent:
            return _SILENT_SECONDS
        return _IDLE_SECONDS if self.authenticated_by_review else _UNPROVEN_SECONDS

    @property
    def past_max_age(self) -> bool:
        """True if its next answer must close it."""
        return self._listener.closing or self._loop.time() >= self._until

    def retire(self) -> None:
        """Close the connection after the next response."""
        self._until = self._loop.time()

    def abort(self) -> None:
        """Close it without waiting for anything."""
        if self.transport is not None:
            self.transport.abort()


def request_in_progress(protocol: object) -> AbstractContextManager[None]:
    """Context manager: a request is in progress on that connection, its head complete."""
    return protocol if isinstance(protocol, _Connection) else nullcontext()


def authenticated_by_review(protocol: object) -> None:
    """Record that a review on that connection was answered."""
    if isinstance(protocol, _Connection):
        protocol.authenticated_by_review = True


def past_max_age(protocol: object) -> bool:
    """True if the answer to this request must close its connection."""
    return isinstance(protocol, _Connection) and protocol.past_max_age


def _accepted(listening: socket.socket) -> socket.socket | None:
    """A waiting connection, or None."""
    try:
        accepted, _ = listening.accept()
    except (BlockingIOError, InterruptedError, ConnectionAbortedError):
        return None
    accepted.setblocking(False)
    return accepted


async def _readable(waited_for: socket.socket) -> None:
    """Wait until the socket has data or a connection to accept."""
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
