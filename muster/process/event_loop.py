"""The time for which the event loop does not look at its connections and timers (metrics.py has the metric).

A turn of the loop runs all callbacks that are ready, one after the other. In a turn no lease is renewed, no watch is
read and no review is answered. The loop asks its selector between two turns, so the selector can measure each by the
wall clock: a turn that waits for the processor delays the others as much as one that computes.
"""

import asyncio
import gc
import selectors
import time
from bisect import bisect_left
from collections.abc import Callable, Coroutine
from typing import Any

BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The ends of the buckets in which turns are counted, in seconds; the last bucket has none."""

# After a turn of this many seconds the cycle collector scans the new objects. Its own threshold counts objects made
# less objects freed: where new objects replace old ones, it scanned hundreds of thousands in one step (220 ms with
# 50,000 gangs).
_LONG = 0.005


class Turns:
    """The durations of turns: a count for each bucket, without those below it, the sum, and the longest.

    A reader of `longest` may set it back to 0. `loop` is the loop whose turns they are, once it is made.
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = self.longest = 0.0
        self.loop: asyncio.AbstractEventLoop | None = None

    def tasks(self) -> int:
        """Return the number of tasks of the loop that are not done; 0 before there is a loop. Any thread may ask."""
        return len(asyncio.all_tasks(self.loop)) if self.loop is not None else 0

    def took(self, seconds: float) -> None:
        """Count a turn; there are thousands a second."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)


class _Selector(selectors.DefaultSelector):
    """Counts in `turns` the time for which it was not asked."""

    def __init__(self, turns: Turns, clock: Callable[[], float]) -> None:
        super().__init__()
        self._turns = turns
        self._clock = clock
        self._begun: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._begun is not None:
            took = self._clock() - self._begun
            if took >= _LONG:
                gc.collect(0)
                took = self._clock() - self._begun
            self._turns.took(took)
        found = super().select(timeout)
        self._begun = self._clock()
        return found


def run_measured(
    process: Callable[[Turns], Coroutine[Any, Any, None]], clock: Callable[[], float] = time.monotonic
) -> None:
    """Run a process to its end as `asyncio.run` does, and count the turns of its loop for it; `clock` is monotonic."""
    turns = Turns()

    def made() -> asyncio.AbstractEventLoop:
        turns.loop = asyncio.SelectorEventLoop(_Selector(turns, clock))
        return turns.loop

    with asyncio.Runner(loop_factory=made) as runner:
        runner.run(process(turns))
