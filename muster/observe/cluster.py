"""The controller's picture of the cluster: one store per kind, and the callbacks that hear of changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from muster.admitters import Admitter
from muster.gangs.gang import priority_values
from muster.gangs.intent import Surroundings
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.kube.reflector import Reflector
from muster.kube.resource import (
    ELASTIC_QUOTAS,
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    RUNTIME_CLASSES,
)
from muster.kube.store import Change, Store
from muster.kube.stores import Stores
from muster.model.names import ADMITTER, GANG, GATE_MODE, QUEUE_ANNOTATION, SCHEDULER
from muster.model.objects import InvalidObjectError, Namespace, Node, ObjectMeta, Pod, PodGroup, PriorityClass, Queue
from muster.model.selectors import Selector
from muster.observe.elastic_quotas import ElasticQuotas
from muster.observe.gang_keys import gang_of_group, gang_of_workload, gangs_of_pod
from muster.observe.holds import asks_to_wait
from muster.observe.kueue import KueueObjects, job_of_pod, kueue_told
from muster.observe.pod_defaults import Added
from muster.observe.resources import pod_groups_of, queues_of, resource_of, resource_of_source
from muster.observe.unmanaged_pods import UNFINISHED, UnmanagedPods
from muster.queueing.ledger import GangKey
from muster.queueing.queue_tree import labels_of
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.amounts import shared
from muster.resources.elastic_quotas import ElasticQuota
from muster.resources.limit_ranges import LimitRange
from muster.resources.pod_defaults import RuntimeClass
from muster.resources.pod_requests import pod_requests
from muster.resources.resource_quotas import ResourceQuota
from muster.schedulers import SCHEDULERS
from muster.workloads import GANG_KINDS, SOURCES, WATCHED_KINDS, Decoded, Kind, Reference, Source, kind_of_owner
from muster.workloads.owners import MOST_OWNERS, OwnerWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from muster.kube.client import Client
    from muster.kube.resource import Resource
    from muster.model.objects import OwnerReference
    from muster.observe.view import Member
    from muster.queueing.sources import QueueSource
    from muster.resources.amounts import Resources
    from muster.schedulers import GangScheduler

    Gangs = Callable[[Hashable, Iterable[GangKey | None]], None]

__all__ = ["Cluster", "Watched"]


class Watched(NamedTuple):
    """A store and what it holds: objects of a resource, decoded as a type, that the selectors let pass."""

    resource: Resource
    type: type[Any]
    store: Store[Any]
    field_selector: str = ""
    label_selector: str = ""


class Cluster:
    """Pods of gangs, PodGroups, workloads, queues, priority classes and namespaces, as the watches last said.

    `namespace_selector` selects the namespaces in which workloads may be muster's. Each of the `schedulers` has pods
    and PodGroups of its own. Without `elastic_quotas` none are watched.
    """

    def __init__(
        self,
        namespace_selector: Selector | None = None,
        schedulers: Iterable[GangScheduler] = (),
        queue_source: QueueSource = QUEUE_SOURCES["volcano"],
        admitters: Iterable[Admitter] = (),
        *,
        elastic_quotas: bool = False,
    ) -> None:
        self._namespace_selector = namespace_selector or Selector()
        self._queue_source = queue_source
        self._schedulers = list(schedulers) or [SCHEDULERS["volcano"]]
        names = [scheduler.name for scheduler in self._schedulers]
        self.pods: Stores[Pod] = Stores(names)
        self.pod_groups: Stores[PodGroup] = Stores(names)
        self.queues: Store[Queue] = Store()
        self.priority_classes: Store[PriorityClass] = Store()
        self.namespaces: Store[Namespace] = Store()
        self.nodes: Store[Node] = Store()
        # Of the nodes that are known those that take no pods.
        self.away: frozenset[str] = frozenset()
        self.unmanaged_pods = UnmanagedPods()
        self.added = Added()
        self._asks_kueue = Admitter.KUEUE in tuple(admitters)
        self.kueue = KueueObjects()
        self._asks_elastic_quotas = elastic_quotas
        self.elastic_quotas = ElasticQuotas()
        self._workloads: dict[Kind, Store[Decoded]] = {kind: Store() for kind in WATCHED_KINDS}
        self._sources: dict[Source, Store[Any]] = {source: Store() for source in SOURCES}
        for kind in WATCHED_KINDS:
            self._workloads[kind].index("maker", _maker)
        for kind in GANG_KINDS:
            self._workloads[kind].index("gang", gang_of_workload(kind))
            self._workloads[kind].index("uid", lambda workload: (workload.metadata.uid,))
        self.pods.index("gang", gangs_of_pod)
        self.pod_groups.index("gang", lambda group: (gang_of_group(group),))
        self.pods.index("node", lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self.pods.index("job", job_of_pod if self._asks_kueue else lambda _: ())
        self._requests: dict[str, tuple[Pod, Resources]] = {}
        # By UID what `observe` has read of a living pod, for a workload of this kind and UID; good for one version of
        # the pod.
        self.members: dict[str, tuple[Kind, str, Member]] = {}
        self.pods.subscribe(self._forget_pod)
        self.nodes.subscribe(self._node_changed)

    def watched(self) -> list[Watched]:
        """Every store, and what it is to hold, except the nodes: nobody waits for their first list."""
        elastic = Watched(ELASTIC_QUOTAS, ElasticQuota, self.elastic_quotas.store)
        return [
            *(Watched(PODS, Pod, self.pods.of(one.name), *_own_pods(one)) for one in self._schedulers),
            *(Watched(pod_groups_of(one), one.pod_groups, self.pod_groups.of(one.name)) for one in self._schedulers),
            Watched(queues_of(self._queue_source), self._queue_source.decoded, self.queues),
            Watched(PRIORITY_CLASSES, PriorityClass, self.priority_classes),
            Watched(NAMESPACES, Namespace, self.namespaces),
            Watched(LIMIT_RANGES, LimitRange, self.added.ranges),
            Watched(RUNTIME_CLASSES, RuntimeClass, self.added.runtimes),
            Watched(RESOURCE_QUOTAS, ResourceQuota, self.added.quotas),
            *(Watched(resource_of(kind), kind.decoded, store) for kind, store in self._workloads.items()),
            *(Watched(resource_of_source(source), source.decoded, store) for source, store in self._sources.items()),
            *(Watched(*one) for one in (self.kueue.watched() if self._asks_kueue else ())),
            *([elastic] if self._asks_elastic_quotas else []),
            *(Watched(PODS, Pod, store, UNFINISHED, labels) for labels, store in self.unmanaged_pods.stores.items()),
        ]

    @property
    def other_pods(self) -> tuple[str, str]:
        """The field and label selectors for bound pods that are in none of its stores of pods."""
        whole = (f"spec.schedulerName!={one.name}" for one in self._schedulers if one.keeps_room)
        parts = all(one.keeps_room for one in self._schedulers)
        return ",".join((*whole, "spec.nodeName!=")), "" if parts else f"!{GANG}"

    def reflectors(self, client: Client) -> list[Reflector[Any]]:
        """What keeps the stores up to date; each must run for as long as the process."""
        return [
            Reflector(client, resource, type_, store, field_selector=fields, label_selector=labels)
            for resource, type_, store, fields, labels in (*self.watched(), Watched(NODES, Node, self.nodes))
        ]

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return all(watched.store.synced for watched in self.watched())

    async def wait_synced(self) -> None:
        """Wait until everything was listed once: before that, what is missing may only be unread."""
        while not self.synced:  # noqa: ASYNC110 - some stores, once in the life of the process
            await asyncio.sleep(0.05)

    async def list_pod_groups(self, client: Client) -> list[PodGroup]:
        """All PodGroups as they are now, not as the watch last said. Raises ApiError."""
        groups: list[PodGroup] = []
        for scheduler in self._schedulers:
            try:
                groups += await list_objects(client, pod_groups_of(scheduler), scheduler.pod_groups)
            except ApiError as error:
                if not error.not_found:
                    raise
        return groups

    def subscribe(
        self,
        *,
        gang: Callable[[GangKey], None],
        gangs: Gangs,
        queue: Callable[[Change[Queue]], None],
    ) -> None:
        """Tell `gang` of every gang that a change touches, and `queue` of the queues themselves.

        `gangs` is told of those that one change may touch by the thousand, to be gone through later: what they have in
        common, which is the same for the same gangs, and their keys; None stands for one that is not touched.
        """

        def pod_changed(change: Change[Pod]) -> None:
            for pod in (change.old, change.new):
                for key in gangs_of_pod(pod) if pod else ():
                    gang(key)

        def group_changed(change: Change[PodGroup]) -> None:
            gang(gang_of_group(change.object))

        def namespace_changed(change: Change[Namespace]) -> None:
            if _words(change.old) != _words(change.new):
                counted_again(change.object.metadata.name)

        def counted_again(namespace: str | None) -> None:
            gangs(namespace, self._gangs_in(namespace))

        self.added.subscribe(counted_again)
        self.priority_classes.subscribe(lambda _: counted_again(None))
        self.namespaces.subscribe(namespace_changed)
        self.pods.subscribe(pod_changed)
        self.unmanaged_pods.subscribe(gang)
        self.pod_groups.subscribe(group_changed)
        self.queues.subscribe(queue)
        self.nodes.subscribe(self._nodes_told(gang))
        self._subscribe_to_workloads(gang, gangs)

    def _nodes_told(self, gang: Callable[[GangKey], None]) -> Callable[[Change[Node]], None]:
        """Tell the gangs of a node when it takes no more pods, or takes some again."""

        def changed(change: Change[Node]) -> None:
            before, now = (one is not None and not one.takes_pods for one in (change.old, change.new))
            if before != now:
                for pod in self.pods_on(change.object.metadata.name):
                    for key in gangs_of_pod(pod):
                        gang(key)

        return changed

    def _subscribe_to_workloads(self, gang: Callable[[GangKey], None], gangs: Gangs) -> None:
        for kind in GANG_KINDS:
            self._workloads[kind].subscribe(_workload_changed(kind, gang))
            self._workloads[kind].subscribe(self._successor_told(gang))
        for kind in WATCHED_KINDS:
            if kind not in GANG_KINDS:
                self._workloads[kind].subscribe(_maker_changed(kind, gang))
                self._workloads[kind].subscribe(self._hold_told(gangs))
                self._workloads[kind].subscribe(self._words_told(gang))
        self.kueue.workloads.subscribe(kueue_told(self._workloads, self.pods, gang))
        for kind in GANG_KINDS:
            if kind.origin is not None:
                self._workloads[kind.origin.makes].subscribe(self._making_told(gang))
        for source, found in self._sources.items():
            found.subscribe(self._source_changed(source, gangs))

    def _successor_told(self, gang: Callable[[GangKey], None]) -> Callable[[Change[Decoded]], None]:
        """Tell the gang that carries on the work when the workload that carried it on is gone."""

        def changed(change: Change[Decoded]) -> None:
            meta = change.object.metadata
            found = self.workload(meta.namespace, meta.controller) if meta.controller else None
            if found is not None and (change.new is None or meta.deletion_timestamp):
                kind, maker = found
                for name in kind.carried_on_by(maker):
                    gang(GangKey(meta.namespace, kind.pod_group_name(name)))

        return changed

    def _hold_told(self, gangs: Gangs) -> Callable[[Change[Decoded]], None]:
        """Tell the gangs of a namespace when something there that makes workloads is put on hold, or resumed."""

        def changed(change: Change[Decoded]) -> None:
            before, now = (one is not None and asks_to_wait(one.metadata) for one in (change.old, change.new))
            if before != now:
                namespace = change.object.metadata.namespace
                gangs(namespace, self._gangs_in(namespace))

        return changed

    def _words_told(self, gang: Callable[[GangKey], None]) -> Callable[[Change[Decoded]], None]:
        """Tell the gangs of what a maker has made when it says something else: its words are theirs, too."""

        def changed(change: Change[Decoded]) -> None:
            before, now = (_said(one.metadata) if one is not None else ({}, "") for one in (change.old, change.new))
            if before != now:
                for key in self._made_by(change.object.metadata, MOST_OWNERS):
                    gang(key)

        return changed

    def _made_by(self, maker: ObjectMeta, levels: int) -> Iterator[GangKey]:
        """The gangs of what the maker has made, itself or through others."""
        for kind in WATCHED_KINDS if levels else ():
            for one in self.made_by(kind, maker.uid):
                if kind in GANG_KINDS:
                    yield from gang_of_workload(kind)(one)
                else:
                    yield from self._made_by(one.metadata, levels - 1)

    def _making_told(self, gang: Callable[[GangKey], None]) -> Callable[[Change[Decoded]], None]:
        """Tell the gang of a workload when what its operator makes of it is there, or is gone."""

        def changed(change: Change[Decoded]) -> None:
            meta = change.object.metadata
            found = self.workload(meta.namespace, meta.controller) if meta.controller else None
            if found is not None and (change.old is None or change.new is None or meta.deletion_timestamp):
                for key in gang_of_workload(found[0])(found[1]):
                    gang(key)

        return changed

    def _source_changed(self, source: Source, gangs: Gangs) -> Callable[[Change[Any]], None]:
        """Tell the gangs of the workloads that are made from what has changed."""

        def changed(change: Change[Any]) -> None:
            meta = change.object.metadata
            reference = Reference(source, meta.namespace, meta.name)
            gangs(reference, self._made_from(reference))

        return changed

    def _made_from(self, reference: Reference) -> Iterator[GangKey | None]:
        for kind, store in self._workloads.items():
            if kind.origin is not None and reference.source in kind.origin.sources:
                for workload in store.values():
                    meta = workload.metadata
                    made = kind.origin.of(workload) == reference
                    yield GangKey(meta.namespace, kind.pod_group_name(meta.name)) if made else None

    def _gangs_in(self, namespace: str | None) -> Iterator[GangKey | None]:
        """All gangs of a namespace, of all namespaces where it is None."""
        return (key if namespace in (None, key.namespace) else None for key in self.each_gang())

    def gangs(self) -> set[GangKey]:
        """All gangs that have a PodGroup, a pod, or a workload without either."""
        return set(self.each_gang())

    def each_gang(self) -> Iterator[GangKey]:
        """As `gangs`, one by one, some of them several times; the stores may change meanwhile."""
        for group in self.pod_groups.values():
            yield gang_of_group(group)
        for kind in GANG_KINDS:
            for workload in self._workloads[kind].values():
                yield from gang_of_workload(kind)(workload)
        for pod in self.pods.values():
            yield from gangs_of_pod(pod)

    def pods_of(self, key: GangKey) -> list[Pod]:
        """The pods that are bound to the PodGroup, whoever bound them."""
        return self.pods.by_index("gang", key)

    def pods_on(self, node: str) -> list[Pod]:
        """The scheduler's pods that have this node."""
        return self.pods.by_index("node", node)

    def requests_of(self, pod: Pod) -> Resources:
        """What a pod of the store asks for; raises InvalidObjectError.

        Counted once for each version: a gang of a thousand is looked at for every pod of it that comes or changes.
        """
        known = self._requests.get(pod.metadata.uid)
        if known is not None and known[0] is pod:
            return known[1]
        requests = shared(pod_requests(pod.spec, status=pod.status))
        self._requests[pod.metadata.uid] = pod, requests
        return requests

    def _forget_pod(self, change: Change[Pod]) -> None:
        if change.old is not None:
            self._requests.pop(change.old.metadata.uid, None)
            self.members.pop(change.old.metadata.uid, None)

    def _node_changed(self, change: Change[Node]) -> None:
        name, node = change.object.metadata.name, change.new
        if node is not None and not node.takes_pods:
            self.away |= {name}
        elif name in self.away:
            self.away -= {name}

    def pod_group(self, key: GangKey) -> PodGroup | None:
        """The PodGroup of the gang of that name; of several, where its scheduler has changed, the youngest."""
        found = self.pod_groups.by_index("gang", key)
        return max(found, key=lambda group: group.metadata.creation_timestamp, default=None)

    def workload(self, namespace: str, owner: OwnerReference) -> tuple[Kind, Decoded] | None:
        """The workload that an owner reference means: same name and same UID."""
        kind = kind_of_owner(owner)
        found = self._workloads[kind].get(namespace, owner.name) if kind else None
        return (kind, found) if kind and found and found.metadata.uid == owner.uid else None

    def made_by(self, kind: Kind, uid: str) -> list[Decoded]:
        """The workloads of a kind that are controlled by the object of that UID."""
        return self._workloads[kind].by_index("maker", uid)

    def whole(self, kind: Kind, decoded: Decoded) -> Decoded:
        """The workload with what it is made from; raises InvalidObjectError when that is not there.

        What its operator has made of both already goes before what would be made now.
        """
        whole = kind.whole(decoded, self.origin)
        if kind.origin is None or whole is decoded:
            return whole
        there = self.made_by(kind.origin.makes, decoded.metadata.uid)
        made = next((one for one in there if not one.metadata.deletion_timestamp), None)
        return whole if made is None else kind.origin.as_made(whole, made)

    def around(self, kind: Kind, decoded: Decoded) -> Surroundings:
        """What speaks for the workload beside itself."""
        meta, whole = decoded.metadata, decoded
        with suppress(InvalidObjectError):
            whole = self.whole(kind, decoded)
        owners = tuple(owner.metadata for _, owner in self.owners(meta))
        namespace = self.namespace(meta.namespace)
        unselected = not self._namespace_selector.matches(labels_of(namespace))
        return Surroundings(kind.voices(whole), owners, namespace, unselected)

    def owners(self, workload: ObjectMeta) -> tuple[tuple[Kind, Decoded], ...]:
        """The objects of watched kinds that control the workload, the nearest first."""
        above: list[tuple[Kind, Decoded]] = []
        walk = OwnerWalk(workload.controller)
        for owner in walk:
            found = self.workload(workload.namespace, owner)
            if found is None:
                break
            above.append(found)
            walk.found(found[1].metadata.controller)
        return tuple(above)

    def carried_on(self, kind: Kind, decoded: Decoded) -> Decoded | None:
        """The owner whose work the workload carries on, as the operator's own object says; None where there is none.

        An owner reference alone, which anybody may write, gives nobody an older one's place.
        """
        meta = decoded.metadata
        found = self.workload(meta.namespace, meta.controller) if meta.controller else None
        if found is None:
            return None
        of, maker = found
        there = (self._workloads[kind].get(meta.namespace, name) for name in of.carried_on_by(maker))
        first = next((one for one in there if one is not None and not one.metadata.deletion_timestamp), None)
        return maker if first is not None and first.metadata.uid == meta.uid else None

    def origin(self, reference: Reference) -> object | None:
        """The object from which workloads are made, None where there is none."""
        return self._sources[reference.source].get(reference.namespace, reference.name)

    def namespace(self, name: str) -> ObjectMeta:
        """What is written on the namespace."""
        found = self.namespaces.get("", name)
        return found.metadata if found else ObjectMeta(name=name)

    def workload_of(self, key: GangKey) -> tuple[Kind, Decoded] | None:
        """The workload whose PodGroup has, or would have, that name; of several the oldest."""
        found = [(kind, one) for kind in GANG_KINDS for one in self._workloads[kind].by_index("gang", key)]
        return min(found, key=lambda one: (one[1].metadata.creation_timestamp, one[1].metadata.uid), default=None)

    def priorities(self) -> dict[str, int]:
        """The values of the PriorityClasses by name; under "" what a pod without a class gets."""
        return priority_values(self.priority_classes)


