"""What a reconcile of one gang costs, by its pods: `python -m hack.bench.reconcile [--pods 500,1000,4000]`.

The controller looks at a gang for every pod of it that comes or changes. Each gang is a RayCluster, in stores that are
filled already; nothing of it has changed since the last look, so that nothing is written and the whole cost is the
looking. Prints milliseconds of CPU, the median and the least, for a gang that runs and for one that waits for room.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from typing import Any

from prometheus_client import CollectorRegistry

from controller.events import Announcer
from controller.fenced_writes import Writer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from muster.gangs.intent import Defaults
from muster.kube.workqueue import WorkQueue
from muster.model.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, MUSTER, QUEUE_LABEL
from muster.model.objects import Pod, PodGroup, Queue, convert
from muster.observe.cluster import Cluster
from muster.process.lifecycle import spare_collector
from muster.queueing.ledger import GangKey
from muster.workloads.ray import RAY_CLUSTER

_JSON = dict[str, Any]
_NAMESPACE, _QUEUE, _UID = "bench", "queue", "uid-large"
_KEY = GangKey(_NAMESPACE, "ray-large-pg")
_OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "large", "uid": _UID, "controller": True}
_CREATED = "2026-11-21T10:00:00Z"
_TEMPLATE = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}
_ROUNDS = 20


def _cluster(count: int) -> _JSON:
    workers = {"groupName": "workers", "replicas": count - 1, "template": _TEMPLATE}
    return {
        "metadata": _meta("large", uid=_UID, labels={QUEUE_LABEL: _QUEUE}),
        "spec": {"headGroupSpec": {"template": _TEMPLATE}, "workerGroupSpecs": [workers]},
    }


def _meta(name: str, **rest: object) -> _JSON:
    return {"name": name, "namespace": _NAMESPACE, "creationTimestamp": _CREATED, **rest}


def _pod(number: int, *, runs: bool) -> _JSON:
    labels = {GANG: _KEY.name, QUEUE_LABEL: _QUEUE, "ray.io/group": "workers" if number else "headgroup"}
    where = {"nodeName": "n"} if runs else {"schedulingGates": [{"name": GATE}]}
    name = f"pod-{number:05}"
    return {
        "metadata": _meta(name, uid=name, labels=labels, annotations={GROUP_NAME: _KEY.name}, ownerReferences=[_OWNER]),
        "spec": {"schedulerName": "volcano", **_TEMPLATE["spec"], **where},
        "status": {"phase": "Running" if runs else "Pending"},
    }


def _group(count: int, *, runs: bool) -> _JSON:
    said = {ADMITTED: _UID} if runs else {}
    return {
        "metadata": _meta(
            _KEY.name, uid="uid-group", labels={MANAGED_BY: MUSTER}, annotations=said, ownerReferences=[_OWNER]
        ),
        "spec": {"minMember": count, "queue": _QUEUE},
        "status": {"phase": "Running" if runs else "Pending"},
    }


class _Client:
    """Takes every write, and answers with the PodGroup as the writes have left it."""

    def __init__(self, group: _JSON) -> None:
        self._group = group

    async def apply(self, _resource: object, _name: str, body: _JSON, *_: object, **__: object) -> bytes:
        """A server-side apply."""
        meta = self._group["metadata"]
        annotations = {**meta["annotations"], **body["metadata"].get("annotations", {})}
        spec = {**self._group["spec"], **body.get("spec", {})}
        self._group = {**self._group, "metadata": {**meta, "annotations": annotations}, "spec": spec}
        return json.dumps(self._group).encode()

    async def create(self, *_: object, **__: object) -> bytes:
        """An event."""
        return b"{}"


def _reconciler(count: int, *, runs: bool) -> Reconciler:
    cluster, group = Cluster(), _group(count, runs=runs)
    room = str(count if runs else count - 1)
    queue = {
        "metadata": {"name": _QUEUE},
        "spec": {"capability": {"cpu": room, "memory": "1Pi"}},
        "status": {"state": "Open"},
    }
    filled: dict[str, list[Any]] = {
        "rayclusters": [convert(_cluster(count), RAY_CLUSTER.decoded)],
        "podgroups": [convert(group, PodGroup)],
        "queues": [convert(queue, Queue)],
    }
    for watched in cluster.watched():
        watched.store.replace_all(filled.get(watched.resource.plural, []))
    cluster.pods.of("volcano").replace_all([convert(_pod(number, runs=runs), Pod) for number in range(count)])

    async def never(*_: object) -> Any:  # noqa: ANN401 - answers what is never asked
        raise AssertionError

    client: Any = _Client(group)
    writer = Writer(client, lambda: 1e9)
    work: WorkQueue[GangKey] = WorkQueue()
    reconciler = Reconciler(
        *(writer, cluster, work, Defaults(), Announcer(writer, "bench", never)),
        alive=never,
        jobs=never,
        admitted=never,
        metrics=Metrics(CollectorRegistry()),
        clock=time.monotonic,
        wall=time.time,
    )
    for _ in reconciler.prime():
        pass
    return reconciler


async def _milliseconds(count: int, *, runs: bool) -> list[float]:
    reconciler = _reconciler(count, runs=runs)
    took = []
    # The first looks write, and read each pod.
    for _ in range(2):
        await reconciler.reconcile(_KEY)
    spare_collector()
    for _ in range(_ROUNDS):
        before = time.process_time()
        await reconciler.reconcile(_KEY)
        took.append((time.process_time() - before) * 1e3)
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", default="500,1000,4000", help="how many pods the gang has, a list")
    for title, runs in (("a gang that runs", True), ("a gang that waits", False)):
        for count in map(int, parser.parse_args().pods.split(",")):
            took = asyncio.run(_milliseconds(count, runs=runs))
            print(f"{title:20} {count:6} pods: median {statistics.median(took):6.2f} ms, least {min(took):6.2f} ms")


if __name__ == "__main__":
    main()
