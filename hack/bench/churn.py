"""Whether anything grows while gangs come and go: `python -m hack.bench.churn [--minutes 120] [--rate 1]`.

On the control plane of `hack.bench.fleet` gangs of 1 to 20 plain pods come at a steady rate, wait where their queue is
full, run for 10 to 60 seconds, end, and are deleted. Meanwhile the memory, file descriptors and tasks of muster's two
processes are sampled, and the entries of their stores, by their own metrics. Prints for each number the means of the
second and of the last quarter of the time, and whether it is flat. Then no more gangs come, and when all have gone as
many entries are to be left as there were before the first. Ends with 1 where anything grows. README.md says more.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hack.bench.curves import Panel, panels
from hack.bench.fleet.__main__ import parsed, running
from hack.bench.fleet.place import Place, place
from hack.bench.fleet.sampling import Samples
from hack.bench.fleet.shape import gangs, teams_of
from hack.bench.peers.figures import table
from hack.bench.trends import trend
from muster.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.bench.fleet.gangs import Fleet
    from hack.bench.fleet.shape import One, QueueOf

__all__ = ["plot", "verdicts"]

_SEED = 2
_RUNS = 10, 60
_BOTH = ("controller", "webhook")
_THERE = "gangs there"
# What a number may grow by even where that is more than a twentieth of it: MB, and things that come in ones.
_LEAST = {"MB": 3.0}
_LEAST_OF_OTHERS = 5.0
_PROCESS = ("MB", "fds", "tasks")
# Of the cores nothing is said: they go by the rate.
_LEFT_OUT = "cores"
# How often it is looked whether entries are gone, in seconds.
_LOOK = 2.0
# No more are there at once: a cluster that does not keep up shows as gangs that came late.
_MOST = 1000
_HEAD = ("", "2nd quarter", "last quarter", "grown", "allowed", "an hour", "")


def verdicts(points: Mapping[str, Sequence[tuple[float, float]]]) -> tuple[list[list[str]], bool]:
    """A row for each number that changes, and whether all of muster's are flat.

    A number that was sampled too seldom is left out. Where more and more gangs are there, entries grow with them, and
    that is no fault: they are to go with the gangs.
    """
    there = trend(points.get(_THERE, ()), _LEAST_OF_OTHERS)
    more = there is not None and not there.flat
    rows, all_flat = [], True
    for name, of_name in points.items():
        process, _, unit = name.partition(" ")
        found = trend(of_name, _LEAST.get(unit, _LEAST_OF_OTHERS))
        if unit == _LEFT_OUT or found is None or len({number for _, number in of_name}) == 1:
            continue
        numbers = (found.second, found.last, found.grown, found.allowed, found.slope)
        said = "flat" if found.flat else "GROWS"
        if process not in _BOTH:
            said = f"({said.lower()})"
        elif not found.flat and more and unit not in _PROCESS:
            said = "with the gangs"
        all_flat = all_flat and said != "GROWS"
        rows.append([name, *(f"{number:.1f}" for number in numbers), said])
    return rows, all_flat


def plot(points: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The figure: memory, descriptors and tasks, and entries, by minutes."""

    def lines(*units: str) -> dict[str, list[tuple[float, float]]]:
        names = [f"{one} {unit}" for unit in units for one in _BOTH]
        return {name: [(at / 60, number) for at, number in points.get(name, ())] for name in names}

    there = {_THERE: [(at / 60, number) for at, number in points.get(_THERE, ())]}
    return panels(
        [
            Panel("MB resident", "minutes", lines("MB")),
            Panel("file descriptors and tasks", "minutes", lines("fds", "tasks")),
            Panel("entries of stores, and gangs", "minutes", lines("entries") | there),
        ]
    )


