"""The stores of the cluster and their indexes, and the lookups that controller and webhook have in common."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from muster.admitters.kueue import KueueWorkload, newest
from muster.admitters.kueue_quota import ClusterQueue, LocalQueue, needs_of, never_fits
from muster.gangs.gang import priority_values
from muster.kube.reflector import Watched
from muster.kube.store import Change, Store
from muster.model.keep import Keep
from muster.model.names import GANG, GROUP_NAME, is_object_name
from muster.model.objects import (
    InvalidObjectError,
    Namespace,
    ObjectMeta,
    OwnerReference,
    PodGroup,
    PriorityClass,
    Queue,
)
from muster.model.pods import Pod
from muster.model.resource import (
    ELASTIC_QUOTAS,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
    Resource,
)
from muster.queueing.ledger import GangKey
from muster.queueing.queue_view import QueueView, read_queue
from muster.queueing.sources import QueueSource
from muster.resources.elastic_quotas import ElasticQuota, NamespaceLimits, limit_of
from muster.resources.pod_defaults import NOTHING_ADDED, LimitRange, PodDefaults, RuntimeClass
from muster.resources.resource_quotas import ResourceQuota
from muster.schedulers import gang_name
from muster.workloads import GANG_KINDS, SOURCES, WATCHED_KINDS, Decoded, Kind, Reference, Source, kind_of_owner

logger = logging.getLogger(__name__)


def gangs_of_pod(pod: Pod) -> Iterable[GangKey]:
    """The gang to whose PodGroup a pod is bound; none where the annotation holds no name that an object can have."""
    group = pod.metadata.annotations.get(GROUP_NAME, "")
    return (GangKey(pod.metadata.namespace, group),) if is_object_name(group) else ()


def gang_of_group(group: PodGroup) -> GangKey:
    """The gang of a PodGroup."""
    return GangKey(group.metadata.namespace, gang_name(group))


def gang_of_workload(kind: Kind) -> Callable[[Decoded], Iterable[GangKey]]:
    """Gives the gang of each workload of that kind, where it has one of its own."""

    def gang(workload: Decoded) -> Iterable[GangKey]:
        meta = workload.metadata
        above = kind_of_owner(meta.controller)
        # The pods of a JobSet that a TrainJob controls are the TrainJob's gang.
        return () if above in GANG_KINDS else (GangKey(meta.namespace, kind.pod_group_name(meta.name)),)

    return gang


class Added:
    """The LimitRanges and ResourceQuotas of all namespaces, and the RuntimeClasses, as the watches last said."""

    def __init__(self) -> None:
        self.ranges: Store[LimitRange] = Store()
        self.runtimes: Store[RuntimeClass] = Store()
        self.ranges.index("namespace", lambda one: (one.metadata.namespace,))
        self.quotas: Store[ResourceQuota] = Store()
        self.quotas.index("namespace", lambda one: (one.metadata.namespace,))

    def of(self, namespace: str) -> PodDefaults:
        """The additions to pods of a namespace. Without any RuntimeClass in the cluster none counts as missing."""
        ranges, quotas = self.ranges.by_index("namespace", namespace), self.quotas.by_index("namespace", namespace)
        if not ranges and not quotas and not len(self.runtimes):
            return NOTHING_ADDED
        return PodDefaults(ranges, {one.metadata.name: one for one in self.runtimes} or None, quotas)

    def subscribe(self, namespace: Callable[[str | None], None]) -> None:
        """Tell `namespace` of every namespace in which a change has pods ask for something else, None for all.

        What a quota has left changes with every pod, and has none ask for anything else.
        """
        self.ranges.subscribe(lambda change: namespace(change.object.metadata.namespace))
        self.runtimes.subscribe(lambda _: namespace(None))


class ElasticQuotas:
    """The ElasticQuotas of all namespaces, and the limits that follow from them."""

    def __init__(self) -> None:
        self.store: Store[ElasticQuota] = Store()
        self.store.index("namespace", lambda one: (one.metadata.namespace,))
        self.limits = NamespaceLimits()
        self._subscribers: list[Callable[[str], None]] = []
        self.store.subscribe(self._changed)

    def subscribe(self, namespace: Callable[[str], None]) -> None:
        """Tell `namespace` of every namespace whose limit is another now.

        The scheduler's controller writes what is used into each quota again and again; that changes no limit.
        """
        self._subscribers.append(namespace)

    def _changed(self, change: Change[ElasticQuota]) -> None:
        if change.new is not None:
            _complain(change.new)
        namespace = change.object.metadata.namespace
        limit = limit_of(one for one in self.store.by_index("namespace", namespace) if not _fault(one))
        if self.limits.put(namespace, limit):
            for notify in self._subscribers:
                notify(namespace)


def _fault(quota: ElasticQuota) -> str:
    """The reason why it cannot be read; "" where it can."""
    try:
        limit_of([quota])
    except InvalidObjectError as error:
        return str(error)
    return ""


def _complain(quota: ElasticQuota) -> None:
    if fault := _fault(quota):
        named = quota.metadata.namespace, quota.metadata.name, fault
        logger.warning(
            "cannot read ElasticQuota %s/%s; it limits nothing here: %s", *named, extra={"event": "quota.unreadable"}
        )


# Kueue makes a Workload of this kind while its pods are plain gangs, which speak for themselves.
_JOB = "Job"

KUEUE_WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
LOCAL_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue")
CLUSTER_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)


class KueueObjects:
    """Kueue's Workloads, and the quotas by which it admits them."""

    def __init__(self) -> None:
        self.workloads: Store[KueueWorkload] = Store()
        self.workloads.index("owner", lambda workload: workload.owners)
        self.local_queues: Store[LocalQueue] = Store()
        self.cluster_queues: Store[ClusterQueue] = Store()

    def watched(self) -> Iterable[tuple[Resource, type[Any], Store[Any]]]:
        """The stores, and their types."""
        yield KUEUE_WORKLOADS, KueueWorkload, self.workloads
        yield LOCAL_QUEUES, LocalQueue, self.local_queues
        yield CLUSTER_QUEUES, ClusterQueue, self.cluster_queues

    def newest_of(self, uid: str) -> KueueWorkload | None:
        """The Workload that counts of the object with that UID."""
        return newest(self.workloads.by_index("owner", uid))

    def never_fits(self, workload: KueueWorkload) -> str:
        """Why its ClusterQueue can never hold the Workload; "" where it can, or where that is not known."""
        local = self.local_queues.get(workload.metadata.namespace, workload.spec.queue_name)
        queue = self.cluster_queues.get("", local.spec.cluster_queue) if local is not None else None
        with suppress(InvalidObjectError):
            return never_fits(needs_of(workload), queue) if queue is not None else ""
        return ""


