"""Gangs of plain pods in one queue, made and ended by the bench, and what a watch shows of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muster.kube.burst import CONCURRENT
from muster.kube.reflector import Reflector
from muster.kube.resource import POD_GROUPS, PODS, QUEUES
from muster.kube.store import Change, Store
from muster.model.names import ADMITTED, ADMITTED_AT, GANG, GANG_SIZE, GATE, QUEUE_LABEL, STATE
from muster.model.objects import ObjectMeta, Pod, PodGroup
from muster.model.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from muster.kube.client import Client

__all__ = ["NAMESPACE", "QUEUE", "SIZE", "STAGES", "Drained", "Gangs", "container", "many"]

NAMESPACE, QUEUE = "bench", "drain"
SIZE = 5
"""Pods of a gang."""
_MILLI = 100
_SECONDS = 1800.0
_CALL = 120.0


def container() -> dict[str, Any]:
    """The container of each pod."""
    return {"name": "main", "image": "none", "resources": {"requests": {"cpu": f"{_MILLI}m", "memory": "64Mi"}}}


async def many(calls: Iterable[Awaitable[object]], at_once: int = CONCURRENT) -> None:
    """All of them, begun in this order, so many at once; those that are not under way take no memory."""
    left = iter(calls)

    async def work() -> None:
        for call in left:
            await call

    async with asyncio.TaskGroup() as workers:
        for _ in range(at_once):
            workers.create_task(work())


STAGES = ("created", "assembled", "written", "fits", "marked", "first gate", "last gate", "seen")
"""The way of a gang that waits, in order: when each was so. README.md says where that is seen."""
# Of these a turn knows what happened in it; of the others also what was before.
_OF_A_TURN = ("last gate", "seen")


@dataclass
class Drained:
    """What was seen of the gangs by stage and name: seconds of one clock.

    `room` has the moments at which a gang had ended and left its room to the next.
    """

    room: list[float] = field(default_factory=list)
    stages: dict[str, dict[str, float]] = field(default_factory=lambda: {stage: {} for stage in STAGES})

    def next_turn(self) -> Drained:
        """For what follows: how far each gang has come, and none that left."""
        return Drained(stages={stage: {} if stage in _OF_A_TURN else times for stage, times in self.stages.items()})

    def note(self, stage: str, gang: str, at: float) -> None:
        """The first time counts."""
        self.stages[stage].setdefault(gang, at)

    @property
    def left(self) -> int:
        """How many have left the queue: their last gate is open."""
        return len(self.stages["last gate"])

    def to_last_gate(self) -> list[float]:
        """Seconds from room for a gang until its last gate is seen open, in order; each room is the next gang's."""
        gates = sorted(self.stages["last gate"].values())
        after = (moment for moment in gates if self.room and moment > self.room[0])
        return sorted(gate - room for room, gate in zip(sorted(self.room), after, strict=False))

    def between(self, earlier: str, later: str) -> list[float]:
        """Seconds between two stages of each gang that left, in order."""
        since, until = self.stages[earlier], self.stages[later]
        return sorted(until[name] - since[name] for name in self.stages["last gate"] if name in until and name in since)


