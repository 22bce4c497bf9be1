"""How fast gangs that wait leave a queue: `python -m hack.bench.drain [--waiting 500,2000,8000] [--before REV]`.

On a control plane of its own (etcd, kube-apiserver, muster's webhook and controller with their real rights, no
operator, no scheduler, no kubelet) gangs of five plain pods wait for a queue that holds some of them. The bench deletes
the pods of each gang as soon as its last gate is open. In the same run, in turn, a raw client does as many of the same
writes, as many at once, on objects as large, and the same watch sees them. With `--before` a controller of another
revision takes turns as well.

Prints for each number of waiting gangs: gangs a second, beside raw; what each gang took of the CPU, process by process;
the apiserver's calls for each gang; and the times of one gang from stage to stage, as the bench's own watch and the
annotations in it show them.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import tempfile
from contextlib import AsyncExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Self

from hack.bench.bare import QUEUES_AND_GROUPS, bare
from hack.bench.drain.costs import Costs
from hack.bench.drain.gangs import NAMESPACE, SIZE, STAGES, Gangs
from hack.bench.drain.raw import Raw
from hack.bench.fleet.sampling import scraped
from hack.bench.trends import percentile
from hack.bench.usage import resident
from hack.testbed import Testbed, wait_for
from hack.testbed.muster import MusterInstall, install
from muster.kube.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHECKOUT = Path(__file__).parents[3]
_ENDED = 60
_SEEN = 0.1  # ms
_LED = 600.0
# Where others use the cores as well, a controller may get none for longer than its lease lasts.
_PATIENT = ("--lease-duration=600", "--renew-deadline=540", "--retry-period=2")


class Run:
    """The gangs, the raw client, and the controllers that take turns: `revisions` has where each has its code."""

    def __init__(self, testbed: Testbed, muster: MusterInstall, revisions: dict[str, Path], slots: int) -> None:
        self.testbed = testbed
        self._muster = muster
        self._revisions = revisions
        self._slots = slots
        self._stack = AsyncExitStack()
        self.rates: dict[str, list[float]] = {}

    async def __aenter__(self) -> Self:
        connect = {"kubeconfig": str(self.testbed.kubeconfig), "user_agent": "bench"}
        self.gangs = Gangs(await self._stack.enter_async_context(await Client.connect(**connect)), self._slots)
        self.raw = Raw(await self._stack.enter_async_context(await Client.connect(**connect)), self._slots)
        self._watching = [asyncio.create_task(one.run()) for one in self.gangs.reflectors()]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        await self._stack.aclose()

    def lead(self, revision: str) -> None:
        """Have a controller of this revision lead, and no other, when it has looked at all there is; none for ""."""
        for process in self._muster.controllers:
            process.stop(_ENDED)
        self._muster.controllers.clear()
        if not revision:
            return
        # Else the folder in which the bench was started would come first.
        code = {"PYTHONPATH": str(self._revisions[revision]), "PYTHONSAFEPATH": "1"}
        process = self._muster.start_controller(*_PATIENT, env=code)
        url = self._muster.url(process, "/metrics")
        self._muster.wait_ready()

        def leads() -> bool:
            said = scraped(url)
            # Nothing waits to be looked at before the first look, either.
            looked_at = said["workqueue_adds_total"].get("gangs", 0.0) >= self.gangs.there
            idle = said["workqueue_depth"].get("gangs") == 0.0
            return looked_at and idle and said["leader_election_master_status"].get("muster-controller") == 1.0

        wait_for(f"the controller of {revision} to lead", leads, _LED)

    async def turn(self, who: str, gangs: int) -> None:
        """Let so many gangs through: the raw client's, or those that a controller starts."""
        # One that watches would work on the raw client's PodGroups, too.
        self.lead("" if who == "raw" else who)
        if who == "raw":
            await self.raw.make(gangs)
            costs = Costs(self.testbed, self._muster)
            seconds = await self.raw.drain()
        else:
            await self.gangs.ready()
            costs = Costs(self.testbed, self._muster)
            seconds = await self.gangs.drain(gangs)
        spent, made = costs.each(gangs)
        self.rates.setdefault(who, []).append(gangs / seconds)
        cpu = ", ".join(f"{name} {ms:.1f}" for name, ms in spent.items() if ms >= _SEEN)
        print(
            f"  {who}: {gangs / seconds:.1f} gangs a second; CPU ms a gang: {cpu}; all {sum(spent.values()):.1f}; "
            f"calls a gang: {', '.join(f'{kind} {number:.1f}' for kind, number in made.items())}",
            flush=True,
        )
        if who != "raw":
            seen, rss = self.gangs.seen, resident(self._muster.controllers[0].pid)
            stages = [
                ("room to last gate", seen.to_last_gate()),
                ("mark to last gate", seen.between("marked", "last gate")),
            ]
            print(f"    {'; '.join(_times(*stage) for stage in stages)}; {rss:.0f} MB resident", flush=True)
            for earlier, later in pairwise(STAGES):
                print(f"    {_times(f'{earlier} to {later}', seen.between(earlier, later))}", flush=True)


