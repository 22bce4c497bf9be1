"""The rate at which gangs leave a queue when only calls take time, and these calls.

The controller runs as it is, in the virtual time of its own event loop, against a model of an apiserver: its cores, the
seconds of each call, and the way there and back. So the figures are the same on every machine, and show which calls
stand in each other's way or could be spared; they show nothing of what the programs compute. The goal is four fifths of
the rate of a raw client that makes the same writes; `tests/unit/controller/test_drain.py` holds 95 %.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from controller.delays import Clock
from hack.bench.harness import options
from hack.bench.many import Client, Leader, filled, leader, queue
from muster.kube.store import Change
from muster.kube.workqueue import work
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, QUEUE_LABEL
from muster.model.objects import convert
from muster.model.pods import Pod

_SIZE = 5
# Seconds of a core: what two cores of a real apiserver and etcd took, rounded.
_TAKES = {
    **dict.fromkeys(("trial", "gate"), 0.005),
    **dict.fromkeys(("delete pod", "delete group", "list"), 0.006),
    "apply": 0.008,
    "event": 0.004,
}
# The calls of a gang in their order: its gates are tried on one pod while its mark is written.
_WRITES = ["trial", "apply"], ["gate"] * _SIZE, ["delete pod"] * _SIZE, ["delete group"]
# From a write until a watch shows it.
_SHOWN = 0.003
_STARTS, _SETTLED = 1_790_000_000.0, 60.0
# A client's connections, and how many a controller's watches leave free.
_CONNECTIONS, _LEFT = 64, 37
# Where the report's apiservers are: cores, seconds of the trip, and for how many gangs the queue has room.
_PLACES = (2, 0.0, 20), (8, 0.01, 20), (8, 0.01, 40), (64, 0.1, 20), (64, 0.1, 40)


@dataclass(frozen=True, slots=True)
class Terms:
    """The drain that is modelled.

    :ivar waiting: Gangs that wait; `drained` of them leave, `slots` at once.
    :ivar cores: The apiserver's.
    :ivar trip: Seconds to the apiserver and back.
    :ivar workers: The controller's.
    """

    waiting: int = 90
    drained: int = 60
    slots: int = 20
    cores: int = 2
    trip: float = 0.0
    workers: int = 16


@dataclass(frozen=True, slots=True)
class Drained:
    """Gangs a second that leave by muster and by a raw client that makes the same writes, and muster's calls a gang."""

    muster: float
    raw: float
    calls: dict[str, float]


class _VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while there is something to do, and jumps to the next timer."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]
            # A wait that is shorter than the clock's resolution would never end.
            self._now = max(self._now + 1e-6, timers[0].when())
        super()._run_once()  # type: ignore[misc]


class _Apiserver:
    """Takes calls in their order, as many at once as it has cores."""

    def __init__(self, terms: Terms) -> None:
        self.calls: Counter[str] = Counter()
        self._trip = terms.trip
        self._free = [asyncio.get_running_loop().time()] * terms.cores

    async def call(self, kind: str, connections: asyncio.Semaphore) -> None:
        """Make a call over one of these connections."""
        async with connections:
            self.calls[kind] += 1
            now = asyncio.get_running_loop().time()
            done = max(heapq.heappop(self._free), now + self._trip / 2) + _TAKES[kind]
            heapq.heappush(self._free, done)
            await asyncio.sleep(done + self._trip / 2 - now)


def _pod(gang: int, member: int) -> Pod:
    name = f"gang-{gang:05}"
    meta = {
        "name": f"{name}-{member}",
        "namespace": "bench",
        "uid": f"uid-{name}-{member}",
        "resourceVersion": "1",
        "creationTimestamp": f"2026-11-25T{gang // 3600:02}:{gang // 60 % 60:02}:{gang % 60:02}Z",
        "labels": {GANG: name, QUEUE_LABEL: "q"},
        "annotations": {GANG_SIZE: str(_SIZE), GROUP_NAME: name},
    }
    container = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
    spec = {"schedulerName": "volcano", "containers": [container], "schedulingGates": [{"name": GATE}]}
    return convert({"metadata": meta, "spec": spec}, Pod)


