"""How much a leader writes: `python -m hack.bench.writes [--gangs 1000,4000,16000]`.

A leader takes over where nothing has changed since the one before wrote everybody's words; sixty queues wait below one
limit, in which something happens every second; a leader takes over before all have been told of that; and one small
gang starts that passes all others. What is written is shown by the watch at once.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from hack.bench.many import RAY_CLUSTERS, Leader, One, filled, leader, queue
from muster.process.lifecycle import spare_collector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muster.kube.store import Store
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


async def work(world: Leader) -> int:
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
    return world, await work(world)


async def _second(world: Leader) -> int:
    world.reconciler.tell_who_waits()
    return await work(world)


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
        print(f"{gangs:6} gangs: the first leader writes {written} at once; {first.said.events} events", flush=True)
        await _until_quiet(first)
        world, written = await _takes_over(cluster)
        later, events = sum([await _second(world) for _ in range(_SECONDS)]), world.said.events
        print(
            f"{gangs:6} gangs: where nothing has changed, the next one {written}, and {later} in {_SECONDS} s; "
            f"{events} events"
        )
        store = _workloads(cluster)
        seconds = []
        for number in range(_SECONDS):
            # One that waits goes: places change, and what is free does not.
            store.apply("deleted", ones[2 * number + 1].cluster)
            seconds.append(await _second(world))
        print(f"{gangs:6} gangs: {_QUEUES} queues below one limit, an event a second: at most {max(seconds)} a second")
        world, written = await _takes_over(cluster)
        most = max([await _second(world) for _ in range(_SECONDS)])
        events = world.said.events
        print(
            f"{gangs:6} gangs: where places have changed, the next one {written}, and then at most {most} a second; "
            f"{events} events",
            flush=True,
        )
        await _passing(gangs)


async def _passing(gangs: int) -> None:
    """One small gang comes to the end of a line in which nobody else fits, and starts."""
    runs, small = One(0, "line", 1000, admitted=True), One(gangs + 1, "line", 500, admitted=False)
    larges = [One(number, "line", 2000 + number, admitted=False) for number in range(1, gangs + 1)]
    world, _ = await _takes_over(filled([runs, *larges], [queue("line", "5")]))
    await _until_quiet(world)
    groups, pods, own = world.written.groups, world.written.pods, world.written.of[small.group.metadata.name]
    _workloads(world.cluster).apply("added", small.cluster)
    for pod in small.pods:
        world.cluster.pods.of("volcano").apply("added", pod)
    await work(world)
    groups, pods = world.written.groups - groups, world.written.pods - pods
    own = world.written.of[small.group.metadata.name] - own
    if pods != len(small.pods):
        raise AssertionError(f"{pods} gates opened")
    print(
        f"{gangs:6} gangs: one passes them all and starts: {own} PodGroups and {pods} gates for it, "
        f"{groups - own} PodGroups of others",
        flush=True,
    )


def _workloads(cluster: Cluster) -> Store[Any]:
    return next(one.store for one in cluster.watched() if one.resource.plural == RAY_CLUSTERS)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gangs", default="1000,4000,16000", help="how many gangs there are, a list")
    sizes = [int(text) for text in parser.parse_args().gangs.split(",")]
    spare_collector()
    asyncio.run(_measure(sizes))


if __name__ == "__main__":
    main()
