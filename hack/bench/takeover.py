"""What it costs a leader to take office: `python -m hack.bench.takeover [--gangs 34000] [--queues 680]`.

Gangs of two pods, half of which are admitted and half of which wait in queues that are full, in stores that are filled
already: no apiserver is asked. Prints the CPU seconds of the whole, what it takes for a gang, and the most CPU that the
leader used between two turns of its event loop, in which its lease is renewed; and beside it, in the same process, the
same in one step, without turns.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from controller.events import Announcer
from controller.fenced_writes import Writer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from muster.gangs.intent import Defaults
from muster.kube.slices import in_slices
from muster.kube.workqueue import WorkQueue
from muster.model.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, MESSAGE, MUSTER, QUEUE_LABEL, STATE
from muster.model.objects import Pod, PodGroup, Queue, convert
from muster.observe.cluster import Cluster
from muster.process.lifecycle import spare_collector
from muster.workloads.ray import RAY_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.queueing.ledger import GangKey

_NAMESPACE = "bench"
_PODS = ("headgroup", "workers")


def _template(cpu: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}}


def _cluster(name: str, queue: str, cpu: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": _NAMESPACE,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {QUEUE_LABEL: queue},
        },
        "spec": {
            "headGroupSpec": {"template": _template(cpu)},
            "workerGroupSpecs": [{"groupName": "workers", "replicas": 1, "template": _template(cpu)}],
        },
    }


def _owner(name: str) -> list[dict[str, Any]]:
    one = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": f"uid-{name}", "controller": True}
    return [one]


def _pod(name: str, role: str, queue: str, cpu: str, *, admitted: bool) -> dict[str, Any]:
    group = f"ray-{name}-pg"
    meta = {
        "name": f"{name}-{role}",
        "namespace": _NAMESPACE,
        "uid": f"uid-{name}-{role}",
        "labels": {
            GANG: group,
            QUEUE_LABEL: queue,
            "ray.io/cluster": name,
            "ray.io/group": role,
            "ray.io/node-type": "head" if role == "headgroup" else "worker",
        },
        "annotations": {GROUP_NAME: group},
        "ownerReferences": _owner(name),
    }
    where: dict[str, Any] = {"nodeName": "n"} if admitted else {"schedulingGates": [{"name": GATE}]}
    return {"metadata": meta, "spec": {"schedulerName": "volcano", **_template(cpu)["spec"], **where}}


def _group(name: str, queue: str, cpu: int, *, admitted: bool) -> dict[str, Any]:
    said = {STATE: "Running", ADMITTED: f"uid-{name}"} if admitted else {STATE: "WaitingForQuota"}
    return {
        "metadata": {
            "name": f"ray-{name}-pg",
            "namespace": _NAMESPACE,
            "uid": f"uid-group-{name}",
            "labels": {MANAGED_BY: MUSTER},
            "annotations": {**said, MESSAGE: "as the leader before left it"},
            "ownerReferences": _owner(name),
        },
        "spec": {
            "minMember": 2,
            "minTaskMember": dict.fromkeys(_PODS, 1),
            "minResources": {"cpu": str(2 * cpu), "memory": "2Gi"},
            "queue": queue,
        },
    }


def _filled(gangs: int, queues: int) -> Cluster:
    cluster = Cluster()
    clusters, pods, groups = [], [], []
    for number in range(gangs):
        name, queue, cpu, admitted = f"g{number:06}", f"q{number % queues}", 1 + number % 6, number // queues % 2 == 0
        clusters.append(convert(_cluster(name, queue, str(cpu)), RAY_CLUSTER.decoded))
        pods += [convert(_pod(name, role, queue, str(cpu), admitted=admitted), Pod) for role in _PODS]
        groups.append(convert(_group(name, queue, cpu, admitted=admitted), PodGroup))
    for watched in cluster.watched():
        listed = {"rayclusters": clusters, "podgroups": groups}.get(watched.resource.plural, [])
        if watched.store is cluster.pods.of("volcano"):
            listed = pods
        elif watched.store is cluster.queues:
            capability = {"cpu": "10", "memory": "1Ti"}
            made = ({"metadata": {"name": f"q{n}"}, "spec": {"capability": capability}} for n in range(queues))
            listed = [convert({**one, "status": {"state": "Open"}}, Queue) for one in made]
        watched.store.replace_all(listed)
    return cluster


def _leader(cluster: Cluster) -> Iterator[None]:
    """The steps in which a leader takes office that will never write."""

    async def nothing(*_: object) -> Any:  # noqa: ANN401 - answers what is never asked
        raise AssertionError

    client: Any = None
    writer = Writer(client, lambda: 0.0)
    queue: WorkQueue[GangKey] = WorkQueue()
    reconciler = Reconciler(
        writer,
        cluster,
        queue,
        Defaults(),
        Announcer(writer, "bench", nothing),
        alive=nothing,
        jobs=nothing,
        admitted=nothing,
        metrics=Metrics(CollectorRegistry()),
        clock=time.monotonic,
        wall=time.time,
    )
    return reconciler.prime(cluster.pod_groups.values())


async def _longest_turn(steps: Iterator[None]) -> tuple[float, float]:
    """CPU seconds of all of it, and the most between two turns."""
    begun = last = time.thread_time()
    longest = 0.0

    async def turns() -> None:
        nonlocal last, longest
        while True:
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    beside = asyncio.create_task(turns())
    await in_slices(steps)
    ended = time.thread_time()
    beside.cancel()
    return ended - begun, max(longest, ended - last)


async def _measure(gangs: int, queues: int) -> None:
    cluster = _filled(gangs, queues)
    spare_collector()
    used, longest = await _longest_turn(_leader(cluster))
    begun = time.thread_time()
    for _ in _leader(cluster):
        pass
    at_once = time.thread_time() - begun
    print(
        f"{gangs} gangs of {len(_PODS)} in {queues} queues: {used:.1f} s of a core, {used / gangs * 1e6:.0f} us a gang"
        f"; at most {longest * 1e3:.0f} ms between two turns (in one step {at_once:.1f} s)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="hack.bench.takeover", description="What a new leader's first look costs.")
    parser.add_argument("--gangs", type=int, default=34_000)
    parser.add_argument("--queues", type=int, default=680)
    given = parser.parse_args()
    asyncio.run(_measure(given.gangs, given.queues))


if __name__ == "__main__":
    main()
