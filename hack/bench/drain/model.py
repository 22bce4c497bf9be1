"""A drain in which only calls take time: `python -m hack.bench.drain.model`.

The controller runs as it is, in the virtual time of an event loop of its own, against a model of an apiserver: so many
calls at once, each as long as it is said below, and a trip to it and back. So it shows what a drain waits for (calls
that could be spared, or that stand in each other's way), the same on every machine. What the programs compute takes no
time in it: for that there is `python -m hack.bench.drain`.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import CollectorRegistry

from controller.events import Announcer
from controller.fenced_writes import Writer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from controller.reports import LEDGER_MANAGER
from hack.bench import many
from hack.bench.curves import curves
from muster.gangs.intent import Defaults
from muster.kube.workqueue import WorkQueue, work
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, QUEUE_LABEL
from muster.model.objects import Pod, PodGroup, convert
from muster.observe.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.model.objects import ObjectMeta
    from muster.queueing.ledger import GangKey

__all__ = ["Drained", "Terms", "drained", "plotted", "report"]

_SIZE = 5
# Seconds of a core: what two cores of the bench's apiserver and etcd took, rounded.
_TAKES = {
    "trial": 0.005,
    "gate": 0.005,
    "apply": 0.008,
    "delete pod": 0.006,
    "delete group": 0.006,
    "event": 0.004,
    "list": 0.006,
}
# Of a gang, one after another: its gates are tried on one pod while its mark is written.
_WRITES = ["trial", "apply"], ["gate"] * _SIZE, ["delete pod"] * _SIZE, ["delete group"]
# From a write until a watch shows it.
_SHOWN = 0.003
_STARTS, _SETTLED = 1_790_000_000.0, 60.0
# A client's connections, and those that a controller's watches leave of them.
_CONNECTIONS, _LEFT = 64, 37
# Where the report's apiservers are: cores, seconds of the trip, and for how many gangs the queue has room.
_PLACES = (2, 0.0, 20), (8, 0.01, 20), (8, 0.01, 40), (64, 0.1, 20), (64, 0.1, 40)
_TRIPS = (0.005, 0.02, 0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True, slots=True)
class Terms:
    """So many gangs wait, of which `drained` leave, `slots` at once; `cores` and `trip` (seconds) are the apiserver's.

    `workers` are the controller's own.
    """

    waiting: int = 90
    drained: int = 60
    slots: int = 20
    cores: int = 2
    trip: float = 0.0
    workers: int = 16


@dataclass(frozen=True, slots=True)
class Drained:
    """Gangs a second that leave by muster and by a raw client that does the same writes, and the calls of muster's."""

    muster: float
    raw: float
    calls: dict[str, float]


class _VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose clock goes on when nothing is left to do, and then to the next timer."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]
            # Who waits for less than a clock can tell would wait for ever.
            self._now = max(self._now + 1e-6, timers[0].when())
        super()._run_once()  # type: ignore[misc]


class _Apiserver:
    """Takes calls in their order, as many at once as it has cores."""

    def __init__(self, terms: Terms) -> None:
        self.calls: Counter[str] = Counter()
        self._trip = terms.trip
        self._free = [asyncio.get_running_loop().time()] * terms.cores

    async def call(self, kind: str, among: asyncio.Semaphore) -> None:
        """One call, over one of these connections."""
        async with among:
            self.calls[kind] += 1
            now = asyncio.get_running_loop().time()
            done = max(heapq.heappop(self._free), now + self._trip / 2) + _TAKES[kind]
            heapq.heappush(self._free, done)
            await asyncio.sleep(done + self._trip / 2 - now)