def _times(what: str, seconds: list[float]) -> str:
    return f"{what} p50 {percentile(seconds, 0.5):.3f}, p99 {percentile(seconds, 0.99):.3f} s"


@contextmanager
def _revisions(before: str) -> Iterator[dict[str, Path]]:
    """Where the code of each controller is."""
    if not before:
        yield {"muster": _CHECKOUT}
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        git = ("git", "-C", str(_CHECKOUT), "worktree")
        subprocess.run([*git, "add", "--detach", str(tree), before], check=True, capture_output=True)
        try:
            yield {"muster": _CHECKOUT, "before": tree}
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


async def measure(run: Run, sizes: list[int], rounds: int, part: float, revisions: list[str]) -> None:
    """Let the numbers of waiting gangs grow, and drain a part of them at each, in turns."""
    await run.gangs.queue()
    for waiting in sizes:
        lacking = waiting - run.gangs.waiting
        if lacking > 0:
            run.lead(revisions[0])
            seconds = await run.gangs.make(lacking)
            print(f"{lacking} gangs made, {lacking / seconds:.1f} a second", flush=True)
        gangs = max(1, round(waiting * part))
        run.rates.clear()
        print(f"{waiting} gangs of {SIZE} wait, {gangs} leave in each turn", flush=True)
        for number in range(rounds):
            # Each is first in turn: what one leaves to be cleaned up costs the next.
            order = ["raw", *revisions]
            for who in order[number % len(order) :] + order[: number % len(order)]:
                await run.turn(who, gangs)
        raw = median(run.rates["raw"])
        for who in revisions:
            rate = median(run.rates[who])
            print(f"{waiting} waiting, {who}: {rate:.1f} gangs a second, raw {raw:.1f}; {rate / raw:.0%}", flush=True)


def prepare(testbed: Testbed) -> MusterInstall:
    """Install muster, and nothing beside it that works on pods or nodes."""
    bare(testbed, QUEUES_AND_GROUPS, NAMESPACE)
    muster = install(testbed, values={"webhook.shutdownDelaySeconds": "0"}, webhooks=1, controllers=0)
    muster.wait_ready()
    return muster


async def _measured(
    testbed: Testbed, muster: MusterInstall, revisions: dict[str, Path], arguments: argparse.Namespace
) -> None:
    async with Run(testbed, muster, revisions, arguments.slots) as run:
        sizes = [int(number) for number in arguments.waiting.split(",")]
        await measure(run, sizes, arguments.rounds, arguments.part, [*revisions])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="hack.bench.drain", description="How fast gangs leave a queue.")
    parser.add_argument("--waiting", default="500,2000,8000", help="gangs that wait, with commas, growing")
    parser.add_argument("--slots", type=int, default=20, help="gangs that the queue holds")
    parser.add_argument("--part", type=float, default=0.2, help="how much of the waiting gangs leaves in each turn")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each, for the median")
    parser.add_argument("--before", default="", metavar="REV", help="a revision to compare with")
    arguments = parser.parse_args()
    turns = arguments.rounds * (2 if arguments.before else 1)
    # The last turn needs others that wait, to start in the place of those that end.
    if turns * arguments.part >= 1:
        parser.error(f"{turns} turns of muster's let more gangs leave than wait: lower --rounds or --part")
    with _revisions(arguments.before) as revisions, Testbed.start(parts=(), many_pods=True, progress=print) as testbed:
        asyncio.run(_measured(testbed, prepare(testbed), revisions, arguments))


if __name__ == "__main__":
    main()
