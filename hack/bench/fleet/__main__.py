"""A fleet: `python -m hack.bench.fleet [--gangs 500,2000,15000] [--nodes 1000] [--queues 100] [--plot FILE]`.

On a control plane with real Volcano, kwok's nodes and muster's controller and webhook as they are, so many gangs of 1
to 20 plain pods, of which no two ask for the same, wait in queues of three levels, each of which limits. Then each gang
is deleted as soon as all its pods run, until all have gone. All of it once for each number of gangs.

Prints gangs a second, and the seconds from room to last gate; what each gang took of the CPU and of the apiserver's
calls from its creation until it has gone; and the memory of both processes. README.md says what each number means.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hack.bench.curves import Panel, panels
from hack.bench.drain.costs import Costs
from hack.bench.fleet.gangs import Fleet, Seen
from hack.bench.fleet.place import CORES, Place, place
from hack.bench.fleet.sampling import Samples, scraped
from hack.bench.fleet.shape import QueueOf, gangs, needed_nodes, teams_of, tree
from hack.bench.peers.figures import table
from hack.bench.trends import percentile
from muster.kube.client import Client

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from hack.bench.fleet.shape import One

_SEED = 1
_EVERY = 5.0
_SEEN = 0.05  # calls of a gang, and ms
_BOTH = ("controller", "webhook")
_DRAWN = {**dict.fromkeys(_BOTH, ""), "kube-apiserver": "apiserver", "volcano-scheduler": "Volcano"}


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured with so many gangs: rates a second, sorted seconds, CPU ms and calls for each gang."""

    gangs: int
    rate: float
    pods: float
    seen: Seen
    cpu: Mapping[str, float]
    calls: Mapping[str, float]
    callers: Mapping[str, float]
    samples: Samples

    def row(self) -> list[str]:
        """Its line of the table."""
        times = self.seen.to_last_gate
        return [
            f"{self.gangs}",
            f"{self.rate:.1f}",
            f"{self.pods:.0f}",
            *(f"{percentile(times, part):.2f}" for part in (0.5, 0.99)),
            *(f"{self.cpu.get(name, 0.0):.0f}" for name in _BOTH),
            *(f"{self.callers.get(f'muster-{name}', 0.0):.1f}" for name in _BOTH),
            *(f"{self.samples.most(f'{name} MB'):.0f}" for name in _BOTH),
        ]


_HEAD = (
    *("gangs", "gangs/s", "pods/s", "p50 s", "p99 s", "controller ms", "webhook ms"),
    *("controller calls", "webhook calls", "controller MB", "webhook MB"),
)


class _Start(NamedTuple):
    """What was counted when the first gang was made."""

    costs: Costs
    callers: Counter[str]
    samples: Samples


@dataclass
class Run:
    """A run: its place, its gangs, and the results until now."""

    place: Place
    fleet: Fleet
    source: Iterator[One]
    results: list[Result]

    async def measure(self, number: int) -> None:
        """Make so many gangs, and let all of them go."""
        samples = Samples(self.place.watched(), deep=False)
        async with _telling(samples, self.fleet):
            start = _Start(Costs(self.place.testbed, self.place.muster), self.place.calls(), samples)
            chosen = [*islice(self.source, number)]
            before = self.fleet.made
            begun = time.perf_counter()
            await self.fleet.make(chosen)
            await self.fleet.until(lambda: self.fleet.whole >= before + number)
            await self._known()
            took, waiting = time.perf_counter() - begun, self.fleet.waiting
            print(f"{number} gangs of {sum(one.pods for one in chosen)} pods made in {took:.0f} s; {waiting} wait")
            seen = self.fleet.seen = Seen(since=time.perf_counter())
            await self._drain(chosen)
            # What starts while the next ones are made is of no number.
            self.fleet.seen = Seen()
            self._sum_up(chosen, waiting, seen, start)

    async def _known(self) -> None:
        """Wait until the controller has looked at all of them."""
        url = self.place.watched()[0].url
        while (await asyncio.to_thread(scraped, url))["workqueue_depth"]["gangs"]:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)

    async def _drain(self, chosen: Sequence[One]) -> None:
        async with asyncio.TaskGroup() as ending:
            for _ in chosen:
                ending.create_task(self.fleet.end(await self.fleet.ran.get()))
        await self.fleet.until(lambda: not len(self.fleet))

    def _sum_up(self, chosen: Sequence[One], waiting: int, seen: Seen, start: _Start) -> None:
        number, seconds = len(chosen), seen.last - seen.since
        spent, made = start.costs.each(number)
        by = {name: calls / number for name, calls in (self.place.calls() - start.callers).items()}
        pods = sum(one.pods for one in chosen) / number
        seen.to_last_gate.sort()
        seen.burst.sort()
        result = Result(number, waiting / seconds, waiting * pods / seconds, seen, spent, made, by, start.samples)
        self.results.append(result)
        burst = ", ".join(f"p{part:.0%} {percentile(seen.burst, part):.2f} s" for part in (0.5, 0.99))
        print(f"{number} gangs: {result.rate:.1f} a second; from the first to the last gate {burst.replace('%', '')}")
        print(f"  of {waiting} that waited {seen.early} began before their room was seen, and have no time")
        print(f"  CPU ms a gang: {_listed(spent)}\n  calls a gang: {_listed(made)}\n  by who made them: {_listed(by)}")


