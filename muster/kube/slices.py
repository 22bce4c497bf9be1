"""Long work on the event loop, in slices: between two of them other tasks run, such as the renewal of the lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

SLICE = 0.01
"""Seconds of a core; with the chart's request of 100m, and no more than that, a tenth of a second."""


async def in_slices(steps: Iterable[object], used: Callable[[], float] = time.thread_time) -> None:
    """Take the steps, none of them long, one after the other; `used` returns the thread's CPU seconds so far.

    The wall clock would cut the same work into other slices wherever the machine is busy.
    """
    turns = Turns(used)
    for _ in steps:
        await turns.give()


class Turns:
    """Yields to other tasks when a slice is used up; `used` as in `in_slices`.

    Several may share one: in a turn of the loop they use little more than a slice together.
    """

    def __init__(self, used: Callable[[], float] = time.thread_time) -> None:
        self._used = used
        self._until = used() + SLICE
        self._ended = False

    async def give(self) -> None:
        """Yield if the slice is used up; to be called between two steps."""
        while self._used() >= self._until:
            if not self._ended:
                self._ended = True
                asyncio.get_running_loop().call_soon(self._begin)
            await asyncio.sleep(0)

    def _begin(self) -> None:
        """Begin a slice in the loop's next turn."""
        self._ended = False
        self._until = self._used() + SLICE
