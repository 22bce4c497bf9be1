"""What the webhook knows of the cluster: its own watches, and one direct read of what is quicker than they are."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from muster.admitters import chosen_admitter, gate_by
from muster.admitters.kueue_quota import ClusterQueue, LocalQueue
from muster.gangs.gang import Gang, priority_values
from muster.gangs.intent import Defaults, Intent, Surroundings
from muster.gangs.pod_patch import Membership, membership
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.resource import JOBS, NAMESPACES, PRIORITY_CLASSES, Resource
from muster.kube.store import Change, HasMetadata, Store
from muster.model.keep import Keep
from muster.model.modes import GateMode, gate_mode
from muster.model.objects import (
    Job,
    Namespace,
    ObjectMeta,
    OwnerReference,
    PartialObjectMetadata,
    PodGroup,
    PriorityClass,
)
from muster.observe.elastic_quotas import ElasticQuotas
from muster.observe.kueue_objects import CLUSTER_QUEUES, LOCAL_QUEUES
from muster.observe.pod_defaults import Added
from muster.observe.resources import pod_groups_of, resource_of, resource_of_source
from muster.observe.unmanaged_pods import UnmanagedPods
from muster.queueing.queue_tree import Place, labels_of
from muster.resources.amounts import Resources
from muster.validation.workload import Context
from muster.workloads import SOURCES, WATCHED_KINDS, Decoded, Kind, Source, kind_of_owner
from muster.workloads.owners import OwnerWalk
from webhook.reviews.admission_review import AdmissionResponse
from webhook.reviews.holders import holder_of
from webhook.reviews.known_queues import KnownQueues
from webhook.reviews.memo import Memo
from webhook.reviews.reads import Found, Reads, ask_again

Named = TypeVar("Named", bound=HasMetadata)

logger = logging.getLogger(__name__)

_JOBS_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class OwnerWorkload:
    """The workload whose gang a pod belongs to, by what reference it was found, and who made it, the nearest first.

    A plain pod is its own workload, and no reference leads there. Where it was read `early`, for another review, it may
    have changed before this one came.
    """

    kind: Kind
    reference: OwnerReference | None
    decoded: Decoded
    owners: tuple[ObjectMeta, ...] = ()
    early: bool = False
    made: Decoded | None = None
    """What its operator made of it, where that has a gang when nobody controls it: the JobSet of a TrainJob."""


@dataclass(frozen=True, slots=True)
class GangTemplate:
    """What all pods of a workload have in common; of the gang no requests are known."""

    intent: Intent
    gang: Gang

    def member(self, name: str) -> Membership | None:
        """What those of the role of that name have in common, too; None where there is no such role."""
        role = self.gang.role(name)
        return membership(role, self.gang, self.intent, self.intent.gang_scheduler) if role is not None else None


def looked_at(kind: Kind) -> type[Any]:
    """The type as which workloads are decoded behind a pod; of those that only make others nothing but the metadata."""
    return kind.decoded if kind.owns_gang else PartialObjectMetadata


class Knowledge:
    """The workloads, queues, priority classes and namespaces of the cluster, and the pods that came without muster.

    Beside these what the cluster adds to pods, by which a workload is judged; no pod's patch depends on that.
    A direct read may take `read_seconds`, which is to be well below what the apiserver grants the webhook.
    """

    def __init__(self, client: Client, defaults: Defaults, read_seconds: float = 2.0) -> None:
        self._client = client
        self._defaults = defaults
        self._read_seconds = read_seconds
        self._reads = Reads(client, read_seconds)
        self.unmanaged_pods = UnmanagedPods()
        self._added = Added()
        self._elastic_quotas = ElasticQuotas()
        # By the UID of the workload.
        self.commons: Memo[GangTemplate | AdmissionResponse | None] = Memo()
        self._workloads: dict[Kind, Store[Decoded]] = {kind: Store() for kind in WATCHED_KINDS}
        self._sources: dict[Source, Store[Any]] = {source: Store() for source in SOURCES}
        # Jobs are not watched, a cluster has many. Who controls one of a UID never changes in a way that matters, and
        # its completions only together with its parallelism.
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self.queues = KnownQueues(client, self._reads, defaults, read_seconds)
        self._priorities: Store[PriorityClass] = Store()
        self._values: dict[str, int] | None = None
        self._priorities.subscribe(self._priorities_changed)
        self._namespaces: Store[Namespace] = Store()

    def reflectors(self) -> list[Reflector[Any]]:
        """What keeps the stores up to date; each must run for as long as the process."""
        return [
            *(
                Reflector(self._client, resource_of(kind), looked_at(kind), store)
                for kind, store in self._workloads.items()
            ),
            *(
                Reflector(self._client, resource_of_source(one), one.decoded, store)
                for one, store in self._sources.items()
            ),
            self.queues.reflector(),
            Reflector(self._client, PRIORITY_CLASSES, PriorityClass, self._priorities),
            Reflector(self._client, NAMESPACES, Namespace, self._namespaces, keep=Keep.ALL),
            *self.unmanaged_pods.reflectors(self._client),
            *self._added.reflectors(self._client),
            *([self._elastic_quotas.reflector(self._client)] if self._defaults.elastic_quotas else []),
        ]

    async def behind(
        self, namespace: str, owner: OwnerReference | None, *, fresh: bool = False
    ) -> OwnerWorkload | None:
        """The workload whose gang a pod belongs to that is controlled by this owner; None when there is none.

        It is the last on the way up the owners that has a gang: the Jobs of a JobSet are the JobSet's, and a JobSet of
        a TrainJob is the TrainJob's; also None when one on the way is gone. `fresh` reads whatever the watch has shown.
        Raises ApiError when the watch has not seen one of them and the apiserver does not answer: then nobody can say
        whether the pod belongs to a gang, and the pod must not be created; and Refused as `Reads.read`.
        """
        found: OwnerWorkload | None = None
        early = False
        owners: list[ObjectMeta] = []
        walk = OwnerWalk(owner)
        for above in walk:
            if above.kind == JOBS.kind and above.group == JOBS.group:
                walk.found(await self._job_owner(namespace, above))
                continue
            kind = kind_of_owner(above)
            if kind is None:
                break
            shown = await self._workload(kind, namespace, above, fresh=fresh)
            decoded, early = shown.object, early or shown.early
            if decoded is None:
                # Of an owner that is gone the garbage collector takes the pod; who made it does not matter any more.
                return None if kind.owns_gang else found
            if kind.owns_gang:
                found, owners = OwnerWorkload(kind, above, decoded, made=found.decoded if found else None), []
            else:
                owners.append(decoded.metadata)
            walk.found(decoded.metadata.controller)
        return replace(found, owners=tuple(owners), early=early) if found is not None and (owners or early) else found

    async def _job_owner(self, namespace: str, job: OwnerReference) -> OwnerReference | None:
        """Who controls a batch Job, read once."""
        if job.uid not in self._jobs:
            found = await self._of_uid(JOBS, job, Job, namespace)
            if found.object is None:
                return None
            self._jobs[job.uid] = found.object
            if len(self._jobs) > _JOBS_REMEMBERED:
                self._jobs.popitem(last=False)
        return self._jobs[job.uid].metadata.controller

    def job(self, reference: OwnerReference | None) -> Job | None:
        """The batch Job of that reference, as it was when `behind` met it; None where it has not."""
        return self._jobs.get(reference.uid) if reference is not None else None

    def is_made(self, maker: OwnerReference) -> bool:
        """True if what makes pods was itself made by something, as `behind` has met it; a Job may be made by hand."""
        job = maker.kind == JOBS.kind and maker.group == JOBS.group
        return not job or (maker.uid in self._jobs and self._jobs[maker.uid].metadata.controller is not None)

    async def _workload(self, kind: Kind, namespace: str, owner: OwnerReference, *, fresh: bool) -> Found[Decoded]:
        """The workload of that name and UID, or nothing when it is gone."""
        known = self._workloads[kind].get(namespace, owner.name)
        if fresh or known is None or known.metadata.uid != owner.uid:
            return await self._of_uid(resource_of(kind), owner, looked_at(kind), namespace)
        return Found(known)

    async def workload(self, kind: Kind, namespace: str, name: str) -> Decoded | None:
        """The workload of that name as it is now; raises ApiError, and Refused as `Reads.read`."""
        found: Decoded | None = await self._reads.object_of(resource_of(kind), name, kind.decoded, namespace)
        return found

    async def _of_uid(
        self, resource: Resource, owner: OwnerReference, type_: type[Named], namespace: str
    ) -> Found[Named]:
        """The owner, read now; nothing where another object has its name."""
        found = await self._reads.read(resource, owner.name, type_, namespace)
        if found.object is not None and found.object.metadata.uid == owner.uid:
            return found
        if found.early:
            raise ask_again()
        return Found(None)

    async def around(self, namespace: str) -> Surroundings:
        """What speaks for the workloads of a namespace beside themselves.

        A namespace of a moment ago is read once; raises ApiError when the apiserver does not answer that.
        """
        known = self._namespaces.get("", namespace) or await self._reads.object_of(NAMESPACES, namespace, Namespace)
        return Surroundings(namespace=known.metadata if known else ObjectMeta(name=namespace))

    async def gate(self, gang: Gang, intent: Intent, around: Surroundings) -> GateMode:
        """What holds the gang back; a queue that is not there for it does, whatever else is said.

        So does another one that it is in already: of a gang that holds room there, or waits, the mode of that queue
        counts. The controller opens at once what may go.
        """
        if not self.queues.seen.open_to(intent.queue, labels_of(around.namespace)):
            return GateMode.QUEUE
        queue = self.queues.seen.get(intent.queue)
        said = around.namespace.annotations
        admitter = chosen_admitter(said, self._defaults.admitters)
        mode = gate_by(admitter, queue.gate if queue else None, gate_mode(said, self._defaults.gate))
        if mode is GateMode.OFF and await self._elsewhere(gang, intent):
            return GateMode.QUEUE
        return mode

    async def _elsewhere(self, gang: Gang, intent: Intent) -> bool:
        """Whether its PodGroup, read now, is in another queue; True where nobody can tell."""
        try:
            group = await self._pod_group(gang, intent)
        except ApiError as error:
            logger.warning(
                "cannot read PodGroup %s/%s: %s", gang.namespace, gang.name, error, extra={"event": "review.pod_group"}
            )
            return True
        return group is not None and group.spec.queue not in ("", intent.queue)

    async def _pod_group(self, gang: Gang, intent: Intent) -> PodGroup | None:
        """The PodGroup of a gang, read now; raises ApiError."""
        scheduler = intent.gang_scheduler
        name = scheduler.group_name(gang.name, gang.uid)
        return await self._reads.object_of(pod_groups_of(scheduler), name, scheduler.pod_groups, gang.namespace)

    async def kept(self, found: GangTemplate) -> GangTemplate:
        """The same with the scheduler for which the PodGroup of the very workload was made, read now; raises ApiError.

        A workload keeps its scheduler for its life, whatever its labels say by now: two place no gang together.
        """
        for scheduler in self._defaults.schedulers.values():
            if scheduler is found.intent.gang_scheduler or not found.gang.uid:
                continue
            intent = replace(found.intent, scheduler=scheduler.name, gang_scheduler=scheduler)
            group = await self._pod_group(found.gang, intent)
            owner = group.metadata.controller if group else None
            ours = group is not None and group.metadata.by_muster
            if ours and owner is not None and owner.uid == found.gang.uid:
                return GangTemplate(intent, found.gang)
        return found

    async def holder_of(self, gang: Gang, intent: Intent, kind: Kind, name: str) -> str | None:
        """Who else lives and has the PodGroup of that name, as `holder_of`."""

        async def read() -> ObjectMeta | None:
            group = await self._pod_group(gang, intent)
            return group.metadata if group else None

        return await holder_of(self._client, read, kind, name, seconds=self._read_seconds)

    async def owners(self, workload: ObjectMeta) -> tuple[ObjectMeta, ...]:
        """Who made a workload, the nearest first; raises ApiError as `behind` does."""
        above: list[ObjectMeta] = []
        walk = OwnerWalk(workload.controller)
        for owner in walk:
            kind = kind_of_owner(owner)
            found = (await self._workload(kind, workload.namespace, owner, fresh=False)).object if kind else None
            if found is None:
                break
            above.append(found.metadata)
            walk.found(found.metadata.controller)
        return tuple(above)

    async def origin(self, kind: Kind, decoded: Decoded) -> object | None:
        """What the workload is made from beside its own manifest, decoded; None where that is not there.

        What the watch has not seen is read once; raises ApiError when the apiserver does not answer that.
        """
        reference = kind.origin.of(decoded) if kind.origin else None
        if reference is None:
            return None
        source = reference.source
        return self._sources[source].get(reference.namespace, reference.name) or await self._reads.object_of(
            resource_of_source(source), reference.name, source.decoded, reference.namespace or None
        )

    async def made(self, kind: Kind, decoded: Decoded) -> Decoded | None:
        """What its operator has made of the workload and its origin, read now; None where that is not there.

        Raises ApiError, and Refused as `Reads.read`.
        """
        if kind.origin is None:
            return None
        meta = decoded.metadata
        found = await self.workload(kind.origin.makes, meta.namespace, meta.name)
        maker = found.metadata.controller if found is not None else None
        return found if maker is not None and maker.uid == meta.uid else None

    async def context(self, intent: Intent | None, around: Surroundings, *, new: bool = False) -> Context:
        """What the rules need to judge a workload of that intent; what a `new` one has holds nothing of its queue yet.

        Nothing of it changes later, so that it may be read in another thread; of queues it knows that of the intent.
        Its queue and its class may have been applied a moment before it, so what the watch has not seen is read once.
        Raises ApiError when the apiserver does not answer that.
        """
        places: dict[str, Place | None] = {}
        held: dict[str, Resources] = {}
        names: list[str] = []
        priorities = self.priorities()
        if intent is not None:
            place = places[intent.queue] = await self.queues.place(intent.queue, around.namespace)
            names = [] if place else self.queues.seen.names_for(labels_of(around.namespace))
            levels = place.levels if new and place else ()
            # Whoever reaches the webhook may ask in any namespace's name, and of every size.
            held = {one.queue: self.queues.held(one.queue) for one in levels if self.queues.seen.open_to_all(one.queue)}
            name = intent.priority_class
            if name and name not in priorities:
                found = await self._reads.object_of(PRIORITY_CLASSES, name, PriorityClass)
                priorities = {**priorities, name: found.value} if found else priorities
        return Context(
            queue=places.get,
            queue_names=lambda: names,
            priorities=priorities,
            defaults=self._defaults,
            around=around,
            held=(lambda queue: held.get(queue, {})) if new else None,
            pod_defaults=self._added.of(around.namespace.name),
            ceiling=self._elastic_quotas.limits.ceiling(around.namespace.name),
        )

    async def cluster_queue(self, namespace: str, local_queue: str) -> ClusterQueue | None:
        """The ClusterQueue to which a LocalQueue of Kueue's leads, read now; raises ApiError."""
        local = await self._reads.object_of(LOCAL_QUEUES, local_queue, LocalQueue, namespace) if local_queue else None
        name = local.spec.cluster_queue if local is not None else ""
        return await self._reads.object_of(CLUSTER_QUEUES, name, ClusterQueue) if name else None

    def priorities(self) -> Mapping[str, int]:
        """The values of the PriorityClasses by name; under "" what a pod without a class gets.

        The very same object until a class changes.
        """
        if self._values is None:
            self._values = priority_values(self._priorities)
        return self._values

    def _priorities_changed(self, _: Change[PriorityClass]) -> None:
        self._values = None
