"""Concurrent calls to the apiserver, with a bound on their number, and long work on the event loop, in slices.

The client obeys the apiserver's own limits (429); `burst` only bounds the number of concurrent calls. Between two
slices of long work other tasks run, such as the renewal of the lease.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

CONCURRENT = 32
"""The number of calls at once."""
SLICE = 0.01
"""Seconds of a core; with the chart's request of 100m, and no more than that, a tenth of a second."""

T = TypeVar("T")
R = TypeVar("R")


async def burst(call: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """Call it for every item, begun in this order, and return the results. Raises the first failure after all calls."""
    limit = asyncio.Semaphore(CONCURRENT)

    async def one(item: T) -> R:
        async with limit:
            return await call(item)

    results = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    done = [result for result in results if not isinstance(result, BaseException)]
    failures = [result for result in results if isinstance(result, BaseException)]
    results.clear()
    if failures:
        try:
            raise failures[0]
        finally:
            failures.clear()  # the traceback of the raised error holds this frame
    return done


async def in_slices(steps: Iterable[object], used: Callable[[], float] = time.thread_time) -> None:
    """Take the steps, none of them long, one after the other; `used` returns the thread's CPU seconds so far.

    The wall clock would cut the same work into other slices wherever the machine is busy.
    """
    slice_ = TimeSlice(used)
    for _ in steps:
        await slice_.rest()


class TimeSlice:
    """Yields to other tasks when a slice is used up; `used` as in `in_slices`.

    Several may share one: in a turn of the loop they use little more than a slice together.
    """

    def __init__(self, used: Callable[[], float] = time.thread_time) -> None:
        self._used = used
        self._until = used() + SLICE
        self._ended = False

    async def rest(self) -> None:
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
