"""The bench's watch of pods: when the gates of a gang were open, when it ran, and how it was placed in between."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hack.bench.peers.contenders import MEMBER
from hack.bench.peers.halves import Placed
from muster.kube.reflector import Reflector
from muster.kube.resource import PODS
from muster.kube.store import Change, Store
from muster.model.objects import Pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from muster.kube.client import Client

__all__ = ["Gang", "Watched", "watching"]

_RAY = "ray.io/cluster"
_SECONDS = 600.0


class Gang:
    """A gang whose pods are awaited; times are those of `time.perf_counter`."""

    def __init__(self, namespace: str, name: str, size: int, gate: str) -> None:
        self.namespace = namespace
        self.name = name
        self.size = size
        self.opened = asyncio.Event()
        self.running = asyncio.Event()
        self.opened_at = 0.0
        self.running_at = 0.0
        self.placed = Placed(size)
        self._gate = gate
        self._pods: dict[str, Pod] = {}

    @property
    def pods(self) -> list[str]:
        """The names of its pods that are there."""
        return list(self._pods)

    def show(self, change: Change[Pod]) -> None:
        """Take what the watch shows of one of its pods."""
        now, name = time.perf_counter(), change.object.metadata.name
        if change.new is None:
            self._pods.pop(name, None)
        else:
            self._pods[name] = change.new
        pods = self._pods.values()
        self.placed.note(now, sum(bool(pod.spec.node_name) for pod in pods))
        if len(pods) < self.size:
            return
        if not self.opened.is_set() and not any(pod.gated(self._gate) for pod in pods):
            self.opened_at = now
            self.opened.set()
        if not self.running.is_set() and sum(pod.status.phase == "Running" for pod in pods) >= self.size:
            self.running_at = now
            self.running.set()


class Watched:
    """All pods of the bench's namespaces, by gang."""

    def __init__(self) -> None:
        self.pods: Store[Pod] = Store()
        self.gangs: dict[tuple[str, str], Gang] = {}
        self._left: dict[str, int] = defaultdict(int)
        self.pods.subscribe(self._changed)

    def expect(self, namespace: str, name: str, size: int, gate: str) -> Gang:
        """Begin a gang; say so before its first pod is made."""
        gang = self.gangs[namespace, name] = Gang(namespace, name, size, gate)
        return gang

    def forget(self, gang: Gang) -> None:
        """Take no more of it: it is being removed."""
        gang.placed.close(time.perf_counter())
        self.gangs.pop((gang.namespace, gang.name), None)

    def left(self, namespace: str) -> int:
        """How many pods a namespace has now."""
        return self._left[namespace]

    def _changed(self, change: Change[Pod]) -> None:
        meta = change.object.metadata
        self._left[meta.namespace] += (change.old is None) - (change.new is None)
        name = meta.labels.get(MEMBER) or meta.labels.get(_RAY, "")
        if gang := self.gangs.get((meta.namespace, name)):
            gang.show(change)


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Watched]:
    """Watch all pods, once what is there has been listed."""
    watched = Watched()
    reflector = Reflector(client, PODS, Pod, watched.pods)
    task = asyncio.create_task(reflector.run())
    try:
        await reflector.wait_synced(_SECONDS)
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
