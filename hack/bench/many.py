"""Clusters of many gangs in stores that are filled already, and a leader without an apiserver."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from controller.apiserver import LiveReader, Writer
from controller.delays import Clock
from controller.events import Announcer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from controller.reports import LEDGER_MANAGER
from controller.term import Term
from muster.cluster.cluster import Cluster
from muster.gangs.accounts import Accounts
from muster.gangs.intent import Defaults
from muster.kube.store import Store
from muster.kube.workqueue import WorkQueue
from muster.model.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, MESSAGE, MUSTER, QUEUE_LABEL, STATE
from muster.model.objects import PodGroup, PriorityClass, Queue, convert
from muster.model.pods import Pod
from muster.queueing.ledger import GangKey
from muster.workloads.ray import RAY_CLUSTER

_NAMESPACE = "bench"
_CREATED = "2026-11-21T10:00:00Z"


@dataclass(frozen=True, slots=True)
class One:
    """A RayCluster with a head and workers.

    :ivar number: Makes its name.
    :ivar milli: Milli-cores of each pod.
    :ivar admitted: Its pods have no gate, and a node.
    """

    number: int
    queue: str
    milli: int
    admitted: bool
    workers: int = 1

    @property
    def name(self) -> str:
        """The name of the RayCluster."""
        return f"g{self.number:06}"

    @property
    def key(self) -> GangKey:
        """The key of the gang, with the name of its PodGroup."""
        return GangKey(_NAMESPACE, f"ray-{self.name}-pg")

    @property
    def cluster(self) -> Any:  # noqa: ANN401 - as the kind decodes it
        """The RayCluster."""
        workers = {"groupName": "workers", "replicas": self.workers, "template": self._template}
        spec = {"headGroupSpec": {"template": self._template}, "workerGroupSpecs": [workers]}
        meta = _meta(self.name, labels={QUEUE_LABEL: self.queue})
        return convert({"metadata": meta, "spec": spec}, RAY_CLUSTER.decoded)

    @property
    def pods(self) -> list[Pod]:
        """The head and the workers."""
        return [self._pod("headgroup", "head", ""), *(self._pod("workers", "worker", f"-{n}") for n in self._places)]

    @property
    def group(self) -> PodGroup:
        """The PodGroup, as a leader left it."""
        state = {STATE: "Running", ADMITTED: f"uid-{self.name}"} if self.admitted else {STATE: "WaitingForQuota"}
        pods = 1 + self.workers
        spec = {
            "minMember": pods,
            "minTaskMember": {"headgroup": 1, "workers": self.workers},
            "minResources": {"cpu": f"{pods * self.milli}m", "memory": f"{pods}Gi"},
            "queue": self.queue,
        }
        meta = _meta(
            self.key.name,
            labels={MANAGED_BY: MUSTER, STATE: state[STATE]},
            annotations={**state, MESSAGE: "as the leader before left it"},
            ownerReferences=[self._owner],
        )
        return convert({"metadata": meta, "spec": spec}, PodGroup)

    @property
    def _places(self) -> range:
        return range(self.workers)

    @property
    def _owner(self) -> dict[str, Any]:
        kind = {"apiVersion": "ray.io/v1", "kind": "RayCluster"}
        return {**kind, "name": self.name, "uid": f"uid-{self.name}", "controller": True}

    @property
    def _template(self) -> dict[str, Any]:
        requests = {"cpu": f"{self.milli}m", "memory": "1Gi"}
        return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}

    def _pod(self, group: str, node_type: str, suffix: str) -> Pod:
        labels = {GANG: self.key.name, QUEUE_LABEL: self.queue, "ray.io/cluster": self.name}
        meta = _meta(
            f"{self.name}-{group}{suffix}",
            labels={**labels, "ray.io/group": group, "ray.io/node-type": node_type},
            annotations={GROUP_NAME: self.key.name},
            ownerReferences=[self._owner],
        )
        where: dict[str, Any] = {"nodeName": "n"} if self.admitted else {"schedulingGates": [{"name": GATE}]}
        return convert({"metadata": meta, "spec": {"schedulerName": "volcano", **self._template["spec"], **where}}, Pod)


def _meta(name: str, **more: object) -> dict[str, Any]:
    return {"name": name, "namespace": _NAMESPACE, "uid": f"uid-{name}", "creationTimestamp": _CREATED, **more}


def worker_pod(number: int) -> dict[str, Any]:
    """A worker as KubeRay makes it, of about 13 kB when the apiserver has added its part."""
    environment = [{"name": f"RAY_VARIABLE_{index}", "value": "v" * 60} for index in range(36)]
    container = {
        "name": "ray-worker",
        "image": "rayproject/ray:2.52.0",
        "env": environment,
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
    }
    probes = {
        "readinessProbe": {"exec": {"command": ["bash", "-c", "wget " + "x" * 300]}},
        "livenessProbe": {"exec": {"command": ["bash", "-c", "wget " + "x" * 300]}},
    }
    labels = {"ray.io/cluster": f"cluster-{number // 50}", "ray.io/group": "workers", "ray.io/node-type": "worker"}
    gang = f"ray-cluster-{number // 50}-pg"
    return {
        "metadata": {
            "name": f"cluster-{number // 50}-workers-{number}",
            "labels": {**labels, "muster.dev/gang": gang, "app.kubernetes.io/name": "kuberay"},
            "annotations": {"scheduling.k8s.io/group-name": gang, "ray.io/ft-enabled": "false"},
        },
        "spec": {
            "schedulerName": "volcano",
            "schedulingGates": [{"name": "muster.dev/gang"}],
            "initContainers": [{**container, "name": "wait-gcs-ready", "env": environment[:10]}],
            "containers": [{**container, **probes}],
        },
    }


def queue(name: str, cpu: str, *, parent: str = "", **annotations: str) -> Queue:
    """An open queue with so much cpu (none: no limit), and memory for all."""
    meta = {"name": name, "annotations": {f"muster.dev/{key}": value for key, value in annotations.items()}}
    capability = {"cpu": cpu, "memory": "1000Ti"} if cpu else {}
    spec = {"capability": capability, **({"parent": parent} if parent else {})}
    return convert({"metadata": meta, "spec": spec, "status": {"state": "Open"}}, Queue)


def filled(gangs: Iterable[One], queues: Iterable[Queue], pods: Iterable[Pod] = ()) -> Cluster:
    """A cluster with these gangs and queues, further pods, and one PriorityClass."""
    cluster = Cluster()
    clusters, members, groups = [], [*pods], []
    for one in gangs:
        clusters.append(one.cluster)
        members += one.pods
        groups.append(one.group)
    normal = convert({"metadata": {"name": "normal"}, "value": 10}, PriorityClass)
    known: list[tuple[Store[Any], list[Any]]] = [
        (workloads(cluster), clusters),
        (cluster.pod_groups.of("volcano"), groups),
        (cluster.pods.of("volcano"), members),
        (cluster.priority_classes, [normal]),
        (cluster.queues, [*queues]),
    ]
    for watched in cluster.watched():
        watched.store.replace_all(next((objects for store, objects in known if store is watched.store), []))
    return cluster


def workloads(cluster: Cluster) -> Store[Any]:
    """The store of RayClusters."""
    return next(watched.store for watched in cluster.watched() if watched.type is RAY_CLUSTER.decoded)


class Client:
    """The leader's client: takes every write, and has the cluster show it."""

    def __init__(self, cluster: Cluster, show: Callable[[Callable[[], None]], object] | None) -> None:
        """`show` calls what puts a write into the stores, now or later; None: no write is shown."""
        self.stored = cluster.pod_groups.of("volcano")
        self.members = cluster.pods.of("volcano")
        self._show = show
        self._versions = 1
        self._written: dict[tuple[str, str], dict[str, Any]] = {}

    async def apply(
        self, _: object, name: str, body: dict[str, Any], namespace: str, *, field_manager: str, **__: object
    ) -> bytes:
        """Apply a PodGroup; the ledger's field manager owns all of muster's annotations."""
        new = body["metadata"]
        if self._show is None:
            return msgspec.json.encode({**body, "metadata": {"uid": f"uid-{name}", **new}})
        stored = self.stored.get(namespace, name)
        known: dict[str, Any] = {"metadata": _meta(name)} if stored is None else msgspec.to_builtins(stored)
        before = self._written.get((namespace, name), known)
        kept = before["metadata"].get("annotations", {})
        if field_manager == LEDGER_MANAGER:
            kept = {key: text for key, text in kept.items() if not key.startswith("muster.dev/")}
        meta = {**before["metadata"], **new, "namespace": namespace, "resourceVersion": self._version()}
        meta["annotations"] = {**kept, **new.get("annotations", {})}
        meta["labels"] = {**before["metadata"].get("labels", {}), **new.get("labels", {})}
        group = self._written[namespace, name] = {**before, **body, "metadata": meta}
        self._show(lambda: self.stored.apply("modified", convert(group, PodGroup)))
        return msgspec.json.encode(group)

    async def strategic_merge_patch(
        self, _: object, name: str, __: object, namespace: str, *, dry_run: bool = False, **___: object
    ) -> bytes:
        """Remove the gate of a pod."""
        if dry_run:
            return b"{}"
        held = self.members.get(namespace, name)
        if self._show is not None and held is not None:
            pod: dict[str, Any] = msgspec.to_builtins(held)
            pod["spec"].pop("schedulingGates", None)
            pod["metadata"]["resourceVersion"] = self._version()
            self._show(lambda: self.members.apply("modified", convert(pod, Pod)))
        return b"{}"

    async def create(self, *_: object, **__: object) -> bytes:
        """Take an event, or anything else."""
        return b"{}"

    merge_patch = create

    async def delete(self, _: object, name: str, namespace: str, *__: object, **___: object) -> None:
        """Delete a PodGroup."""
        if self._show is not None and (group := self.stored.get(namespace, name)) is not None:
            self._written.pop((namespace, name), None)
            self._show(lambda: self.stored.apply("deleted", group))

    async def list_page(self, *_: object, **__: object) -> bytes:
        """List nothing: the gang of a PodGroup has no pods left at the apiserver."""
        return b'{"metadata": {"resourceVersion": "1"}, "items": []}'

    def _version(self) -> str:
        self._versions += 1
        return str(self._versions)


@dataclass(frozen=True, slots=True)
class Leader:
    """A leader that sees its cluster's changes, and what it has written."""

    cluster: Cluster
    queue: WorkQueue[GangKey]
    reconciler: Reconciler
    client: Client
    announcer: Announcer

    @property
    def busy(self) -> bool:
        """True while something is left to do."""
        numbers = self.queue.statistics()
        return bool(numbers.ready or numbers.processing or self.reconciler.term.sweeps.under_way)


def leader(
    cluster: Cluster,
    client: Client,
    *,
    clock: Clock | None = None,
) -> Leader:
    """A leader that has not looked at its cluster yet (`Reconciler.prime`)."""
    as_client: Any = client
    writer, reads = Writer(as_client, lambda: 60.0), LiveReader(as_client)
    work: WorkQueue[GangKey] = WorkQueue()
    announcer = Announcer(writer, reads, "bench")
    term = Term(
        cluster,
        work,
        writer,
        reads,
        announcer,
        Metrics(CollectorRegistry()),
        clock or Clock(),
        Defaults(),
        accounts=Accounts(),
    )
    reconciler = Reconciler(term)
    reconciler.subscribe()
    return Leader(cluster, work, reconciler, client, announcer)
