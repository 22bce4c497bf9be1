"""PodGroups and events that a leader writes when it takes over and while things happen.

Sixty queues below one limit, half of the gangs run and fill it. The goals:

- a leader that takes over where nothing has changed writes nothing and says nothing, then and for 100 seconds;
- where a gang goes every second, which changes the places of others: at most 5 writes a second, of all queues;
- a leader that takes over before all of these are written writes none at once, 5 a second after that, and no event;
- a small gang that passes all and starts: two writes and a gate for each pod, and two PodGroups of others at most.

The first leader has no goal: each gang that waits or starts is written, with two events.
"""

import asyncio
from collections.abc import Iterable, Sequence

from hack.bench.harness import options, say
from hack.bench.many import Client, Leader, One, at_once, filled, leader, queue, workloads
from muster.cluster.cluster import Cluster
from muster.model.objects import Queue
from muster.process.lifecycle import tune_gc

_QUEUES, _SECONDS = 60, 100


def _gangs(count: int) -> tuple[list[One], list[Queue]]:
    queues = [queue("org", str(count * 5 // 2)), *(queue(f"q{number}", "", parent="org") for number in range(_QUEUES))]
    ones = [
        One(number, f"q{number % _QUEUES}", 2000 + (number * 7919) % 1000, admitted=number % 2 == 0)
        for number in range(count)
    ]
    return ones, queues


async def _work(world: Leader) -> int:
    """Do what is left; return the number of PodGroups written."""
    before = world.client.groups
    while world.busy:
        for _ in world.reconciler.term.sweeps.steps():
            pass
        if world.queue.statistics().ready:
            key = await world.queue.get()
            await world.reconciler.reconcile(key)
            world.queue.done(key)
    return world.client.groups - before


async def _takes_over(cluster: Cluster) -> tuple[Leader, int]:
    world = leader(cluster, Client(cluster, at_once))
    for _ in world.reconciler.prime(cluster.pod_groups.values()):
        pass
    return world, await _work(world)


async def _second(world: Leader) -> int:
    world.reconciler.refresh_messages()
    return await _work(world)


async def _until_quiet(world: Leader) -> None:
    quiet = 0
    while quiet < _QUEUES:
        quiet = 0 if await _second(world) else quiet + 1


async def _measure(sizes: Iterable[int]) -> None:
    for gangs in sizes:
        ones, queues = _gangs(gangs)
        cluster = filled(ones, queues)
        world, written = await _takes_over(cluster)
        say(f"{gangs:,} gangs, the first leader", {"at once": written, "events": world.announcer.events})
        await _until_quiet(world)
        world, written = await _takes_over(cluster)
        later = sum([await _second(world) for _ in range(_SECONDS)])
        figures = {"at once": written, "later": later, "events": world.announcer.events}
        say(f"{gangs:,} gangs, a leader where nothing has changed", figures)
        seconds = []
        for number in range(_SECONDS):
            # One that waits goes: places change, and what is free does not.
            workloads(cluster).apply("deleted", ones[2 * number + 1].cluster)
            seconds.append(await _second(world))
        say(f"{gangs:,} gangs, one goes every second", {"a second at most": max(seconds)})
        world, written = await _takes_over(cluster)
        most = max([await _second(world) for _ in range(_SECONDS)])
        figures = {"at once": written, "a second at most": most, "events": world.announcer.events}
        say(f"{gangs:,} gangs, a leader where places have changed", figures)
        await _passing(gangs)


async def _passing(gangs: int) -> None:
    """A small gang comes to the end of a queue in which no other gang fits, and starts."""
    runs, small = One(0, "q", 1000, admitted=True), One(gangs + 1, "q", 500, admitted=False)
    larges = [One(number, "q", 2000 + number, admitted=False) for number in range(1, gangs + 1)]
    world, _ = await _takes_over(filled([runs, *larges], [queue("q", "5")]))
    await _until_quiet(world)
    client = world.client
    groups, pods, own = client.groups, client.pods, client.of[small.key.name]
    workloads(world.cluster).apply("added", small.cluster)
    for pod in small.pods:
        world.cluster.pods.of("volcano").apply("added", pod)
    await _work(world)
    groups, pods, own = client.groups - groups, client.pods - pods, client.of[small.key.name] - own
    if pods != len(small.pods):
        raise AssertionError(f"{pods} gates opened")
    say(f"{gangs:,} gangs, one passes all", {"writes for it": own, "gates": pods, "of others": groups - own})


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, gangs=[1000, 4000, 16_000])
    tune_gc()
    asyncio.run(_measure(given.gangs))
