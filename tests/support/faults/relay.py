"""A way to the apiserver that can be cut: bytes are passed on as they are, until every connection is broken at once.

What goes over it is TLS of others; faults inside an answer are `tests.support.faults.apiserver`'s.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_AT_ONCE = 65536
_END_SECONDS, _LOOK_SECONDS = 30.0, 0.05


class Relay:
    """Passes connections on to one server, on a loop and in a thread of its own."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._behind = parts.hostname, parts.port
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._ended = asyncio.Event()
        self.url = ""

    def cut(self) -> int:
        """Break every connection that is open; gives how many were."""

        async def abort() -> int:
            broken = list(self._open)
            for writer in broken:
                writer.transport.abort()
            return len(broken) // 2

        return asyncio.run_coroutine_threadsafe(abort(), self._loop).result(60)

    def run(self, listening: threading.Event) -> None:
        """Serve until `end`, in the thread that calls this."""

        async def serve() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            listening.set()
            await self._ended.wait()
            # A server that closes drops those whom it is just accepting, open as they are: nobody is by then.
            for socket in server.sockets:
                self._loop.remove_reader(socket.fileno())
            await self._until_all_have_gone()
            server.close()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(serve())

    def end(self) -> None:
        """Take no more connections, and break those that are open."""
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _until_all_have_gone(self) -> None:
        """Break what is open, also what came while the end did."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                while others := asyncio.all_tasks() - {asyncio.current_task()}:
                    for writer in list(self._open):
                        writer.transport.abort()
                    await asyncio.wait(others, timeout=_LOOK_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        try:
            # The end may come while this waits.
            with suppress(OSError):
                there, back = await asyncio.open_connection(*self._behind)
                ends.add(back)
                self._open |= ends
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pass_on(reader, back))
                    both.create_task(_pass_on(there, writer))
        finally:
            self._open -= ends
            for end in ends:
                end.transport.abort()


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_AT_ONCE):
            sink.write(data)
            await sink.drain()
    sink.close()


@contextmanager
def relay_to(server: str) -> Iterator[Relay]:
    """Relay to the server at this https address, until the block ends."""
    relay, listening = Relay(server), threading.Event()
    thread = threading.Thread(target=relay.run, args=(listening,), name="relay", daemon=True)
    thread.start()
    assert listening.wait(60), "the relay does not listen"
    try:
        yield relay
    finally:
        relay.end()
        thread.join(60)
