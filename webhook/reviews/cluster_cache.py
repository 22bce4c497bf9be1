"""What the webhook keeps between reviews: its watches' stores, the Jobs that it has read, and the gangs of workloads.

The gang of a workload is computed once for hundreds of pods. It is good for as long as everything that it was made from
is unchanged: the same version of an object gives the same result, whether a watch or a read has shown it. An object
without a version is frozen, and replaced when it changes: it has to be the same object.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from muster.cluster.stores import ClusterStores, view_of
from muster.gangs.intent import Defaults, Intent
from muster.gangs.pod_patch import Membership, membership
from muster.gangs.roles import Gang
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.store import Change
from muster.model.keep import Keep
from muster.model.objects import InvalidObjectError, Job, ObjectMeta, OwnerReference, PartialObjectMetadata, Queue
from muster.queueing.queue_tree import QueueTree
from muster.resources.amounts import Resources, parse_resources
from muster.workloads import Decoded, Kind
from webhook.reviews.codec import AdmissionResponse
from webhook.reviews.live_reads import LiveReads

T = TypeVar("T")

_JOBS_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class OwnerWorkload:
    """The workload whose gang a pod belongs to.

    :ivar reference: the owner reference that names it; None for a plain pod, which is its own workload
    :ivar owners: the objects that control it, the nearest first
    :ivar from_cache: read for an earlier review; may be stale
    :ivar made: what its operator made of it and has a gang if nothing controls it: the JobSet of a TrainJob
    """

    kind: Kind
    reference: OwnerReference | None
    decoded: Decoded
    owners: tuple[ObjectMeta, ...] = ()
    from_cache: bool = False
    made: Decoded | None = None


@dataclass(frozen=True, slots=True)
class GangTemplate:
    """What all pods of a workload have in common; the roles of the gang are without their requests."""

    intent: Intent
    gang: Gang

    def member(self, role_name: str) -> Membership | None:
        """What the pods of that role have in common; None if there is no such role."""
        role = self.gang.role(role_name)
        return membership(role, self.gang, self.intent, self.intent.gang_scheduler) if role is not None else None


class ClusterCache(ClusterStores):
    """The webhook's stores, and what it remembers; one live read may take `read_seconds`.

    :ivar queue_tree: the queues that the watch has shown
    :ivar jobs: Jobs by UID, each read once instead of a watch, because a cluster has many: the controller of a Job does
        not change in a way that matters, and its completions change only together with its parallelism
    :ivar templates: by UID of the workload, the gang template of its pods, or the refusal of all; None if it is no gang
    """

    def __init__(self, client: Client, defaults: Defaults, read_seconds: float = 2.0) -> None:
        super().__init__(defaults.queue_source, elastic_quotas=defaults.elastic_quotas)
        self.client = client
        self.defaults = defaults
        self.read_seconds = read_seconds
        self.live_reads = LiveReads(client, read_seconds)
        self.queue_tree = QueueTree()
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self.templates: Memo[GangTemplate | AdmissionResponse | None] = Memo()
        self.queues.subscribe(self._queue_changed)

    def reflectors(self) -> list[Reflector]:
        """The watches that keep the stores up to date; each must run for as long as the process."""
        return [Reflector(self.client, one) for one in self.common(Keep.READ)]

    def workload_type(self, kind: Kind) -> type[Any]:
        """The type as which workloads are decoded; of a kind without a gang only the metadata."""
        return kind.decoded if kind.owns_gang else PartialObjectMetadata

    def usage(self, queue: str) -> Resources:
        """What the pods of a queue hold by Volcano's count; nothing if it has not counted."""
        known = self.queues.get("", queue)
        try:
            return parse_resources(known.status.allocated, path="status.allocated") if known else {}
        except InvalidObjectError:
            return {}

    def remember(self, job: Job) -> None:
        """Keep a Job for the pods to come."""
        self.jobs[job.metadata.uid] = job
        if len(self.jobs) > _JOBS_REMEMBERED:
            self.jobs.popitem(last=False)

    def _queue_changed(self, change: Change[Queue]) -> None:
        view = view_of(change.new)
        if view is None:
            self.queue_tree.drop(change.object.metadata.name)
        else:
            self.queue_tree.set(view)


class _Same:
    """Equal only to another one that holds the same object."""

    __slots__ = ("_object",)

    def __init__(self, object_: object) -> None:
        self._object = object_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)


def version(source: object) -> Hashable:
    """The version of an object or of its metadata, by UID and resourceVersion; without these, the object itself."""
    meta = source if isinstance(source, ObjectMeta) else getattr(source, "metadata", None)
    if isinstance(meta, ObjectMeta) and meta.uid and meta.resource_version:
        return meta.uid, meta.resource_version
    return _Same(source)


class Memo(Generic[T]):
    """The last result by key, `most` of them; the least recently used key is dropped first."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, tuple[tuple[Hashable, ...], T]] = OrderedDict()

    def of(self, key: Hashable, sources: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """The result for these versions; without one it is made, and kept unless that fails."""
        entry = self._entries.get(key)
        if entry is not None:
            known, result = entry
            if known == sources:
                self._entries.move_to_end(key)
                return result
        result = make()
        self._entries[key] = sources, result
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return result
