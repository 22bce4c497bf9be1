"""State that the webhook keeps between reviews: the stores of its watches, objects that it has read, and gangs.

The gang of a workload is computed once for hundreds of pods. It is good for as long as everything that it was made from
is unchanged: the same version of an object gives the same result, whether a watch or a read has shown it. An object
without a version is frozen, and replaced when it changes: it has to be the same object.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from muster.cluster.stores import ClusterStores, view_of
from muster.gangs.intent import Defaults, Intent
from muster.gangs.pod_patch import Membership, membership
from muster.gangs.roles import Gang
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.store import Change
from muster.model.keep import Keep
from muster.model.names import is_object_name
from muster.model.objects import InvalidObjectError, Job, Object, ObjectMeta, OwnerReference, Queue, decode
from muster.model.resource import Resource
from muster.queueing.queue_tree import QueueTree
from muster.resources.amounts import Resources, parse_resources
from muster.workloads import Decoded, Kind
from webhook.reviews.codec import AdmissionResponse
from webhook.server.limits import ActiveReview, Refused

T = TypeVar("T")

_JOBS_REMEMBERED = 10_000
# Bytes from which an object is large, like a body.
_LARGE = 2**18
# Seconds for which the result of a read of a large object serves other reviews.
_SERVES = 1.0
_REMEMBERED = 1000


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
    """The common part of all pods of a workload; the roles of the gang are without their requests."""

    intent: Intent
    gang: Gang

    def member(self, role_name: str, min_runtime: float = 0.0) -> Membership | None:
        """The common part of the pods of that role; None if there is no such role. `min_runtime` is the queue's."""
        role, intent = self.gang.role(role_name), self.intent
        if role is None:
            return None
        return membership(role, self.gang, intent, intent.gang_scheduler, min_runtime=min_runtime)


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """The result of a read.

    :ivar object: None if there is none
    :ivar from_cache: read for an earlier review; may be stale
    """

    object: T | None
    from_cache: bool = False


@dataclass(slots=True, eq=False)
class _Large:
    """A large object: the result of its last read while that serves other reviews, else None."""

    result: asyncio.Future[Any] | None


def try_again() -> Refused:
    """The answer to a review that needs a newer read of a large object than there is."""
    text = "a large object was read a moment ago and has to be read once more"
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, text, retry=True)


class LiveReads:
    """Live reads for objects that are not in the cache, or not yet: one object by its name, within `seconds` each.

    A read costs as much as its object is large. So a large object is read once a second for all reviews: it is decoded
    in the worker thread, and the review that reads it takes a slot for large reviews. A result serves other reviews for
    that second. But an object that was *not* found is only missing for the review that began the read: other reviews
    have to try again, because the object may have been created after the read.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._large: OrderedDict[tuple[str, str, str], _Large] = OrderedDict()

    async def read(
        self, review: ActiveReview, resource: Resource, name: str, type_: type[T], namespace: str | None = None
    ) -> Found[T]:
        """The object of that name; nothing if there is none, or if no object can have the name.

        Raises ApiError, InvalidObjectError, TimeoutError, and Refused if all slots for large reviews are taken.
        """
        if not (is_object_name(name) and (is_object_name(namespace or "") or not resource.namespaced)):
            return Found(None)
        key = resource.full_name, namespace or "", name
        large = self._large.get(key)
        if large is not None and large.result is not None:
            async with review.timeout():
                return Found(await asyncio.shield(large.result), from_cache=True)
        if large is not None:
            # Before the read: there may be no slot for it.
            review.become_large()
            large = self._begin(key)
        try:
            async with review.timeout():
                raw = await self._client.get(resource, name, namespace, deadline=self._seconds)
            if large is None and len(raw) >= _LARGE:
                review.become_large()
                large = self._begin(key)
            found = decode(raw, type_) if large is None else await review.run(decode, raw, type_)
        except BaseException as error:
            gone = isinstance(error, ApiError) and error.not_found
            _end(large, None if gone else try_again())
            if gone:
                return Found(None)
            raise
        _end(large, found)
        return Found(found)

    def _begin(self, key: tuple[str, str, str]) -> _Large:
        large = self._large[key] = _Large(asyncio.get_running_loop().create_future())
        self._large.move_to_end(key)
        if len(self._large) > _REMEMBERED:
            self._large.popitem(last=False)
        return large


def _end(large: _Large | None, result: object) -> None:
    """Give the reviews that wait for a large object the result of its read; after a failed one they try again."""
    if large is None or large.result is None:
        return
    if isinstance(result, Refused):
        large.result.set_exception(result)
        # Without this asyncio would warn if no review waits for it.
        large.result.exception()
    else:
        large.result.set_result(result)
    asyncio.get_running_loop().call_later(_SERVES, _forget, large)


def _forget(large: _Large) -> None:
    large.result = None


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
        return kind.decoded if kind.owns_gang else Object

    def usage(self, queue: str) -> Resources:
        """The usage of a queue by Volcano's count; nothing if it has not counted."""
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