class Gangs:
    """The gangs, by a client of the bench's own; so many run at once as the queue has slots."""

    def __init__(self, client: Client, slots: int) -> None:
        self._client = client
        self._slots = slots
        self._pods: Store[Pod] = Store()
        self._groups: Store[PodGroup] = Store()
        self._pods.subscribe(self._pod_changed)
        self._groups.subscribe(self._group_changed)
        self._held: dict[str, set[str]] = defaultdict(set)
        self._opened: asyncio.Queue[str] = asyncio.Queue()
        self._something = asyncio.Event()
        self._states: Counter[str] = Counter()
        self._made = self._ended = 0
        self.seen = Drained()

    def reflectors(self) -> list[Reflector[Any]]:
        """What shows the pods and the PodGroups, the raw client's too; each is to run meanwhile."""
        return [
            Reflector(self._client, PODS, Pod, self._pods),
            Reflector(self._client, POD_GROUPS, PodGroup, self._groups),
        ]

    async def queue(self) -> None:
        """Make the queue, as Volcano's controller would leave it."""
        cpu = f"{self._slots * SIZE * _MILLI}m"
        spec = {"weight": 1, "capability": {"cpu": cpu}}
        meta = {"name": QUEUE}
        manifest = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": meta, "spec": spec}
        await self._client.apply(QUEUES, QUEUE, manifest, field_manager="bench", deadline=_CALL)
        await self._client.merge_patch(QUEUES, QUEUE, {"status": {"state": "Open"}}, subresource="status")

    @property
    def waiting(self) -> int:
        """How many wait, by what their PodGroups say."""
        return self._states["WaitingForQuota"]

    @property
    def there(self) -> int:
        """How many were made and not ended."""
        return self._made - self._ended

    async def make(self, gangs: int) -> float:
        """Make so many, and wait until muster has said of all that they wait, or has started them; gives seconds."""
        numbers = range(self._made, self._made + gangs)
        self._made += gangs
        started = time.perf_counter()
        await many(self._create(number, member) for number in numbers for member in range(SIZE))
        await self._until(lambda: self.waiting + self._opened.qsize() >= self._made - self._ended)
        return time.perf_counter() - started

    async def ready(self) -> None:
        """Wait until the queue is full of gangs that have started."""
        await self._until(lambda: self._opened.qsize() >= min(self._slots, self._made))

    async def drain(self, gangs: int) -> float:
        """End what runs, and what starts in its place, until so many have started; gives seconds."""
        self.seen = self.seen.next_turn()
        started = time.perf_counter()
        async with asyncio.TaskGroup() as ending:
            for _ in range(gangs):
                gang = await asyncio.wait_for(self._opened.get(), _SECONDS)
                self.seen.note("seen", gang, time.perf_counter())
                ending.create_task(self._end(gang))
        await self._until(lambda: self.seen.left >= gangs)
        return time.perf_counter() - started

    async def _create(self, number: int, member: int) -> None:
        name = f"gang-{number:06}"
        meta = {
            "name": f"{name}-{member}",
            "labels": {GANG: name, QUEUE_LABEL: QUEUE},
            "annotations": {GANG_SIZE: str(SIZE)},
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container()]}}
        # The last of its pods counts.
        self.seen.stages["created"][name] = time.perf_counter()
        await self._client.create(PODS, pod, NAMESPACE, deadline=_CALL)

    async def _end(self, gang: str) -> None:
        names = (f"{gang}-{member}" for member in range(SIZE))
        await many(self._client.delete(PODS, name, NAMESPACE, deadline=_CALL) for name in names)
        self._ended += 1
        self.seen.room.append(time.perf_counter())

    def _pod_changed(self, change: Change[Pod]) -> None:
        pod, now = change.object, time.perf_counter()
        gang, name = pod.metadata.labels.get(GANG), pod.metadata.name
        if gang is None:
            return
        held = self._held[gang]
        if change.new is not None and pod.gated(GATE):
            held.add(name)
            if len(held) == SIZE:
                self.seen.note("assembled", gang, now)
        elif name in held:
            held.discard(name)
            self.seen.note("first gate", gang, now)
            if not held:
                self.seen.note("last gate", gang, now)
                self._opened.put_nowait(gang)
                del self._held[gang]
        self._something.set()

    def _group_changed(self, change: Change[PodGroup]) -> None:
        for group, by in ((change.old, -1), (change.new, 1)):
            if group is not None:
                self._states[group.metadata.annotations.get(STATE, "")] += by
        if change.new is not None:
            self._note_group(change.new.metadata)
        self._something.set()

    def _note_group(self, meta: ObjectMeta) -> None:
        now, said = time.perf_counter(), meta.annotations
        self.seen.note("written", meta.name, now)
        if ADMITTED in said:
            self.seen.note("marked", meta.name, now)
            if (decided := seconds_of(said.get(ADMITTED_AT, ""))) is not None:
                # By the wall clock of the same machine.
                self.seen.note("fits", meta.name, now - (time.time() - decided))

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(_SECONDS):
            while not condition():
                self._something.clear()
                await self._something.wait()
