"""What processes use while a bench runs, sampled: cores, memory, file descriptors, tasks, and entries of stores."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from hack.bench.usage import cpu_seconds, descriptors, resident
from hack.testbed.errors import TestbedError, log_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hack.testbed.process import Process

__all__ = ["Samples", "Watched", "scraped"]

_SCRAPE_SECONDS = 30.0
_ENTRIES = ("muster_watch_objects", "muster_kept_entries")
_TASKS = "muster_event_loop_tasks"


class Watched(NamedTuple):
    """A process, what the report calls it, and the URL of its metrics, "" where they are of no interest."""

    name: str
    process: Process
    url: str


def scraped(url: str) -> dict[str, dict[str, float]]:
    """The samples of these metrics by their name, and by the value of their only label ("" without)."""
    with urllib.request.urlopen(url, timeout=_SCRAPE_SECONDS) as answer:  # noqa: S310 - loopback
        text = answer.read().decode()
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name]["/".join(sample.labels.values())] = sample.value
    return found


class Samples:
    """The points of each number by its name, such as `controller MB`: seconds since the first sample, and the number.

    The names end in `cores`, `MB`, `fds`, `tasks` and `entries`; those of single stores in their names.
    """

    def __init__(self, watched: Iterable[Watched], *, deep: bool) -> None:
        """`deep` samples file descriptors, tasks and entries as well."""
        self.points: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._watched = [*watched]
        self._deep = deep
        self._begun = time.monotonic()
        self._cpu: dict[str, tuple[float, float]] = {}

    def last(self, name: str) -> float:
        """The last number of that name; not a number before there is one."""
        return self.points[name][-1][1] if self.points[name] else float("nan")

    def most(self, name: str) -> float:
        """The largest number of that name."""
        return max((number for _, number in self.points[name]), default=float("nan"))

    def take(self) -> None:
        """Take a sample. Raises TestbedError with its log when a process has ended."""
        for name, process, url in self._watched:
            if not process.alive():
                raise TestbedError(f"{name} has ended; {log_tail(process.log)}")
            now = time.monotonic()
            used = cpu_seconds(process.pid)
            at, before = self._cpu.get(name, (now, used))
            if now > at:
                self._add(f"{name} cores", now, (used - before) / (now - at))
            self._cpu[name] = now, used
            self._add(f"{name} MB", now, resident(process.pid))
            if self._deep and url:
                self._add(f"{name} fds", now, descriptors(process.pid))
                self._scrape(name, url, now)

    def _scrape(self, name: str, url: str, now: float) -> None:
        metrics = scraped(url)
        self._add(f"{name} tasks", now, metrics[_TASKS][""])
        entries = [(label, number) for metric in _ENTRIES for label, number in metrics.get(metric, {}).items()]
        self._add(f"{name} entries", now, sum(number for _, number in entries))
        for label, number in entries:
            if number or f"{name} {label}" in self.points:
                self._add(f"{name} {label}", now, number)

    def _add(self, name: str, now: float, number: float) -> None:
        self.points[name].append((now - self._begun, number))

    async def run(self, every: float, tell: Callable[[Samples], None]) -> None:
        """Take a sample every so many seconds, and tell of it, until cancelled."""
        while True:
            await asyncio.to_thread(self.take)
            tell(self)
            await asyncio.sleep(every)
