"""The cluster as one review sees it: objects from the cache, and one live read of each that is not there yet."""

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import TypeVar

from muster.admitters.kueue_quota import ClusterQueue, LocalQueue
from muster.cluster.alive import has_living_owner
from muster.cluster.stores import CLUSTER_QUEUES, LOCAL_QUEUES, view_of
from muster.gangs.intent import Defaults, Intent, IntentScope
from muster.gangs.roles import Gang
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.model.modes import GateMode
from muster.model.objects import (
    HasMetadata,
    InvalidObjectError,
    Job,
    Namespace,
    ObjectMeta,
    OwnerReference,
    PodGroup,
    PriorityClass,
    decode,
)
from muster.model.resource import JOBS, NAMESPACES, PRIORITY_CLASSES, Resource
from muster.queueing.queue_tree import Place, QueueTree, labels_of
from muster.queueing.queue_view import ROOT
from muster.resources.amounts import Resources
from muster.validation.context import Context
from muster.workloads import Decoded, Kind, OwnerWalk, kind_of_owner
from webhook.reviews.cluster_cache import ClusterCache, Found, GangTemplate, OwnerWorkload, try_again
from webhook.server.limits import ActiveReview

T = TypeVar("T")
Named = TypeVar("Named", bound=HasMetadata)

logger = logging.getLogger(__name__)

# A cycle of queues has no root.
_DEEPEST_QUEUE = 100
# Pods that are read to see whether a gang of plain pods lives; one may have thousands.
_FIRST_PODS = 20