def _pod(gang: int, member: int, *, held: bool, version: int = 1) -> Pod:
    name = f"gang-{gang:05}"
    meta = {
        "name": f"{name}-{member}",
        "namespace": "bench",
        "uid": f"uid-{name}-{member}",
        "resourceVersion": str(version),
        "creationTimestamp": f"2026-11-25T{gang // 3600:02}:{gang // 60 % 60:02}:{gang % 60:02}Z",
        "labels": {GANG: name, QUEUE_LABEL: "q"},
        "annotations": {GANG_SIZE: str(_SIZE), GROUP_NAME: name},
    }
    container = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    gates = {"schedulingGates": [{"name": GATE}]} if held else {}
    return convert({"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [container], **gates}}, Pod)


class _Client:
    """The controller's client: each write takes its time, and a watch shows it soon after."""

    def __init__(self, cluster: Cluster, apiserver: _Apiserver) -> None:
        self.opened: asyncio.Queue[int] = asyncio.Queue()
        self._apiserver = apiserver
        self._among = asyncio.Semaphore(_LEFT)
        self._pods = cluster.pods.of("volcano")
        self._stored = cluster.pod_groups.of("volcano")
        self._groups: dict[str, dict[str, Any]] = {}
        self._open: Counter[int] = Counter()
        self._version = 1

    def show_gone(self, gang: int, member: int) -> None:
        """A pod is deleted."""
        pod = _pod(gang, member, held=False)
        asyncio.get_running_loop().call_later(_SHOWN, partial(self._pods.apply, "deleted", pod))

    async def apply(
        self, _: object, name: str, body: dict[str, Any], namespace: str, *, field_manager: str, **__: object
    ) -> bytes:
        """A PodGroup."""
        await self._apiserver.call("apply", self._among)
        before = self._groups.get(name, {"metadata": {}})
        kept = before["metadata"].get("annotations", {})
        if field_manager == LEDGER_MANAGER:
            kept = {key: text for key, text in kept.items() if not key.startswith("muster.dev/")}
        self._version += 1
        meta = {"uid": f"uid-{name}", "creationTimestamp": "2026-11-25T10:00:00Z", **before["metadata"]}
        meta |= {**body["metadata"], "namespace": namespace, "resourceVersion": str(self._version)}
        meta["annotations"] = {**kept, **body["metadata"].get("annotations", {})}
        meta["labels"] = {**before["metadata"].get("labels", {}), **body["metadata"].get("labels", {})}
        group = self._groups[name] = {**before, **body, "metadata": meta}
        shown = convert(group, PodGroup)
        asyncio.get_running_loop().call_later(_SHOWN, partial(self._stored.apply, "modified", shown))
        return msgspec.json.encode(group)

    async def strategic_merge_patch(
        self, _: object, name: str, *__: object, dry_run: bool = False, **___: object
    ) -> bytes:
        """A gate."""
        if dry_run:
            await self._apiserver.call("trial", self._among)
            return b"{}"
        await self._apiserver.call("gate", self._among)
        gang, member = map(int, name.split("-")[1:])
        self._version += 1
        pod = _pod(gang, member, held=False, version=self._version)
        asyncio.get_running_loop().call_later(_SHOWN, self._show_open, gang, pod)
        return b"{}"

    def _show_open(self, gang: int, pod: Pod) -> None:
        self._pods.apply("modified", pod)
        self._open[gang] += 1
        if self._open[gang] == _SIZE:
            self.opened.put_nowait(gang)

    async def create(self, *_: object, **__: object) -> bytes:
        """An event."""
        await self._apiserver.call("event", self._among)
        return b"{}"

    async def delete(self, _: object, name: str, *__: object, **___: object) -> None:
        """A PodGroup."""
        await self._apiserver.call("delete group", self._among)
        gone = convert(self._groups.pop(name), PodGroup)
        asyncio.get_running_loop().call_later(_SHOWN, partial(self._stored.apply, "deleted", gone))

    async def nobodys(self, _: ObjectMeta) -> bool:
        """Whether a PodGroup is somebody's: its pods are gone."""
        await self._apiserver.call("list", self._among)
        return False


async def _by_muster(terms: Terms) -> tuple[float, Counter[str]]:
    loop, cluster = asyncio.get_running_loop(), Cluster()
    pods = [_pod(gang, member, held=True) for gang in range(terms.waiting) for member in range(_SIZE)]
    queues = [many.queue("q", str(terms.slots * _SIZE))]
    for watched in cluster.watched():
        own = watched.store is cluster.pods.of("volcano")
        watched.store.replace_all(pods if own else queues if watched.store is cluster.queues else [])
    apiserver = _Apiserver(terms)
    client = _Client(cluster, apiserver)

    async def never(*_: object) -> Any:  # noqa: ANN401 - answers what is never asked
        raise AssertionError

    as_client: Any = client
    writer = Writer(as_client, lambda: 60.0)
    queue: WorkQueue[GangKey] = WorkQueue()
    announcer = Announcer(writer, "model", never)
    reconciler = Reconciler(
        *(writer, cluster, queue, Defaults(), announcer),
        alive=client.nobodys,
        jobs=never,
        admitted=never,
        metrics=Metrics(CollectorRegistry()),
        clock=loop.time,
        wall=lambda: _STARTS + loop.time(),
    )
    reconciler.subscribe()
    for _ in reconciler.prime():
        pass
    parts = (
        work(queue, reconciler.reconcile, terms.workers),
        announcer.run(),
        reconciler.sweeps.run(),
        _tick(reconciler),
    )
    async with asyncio.TaskGroup() as group:
        working = [group.create_task(part) for part in parts]
        # All wait by then, and their events are written.
        await asyncio.sleep(_SETTLED)
        apiserver.calls.clear()
        seconds = await _ended(terms, client, apiserver)
        calls = Counter(apiserver.calls)
        for task in working:
            task.cancel()
    return terms.drained / seconds, calls


async def _ended(terms: Terms, client: _Client, apiserver: _Apiserver) -> float:
    """End what runs, and what starts in its place, until so many have started; gives seconds."""
    loop, among = asyncio.get_running_loop(), asyncio.Semaphore(_CONNECTIONS)
    started = loop.time()

    async def end(gang: int, member: int) -> None:
        await apiserver.call("delete pod", among)
        client.show_gone(gang, member)

    async with asyncio.TaskGroup() as ending:
        for _ in range(terms.drained):
            gang = await client.opened.get()
            for member in range(_SIZE):
                ending.create_task(end(gang, member))
        for _ in range(terms.slots):
            await client.opened.get()
    return loop.time() - started


async def _tick(reconciler: Reconciler) -> None:
    while True:
        await asyncio.sleep(1)
        reconciler.tell_who_waits()


async def _by_hand(terms: Terms) -> float:
    apiserver, among = _Apiserver(terms), asyncio.Semaphore(_CONNECTIONS)
    slots, started = asyncio.Semaphore(terms.slots), asyncio.get_running_loop().time()

    async def gang() -> None:
        async with slots:
            for kinds in _WRITES:
                await asyncio.gather(*(apiserver.call(kind, among) for kind in kinds))

    await asyncio.gather(*(gang() for _ in range(terms.drained)))
    return terms.drained / (asyncio.get_running_loop().time() - started)


def drained(terms: Terms) -> Drained:
    """A drain by muster and one by a raw client, each alone; takes some 10 ms of a core for a gang."""
    with asyncio.Runner(loop_factory=_VirtualTime) as runner:
        rate, calls = runner.run(_by_muster(terms))
        raw = runner.run(_by_hand(terms))
    return Drained(rate, raw, {kind: round(count / terms.drained, 1) for kind, count in calls.items()})


def report(workers: int = 16) -> list[str]:
    """Drains of an apiserver that is busy, of one with more cores, and of one that is far, in lines of text."""
    lines = ["gangs a second                       muster      raw          calls of a gang"]
    for cores, trip, slots in _PLACES:
        found = drained(Terms(20 + 3 * slots, 2 * slots, slots, cores, trip, workers))
        calls = ", ".join(f"{kind} {round(number)}" for kind, number in sorted(found.calls.items()) if number >= 1)
        where = f"{cores} cores, {1000 * trip:.0f} ms away, room for {slots}"
        lines.append(f"{where:35} {found.muster:7.0f} {found.raw:8.0f} {found.muster / found.raw:5.0%}   {calls}")
    return lines


def plotted(points: Mapping[float, Drained]) -> str:
    """The rates by seconds of the trip to the apiserver and back."""
    rates = {
        "a raw client": [(1000 * trip, found.raw) for trip, found in points.items()],
        "muster": [(1000 * trip, found.muster) for trip, found in points.items()],
    }
    return curves("gangs a second, through a queue with room for 20", "ms to the apiserver and back", rates)


def main() -> None:
    """Print, and plot."""
    parser = argparse.ArgumentParser(prog="hack.bench.drain.model", description="What a drain waits for.")
    parser.add_argument("--workers", type=int, default=16, help="gangs reconciled at once")
    parser.add_argument("--plot", type=Path, help="the SVG to write")
    arguments = parser.parse_args()
    print("\n".join(report(arguments.workers)))
    if arguments.plot:
        far = {trip: Terms(cores=64, trip=trip, workers=arguments.workers) for trip in _TRIPS}
        arguments.plot.write_text(plotted({trip: drained(terms) for trip, terms in far.items()}))


if __name__ == "__main__":
    main()