def _later(show: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(_SHOWN, show)


class _Client(Client):
    """Each call takes its time, and a watch shows it soon after.

    :ivar opened: Gangs whose gates are all open.
    """

    def __init__(self, leaders: Any, apiserver: _Apiserver) -> None:  # noqa: ANN401
        super().__init__(leaders, _later)
        self.opened: asyncio.Queue[list[Pod]] = asyncio.Queue()
        self._open: dict[str, list[Pod]] = {}
        self._apiserver = apiserver
        self._connections = asyncio.Semaphore(_LEFT)
        self.members.subscribe(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        if change.new is not None and not change.new.gated(GATE):
            pods = self._open.setdefault(change.new.metadata.labels[GANG], [])
            pods.append(change.new)
            if len(pods) == _SIZE:
                self.opened.put_nowait(pods)

    async def apply(self, *given: Any, **more: Any) -> bytes:  # noqa: ANN401
        await self._apiserver.call("apply", self._connections)
        return await super().apply(*given, **more)

    async def strategic_merge_patch(self, *given: Any, dry_run: bool = False, **more: Any) -> bytes:  # noqa: ANN401
        await self._apiserver.call("trial" if dry_run else "gate", self._connections)
        return await super().strategic_merge_patch(*given, dry_run=dry_run, **more)

    async def create(self, *_: object, **__: object) -> bytes:
        await self._apiserver.call("event", self._connections)
        return b"{}"

    async def delete(self, *given: Any, **more: Any) -> None:  # noqa: ANN401
        await self._apiserver.call("delete group", self._connections)
        await super().delete(*given, **more)

    async def list_page(self, *given: object, **more: object) -> bytes:
        await self._apiserver.call("list", self._connections)
        return await super().list_page(*given, **more)


class _LoopClock(Clock):
    """The virtual time of the loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return _STARTS + self.monotonic()


async def _by_muster(terms: Terms) -> tuple[float, Counter[str]]:
    pods = [_pod(gang, member) for gang in range(terms.waiting) for member in range(_SIZE)]
    cluster = filled([], [queue("q", str(terms.slots * _SIZE))], pods)
    apiserver = _Apiserver(terms)
    client = _Client(cluster, apiserver)
    world = leader(cluster, client, clock=_LoopClock())
    for _ in world.reconciler.prime():
        pass
    async with asyncio.TaskGroup() as group:
        working = [group.create_task(part) for part in _parts(world, terms.workers)]
        # All wait by then, and their events are written.
        await asyncio.sleep(_SETTLED)
        apiserver.calls.clear()
        seconds = await _ended(terms, client, apiserver)
        calls = Counter(apiserver.calls)
        for task in working:
            task.cancel()
    return terms.drained / seconds, calls


def _parts(world: Leader, workers: int) -> list[Any]:
    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            world.reconciler.refresh_messages()

    reconciler = world.reconciler
    return [
        work(world.queue, reconciler.reconcile, workers),
        world.announcer.run(),
        reconciler.term.sweeps.run(),
        tick(),
    ]


async def _ended(terms: Terms, client: _Client, apiserver: _Apiserver) -> float:
    """End what runs, and what starts in its place, until so many have started; return the seconds that it takes."""
    loop, connections = asyncio.get_running_loop(), asyncio.Semaphore(_CONNECTIONS)
    started = loop.time()

    async def end(pod: Pod) -> None:
        await apiserver.call("delete pod", connections)
        _later(lambda: client.members.apply("deleted", pod))

    async with asyncio.TaskGroup() as ending:
        for _ in range(terms.drained):
            for pod in await client.opened.get():
                ending.create_task(end(pod))
        for _ in range(terms.slots):
            await client.opened.get()
    return loop.time() - started


async def _by_hand(terms: Terms) -> float:
    apiserver, connections = _Apiserver(terms), asyncio.Semaphore(_CONNECTIONS)
    slots, started = asyncio.Semaphore(terms.slots), asyncio.get_running_loop().time()

    async def gang() -> None:
        async with slots:
            for kinds in _WRITES:
                await asyncio.gather(*(apiserver.call(kind, connections) for kind in kinds))

    await asyncio.gather(*(gang() for _ in range(terms.drained)))
    return terms.drained / (asyncio.get_running_loop().time() - started)


def drained(terms: Terms) -> Drained:
    """Model a drain by muster and one by a raw client, each alone; takes some 10 ms of a core for a gang."""
    with asyncio.Runner(loop_factory=_VirtualTime) as runner:
        rate, calls = runner.run(_by_muster(terms))
        raw = runner.run(_by_hand(terms))
    return Drained(rate, raw, {kind: round(count / terms.drained, 1) for kind, count in calls.items()})


def report(workers: int = 16) -> list[str]:
    """Model drains of an apiserver that is busy, of one with more cores, and of one that is far; a line for each."""
    lines = ["gangs a second                       muster      raw          calls of a gang"]
    for cores, trip, slots in _PLACES:
        found = drained(Terms(20 + 3 * slots, 2 * slots, slots, cores, trip, workers))
        calls = ", ".join(f"{kind} {round(number)}" for kind, number in sorted(found.calls.items()) if number >= 1)
        where = f"{cores} cores, {1000 * trip:.0f} ms away, room for {slots}"
        lines.append(f"{where:35} {found.muster:7.0f} {found.raw:8.0f} {found.muster / found.raw:5.0%}   {calls}")
    return lines


def main(argv: Sequence[str]) -> None:
    """Print the report."""
    given = options(argv, __doc__, workers=16)
    print("\n".join(report(given.workers)))