def _said(maker: ObjectMeta) -> tuple[object, ...]:
    """What the maker of a workload says of its gang."""
    return maker.labels, maker.annotations.get(QUEUE_ANNOTATION, "")


def _words(namespace: Namespace | None) -> tuple[object, ...]:
    """What a namespace says of its gangs."""
    meta = namespace.metadata if namespace else ObjectMeta()
    # By its labels queues are open to it.
    return meta.labels, *(meta.annotations.get(key, "") for key in (QUEUE_ANNOTATION, GATE_MODE, SCHEDULER, ADMITTER))


def _maker(workload: Decoded) -> Iterable[str]:
    above = workload.metadata.controller
    return (above.uid,) if above else ()


def _own_pods(scheduler: GangScheduler) -> tuple[str, str]:
    """The field and label selectors for the pods of a scheduler that count.

    Where PodGroups have queues, that is all of them, for pods outside gangs use quota as well; a cluster has many more.
    """
    return f"spec.schedulerName={scheduler.name}", "" if scheduler.keeps_room else GANG


def _maker_changed(kind: Kind, gang: Callable[[GangKey], None]) -> Callable[[Change[Decoded]], None]:
    """Tell the gangs of what carries on the work: which of them does may have changed."""

    def changed(change: Change[Decoded]) -> None:
        meta = change.object.metadata
        before, now = (kind.carried_on_by(one) if one else () for one in (change.old, change.new))
        if before != now:
            for name in {*before, *now} - {""}:
                gang(GangKey(meta.namespace, kind.pod_group_name(name)))

    return changed


def _workload_changed(kind: Kind, gang: Callable[[GangKey], None]) -> Callable[[Change[Decoded]], None]:
    def changed(change: Change[Decoded]) -> None:
        for key in gang_of_workload(kind)(change.object):
            gang(key)

    return changed
