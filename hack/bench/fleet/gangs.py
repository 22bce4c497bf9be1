"""The gangs of a fleet: made and deleted by a client of the bench's own, and what a watch of their pods shows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hack.bench.drain.gangs import many
from hack.bench.fleet.shape import One, QueueOf, Room
from muster.kube.burst import CONCURRENT
from muster.kube.reflector import Reflector
from muster.kube.resource import PODS, QUEUES
from muster.kube.store import Change, Store
from muster.model.names import GANG, GANG_SIZE, GATE, PATIENCE, QUEUE_LABEL
from muster.model.objects import Pod, Queue, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from muster.kube.client import Client

__all__ = ["NAMESPACE", "RUN_SECONDS", "Fleet", "Seen"]

NAMESPACE = "fleet"
RUN_SECONDS = "testbed.muster.dev/run-seconds"
"""The annotation by which kwok ends a pod (hack/testbed/stages)."""
_CALL = 300.0
_OPENED, _LOOK = 600.0, 0.2
# A gang for which room is kept would hold up others, and be late by its own choice.
_PATIENCE = "24h"


@dataclass(slots=True)
class _Gang:
    """What the watch has shown of a gang: how many of its pods are there, held, running and ended."""

    of: One
    there: int = 0
    held: int = 0
    running: int = 0
    ended: int = 0
    whole: float = 0.0
    room: float | None = 0.0
    opening: bool = False
    opened: bool = False
    ran: bool = False
    left: bool = False

    @property
    def living(self) -> int:
        """How many of its pods have not ended, and are there."""
        return self.there - self.ended


@dataclass
class Seen:
    """What was seen since a moment: seconds from room to the last gate and from the first gate to it."""

    since: float = 0.0
    to_last_gate: list[float] = field(default_factory=list)
    burst: list[float] = field(default_factory=list)
    early: int = 0
    """Gangs that started before the bench saw their room."""
    last: float = 0.0
    """When the last of them was open."""


class Fleet:
    """All gangs that are there. `ran` and `ended` hand out gangs whose pods all run, and whose pods have all ended."""

    def __init__(self, client: Client, queues: Sequence[QueueOf]) -> None:
        self._client = client
        self._queues = queues
        self._pods: Store[Pod] = Store()
        self._pods.subscribe(self._changed)
        self._gangs: dict[str, _Gang] = {}
        self._room = Room(queues)
        self._something = asyncio.Event()
        self.ran: asyncio.Queue[One] = asyncio.Queue()
        self.ended: asyncio.Queue[One] = asyncio.Queue()
        self.seen = Seen()
        self.made = self.whole = self.opened = self.left = 0

    def __len__(self) -> int:
        """How many gangs have pods now, or are being made."""
        return len(self._gangs)

    @property
    def waiting(self) -> int:
        """How many gangs are whole and held."""
        return self.whole - self.opened

    def reflector(self, client: Client) -> Reflector[Pod]:
        """What shows the pods; it is to run meanwhile."""
        return Reflector(client, PODS, Pod, self._pods, label_selector=GANG, namespace=NAMESPACE)

    async def make_queues(self) -> None:
        """Make the queues, those above others first, and wait until Volcano has opened all of them."""
        for name, parent, milli in self._queues:
            manifest = {
                "apiVersion": QUEUES.api_version,
                "kind": QUEUES.kind,
                "metadata": {"name": name, "annotations": {PATIENCE: _PATIENCE}},
                "spec": {"weight": 1, "reclaimable": False, "parent": parent, "capability": {"cpu": f"{milli}m"}},
            }
            await self._client.apply(QUEUES, name, manifest, field_manager="bench", deadline=_CALL)
        async with asyncio.timeout(_OPENED):
            for name, *_ in self._queues:
                while not await self._open(name):  # noqa: ASYNC110 - Volcano says it
                    await asyncio.sleep(_LOOK)

    async def _open(self, queue: str) -> bool:
        return decode(await self._client.get(QUEUES, queue), Queue).status.state == "Open"

    async def make(self, gangs: Iterable[One], at_once: int = CONCURRENT) -> None:
        """Create the pods of these gangs, so many at once."""

        def calls() -> Iterable[Any]:
            for one in gangs:
                self._gangs[one.name] = _Gang(one)
                self.made += 1
                for name in one.members:
                    yield self._client.create(PODS, _pod(one, name), NAMESPACE, deadline=_CALL)

        await many(calls(), at_once)

    async def end(self, gang: One) -> None:
        """Delete its pods."""
        await many(self._client.delete(PODS, name, NAMESPACE, deadline=_CALL) for name in gang.members)

    async def give_up(self, gang: One) -> None:
        """Delete the pods of a gang that could not be made, and forget it."""
        await self.end(gang)
        self._gangs.pop(gang.name, None)

    async def end_all(self) -> None:
        """Delete all pods, also those whose creation was given up, until none is there."""
        asked: set[str] = set()
        while len(self._pods):
            self._something.clear()
            names = [name for pod in self._pods if (name := pod.metadata.name) not in asked]
            asked.update(names)
            await many(self._client.delete(PODS, name, NAMESPACE, deadline=_CALL) for name in names)
            if len(self._pods):
                await self._something.wait()
        self._gangs.clear()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds, by what the watch shows; for ever, where nobody sets a deadline."""
        while not condition():
            self._something.clear()
            await self._something.wait()

    def _changed(self, change: Change[Pod]) -> None:
        self._something.set()
        gang = self._gangs.get(change.object.metadata.labels[GANG])
        if gang is None:
            return
        before = gang.living
        for pod, by in ((change.old, -1), (change.new, 1)):
            if pod is not None:
                gang.there += by
                gang.held += by * pod.gated(GATE)
                gang.running += by * (pod.status.phase == "Running")
                gang.ended += by * (pod.status.phase in ("Succeeded", "Failed"))
        now = time.perf_counter()
        if gang.opening and gang.living < before:
            # Pod by pod, as the ledger counts them.
            self._room.free(gang.of.queue, (before - gang.living) * gang.of.milli, now)
        self._see(gang, now)

    def _see(self, gang: _Gang, now: float) -> None:
        one = gang.of
        if not gang.whole and gang.held == one.pods:
            gang.whole = now
            self.whole += 1
        if gang.whole and not gang.opening and gang.held < one.pods:
            gang.opening = True
            room = self._room.take(one.queue, one.need, now)
            gang.room = room if room is None else max(room, gang.whole)
            gang.whole = now
        if gang.opening and not gang.opened and not gang.held:
            self._opened(gang, now)
        if gang.opened and not gang.ran and gang.running + gang.ended >= one.pods:
            gang.ran = True
            self.ran.put_nowait(one)
        if gang.opened and not gang.left and not gang.living:
            gang.left = True
            self.left += 1
            if gang.there:
                self.ended.put_nowait(one)
        if gang.left and not gang.there:
            del self._gangs[one.name]

    def _opened(self, gang: _Gang, now: float) -> None:
        gang.opened = True
        self.opened += 1
        seen = self.seen
        if not seen.since:
            return
        seen.last = now
        seen.burst.append(now - gang.whole)
        if gang.room is None:
            seen.early += 1
        else:
            seen.to_last_gate.append(now - gang.room)


def _pod(one: One, name: str) -> dict[str, Any]:
    annotations = {GANG_SIZE: str(one.pods), **({RUN_SECONDS: str(one.seconds)} if one.seconds else {})}
    requests = {"cpu": f"{one.milli}m", "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {GANG: one.name, QUEUE_LABEL: one.queue},
            "annotations": annotations,
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        },
    }