class _Churn:
    """Gangs that come and go."""

    def __init__(self, fleet: Fleet, rate: float) -> None:
        self._fleet = fleet
        self._rate = rate
        self.late = 0.0
        """Seconds for which no gang came, because there were so many."""
        self.failed = 0
        """Gangs that could not be made."""

    async def run(self, teams: Sequence[str]) -> None:
        """Have gangs come and go until cancelled."""
        begun = time.monotonic()
        async with asyncio.TaskGroup() as calls:
            calls.create_task(self._end())
            for number, one in enumerate(gangs(teams, _SEED, _RUNS)):
                due = begun + self.late + number / self._rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                since = time.monotonic()
                await self._fleet.until(lambda: len(self._fleet) < _MOST)
                self.late += time.monotonic() - since
                calls.create_task(self._make(one))

    async def _make(self, one: One) -> None:
        try:
            await self._fleet.make([one])
        except* ApiError as errors:
            self.failed += 1
            print(f"  {one.name} cannot be made: {errors.exceptions[0]}", flush=True)
            await self._fleet.give_up(one)

    async def _end(self) -> None:
        async with asyncio.TaskGroup() as calls:
            while True:
                calls.create_task(self._fleet.end(await self._fleet.ended.get()))

    def tell(self, now: Samples) -> None:
        """How it goes."""
        fleet, at = self._fleet, now.points["controller MB"][-1][0]
        now.points[_THERE].append((at, len(fleet)))
        minutes = at / 60
        used = ", ".join(f"{one} {now.last(f'{one} MB'):.0f} MB, {now.last(f'{one} tasks'):.0f} tasks" for one in _BOTH)
        counts = f"{fleet.made} came, {fleet.opened} started, {fleet.left} left, {fleet.waiting} wait"
        print(f"  {minutes:.1f} min: {counts}; {used}, {now.last('controller entries'):.0f} entries", flush=True)


async def _rest(on: Place, fleet: Fleet, before: Mapping[str, float], seconds: float) -> bool:
    """Have all gangs go, and wait, so many seconds, until as many entries are left as `before`; whether they are."""
    begun = time.monotonic()
    left = before
    try:
        async with asyncio.timeout(seconds):
            await fleet.end_all()
            while (left := await _entries(on)) != before:  # noqa: ASYNC110 - of other processes
                await asyncio.sleep(_LOOK)
    except TimeoutError:
        more = ", ".join(
            f"{name} {left.get(name, 0):.0f} of {before.get(name, 0):.0f}" for name in _unlike(left, before)
        )
        print(f"{seconds:.0f} s after the last gang came {len(fleet)} are there, and entries differ: {more}")
        return False
    print(f"{time.monotonic() - begun:.0f} s after the last gang came all have gone, and their entries with them")
    return True


def _unlike(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name, 0) != other.get(name, 0))


async def _entries(on: Place) -> dict[str, float]:
    """What the stores of both processes have, by name."""
    samples = Samples(on.watched(), deep=True)
    await asyncio.to_thread(samples.take)
    return {name: samples.last(name) for name in samples.points if name.partition(" ")[2] not in (*_PROCESS, _LEFT_OUT)}


async def _measured(on: Place, arguments: argparse.Namespace, queues: Sequence[QueueOf], samples: Samples) -> bool:
    async with running(on, queues) as fleet:
        before = await _entries(on)
        churn = _Churn(fleet, arguments.rate)
        with suppress(TimeoutError):
            async with asyncio.timeout(60 * arguments.minutes), asyncio.TaskGroup() as tasks:
                tasks.create_task(churn.run(teams_of(queues)))
                tasks.create_task(samples.run(arguments.every, churn.tell))
        counts = f"{fleet.made} gangs came, {fleet.opened} started, {fleet.left} left"
        print(f"{counts}; {churn.failed} could not be made; {churn.late:.0f} s late")
        return await _rest(on, fleet, before, arguments.rest)


def main() -> None:
    """Measure, print, plot; ends with 1 where anything grows."""
    parser = argparse.ArgumentParser(prog="hack.bench.churn", description="Whether anything grows in hours.")
    parser.add_argument("--minutes", type=float, default=120.0, help="for how long")
    parser.add_argument("--rate", type=float, default=1.0, help="gangs a second")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two samples")
    parser.add_argument("--rest", type=float, default=900.0, help="seconds until all entries of gangs are to be gone")
    arguments, queues = parsed(parser)
    all_flat = gone = False
    with place(arguments.nodes) as on:
        samples = Samples(on.watched(), deep=True)
        try:
            gone = asyncio.run(_measured(on, arguments, queues, samples))
        finally:
            # Whatever ended it: what was measured until then is worth as much.
            rows, all_flat = verdicts(samples.points)
            print(table(_HEAD, rows))
            if arguments.plot:
                arguments.plot.write_text(plot(samples.points))
    print("flat" if all_flat and gone else "not flat")
    sys.exit(not (all_flat and gone))


if __name__ == "__main__":
    main()
