"""A client that does what a drain needs of the apiserver, and nothing else: no watch, no decision, no event."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from hack.bench.drain.gangs import NAMESPACE, QUEUE, SIZE, container, many
from muster.kube.resource import POD_GROUPS, PODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from muster.kube.client import Client

__all__ = ["Raw"]

_GATE = "bench.muster.dev/gang"
_SAYS = "bench.muster.dev"
_CALL = 120.0


class Raw:
    """Gangs of nobody: as many pods and PodGroups as muster's, as large, with a gate that the client opens itself."""

    def __init__(self, client: Client, slots: int) -> None:
        self._client = client
        self._slots = slots
        self._made = self._ended = 0

    async def make(self, gangs: int) -> float:
        """Make so many, as muster and who makes its pods do: pods, a PodGroup, and why it waits; gives seconds."""
        names = [f"raw-{number:06}" for number in range(self._made, self._made + gangs)]
        self._made += gangs
        started = time.perf_counter()
        await many(self._create(name, member) for name in names for member in range(SIZE))
        await many(self._group(name) for name in names)
        return time.perf_counter() - started

    async def drain(self) -> float:
        """Mark, open and delete all that were made, so many at once as muster's queue has slots; gives seconds."""
        names = [f"raw-{number:06}" for number in range(self._ended, self._made)]
        self._ended = self._made
        started = time.perf_counter()
        await many((self._drain(name) for name in names), self._slots)
        return time.perf_counter() - started

    async def _create(self, name: str, member: int) -> None:
        meta = {
            "name": f"{name}-{member}",
            "labels": {_SAYS: name, f"{_SAYS}/queue": QUEUE},
            "annotations": {f"{_SAYS}/size": str(SIZE), f"{_SAYS}/group-name": name, f"{_SAYS}/role": "member"},
        }
        spec = {"schedulerName": "nobody", "schedulingGates": [{"name": _GATE}], "containers": [container()]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        await self._client.create(PODS, pod, NAMESPACE, deadline=_CALL)

    async def _group(self, name: str) -> None:
        spec = {
            "minMember": SIZE,
            "minTaskMember": {"member": SIZE},
            "minResources": {"cpu": "500m", "memory": "320Mi"},
            "queue": QUEUE,
        }
        await self._apply(name, {"metadata": {"labels": {_SAYS: name}}, "spec": spec}, "bench-raw")
        why = 'waits in queue "drain" (500 of 500): needs cpu 500m, of which cpu 0 is free; 20 gangs are before it'
        await self._say(name, "WaitingForQuota", why)

    async def _drain(self, name: str) -> None:
        mark = {
            f"{_SAYS}/admitted": "8d1f0b0e-6b3f-4a52-9b7e-0a4f6d3c2b1a",
            f"{_SAYS}/admitted-at": "2026-11-25T16:44:58.841543Z",
            f"{_SAYS}/admitted-for": '{"minMember":5,"minTaskMember":{"member":5},"queue":"drain"}',
        }
        await self._say(name, "Admitted", 'cpu 500m and memory 320Mi of queue "drain"', **mark)
        pods = [f"{name}-{member}" for member in range(SIZE)]
        patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": _GATE}]}}
        opened = (self._client.strategic_merge_patch(PODS, pod, patch, NAMESPACE, deadline=_CALL) for pod in pods)
        await asyncio.gather(*opened)
        await self._all(lambda pod: self._client.delete(PODS, pod, NAMESPACE, deadline=_CALL), pods)
        await self._client.delete(POD_GROUPS, name, NAMESPACE, deadline=_CALL)

    @staticmethod
    async def _all(call: Callable[[str], Awaitable[object]], names: list[str]) -> None:
        await asyncio.gather(*(call(name) for name in names))

    async def _say(self, name: str, state: str, why: str, **more: str) -> None:
        said = {f"{_SAYS}/state": state, f"{_SAYS}/message": why, **more}
        await self._apply(name, {"metadata": {"annotations": said}}, "bench-ledger")

    async def _apply(self, name: str, body: dict[str, Any], manager: str) -> None:
        about = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind}
        meta = {"name": name, "namespace": NAMESPACE, **body["metadata"]}
        await self._client.apply(
            POD_GROUPS, name, {**about, **body, "metadata": meta}, NAMESPACE, field_manager=manager, deadline=_CALL
        )
