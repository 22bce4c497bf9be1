"""Clusters of many gangs for benchmarks, in stores that are filled already, and a leader without an apiserver."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import CollectorRegistry

from controller.events import Announcer
from controller.fenced_writes import Writer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from controller.reports import LEDGER_MANAGER
from muster.gangs.intent import Defaults
from muster.kube.workqueue import WorkQueue
from muster.model.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, MESSAGE, MUSTER, QUEUE_LABEL, STATE
from muster.model.objects import Pod, PodGroup, PriorityClass, Queue, convert
from muster.observe.cluster import Cluster
from muster.workloads.ray import RAY_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muster.kube.events import Regarding
    from muster.queueing.ledger import GangKey

__all__ = ["PODS", "RAY_CLUSTERS", "Leader", "One", "Said", "Written", "filled", "leader", "queue"]

_NAMESPACE = "bench"
PODS = ("headgroup", "workers")
RAY_CLUSTERS = "rayclusters"


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


def _group(name: str, queue: str, milli: int, *, admitted: bool) -> dict[str, Any]:
    said = {STATE: "Running", ADMITTED: f"uid-{name}"} if admitted else {STATE: "WaitingForQuota"}
    return {
        "metadata": {
            "name": f"ray-{name}-pg",
            "namespace": _NAMESPACE,
            "uid": f"uid-group-{name}",
            "labels": {MANAGED_BY: MUSTER, STATE: said[STATE]},
            "annotations": {**said, MESSAGE: "as the leader before left it"},
            "ownerReferences": _owner(name),
        },
        "spec": {
            "minMember": 2,
            "minTaskMember": dict.fromkeys(PODS, 1),
            "minResources": {"cpu": f"{2 * milli}m", "memory": "2Gi"},
            "queue": queue,
        },
    }


@dataclass(frozen=True, slots=True)
class One:
    """A gang of two pods: its number, its queue, the milli-cores of each pod, and whether it is admitted."""

    number: int
    queue: str
    milli: int
    admitted: bool

    @property
    def name(self) -> str:
        """The name of its RayCluster."""
        return f"g{self.number:06}"

    @property
    def cluster(self) -> Any:  # noqa: ANN401 - as the kind decodes it
        """Its RayCluster."""
        return convert(_cluster(self.name, self.queue, f"{self.milli}m"), RAY_CLUSTER.decoded)

    @property
    def pods(self) -> list[Pod]:
        """Its pods."""
        made = (_pod(self.name, role, self.queue, f"{self.milli}m", admitted=self.admitted) for role in PODS)
        return [convert(one, Pod) for one in made]

    @property
    def group(self) -> PodGroup:
        """Its PodGroup, as a leader left it."""
        return convert(_group(self.name, self.queue, self.milli, admitted=self.admitted), PodGroup)


def queue(name: str, cpu: str, *, parent: str = "", **annotations: str) -> Queue:
    """An open queue with so much cpu, and memory for all."""
    meta = {"name": name, "annotations": {f"muster.dev/{key}": value for key, value in annotations.items()}}
    capability = {"cpu": cpu, "memory": "1000Ti"} if cpu else {}
    spec = {"capability": capability, **({"parent": parent} if parent else {})}
    return convert({"metadata": meta, "spec": spec, "status": {"state": "Open"}}, Queue)


def filled(gangs: Iterable[One], queues: Iterable[Queue]) -> Cluster:
    """A cluster with these gangs and queues, and one PriorityClass."""
    cluster = Cluster()
    clusters, pods, groups = [], [], []
    for one in gangs:
        clusters.append(one.cluster)
        pods += one.pods
        groups.append(one.group)
    normal = convert({"metadata": {"name": "normal"}, "value": 10}, PriorityClass)
    for watched in cluster.watched():
        listed: list[Any] = {RAY_CLUSTERS: clusters, "podgroups": groups, "priorityclasses": [normal]}.get(
            watched.resource.plural, []
        )
        if watched.store is cluster.pods.of("volcano"):
            listed = pods
        elif watched.store is cluster.queues:
            listed = list(queues)
        watched.store.replace_all(listed)
    return cluster


class Said(Announcer):
    """Counts what is to be said as an event, and how long the longest is; nothing is written."""

    events = longest = 0

    def say(self, regarding: Regarding, reason: str, note: str, *, warning: bool) -> None:
        """One event, its note in bytes."""
        self._count(note)
        super().say(regarding, reason, note, warning=warning)

    def tell_maker(self, regarding: Regarding, reason: str, note: str, *, warning: bool) -> None:
        """One more, on who made the workload."""
        self._count(note)
        super().tell_maker(regarding, reason, note, warning=warning)

    def _count(self, note: str) -> None:
        self.events += 1
        self.longest = max(self.longest, len(note.encode()))


class Written:
    """Takes every write and counts those of PodGroups and pods; the cluster shows them at once where they are `shown`.

    `of` has the applies by the PodGroup's name; `bytes` are those of all applies that are shown, `longest` of one.
    """

    def __init__(self, cluster: Cluster, *, shown: bool) -> None:
        self.groups = self.pods = self.longest = self.bytes = 0
        self.of: Counter[str] = Counter()
        self._cluster = cluster
        self._shown = shown

    async def apply(
        self, _: object, name: str, body: dict[str, Any], namespace: str, *, field_manager: str, **__: object
    ) -> bytes:
        """A PodGroup, by its field manager."""
        self.groups += 1
        self.of[name] += 1
        said = body["metadata"]
        if not self._shown:
            return msgspec.json.encode({**body, "metadata": {"uid": f"uid-group-{name}", **said}})
        size = len(msgspec.json.encode(body))
        self.longest, self.bytes = max(self.longest, size), self.bytes + size
        store = self._cluster.pod_groups.of("volcano")
        before = store.get(namespace, name)
        group: dict[str, Any] = msgspec.to_builtins(before) if before is not None else {"metadata": {}}
        kept = group["metadata"].get("annotations", {})
        if field_manager == LEDGER_MANAGER:
            kept = {key: text for key, text in kept.items() if not key.startswith("muster.dev/")}
        meta = {"uid": f"uid-group-{name}", **group["metadata"], **said, "resourceVersion": str(self.groups)}
        meta["annotations"] = {**kept, **said.get("annotations", {})}
        meta["labels"] = {**group["metadata"].get("labels", {}), **said.get("labels", {})}
        group |= {"metadata": meta, **({"spec": body["spec"]} if "spec" in body else {})}
        store.apply("modified", convert(group, PodGroup))
        return msgspec.json.encode(group)

    async def strategic_merge_patch(self, _: object, name: str, __: object, namespace: str, **___: object) -> bytes:
        """The gate of a pod."""
        self.pods += 1
        store = self._cluster.pods.of("volcano")
        if self._shown and (held := store.get(namespace, name)) is not None:
            pod: dict[str, Any] = msgspec.to_builtins(held)
            pod["spec"].pop("schedulingGates", None)
            store.apply("modified", convert(pod, Pod))
        return b"{}"

    async def create(self, *_: object, **__: object) -> bytes:
        """Whatever else."""
        return b"{}"

    merge_patch = create

    async def delete(self, *_: object, **__: object) -> None:
        """Nothing goes."""


@dataclass(frozen=True, slots=True)
class Leader:
    """A leader that hears of everything in its cluster, and what it has written."""

    cluster: Cluster
    queue: WorkQueue[GangKey]
    reconciler: Reconciler
    written: Written
    said: Said

    @property
    def busy(self) -> bool:
        """Whether anything is left to do."""
        numbers = self.queue.statistics()
        return bool(numbers.ready or numbers.processing or self.reconciler.sweeps.under_way)


def leader(cluster: Cluster, *, shown: bool = False) -> Leader:
    """A leader that has not taken office yet (`Reconciler.prime`); `shown` has the cluster show what it writes."""

    async def nothing(*_: object) -> Any:  # noqa: ANN401 - answers what is never asked
        raise AssertionError

    async def gone(*_: object) -> bool:
        return False

    written = Written(cluster, shown=shown)
    client: Any = written
    writer = Writer(client, lambda: 60.0)
    work: WorkQueue[GangKey] = WorkQueue()
    said = Said(writer, "bench", nothing)
    reconciler = Reconciler(
        writer,
        cluster,
        work,
        Defaults(),
        said,
        alive=gone,
        jobs=nothing,
        admitted=nothing,
        metrics=Metrics(CollectorRegistry()),
        clock=time.monotonic,
        wall=time.time,
    )
    reconciler.subscribe()
    return Leader(cluster, work, reconciler, written, said)