class ClusterReader:
    """Answers the questions of one review.

    Its methods raise ApiError if the apiserver does not answer, TimeoutError at the review's deadline, and Refused if
    all slots for large reviews are taken or the review has to try again.
    """

    def __init__(self, cache: ClusterCache, review: ActiveReview) -> None:
        self.cache = cache
        self.review = review

    @property
    def defaults(self) -> Defaults:
        """The settings of the installation."""
        return self.cache.defaults

    async def scope_of(self, namespace: str) -> IntentScope:
        """The sources of intent that all workloads of a namespace share; a namespace of a moment ago is read."""
        known = self.cache.namespaces.get("", namespace) or await self._read(NAMESPACES, namespace, Namespace)
        return IntentScope(namespace=known.metadata if known else ObjectMeta(name=namespace))

    async def workload_of(
        self, namespace: str, owner: OwnerReference | None, *, live: bool = False
    ) -> OwnerWorkload | None:
        """The workload whose gang a pod of this controller belongs to; None if there is none.

        It is the last one with a gang on the walk up the owners: the Jobs of a JobSet are the JobSet's, and a JobSet of
        a TrainJob is the TrainJob's. It is None also if an owner is gone: the garbage collector deletes the pod then.
        `live` reads the workloads even if the watch has shown them. If an owner cannot be read the pod must not be
        created, because it may belong to a gang.
        """
        found: OwnerWorkload | None = None
        from_cache = False
        owners: list[ObjectMeta] = []
        walk = OwnerWalk(owner)
        for above in walk:
            if above.kind == JOBS.kind and above.group == JOBS.group:
                walk.step_to(await self._job_owner(namespace, above))
                continue
            kind = kind_of_owner(above)
            if kind is None:
                break
            shown = await self._workload(kind, namespace, above, live=live)
            decoded, from_cache = shown.object, from_cache or shown.from_cache
            if decoded is None:
                # The owners of a workload count less than the workload: without them it is still a gang.
                return None if kind.owns_gang else found
            if kind.owns_gang:
                found, owners = OwnerWorkload(kind, above, decoded, made=found.decoded if found else None), []
            else:
                owners.append(decoded.metadata)
            walk.step_to(decoded.metadata.controller)
        if found is None or not (owners or from_cache):
            return found
        return replace(found, owners=tuple(owners), from_cache=from_cache)

    async def owners(self, workload: ObjectMeta) -> tuple[ObjectMeta, ...]:
        """The objects of watched kinds that control the workload, the nearest first."""
        above: list[ObjectMeta] = []
        walk = OwnerWalk(workload.controller)
        for owner in walk:
            kind = kind_of_owner(owner)
            found = (await self._workload(kind, workload.namespace, owner)).object if kind else None
            if found is None:
                break
            above.append(found.metadata)
            walk.step_to(found.metadata.controller)
        return tuple(above)

    async def _job_owner(self, namespace: str, job: OwnerReference) -> OwnerReference | None:
        """The controller of a batch Job, read once."""
        known = self.job(job)
        if known is None:
            known = (await self._of_uid(JOBS, job, Job, namespace)).object
            if known is None:
                return None
            self.cache.remember(known)
        return known.metadata.controller

    def job(self, reference: OwnerReference | None) -> Job | None:
        """The batch Job of that reference if `workload_of` has read it."""
        return self.cache.jobs.get(reference.uid) if reference is not None else None

    def is_made(self, maker: OwnerReference) -> bool:
        """True if the maker of pods was itself made by something, as far as read; a Job may be made by hand."""
        if (maker.kind, maker.group) != (JOBS.kind, JOBS.group):
            return True
        job = self.job(maker)
        return job is not None and job.metadata.controller is not None

    async def _workload(
        self, kind: Kind, namespace: str, owner: OwnerReference, *, live: bool = False
    ) -> Found[Decoded]:
        """The workload of that name and UID; nothing if it is gone."""
        known = None if live else self.cache.workload(namespace, owner)
        if known is not None:
            return Found(known[1])
        return await self._of_uid(kind.resource, owner, self.cache.workload_type(kind), namespace)

    async def workload(self, kind: Kind, namespace: str, name: str) -> Decoded | None:
        """The workload of that name, read now."""
        found: Decoded | None = await self._read(kind.resource, name, kind.decoded, namespace)
        return found

    async def _of_uid(
        self, resource: Resource, owner: OwnerReference, type_: type[Named], namespace: str
    ) -> Found[Named]:
        """The owner, read now; nothing if another object has its name."""
        found = await self.cache.live_reads.read(self.review, resource, owner.name, type_, namespace)
        if found.object is not None and found.object.metadata.uid == owner.uid:
            return found
        if found.from_cache:
            raise try_again()
        return Found(None)

    async def _read(self, resource: Resource, name: str, type_: type[T], namespace: str | None = None) -> T | None:
        """The object of that name, read now; None if there is none."""
        found = await self.cache.live_reads.read(self.review, resource, name, type_, namespace)
        if found.object is None and found.from_cache:
            raise try_again()
        return found.object

    async def origin(self, kind: Kind, decoded: Decoded) -> object | None:
        """The object that the workload is made from in addition to its manifest; None if there is none."""
        reference = kind.origin.of(decoded) if kind.origin else None
        if reference is None:
            return None
        source = reference.source
        return self.cache.origin(reference) or await self._read(
            source.resource, reference.name, source.decoded, reference.namespace or None
        )

    async def made(self, kind: Kind, decoded: Decoded) -> Decoded | None:
        """The object that the operator has made of the workload and its origin, read now; None if there is none."""
        if kind.origin is None:
            return None
        meta = decoded.metadata
        found = await self.workload(kind.origin.makes, meta.namespace, meta.name)
        maker = found.metadata.controller if found is not None else None
        return found if maker is not None and maker.uid == meta.uid else None

    def min_runtime_of(self, template: GangTemplate) -> float:
        """The seconds for which pods of its queue are not to be evicted."""
        return self.cache.queue_tree.settings(template.intent.queue).min_runtime

    async def gate_of(self, template: GangTemplate, scope: IntentScope) -> GateMode:
        """The gate mode of a new pod.

        It is QUEUE while the queue is missing or not open to the namespace, and also if the gang's PodGroup is in
        another queue, whose mode the controller knows: it opens at once the gates that may open.
        """
        tree, intent = self.cache.queue_tree, template.intent
        if not tree.open_to(intent.queue, labels_of(scope.namespace)):
            return GateMode.QUEUE
        queue = tree.get(intent.queue)
        mode = self.defaults.gate_in(scope.namespace.annotations, queue.gate if queue else None)
        if mode is GateMode.OFF and await self._is_in_another_queue(template.gang, intent):
            return GateMode.QUEUE
        return mode

    async def _is_in_another_queue(self, gang: Gang, intent: Intent) -> bool:
        """True if its PodGroup, read now, is in another queue, or cannot be read."""
        try:
            group = await self._pod_group(gang, intent)
        except ApiError as error:
            logger.warning(
                "cannot read PodGroup %s/%s: %s", gang.namespace, gang.name, error, extra={"event": "review.pod_group"}
            )
            return True
        return group is not None and group.spec.queue not in ("", intent.queue)

    async def _pod_group(self, gang: Gang, intent: Intent) -> PodGroup | None:
        """The PodGroup of a gang, read now."""
        scheduler = intent.gang_scheduler
        name = scheduler.group_name(gang.name, gang.uid)
        return await self._read(scheduler.resource, name, scheduler.pod_groups, gang.namespace)

    async def pinned_scheduler(self, template: GangTemplate) -> GangTemplate:
        """The template with the scheduler that has a PodGroup of this workload already, read now.

        A workload keeps its scheduler when its labels change: two schedulers cannot place one gang.
        """
        if len(self.defaults.schedulers) == 1:
            return template
        for scheduler in self.defaults.schedulers.values():
            if scheduler is template.intent.gang_scheduler or not template.gang.uid:
                continue
            intent = replace(template.intent, scheduler=scheduler.name, gang_scheduler=scheduler)
            group = await self._pod_group(template.gang, intent)
            owner = group.metadata.controller if group else None
            ours = group is not None and group.metadata.by_muster
            if ours and owner is not None and owner.uid == template.gang.uid:
                return GangTemplate(intent, template.gang)
        return template

    async def holder_of(self, gang: Gang, intent: Intent, kind: Kind, name: str) -> str | None:
        """The kind of the living object that has the PodGroup name of a new workload; None if none has, or unknown.

        The rule is the controller's. A former workload of that kind and `name` does not count: its PodGroup goes with
        it. If the owner cannot be read the workload passes, and the controller reports `ForeignPodGroup` later.
        """
        cache = self.cache
        try:
            async with self.review.timeout(), asyncio.timeout(cache.read_seconds):
                found = await self._pod_group(gang, intent)
                group = found.metadata if found else None
                owner = group.controller if group else None
                former = owner is not None and (owner.group, owner.kind, owner.name) == (kind.group, kind.kind, name)
                if group is None or former or group.deletion_timestamp:
                    return None
                if not await has_living_owner(cache.client, group, deadline=cache.read_seconds, first=_FIRST_PODS):
                    return None
        except (ApiError, InvalidObjectError, TimeoutError) as error:
            logger.warning(
                "cannot find out who owns the PodGroup of %s %s: %s",
                kind.kind,
                name,
                error,
                extra={"event": "review.holder"},
            )
            return None
        # A forged review may name any namespace, so no other object is named.
        return f"another workload ({owner.kind})" if owner else "a gang of plain pods"

    async def context(self, intent: Intent | None, scope: IntentScope, *, new: bool = False) -> Context:
        """The facts by which a workload of that intent is judged; `new` if its queue's usage cannot include it yet.

        It is immutable, for the worker thread, and knows only the queue of that intent. Queue and priority class may
        have been created a moment before the workload, so they are read if the watch has not shown them.
        """
        places: dict[str, Place | None] = {}
        used: dict[str, Resources] = {}
        names: list[str] = []
        cache, priorities = self.cache, self.cache.priorities()
        if intent is not None:
            place = places[intent.queue] = await self.queue_place(intent.queue, scope.namespace)
            names = [] if place else cache.queue_tree.names_for(labels_of(scope.namespace))
            levels = place.levels if new and place else ()
            # A forged review may name any namespace and size, so only queues that all may use show their usage.
            used = {one.queue: cache.usage(one.queue) for one in levels if cache.queue_tree.open_to_all(one.queue)}
            name = intent.priority_class
            if name and name not in priorities:
                found = await self._read(PRIORITY_CLASSES, name, PriorityClass)
                priorities = {**priorities, name: found.value} if found else priorities
        return Context(
            queue=places.get,
            queue_names=lambda: names,
            priorities=priorities,
            defaults=self.defaults,
            scope=scope,
            held=(lambda queue: used.get(queue, {})) if new else None,
            pod_defaults=cache.added.of(scope.namespace.name),
            ceiling=cache.elastic_quotas.limits.ceiling(scope.namespace.name),
        )

    async def cluster_queue(self, namespace: str, local_queue: str) -> ClusterQueue | None:
        """The ClusterQueue of a LocalQueue of Kueue, read now."""
        local = await self._read(LOCAL_QUEUES, local_queue, LocalQueue, namespace) if local_queue else None
        name = local.spec.cluster_queue if local is not None else ""
        return await self._read(CLUSTER_QUEUES, name, ClusterQueue) if name else None

    async def tree_with(self, *names: str) -> QueueTree:
        """All queues, including these and all above them if they exist: the ones that the watch lacks are read."""
        cache = self.cache
        tree, source = cache.queue_tree, self.defaults.queue_source
        for name in names:
            for _ in range(_DEEPEST_QUEUE):
                view = tree.get(name)
                if view is None and name and (name != ROOT or not cache.queues.synced):
                    view = view_of(await self._read(source.resource, name, source.decoded))
                    tree = tree.having(view) if view else tree
                if view is None:
                    break
                name = view.parent  # noqa: PLW2901 - the walk up
        return tree

    async def queue_place(self, queue: str, namespace: ObjectMeta) -> Place | None:
        """The queue of that name if the namespace may use it."""
        return (await self.tree_with(queue)).place(queue, labels_of(namespace))

    async def pod_groups(self, *queues: str) -> list[PodGroup] | None:
        """The PodGroups of these queues, listed now; None if the apiserver does not answer in time.

        They are not watched: only changes of queues ask for them, and a cluster has many.
        """

        def of_queues(type_: type[PodGroup], raw: bytes) -> PodGroup | None:
            try:
                group = decode(raw, type_)
            except InvalidObjectError:
                return None
            return group if group.spec.queue in queues else None

        found: list[PodGroup] = []
        seconds = self.cache.read_seconds
        try:
            async with self.review.timeout(), asyncio.timeout(seconds):
                for scheduler in self.defaults.schedulers.values():
                    read, resource = partial(of_queues, scheduler.pod_groups), scheduler.resource
                    try:
                        found += await list_all(self.cache.client, resource, read, deadline=seconds)
                    except ApiError as error:
                        # The cluster does not serve this scheduler's PodGroups, so there are none.
                        if not error.not_found:
                            raise
                return found
        except (ApiError, TimeoutError) as error:
            logger.warning(
                "cannot list the PodGroups of queue %s: %s",
                queues[0],
                str(error) or "it took too long",
                extra={"event": "review.queue"},
            )
            return None
