"""The controller's picture of the cluster: one store per kind, and what they say together."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress

from muster.admitters import Admitter
from muster.cluster.running_pods import PodRequests, RunningPods
from muster.cluster.stores import ClusterStores, KueueObjects, gang_of_group, gang_of_workload, gangs_of_pod, job_of_pod
from muster.gangs.intent import IntentScope
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Change, Store, Stores
from muster.model.keep import Keep
from muster.model.names import GANG
from muster.model.objects import InvalidObjectError, Node, ObjectMeta, PodGroup
from muster.model.pods import Pod
from muster.model.resource import NODES, PODS
from muster.model.selectors import Selector
from muster.planning.snapshot import Member
from muster.queueing.ledger import GangKey
from muster.queueing.queue_tree import labels_of
from muster.queueing.sources import QUEUE_SOURCES, QueueSource
from muster.resources.amounts import Resources
from muster.schedulers import SCHEDULERS, GangScheduler
from muster.workloads import GANG_KINDS, WATCHED_KINDS, Decoded, Kind, OwnerWalk


class Cluster(ClusterStores):
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
        super().__init__(queue_source, elastic_quotas=elastic_quotas)
        self._namespace_selector = namespace_selector or Selector()
        self._schedulers = list(schedulers) or [SCHEDULERS["volcano"]]
        names = [scheduler.name for scheduler in self._schedulers]
        self.pods: Stores[Pod] = Stores(names)
        self.pod_groups: Stores[PodGroup] = Stores(names)
        self.nodes: Store[Node] = Store()
        # Of the nodes that are known those that take no pods.
        self.away: set[str] = set()
        self._asks_kueue = Admitter.KUEUE in tuple(admitters)
        self.kueue = KueueObjects()
        for kind in WATCHED_KINDS:
            self.workloads[kind].index("maker", _maker)
        for kind in GANG_KINDS:
            self.workloads[kind].index("gang", gang_of_workload(kind))
            self.workloads[kind].index("uid", lambda workload: (workload.metadata.uid,))
        self.pods.index("gang", gangs_of_pod)
        self.pod_groups.index("gang", lambda group: (gang_of_group(group),))
        self.pods.index("node", lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self.pods.index("job", job_of_pod if self._asks_kueue else lambda _: ())
        self.requests = PodRequests()
        # By UID what `observe` has read of a living pod, for a workload of this kind and UID; good for one version of
        # the pod.
        self.members: dict[str, tuple[Kind, str, Member]] = {}
        self.pods.subscribe(self._forget_pod)
        self.running_pods = RunningPods(self.requests)
        if elastic_quotas:
            self.pods.subscribe(self.running_pods.note)
        self.nodes.subscribe(self._node_changed)

    def watched(self) -> list[Watched]:
        """All stores except the nodes: their first list is not waited for."""
        return [
            *(Watched(PODS, Pod, self.pods.of(one.name), *_own_pods(one)) for one in self._schedulers),
            *(
                Watched(one.resource, one.pod_groups, self.pod_groups.of(one.name), keep=Keep.COPIED)
                for one in self._schedulers
            ),
            *self.common(Keep.COPIED),
            *(Watched(*one) for one in (self.kueue.watched() if self._asks_kueue else ())),
        ]

    @property
    def other_pods(self) -> tuple[str, str]:
        """The field and label selectors for bound pods that are in none of its stores of pods."""
        whole = (f"spec.schedulerName!={one.name}" for one in self._schedulers if one.keeps_room)
        parts = all(one.keeps_room for one in self._schedulers)
        return ",".join((*whole, "spec.nodeName!=")), "" if parts else f"!{GANG}"

    def reflectors(self, client: Client) -> list[Reflector]:
        """The watches that keep the stores up to date; each must run for as long as the process."""
        return [Reflector(client, one) for one in (*self.watched(), Watched(NODES, Node, self.nodes))]

    @property
    def synced(self) -> bool:
        """True if everything was listed once."""
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
                groups += await list_objects(client, scheduler.resource, scheduler.pod_groups, keep=Keep.COPIED)
            except ApiError as error:
                if not error.not_found:
                    raise
        return groups

    def gangs(self) -> set[GangKey]:
        """All gangs that have a PodGroup, a pod, or a workload without either."""
        return set(self.each_gang())

    def each_gang(self) -> Iterator[GangKey]:
        """As `gangs`, one by one, some of them several times; the stores may change between two of them."""
        for group in list(self.pod_groups):
            yield gang_of_group(group)
        for kind in GANG_KINDS:
            for workload in list(self.workloads[kind]):
                yield from gang_of_workload(kind)(workload)
        for pod in list(self.pods):
            yield from gangs_of_pod(pod)

    def pods_of(self, key: GangKey) -> list[Pod]:
        """The pods that are bound to the PodGroup, by muster or by others."""
        return self.pods.by_index("gang", key)

    def pods_on(self, node: str) -> list[Pod]:
        """The scheduler's pods that have this node."""
        return self.pods.by_index("node", node)

    def requests_of(self, pod: Pod) -> Resources:
        """The requests of a pod of the store, nothing where its node does not exist; raises InvalidObjectError.

        Counted once for each version: a gang of a thousand is reconciled for every pod of it that comes or changes.
        """
        return {} if self.on_no_node(pod) else self.requests.of(pod)

    def on_no_node(self, pod: Pod) -> bool:
        """True if the pod names a node that does not exist: any pod may name any node. Unknown until listed."""
        return bool(pod.spec.node_name) and self.nodes.synced and self.nodes.get("", pod.spec.node_name) is None

    def gangs_on_no_node(self) -> Iterator[GangKey | None]:
        """The gangs of pods that name a node that does not exist; None for each other pod, so that no step is long."""
        for pod in list(self.pods):
            if self.on_no_node(pod):
                self.members.pop(pod.metadata.uid, None)
                yield from gangs_of_pod(pod)
            else:
                yield None

    def _forget_pod(self, change: Change[Pod]) -> None:
        if change.old is not None:
            self.requests.forget(change.old)
            self.members.pop(change.old.metadata.uid, None)

    def _node_changed(self, change: Change[Node]) -> None:
        name, node = change.object.metadata.name, change.new
        if change.kind != "modified":
            for pod in self.pods_on(name):
                self.members.pop(pod.metadata.uid, None)
        if node is not None and not node.takes_pods:
            self.away.add(name)
        else:
            self.away.discard(name)

    def pod_group(self, key: GangKey) -> PodGroup | None:
        """The PodGroup of the gang of that name; of several muster's own, and of these the youngest."""
        found = self.pod_groups.by_index("gang", key)
        return max(found, key=lambda one: (one.metadata.by_muster, one.metadata.creation_timestamp), default=None)

    def has(self, kind: Kind, workload: ObjectMeta) -> bool:
        """True if this very workload is still there; of plain pods, which are none of a store, nothing is known."""
        found = self.workloads[kind].get(workload.namespace, workload.name) if kind in self.workloads else None
        return found is not None and found.metadata.uid == workload.uid

    def made_by(self, kind: Kind, uid: str) -> list[Decoded]:
        """The workloads of a kind that are controlled by the object of that UID."""
        return self.workloads[kind].by_index("maker", uid)

    def whole(self, kind: Kind, decoded: Decoded) -> Decoded:
        """The workload with what it is made from; raises InvalidObjectError when that is not there.

        What its operator has made of both already goes before what would be made now.
        """
        there = self.made_by(kind.origin.makes, decoded.metadata.uid) if kind.origin else ()
        made = next((one for one in there if not one.metadata.deletion_timestamp), None)
        return kind.whole(decoded, self.origin, made)

    def scope_of(self, kind: Kind, decoded: Decoded) -> IntentScope:
        """The objects that speak for the workload in addition to itself."""
        meta, whole = decoded.metadata, decoded
        with suppress(InvalidObjectError):
            whole = self.whole(kind, decoded)
        owners = tuple(owner.metadata for _, owner in self.owners(meta))
        namespace = self.namespace(meta.namespace)
        unselected = not self._namespace_selector.matches(labels_of(namespace))
        return IntentScope(kind.intent_sources(whole), owners, namespace, unselected)

    def owners(self, workload: ObjectMeta) -> tuple[tuple[Kind, Decoded], ...]:
        """The objects of watched kinds that control the workload, the nearest first."""
        above: list[tuple[Kind, Decoded]] = []
        walk = OwnerWalk(workload.controller)
        for owner in walk:
            found = self.workload(workload.namespace, owner)
            if found is None:
                break
            above.append(found)
            walk.step_to(found[1].metadata.controller)
        return tuple(above)

    def carried_on(self, kind: Kind, decoded: Decoded) -> Decoded | None:
        """The owner whose work the workload carries on, as the operator's own object says; None where there is none.

        An owner reference alone, which any user may write, gives no workload an older one's place.
        """
        meta = decoded.metadata
        found = self.workload(meta.namespace, meta.controller) if meta.controller else None
        if found is None:
            return None
        of, maker = found
        there = (self.workloads[kind].get(meta.namespace, name) for name in of.carried_on_by(maker))
        first = next((one for one in there if one is not None and not one.metadata.deletion_timestamp), None)
        return maker if first is not None and first.metadata.uid == meta.uid else None

    def workload_of(self, key: GangKey) -> tuple[Kind, Decoded] | None:
        """The workload whose PodGroup has, or would have, that name; of several the oldest."""
        found = [(kind, one) for kind in GANG_KINDS for one in self.workloads[kind].by_index("gang", key)]
        return min(found, key=lambda one: (one[1].metadata.creation_timestamp, one[1].metadata.uid), default=None)


def _maker(workload: Decoded) -> Iterable[str]:
    above = workload.metadata.controller
    return (above.uid,) if above else ()


def _own_pods(scheduler: GangScheduler) -> tuple[str, str]:
    """The field and label selectors for the pods of a scheduler that count.

    Where PodGroups have queues, that is all of them, for pods outside gangs use quota as well; a cluster has many more.
    """
    return f"spec.schedulerName={scheduler.name}", "" if scheduler.keeps_room else GANG
