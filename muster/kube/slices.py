"""Long work on the event loop, in slices: between two of them the lease is renewed, and all else has its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

SLICE = 0.01
"""Seconds of a core; with the chart's request of 100m, and no more than that, a tenth of a second."""


async def in_slices(steps: Iterable[object], used: Callable[[], float] = time.thread_time) -> None:
    """Take the steps one after the other, none of them long; `used` gives the thread's CPU seconds so far.

    The wall clock would cut the same work into other slices wherever the machine is busy.
    """
    turns = Turns(used)
    for _ in steps:
        await turns.give()


class Turns:
    """Gives others their turn when a slice is used up; `used` as `in_slices` has it.

    Several may share one: in a turn of the loop they use little more than a slice together.
    """

    def __init__(self, used: Callable[[], float] = time.thread_time) -> None:
        self._used = used
        self._until = used() + SLICE
        self._ended = False

    async def give(self) -> None:
        """To be called between two steps."""
        while self._used() >= self._until:
            if not self._ended:
                self._ended = True
                asyncio.get_running_loop().call_soon(self._begin)
            await asyncio.sleep(0)

    def _begin(self) -> None:
        """The loop's next turn has come."""
        self._ended = False
        self._until = self._used() + SLICE
