"""The event loop's clock, set forward by a test: what a deadline does is seen at once, and at no other moment.

Deadlines can so be long enough for any machine, and whatever must come before one has all the time in the world.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class LoopClock:
    """The clock of the running loop, until that ends."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._ahead = 0.0
        real = loop.time
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    def forward(self, seconds: float) -> None:
        """Let so many seconds pass: what is due by then happens when the loop has its next turn."""
        self._ahead += seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let no time pass for the loop while the body, which keeps it from all else, does something slow."""
        loop = asyncio.get_running_loop()
        before = loop.time()
        try:
            yield
        finally:
            self._ahead -= loop.time() - before
