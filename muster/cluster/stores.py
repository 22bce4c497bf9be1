"""The stores that controller and webhook have in common, and the lookups by which both find the same objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from muster.cluster.elastic_quotas import ElasticQuotas
from muster.cluster.pod_defaults import Added
from muster.cluster.unmanaged_pods import UNFINISHED, UnmanagedPods
from muster.gangs.gang import priority_values
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.store import Change, Store
from muster.model.keep import Keep
from muster.model.objects import Namespace, ObjectMeta, OwnerReference, PriorityClass, Queue
from muster.model.pods import Pod
from muster.model.resource import (
    ELASTIC_QUOTAS,
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
    Resource,
)
from muster.queueing.sources import QueueSource
from muster.resources.elastic_quotas import ElasticQuota
from muster.resources.limit_ranges import LimitRange
from muster.resources.pod_defaults import RuntimeClass
from muster.resources.resource_quotas import ResourceQuota
from muster.workloads import SOURCES, WATCHED_KINDS, Decoded, Kind, Reference, Source, kind_of_owner


class Watched(NamedTuple):
    """A store and its content: objects of a resource, decoded as a type, that the selectors match."""

    resource: Resource
    type: type[Any]
    store: Store[Any]
    field_selector: str = ""
    label_selector: str = ""
    keep: Keep = Keep.READ

    def reflector(self, client: Client) -> Reflector[Any]:
        """The watch that keeps the store up to date; it must run for as long as the process."""
        return Reflector(
            client,
            self.resource,
            self.type,
            self.store,
            field_selector=self.field_selector,
            label_selector=self.label_selector,
            keep=self.keep,
        )


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
