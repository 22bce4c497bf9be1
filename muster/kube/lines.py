"""Cuts a stream of bytes into lines, as a watch sends its events.

A line is returned only after its newline: a broken connection leaves half an event, which is no JSON.
"""

from __future__ import annotations

from muster.kube.errors import OversizedLine


class LineSplitter:
    """Collects chunks and returns whole lines, without their newline; empty lines are skipped.

    `limit` bounds one line in bytes, and thereby the memory that a hostile or broken server can take.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk and return the lines that it completes. Raises OversizedLine."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._keep(end)
            # Joined once per line: adding up bytes would copy a large line once per chunk.
            line = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            if line.strip():
                lines.append(line)
        self._keep(rest)
        return lines

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise OversizedLine(self._limit)
        if part:
            self._parts.append(part)