def plot(results: Sequence[Result]) -> str:
    """The figure: rates and times by gangs, and cores and memory by the time of the last number of gangs."""
    last = results[-1]
    rates = [(one.gangs, one.rate) for one in results]
    times = {
        f"p{100 * part:.0f}": [(one.gangs, percentile(one.seen.to_last_gate, part)) for one in results]
        for part in (0.5, 0.99)
    }
    cores = {short or name: last.samples.points[f"{name} cores"] for name, short in _DRAWN.items()}
    memory = {name: last.samples.points[f"{name} MB"] for name in _BOTH}
    when = f"seconds, with {last.gangs} gangs: they are made, wait, and leave"
    return panels(
        [
            Panel("gangs a second that leave", "gangs", {"muster": rates}),
            Panel("seconds from room to last gate", "gangs", times),
            Panel("cores", when, cores),
            Panel("MB resident", when, memory),
        ]
    )


def _listed(numbers: Mapping[str, float]) -> str:
    known = sorted(numbers.items(), key=lambda one: -one[1])
    return ", ".join(f"{name} {number:.1f}" for name, number in known if number >= _SEEN)


@asynccontextmanager
async def _telling(samples: Samples, fleet: Fleet) -> AsyncIterator[None]:
    """Sample meanwhile, and say how it goes. A process that ends, ends the run."""
    left = fleet.left

    def tell(now: Samples) -> None:
        used = ", ".join(f"{name} {now.last(f'{name} MB'):.0f} MB" for name in _BOTH)
        print(f"  {fleet.waiting} wait, {len(fleet)} there, {fleet.left - left} left; {used}", flush=True)

    async with asyncio.TaskGroup() as group:
        sampling = group.create_task(samples.run(_EVERY, tell))
        yield
        sampling.cancel()


@asynccontextmanager
async def running(on: Place, queues: Sequence[QueueOf]) -> AsyncIterator[Fleet]:
    """The queues, and a watch of the gangs that are made in them."""
    connect = {"kubeconfig": str(on.testbed.kubeconfig), "user_agent": "bench"}
    async with await Client.connect(**connect) as client, await Client.connect(**connect) as watch:
        fleet = Fleet(client, queues)
        reflector = fleet.reflector(watch)
        watching = asyncio.create_task(reflector.run())
        try:
            await reflector.wait_synced(_EVERY * 12)
            await fleet.make_queues()
            yield fleet
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _measured(on: Place, arguments: argparse.Namespace, queues: Sequence[QueueOf], results: list[Result]) -> None:
    async with running(on, queues) as fleet:
        run = Run(on, fleet, gangs(teams_of(queues), _SEED), results)
        try:
            async with asyncio.timeout(60 * arguments.minutes):
                for number in arguments.gangs:
                    await run.measure(number)
        except TimeoutError:
            print(f"{arguments.minutes} minutes are over: what is below was measured until then")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[QueueOf]]:
    """The arguments, with those of the place and the plot, and the queues; what the nodes do not hold is an error."""
    parser.add_argument("--nodes", type=int, default=1000, help="kwok's nodes of 16 cpu")
    parser.add_argument("--queues", type=int, default=100, help="teams; departments and organisations come on top")
    parser.add_argument("--plot", type=Path, help="the SVG to write")
    arguments = parser.parse_args()
    if arguments.queues < 1:
        parser.error("--queues: gangs need at least one")
    made = tree(arguments.queues)
    if (needed := needed_nodes(made, CORES)) > arguments.nodes:
        parser.error(f"--nodes: {arguments.queues} queues need {needed}, so that no gang waits for a node")
    return arguments, made


def main() -> None:
    """Measure, print, plot."""
    parser = argparse.ArgumentParser(
        prog="hack.bench.fleet", description="Thousands of gangs in queues of three levels."
    )
    parser.add_argument("--gangs", type=_numbers, default="500,2000,15000", help="numbers of gangs, with commas")
    parser.add_argument("--minutes", type=float, default=180.0, help="after which it ends, with what it has by then")
    arguments, queues = parsed(parser)
    results: list[Result] = []
    try:
        with place(arguments.nodes) as on:
            asyncio.run(_measured(on, arguments, queues, results))
    finally:
        # Whatever ended it: what was measured until then is worth as much.
        if results:
            print(table(_HEAD, [one.row() for one in results]))
            if arguments.plot:
                arguments.plot.write_text(plot(results))
    if len(results) < len(arguments.gangs):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