def job_of_pod(pod: Pod) -> tuple[str, ...]:
    """The UID of the Job that controls a pod; none where no Job does."""
    job = pod.metadata.controller
    return (job.uid,) if job is not None and job.kind == _JOB else ()


UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that may still run: pods of finished jobs stay for long, and there may be many."""

_OF_JOBS = [kind for kind in GANG_KINDS if kind.pods_of_jobs]


class UnmanagedPods:
    """The living pods of workloads that do not carry muster's label, in one store for each label selector.

    They were made before muster, before their workload was labelled, or past its webhook. As long as one of them lives
    its workload is left alone, and new pods pass untouched: a gate cannot be added to a pod that exists, and a gang
    that runs in part already is none. Webhook and controller both watch these pods, so that both decide the same.
    """

    def __init__(self) -> None:
        labels = sorted({kind.pod_label for kind in GANG_KINDS})
        self.stores: dict[str, Store[Pod]] = {f"{label},!{GANG}": Store() for label in labels}
        for store in self.stores.values():
            store.index("gang", _gangs)

    def of(self, kind: Kind, workload: ObjectMeta) -> list[Pod]:
        """The pods of a workload, by name."""
        stores = [store for store in self.stores.values() if len(store)]
        if not stores:
            return []
        key = GangKey(workload.namespace, kind.pod_group_name(workload.name))
        found = [pod for store in stores for pod in store.by_index("gang", key)]
        own = [pod for pod in found if _belongs(pod, kind, workload)]
        return sorted(own, key=lambda pod: pod.metadata.name)

    def subscribe(self, gang: Callable[[GangKey], None]) -> None:
        """Tell `gang` of every gang that a change concerns."""

        def changed(change: Change[Pod]) -> None:
            before, now = (_membership(pod) for pod in (change.old, change.new))
            if before != now:
                # The status that a kubelet writes again and again changes nothing for its gang.
                for key in {*before[0], *now[0]}:
                    gang(key)

        for store in self.stores.values():
            store.subscribe(changed)


def _gangs(pod: Pod) -> set[GangKey]:
    """The gangs that would have it as a living member, had it come by muster."""
    owner, labels = pod.metadata.controller, pod.metadata.labels
    if owner is None or not pod.living:
        return set()
    kind = kind_of_owner(owner)
    if kind is not None:
        named = [(kind, owner.name)]
    else:
        named = [(one, labels.get(one.pod_label, "")) for one in _OF_JOBS] if _is_job(owner) else []
    return {
        GangKey(pod.metadata.namespace, one.pod_group_name(name)) for one, name in named if name and one.role_of(pod)
    }


def _membership(pod: Pod | None) -> tuple[set[GangKey], object]:
    """The gangs that would have it as a member, and all that counts of it there."""
    if pod is None or not (keys := _gangs(pod)):
        return set(), None
    meta = pod.metadata
    return keys, (meta.uid, meta.controller, meta.labels, meta.annotations, pod.spec)


def _belongs(pod: Pod, kind: Kind, workload: ObjectMeta) -> bool:
    """True if the pod belongs to this very workload.

    A pod that a Job controls names its workload in a label only, without a UID; a pod that is older than the workload
    belongs to a former workload. No new Job of the same name can be made before the old one is gone.
    """
    owner = pod.metadata.controller
    if owner is None or not (kind.pods_of_jobs and _is_job(owner)):
        return owner is not None and owner.uid == workload.uid
    # The apiserver writes these times, all in one format.
    named = pod.metadata.labels.get(kind.pod_label) == workload.name
    return named and pod.metadata.creation_timestamp >= workload.creation_timestamp


def _is_job(owner: OwnerReference) -> bool:
    return (owner.group, owner.kind) == (JOBS.group, JOBS.kind)


class ClusterStores:
    """Workloads and their sources, queues, priority classes, namespaces, unmanaged pods, and pod defaults.

    Without `elastic_quotas` no ElasticQuotas are watched.
    """

    def __init__(self, queue_source: QueueSource, *, elastic_quotas: bool) -> None:
        self._queue_source = queue_source
        self._has_elastic_quotas = elastic_quotas
        self.queues: Store[Queue] = Store()
        self.priority_classes: Store[PriorityClass] = Store()
        self.namespaces: Store[Namespace] = Store()
        self.unmanaged_pods = UnmanagedPods()
        self.added = Added()
        self.elastic_quotas = ElasticQuotas()
        self.workloads: dict[Kind, Store[Decoded]] = {kind: Store() for kind in WATCHED_KINDS}
        self.sources: dict[Source, Store[Any]] = {source: Store() for source in SOURCES}
        self._priorities: Mapping[str, int] | None = None
        self.priority_classes.subscribe(self._priorities_changed)

    def common(self, workload_keep: Keep) -> Iterator[Watched]:
        """The stores of this class; of a workload's annotations `workload_keep` are kept."""
        yield Watched(self._queue_source.resource, self._queue_source.decoded, self.queues)
        yield Watched(PRIORITY_CLASSES, PriorityClass, self.priority_classes)
        yield Watched(NAMESPACES, Namespace, self.namespaces, keep=Keep.ALL)
        yield Watched(LIMIT_RANGES, LimitRange, self.added.ranges)
        yield Watched(RUNTIME_CLASSES, RuntimeClass, self.added.runtimes)
        yield Watched(RESOURCE_QUOTAS, ResourceQuota, self.added.quotas)
        for kind, store in self.workloads.items():
            yield Watched(kind.resource, self.workload_type(kind), store, keep=workload_keep)
        for source, sources in self.sources.items():
            yield Watched(source.resource, source.decoded, sources)
        if self._has_elastic_quotas:
            yield Watched(ELASTIC_QUOTAS, ElasticQuota, self.elastic_quotas.store)
        for labels, pods in self.unmanaged_pods.stores.items():
            yield Watched(PODS, Pod, pods, UNFINISHED, labels)

    def workload_type(self, kind: Kind) -> type[Any]:
        """The type as which workloads of a kind are decoded."""
        return kind.decoded

    def workload(self, namespace: str, owner: OwnerReference) -> tuple[Kind, Decoded] | None:
        """The workload that an owner reference means: same name and same UID."""
        kind = kind_of_owner(owner)
        found = self.workloads[kind].get(namespace, owner.name) if kind else None
        return (kind, found) if kind and found and found.metadata.uid == owner.uid else None

    def origin(self, reference: Reference) -> object | None:
        """The object from which workloads are made; None if there is none."""
        return self.sources[reference.source].get(reference.namespace, reference.name)

    def namespace(self, name: str) -> ObjectMeta:
        """The metadata of a namespace; of one that is unknown, its name."""
        found = self.namespaces.get("", name)
        return found.metadata if found else ObjectMeta(name=name)

    def priorities(self) -> Mapping[str, int]:
        """The values of the PriorityClasses by name; "" is the global default. The same object until one changes."""
        if self._priorities is None:
            self._priorities = priority_values(self.priority_classes)
        return self._priorities

    def _priorities_changed(self, _: Change[PriorityClass]) -> None:
        self._priorities = None


def view_of(queue: Queue | None) -> QueueView | None:
    """The queue by itself; None where it is gone or cannot be read: nothing new starts there."""
    if queue is None:
        return None
    name = queue.metadata.name
    try:
        view = read_queue(queue)
    except InvalidObjectError as error:
        logger.warning(
            "cannot read queue %s; nothing new starts there: %s", name, error, extra={"event": "queue.unreadable"}
        )
        return None
    for problem in view.problems:
        logger.warning("queue %s: %s; %s", name, problem, problem.effect, extra={"event": "queue.problem"})
    return view
