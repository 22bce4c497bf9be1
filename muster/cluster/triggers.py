"""The gangs that a change in the stores concerns: each of them is reconciled.

A gang may be told of in vain, and never too seldom: nothing else has it looked at again. What may concern thousands of
gangs is told of as one, to be gone through later.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from muster.admitters.kueue import KueueWorkload
from muster.cluster.cluster import Cluster
from muster.cluster.owners import asks_to_wait
from muster.cluster.stores import gang_of_group, gang_of_workload, gangs_of_pod
from muster.kube.store import Change
from muster.model.names import ADMITTER, GATE_MODE, QUEUE_ANNOTATION, SCHEDULER
from muster.model.objects import Namespace, Node, ObjectMeta
from muster.model.pods import Pod
from muster.model.resource import NODES
from muster.queueing.ledger import GangKey
from muster.workloads import GANG_KINDS, MOST_OWNERS, WATCHED_KINDS, Decoded, Kind, Reference, Source

Gangs = Callable[[Hashable, Iterable[GangKey | None]], None]


class GangTriggers:
    """Tells `gang` of every gang that a change of the cluster is about, and `gangs` of what may be thousands.

    These are told of by what they have in common, which is the same for the same gangs, and their keys; None stands for
    one that is not concerned.
    """

    def __init__(self, cluster: Cluster, gang: Callable[[GangKey], None], gangs: Gangs) -> None:
        self._cluster = cluster
        self._gang = gang
        self._gangs = gangs

    def subscribe(self) -> None:
        """Hear of all changes from now on."""
        cluster = self._cluster
        cluster.added.subscribe(self._counted_again)
        cluster.priority_classes.subscribe(lambda _: self._counted_again(None))
        cluster.namespaces.subscribe(self._namespace_changed)
        cluster.pods.subscribe(self._pod_changed)
        cluster.unmanaged_pods.subscribe(self._gang)
        cluster.pod_groups.subscribe(lambda change: self._gang(gang_of_group(change.object)))
        cluster.nodes.subscribe(self._node_changed)
        cluster.nodes.when_synced(lambda: self._gangs(NODES, cluster.gangs_on_no_node()))
        for kind, workloads in cluster.workloads.items():
            if kind in GANG_KINDS:
                workloads.subscribe(partial(self._workload_changed, kind))
                workloads.subscribe(self._successor_changed)
            else:
                workloads.subscribe(partial(self._maker_changed, kind))
                workloads.subscribe(self._hold_changed)
                workloads.subscribe(self._settings_changed)
            if kind.origin is not None:
                cluster.workloads[kind.origin.makes].subscribe(self._making_changed)
        cluster.kueue.workloads.subscribe(self._kueue_changed)
        for source, found in cluster.sources.items():
            found.subscribe(partial(self._source_changed, source))

    # --- pods, PodGroups, nodes, namespaces ---------------------------------------------------------------------------

    def _pod_changed(self, change: Change[Pod]) -> None:
        for pod in (change.old, change.new):
            for key in gangs_of_pod(pod) if pod else ():
                self._gang(key)

    def _node_changed(self, change: Change[Node]) -> None:
        """The gangs of a node that comes, goes, takes no more pods, or takes some again."""
        before, now = (one.takes_pods if one is not None else None for one in (change.old, change.new))
        # Until all nodes are listed pods count on any.
        if before != now and (now is False or self._cluster.nodes.synced):
            for pod in self._cluster.pods_on(change.object.metadata.name):
                for key in gangs_of_pod(pod):
                    self._gang(key)

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        if _settings(change.old) != _settings(change.new):
            self._counted_again(change.object.metadata.name)

    def _counted_again(self, namespace: str | None) -> None:
        """All gangs of a namespace, of all namespaces where it is None."""
        each = self._cluster.each_gang()
        self._gangs(namespace, (key if namespace in (None, key.namespace) else None for key in each))

    # --- workloads, and what they are made by and from ----------------------------------------------------------------

    def _workload_changed(self, kind: Kind, change: Change[Decoded]) -> None:
        if not _reads_the_same(change):
            for key in gang_of_workload(kind)(change.object):
                self._gang(key)

    def _successor_changed(self, change: Change[Decoded]) -> None:
        """The gang that carries on the work, when the workload that carried it on is gone."""
        meta = change.object.metadata
        found = self._cluster.workload(meta.namespace, meta.controller) if meta.controller else None
        if found is not None and (change.new is None or meta.deletion_timestamp):
            kind, maker = found
            for name in kind.carried_on_by(maker):
                self._gang(GangKey(meta.namespace, kind.pod_group_name(name)))

    def _maker_changed(self, kind: Kind, change: Change[Decoded]) -> None:
        """The gangs of what carries on the work: which of them does may have changed."""
        before, now = (kind.carried_on_by(one) if one else () for one in (change.old, change.new))
        if before != now:
            for name in {*before, *now} - {""}:
                self._gang(GangKey(change.object.metadata.namespace, kind.pod_group_name(name)))

    def _hold_changed(self, change: Change[Decoded]) -> None:
        """The gangs of a namespace, when something there that makes workloads is put on hold, or resumed."""
        before, now = (one is not None and asks_to_wait(one.metadata) for one in (change.old, change.new))
        if before != now:
            self._counted_again(change.object.metadata.namespace)

    def _settings_changed(self, change: Change[Decoded]) -> None:
        """The gangs of what a maker has made, when its own settings change: they are theirs, too."""
        before, now = map(_settings_of_maker, (change.old, change.new))
        if before != now:
            for key in self._made_by(change.object.metadata, MOST_OWNERS):
                self._gang(key)

    def _made_by(self, maker: ObjectMeta, levels: int) -> Iterator[GangKey]:
        """The gangs of what the maker has made, itself or through others."""
        for kind in WATCHED_KINDS if levels else ():
            for one in self._cluster.made_by(kind, maker.uid):
                if kind in GANG_KINDS:
                    yield from gang_of_workload(kind)(one)
                else:
                    yield from self._made_by(one.metadata, levels - 1)

    def _making_changed(self, change: Change[Decoded]) -> None:
        """The gang of a workload, when what its operator makes of it is there, or is gone."""
        meta = change.object.metadata
        found = self._cluster.workload(meta.namespace, meta.controller) if meta.controller else None
        if found is not None and (change.old is None or change.new is None or meta.deletion_timestamp):
            for key in gang_of_workload(found[0])(found[1]):
                self._gang(key)

    def _kueue_changed(self, change: Change[KueueWorkload]) -> None:
        """The gangs of the object that Kueue has decided on, and of the workloads and pods that it has made."""
        for uid in change.object.owners:
            for key in {key for pod in self._cluster.pods.by_index("job", uid) for key in gangs_of_pod(pod)}:
                self._gang(key)
            for kind in GANG_KINDS:
                store = self._cluster.workloads[kind]
                for one in (*store.by_index("uid", uid), *store.by_index("maker", uid)):
                    self._gang(GangKey(one.metadata.namespace, kind.pod_group_name(one.metadata.name)))

    def _source_changed(self, source: Source, change: Change[Any]) -> None:
        """The gangs of the workloads that are made from what has changed."""
        meta = change.object.metadata
        reference = Reference(source, meta.namespace, meta.name)
        self._gangs(reference, self._made_from(reference))

    def _made_from(self, reference: Reference) -> Iterator[GangKey | None]:
        for kind, store in self._cluster.workloads.items():
            if kind.origin is not None and reference.source in kind.origin.sources:
                for workload in list(store):
                    meta = workload.metadata
                    made = kind.origin.of(workload) == reference
                    yield GangKey(meta.namespace, kind.pod_group_name(meta.name)) if made else None


def _settings_of_maker(maker: Decoded | None) -> tuple[object, ...]:
    """The settings that the maker of a workload has for its gang; none where it is gone."""
    meta = maker.metadata if maker is not None else ObjectMeta()
    return meta.labels, meta.annotations.get(QUEUE_ANNOTATION, "")


def _reads_the_same(change: Change[Decoded]) -> bool:
    """True if nothing that muster reads has changed: operators write a status again for each pod of a workload."""
    old: Any = change.old
    new: Any = change.new
    if old is None or new is None:
        return False
    meta = msgspec.structs.replace(new.metadata, resource_version=old.metadata.resource_version)
    return bool(meta == old.metadata and msgspec.structs.replace(new, metadata=old.metadata) == old)


def _settings(namespace: Namespace | None) -> tuple[object, ...]:
    """The settings that a namespace has for its gangs."""
    meta = namespace.metadata if namespace else ObjectMeta()
    # By its labels queues are open to it.
    return meta.labels, *(meta.annotations.get(key, "") for key in (QUEUE_ANNOTATION, GATE_MODE, SCHEDULER, ADMITTER))
