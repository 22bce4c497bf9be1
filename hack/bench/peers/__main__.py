"""`python -m hack.bench.peers [--rounds 3] [--write]`: muster beside Kueue and Volcano alone; see the package."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hack.bench.peers.contenders import CONTENDERS, Contender
from hack.bench.peers.figures import Figures
from hack.bench.peers.halves import longest_half
from hack.bench.peers.measures import Halves, Measures
from hack.bench.peers.place import Place, place
from hack.bench.peers.reading import read
from hack.bench.peers.report import blocks, inserted
from hack.bench.peers.watching import watching
from muster.kube.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PAGE = Path(__file__).parents[3] / "docs" / "comparison.md"
_WARM = 20  # pods
# What is read does not depend on how Kueue is tuned.
_READ = ("muster", "kueue-shipped", "volcano")


@dataclass(slots=True)
class _Run:
    """A run: what it is to measure, and what it has measured."""

    arguments: argparse.Namespace
    chosen: Sequence[Contender]
    figures: Figures = field(default_factory=Figures.empty)
    halves: dict[str, Halves] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    def order(self, turn: int) -> Iterator[Contender]:
        """Each is first in turn: what one leaves to be cleaned up costs the next."""
        first = turn % len(self.chosen)
        yield from (*self.chosen[first:], *self.chosen[:first])

    async def gates(self, turn: int, one: Contender, measures: Measures, on: Place) -> None:
        """A round of what is seen at gates alone."""
        on.turn(one, rays=False)
        on.queues(one)
        await measures.opened(one, _WARM)
        on.begin(one)
        pods = 0
        for size in self.arguments.sizes:
            created, opened = await measures.opened(one, size)
            self.figures.add(f"created {size}", one.name, turn, created)
            self.figures.add(f"opened {size}", one.name, turn, opened)
            self._tell(turn, one, f"{size} pods created in {created:.2f} s, open {opened:.2f} s after the last")
            pods += size
        if self.arguments.gangs:
            done = await measures.drained(one, self.arguments.gangs, running=False)
            self.figures.add("drained", one.name, turn, done.rate)
            self._tell(turn, one, f"{done.rate:.1f} gangs a second, by their gates")
            pods += 5 * done.gangs
        self.figures.used.extend((one.name, used) for used in on.end(one, pods))

    async def whole(self, turn: int, one: Contender, measures: Measures, on: Place) -> None:
        """A round of what is seen at running pods."""
        on.turn(one, rays=True)
        on.queues(one)
        await measures.running(one, 2)
        for size in self.arguments.ray_sizes:
            seconds, placed = await measures.running(one, size)
            self.figures.add(f"running {size}", one.name, turn, seconds)
            self.figures.add(f"by half {size}", one.name, turn, longest_half(placed))
            half = f"held by half for {longest_half(placed):.2f} s"
            self._tell(turn, one, f"a RayCluster of {size} runs after {seconds:.2f} s, {half}")
        if one.plain and self.arguments.gangs:
            done = await measures.drained(one, self.arguments.gangs, running=True)
            self.figures.add("drained running", one.name, turn, done.rate)
            self._tell(turn, one, f"{done.rate:.1f} gangs a second, until they ran")
        if one.name not in self.halves and self.arguments.halves:
            self.halves[one.name] = await measures.halves(one)
            self._tell(turn, one, str(self.halves[one.name]))
        if one.name in _READ and one.name not in self.read and self.arguments.read:
            self.read[one.name] = await read(one, measures, on)

    def report(self) -> dict[str, str]:
        """The tables, and what was read."""
        tables = blocks(self.figures, self.arguments.sizes, self.arguments.ray_sizes, self.halves)
        return tables | {f"read {name}": text for name, text in self.read.items()}

    @staticmethod
    def _tell(turn: int, one: Contender, words: str) -> None:
        print(f"{datetime.now(UTC):%H:%M:%S} round {turn + 1}, {one.title}: {words}", flush=True)


async def _run(run: _Run, on: Place) -> None:
    async with (
        await Client.connect(kubeconfig=str(on.testbed.kubeconfig), user_agent="bench") as client,
        watching(client) as watched,
    ):
        measures = Measures(client, watched)
        for turn in range(run.arguments.rounds):
            run.loads.append(os.getloadavg()[0])
            if "gates" in run.arguments.only:
                on.schedulers(on=False)
                for one in run.order(turn):
                    if one.gate and one.plain:
                        await run.gates(turn, one, measures, on)
            on.schedulers(on=True)
            if "whole" in run.arguments.only:
                for one in run.order(turn):
                    if one.rays:
                        await run.whole(turn, one, measures, on)


def _machine(given: argparse.Namespace, loads: Sequence[float]) -> str:
    """By which command this was measured, when, and on what."""
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    return (
        f"{made_by(given)}\n"
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n"
        f"{os.cpu_count()} processors, {model}; Linux {platform.release()}, Python {platform.python_version()}\n"
        f"load before each round and at the end: {', '.join(f'{load:.1f}' for load in loads)}"
    )


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size]


def parser() -> argparse.ArgumentParser:
    """What a run can be asked for."""
    made = argparse.ArgumentParser(prog="hack.bench.peers", description=__doc__)
    names = [one.name for one in CONTENDERS]
    made.add_argument("--contenders", default=",".join(names), help="whom to measure, with commas: %(default)s")
    made.add_argument("--rounds", type=int, default=3, help="how often, for the median")
    made.add_argument("--sizes", type=_sizes, default="50,500,1000", help="plain pods of a gang, with commas")
    made.add_argument("--ray-sizes", type=_sizes, default="3,50,500", help="pods of a RayCluster, with commas")
    made.add_argument("--gangs", type=int, default=200, help="gangs of five to drain; 0 for none")
    made.add_argument("--only", default="gates,whole", help="gates alone, the whole way, or both: %(default)s")
    made.add_argument("--no-halves", dest="halves", action="store_false", help="without gangs that find too little")
    made.add_argument("--no-read", dest="read", action="store_false", help="without what a user reads")
    made.add_argument("--write", action="store_true", help=f"write the tables into {_PAGE.name}, too; all of them")
    return made


def asked(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What these words ask for, or those of the command line; a page is written by a whole run, or by none."""
    given = parser().parse_args(words)
    if given.write and (left_out := _left_out(given)):
        parser().error(f"--write is for a whole run, without {' '.join(left_out)}")
    return given


