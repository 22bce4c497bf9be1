"""The number of pytests that have room side by side: by processors, by memory, and by the other work of the machine."""

import os
import time
from collections import defaultdict
from pathlib import Path

from hack.testbed.costs import spent, stat

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
# Seconds of the clock between two looks, and of the first one.
_APART, _FIRST = 10.0, 0.5
# Most tests wait for clusters most of the time.
_PER_PROCESSOR = 3
# A control plane and its operators take 2 GB most of the time.
_BYTES = 3 * 10**9


class Machine:
    """The processor time of other processes: all but this one and its descendants.

    :ivar others: Their share of all processors, 0 to 1, since the look before.
    """

    def __init__(self) -> None:
        self._cores = len(os.sched_getaffinity(0))
        # A pytest that has just started takes its memory later.
        self._fit = _free_memory() // _BYTES
        self._at, self._busy, self._own = time.monotonic(), *_spent()
        self._first = (self._at, self._busy, self._own)
        time.sleep(_FIRST)
        self._look()

    def room(self, running: int) -> int:
        """The number of pytests that may run when so many do already. At least one has room.

        Where others take all processors half as many start: fewer would hardly run faster.
        """
        if time.monotonic() - self._at >= _APART:
            self._look()
        most = round(self._cores * _PER_PROCESSOR * (1 - self.others / 2))
        return max(1, min(most, self._fit, running + _free_memory() // _BYTES))

    def share_of_others(self) -> float:
        """Their share of all processors since the beginning."""
        return self._share(*self._first)

    def _look(self) -> None:
        self.others = self._share(self._at, self._busy, self._own)
        self._at, self._busy, self._own = time.monotonic(), *_spent()

    def _share(self, at: float, busy: float, own: float) -> float:
        now_busy, now_own = _spent()
        others = (now_busy - busy) - (now_own - own)
        # A process that ends without its parent may be counted late, or never.
        return min(1.0, max(0.0, others / (self._cores * (time.monotonic() - at))))


def _spent() -> tuple[float, float]:
    """Processor seconds of the whole machine since it began, and those of this process and its children, and theirs."""
    user, nice, system, _idle, _wait, *rest = map(int, (_PROC / "stat").read_text().split("\n")[0].split()[1:9])
    children, seconds = defaultdict(list), defaultdict(float)
    for pid in [int(folder.name) for folder in _PROC.iterdir() if folder.name.isdigit()]:
        if fields := stat(pid):
            children[int(fields[1])].append(pid)
            seconds[pid] = spent(fields)
    own, left = 0.0, [os.getpid()]
    while left:
        pid = left.pop()
        own += seconds[pid]
        left += children[pid]
    return (user + nice + system + sum(rest)) / _TICKS, own


def _free_memory() -> int:
    for line in (_PROC / "meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _BYTES
