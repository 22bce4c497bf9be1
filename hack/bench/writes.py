"""How many PodGroups a leader writes: `python -m hack.bench.writes [--gangs 1000,4000,16000]`.

A leader takes over where nothing has changed since the one before wrote everybody's words; sixty queues wait below one
limit, in which something happens every second; and a leader takes over before all have been told of that. What is
written is shown by the watch at once.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from hack.bench.many import RAY_CLUSTERS, Leader, One, filled, leader, queue
from muster.process.lifecycle import spare_collector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muster.model.objects import Queue
    from muster.observe.cluster import Cluster

_QUEUES, _SECONDS = 60, 100


def _gangs(count: int) -> tuple[list[One], list[Queue]]:
    """Sixty queues below one that limits them; half of the gangs run, and fill it."""
    queues = [queue("org", str(count * 5 // 2)), *(queue(f"q{number}", "", parent="org") for number in range(_QUEUES))]
    ones = [
        One(number, f"q{number % _QUEUES}", 2000 + (number * 7919) % 1000, admitted=number % 2 == 0)
        for number in range(count)
    ]
    return ones, queues


async def _work(world: Leader) -> int:
    """Do what is left; gives the PodGroups written."""
    before = world.written.groups
    while world.busy:
        for _ in world.reconciler.sweeps.steps():
            pass
        if world.queue.statistics().ready:
            key = await world.queue.get()
            await world.reconciler.reconcile(key)
            world.queue.done(key)
    return world.written.groups - before


async def _takes_over(cluster: Cluster) -> tuple[Leader, int]:
    world = leader(cluster, shown=True)
    for _ in world.reconciler.prime(cluster.pod_groups.values()):
        pass
    return world, await _work(world)


async def _second(world: Leader) -> int:
    world.reconciler.tell_who_waits()
    return await _work(world)


async def _until_quiet(world: Leader) -> None:
    """Until everybody has been told of everything."""
    quiet = 0
    while quiet < _QUEUES:
        quiet = 0 if await _second(world) else quiet + 1


async def _measure(sizes: Iterable[int]) -> None:
    for gangs in sizes:
        ones, queues = _gangs(gangs)
        cluster = filled(ones, queues)
        first, written = await _takes_over(cluster)
        print(f"{gangs:6} gangs: the first leader writes {written} at once", flush=True)
        await _until_quiet(first)
        world, written = await _takes_over(cluster)
        later = sum([await _second(world) for _ in range(_SECONDS)])
        print(f"{gangs:6} gangs: where nothing has changed, the next one {written}, and {later} in {_SECONDS} s")
        store = next(one.store for one in cluster.watched() if one.resource.plural == RAY_CLUSTERS)
        seconds = []
        for number in range(_SECONDS):
            # One that waits goes: places change, and what is free does not.
            store.apply("deleted", ones[2 * number + 1].cluster)
            seconds.append(await _second(world))
        print(f"{gangs:6} gangs: {_QUEUES} queues below one limit, an event a second: at most {max(seconds)} a second")
        world, written = await _takes_over(cluster)
        most = max([await _second(world) for _ in range(_SECONDS)])
        print(f"{gangs:6} gangs: where places have changed, the next one {written}, and then at most {most} a second")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gangs", default="1000,4000,16000", help="how many gangs there are, a list")
    sizes = [int(text) for text in parser.parse_args().gangs.split(",")]
    spare_collector()
    asyncio.run(_measure(sizes))


if __name__ == "__main__":
    main()
