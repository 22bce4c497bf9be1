"""The door of an enclosure: a loopback port of the machine that leads to the same port of the namespace's loopback.

Run as `python -m hack.testbed.door PORT NAMESPACE`. With it kubectl, helm and every test talk to an apiserver that is
inside as if it were outside; nothing else of the machine's network is touched.
"""

import asyncio
import socket
import sys
from contextlib import suppress
from pathlib import Path

from hack.testbed.netns import enter

_CHUNK = 1 << 16


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def _serve(listening: socket.socket, port: int) -> None:
    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            inner_writer.close()
            writer.close()

    server = await asyncio.start_server(through, sock=listening)
    await server.serve_forever()


def main() -> None:
    """Listen outside, then go inside, then pass on what comes, until killed."""
    port, namespace = int(sys.argv[1]), Path(sys.argv[2])
    listening = socket.create_server(("127.0.0.1", port), backlog=512)
    enter(namespace)
    asyncio.run(_serve(listening, port))


if __name__ == "__main__":
    main()