def made_by(given: argparse.Namespace) -> str:
    """The command with the options that a run had, those that nobody gave as well, and how many rounds there were."""
    sizes, rays = (",".join(map(str, each)) for each in (given.sizes, given.ray_sizes))
    words = [f"$ python -m {parser().prog} --rounds {given.rounds} --sizes {sizes} --ray-sizes {rays}"]
    words += [f"--gangs {given.gangs}", *_left_out(given), *(["--write"] if given.write else [])]
    rounds = f"{given.rounds} rounds: medians, with the least and the greatest"
    return f"{' '.join(words)}\n{'one round: no number has a spread' if given.rounds == 1 else rounds}"


def _left_out(given: argparse.Namespace) -> list[str]:
    """The options by which it is not a whole run."""
    default = parser().get_default
    parts = [
        f"--{part} {getattr(given, part)}" for part in ("contenders", "only") if getattr(given, part) != default(part)
    ]
    return parts + [f"--no-{part}" for part in ("halves", "read") if not getattr(given, part)]


def main() -> None:
    """Measure, print, and write the page."""
    arguments = asked()
    chosen = [one for one in CONTENDERS if one.name in arguments.contenders.split(",")]
    run = _Run(arguments, chosen)
    whole = False
    try:
        with place() as on:
            asyncio.run(_run(run, on))
        whole = True
    finally:
        # What was measured until then is worth as much.
        _end(run, write=arguments.write and whole)


def _end(run: _Run, *, write: bool) -> None:
    """Print the report, and write it into the page."""
    run.loads.append(os.getloadavg()[0])
    said = run.report() | {"machine": _machine(run.arguments, run.loads)}
    for name, text in said.items():
        print(f"\n{name}\n{text}")
    if write:
        _PAGE.write_text(inserted(_PAGE.read_text(), said))


if __name__ == "__main__":
    main()
