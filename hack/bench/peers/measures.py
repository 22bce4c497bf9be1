"""What is measured of one contender: a burst, the way of a RayCluster to Running, a drain, and gangs without room."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hack.bench.peers.contenders import RAW_GATE, RAY_CLUSTERS, Contender, queue_of
from hack.bench.peers.halves import LIMIT, Placed, half_started, longest_half
from hack.bench.peers.place import FEW
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.resource import PODS, Resource
from muster.observe.kueue_objects import KUEUE_WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from hack.bench.peers.contenders import Manifest
    from hack.bench.peers.watching import Gang, Watched
    from muster.kube.client import Client

__all__ = ["Drained", "Halves", "Measures", "Opened"]

_SECONDS = 600.0
_CALL = 600.0
_CPU = "100m"
_SMALL = 5
_NARROW_CPU = 10
_AT_ONCE = 20  # gangs of five pods that the narrow queue holds
_ASKED, _EACH = 8, 3  # gangs, and pods of each, where the nodes have room for five gangs and one pod


class Opened(NamedTuple):
    """A burst in seconds: the creations, and from the last of them to the last open gate."""

    created: float
    opened: float


class Drained(NamedTuple):
    """Gangs that went through a queue, and the seconds."""

    gangs: int
    seconds: float

    @property
    def rate(self) -> float:
        """Gangs a second."""
        return self.gangs / self.seconds


class Halves(NamedTuple):
    """What became of gangs that found too little room: how many ran whole, were half-started, and what those held."""

    asked: int
    whole: int
    half: int
    held: int
    longest: float


class Measures:
    """Measures contenders, one after the other."""

    def __init__(self, client: Client, watched: Watched) -> None:
        self._client = client
        self.watched = watched
        self._number = 0

    async def opened(self, contender: Contender, size: int) -> Opened:
        """A gang of so many plain pods, which the scheduler never sees."""
        gang = await self._gang(contender, size)
        queue = queue_of(contender, "wide")
        pods = [contender.pod(gang.name, number, size, queue, cpu=_CPU) for number in range(size)]
        begun = time.perf_counter()
        await self._create(contender, pods)
        created = time.perf_counter()
        if contender.gate == RAW_GATE:
            await burst(lambda pod: self._ungate(contender, pod), [pod["metadata"]["name"] for pod in pods])
            done = time.perf_counter()
        else:
            await asyncio.wait_for(gang.opened.wait(), _SECONDS)
            done = gang.opened_at
        await self._remove(contender, [gang])
        return Opened(created - begun, max(0.0, done - created))

    async def running(self, contender: Contender, size: int) -> tuple[float, Placed]:
        """Seconds from the creation of a RayCluster to its last running pod, and how it was placed in between."""
        gang = await self._gang(contender, size)
        begun = time.perf_counter()
        await self._cluster(contender, gang.name, size, "wide", cpu=_CPU)
        await asyncio.wait_for(gang.running.wait(), _SECONDS)
        await self.remove_clusters(contender, [gang])
        return gang.running_at - begun, gang.placed

    async def drained(self, contender: Contender, gangs: int, *, running: bool) -> Drained:
        """Gangs of five through a queue that holds twenty.

        Each ends as soon as its gates are open, or where schedulers run as soon as it runs. They wait for one pod that
        has the whole queue; the time begins when that ends. Raw patches wait for nobody.
        """
        if contender.gate == RAW_GATE:
            return await self._drained_raw(contender, gangs)
        blocker = await self._gang(contender, 1)
        queue = queue_of(contender, "narrow")
        await self._members(contender, blocker, queue, cpu=str(_NARROW_CPU))
        await asyncio.wait_for((blocker.running if running else blocker.opened).wait(), _SECONDS)
        waiting = [await self._gang(contender, _SMALL) for _ in range(gangs)]
        for gang in waiting:
            await self._members(contender, gang, queue, cpu=_CPU)
        begun = time.perf_counter()
        await self._finish(contender, blocker)
        last = begun

        async def end(gang: Gang) -> None:
            nonlocal last
            await asyncio.wait_for((gang.running if running else gang.opened).wait(), _SECONDS)
            last = max(last, gang.running_at if running else gang.opened_at)
            await self._finish(contender, gang)

        async with asyncio.TaskGroup() as ending:
            for gang in waiting:
                ending.create_task(end(gang))
        await self._remove(contender, [blocker, *waiting])
        return Drained(gangs, last - begun)

    async def _drained_raw(self, contender: Contender, gangs: int) -> Drained:
        waiting = [await self._gang(contender, _SMALL) for _ in range(gangs)]
        for gang in waiting:
            await self._members(contender, gang, queue_of(contender, "narrow"), cpu=_CPU)
        limit = asyncio.Semaphore(_AT_ONCE)
        begun = time.perf_counter()

        async def one(gang: Gang) -> None:
            async with limit:
                await asyncio.gather(*(self._ungate(contender, pod) for pod in gang.pods))
                await self._finish(contender, gang)

        await asyncio.gather(*(one(gang) for gang in waiting))
        seconds = time.perf_counter() - begun
        await self._remove(contender, waiting)
        return Drained(gangs, seconds)

    async def halves(self, contender: Contender) -> Halves:
        """RayClusters that ask for more of a resource than the nodes have, but not more than their queue allows.

        The watch ends when nothing was placed or taken away for longer than the limit.
        """
        gangs = [await self._gang(contender, _EACH) for _ in range(_ASKED)]
        for gang in gangs:
            await self._cluster(contender, gang.name, _EACH, "wide", **{"cpu": _CPU, FEW: "1"})
        begun = time.perf_counter()
        while True:
            changed = max([begun, *(gang.placed.changes[-1][0] for gang in gangs if gang.placed.changes)])
            placed = [gang for gang in gangs if gang.placed.changes]
            quiet = time.perf_counter() - changed
            if (placed and quiet > 2 * LIMIT) or quiet > _SECONDS:
                break
            await asyncio.sleep(0.2)
        now = [gang.placed.changes[-1][1] if gang.placed.changes else 0 for gang in gangs]
        await self.remove_clusters(contender, gangs)
        records = [gang.placed for gang in gangs]
        return Halves(
            _ASKED,
            sum(pods >= _EACH for pods in now),
            half_started(records),
            sum(pods for pods in now if pods < _EACH),
            max(map(longest_half, records)),
        )

    async def cluster(self, contender: Contender, name: str, size: int) -> Gang:
        """A RayCluster of that name in the small queue, of pods of one cpu, for a user to look at."""
        gang = self.watched.expect(contender.namespace, name, size, contender.gate)
        await self._cluster(contender, name, size, "small", cpu="1")
        return gang

    async def remove_clusters(self, contender: Contender, gangs: Iterable[Gang]) -> None:
        """Remove RayClusters and wait until nothing of them is left."""
        for gang in gangs:
            self.watched.forget(gang)
            await self._client.delete(RAY_CLUSTERS, gang.name, contender.namespace, deadline=_CALL)
        await self._cleaned(contender)

    async def _gang(self, contender: Contender, size: int) -> Gang:
        self._number += 1
        return self.watched.expect(contender.namespace, f"g{self._number:05}", size, contender.gate)

    async def _cluster(self, contender: Contender, name: str, size: int, queue: str, **requests: str) -> None:
        manifest = contender.ray_cluster(name, size, queue_of(contender, queue), **requests)
        await self._client.create(RAY_CLUSTERS, manifest, contender.namespace, deadline=_CALL)

    async def _members(self, contender: Contender, gang: Gang, queue: str, **requests: str) -> None:
        for resource, manifest in contender.groups(gang.name, gang.size, queue):
            await self._client.create(resource, manifest, contender.namespace, deadline=_CALL)
        pods = [contender.pod(gang.name, number, gang.size, queue, **requests) for number in range(gang.size)]
        await self._create(contender, pods)

    async def _create(self, contender: Contender, pods: list[Manifest]) -> None:
        await burst(lambda pod: self._client.create(PODS, pod, contender.namespace, deadline=_CALL), pods)

    async def _ungate(self, contender: Contender, pod: str) -> None:
        patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": contender.gate}]}}
        await self._client.strategic_merge_patch(PODS, pod, patch, contender.namespace, deadline=_CALL)

    async def _finish(self, contender: Contender, gang: Gang) -> None:
        """Its pods succeed, as their kubelet would say."""
        self.watched.forget(gang)
        done = {"status": {"phase": "Succeeded"}}
        await asyncio.gather(
            *(
                self._client.merge_patch(PODS, pod, done, contender.namespace, subresource="status", deadline=_CALL)
                for pod in gang.pods
            )
        )

    async def _remove(self, contender: Contender, gangs: list[Gang]) -> None:
        for gang in gangs:
            self.watched.forget(gang)
        pods = [pod for gang in gangs for pod in gang.pods]
        await burst(lambda pod: self._gone(PODS, pod, contender.namespace), pods)
        if not contender.gate:
            groups = [group for gang in gangs for group in contender.groups(gang.name, gang.size, "")]
            await burst(lambda one: self._gone(one[0], one[1]["metadata"]["name"], contender.namespace), groups)
        await self._cleaned(contender)

    async def _gone(self, resource: Resource, name: str, namespace: str) -> None:
        with suppress(ApiError):
            await self._client.delete(resource, name, namespace, deadline=_CALL)

    async def _cleaned(self, contender: Contender) -> None:
        """Wait until a namespace has no pods; Kueue leaves a group's Workload behind, with its quota."""
        if contender.kueue:
            await self._until(lambda: self._without(KUEUE_WORKLOADS, contender.namespace))
        await self._until(lambda: self._empty(contender.namespace))

    async def _empty(self, namespace: str) -> bool:
        return not self.watched.left(namespace)

    async def _without(self, resource: Resource, namespace: str) -> bool:
        """Delete all of a kind, and tell whether none was there."""
        data = await self._client.list_page(resource, namespace=namespace, limit=5000)
        names = [one["metadata"]["name"] for one in json.loads(data)["items"]]
        await burst(lambda name: self._gone(resource, name, namespace), names)
        return not names

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(_SECONDS):
            while not await condition():  # noqa: ASYNC110 - others' state
                await asyncio.sleep(0.1)
