"""The apiserver as a leader uses it: writes that are fenced, and reads at the moment in which a decision hangs on them.

No write is sent without the lease, and none may outlast it. One that has begun goes on to its end when its task is
cancelled: a request that is cut off may still be done, and then after the lease was given back, and another leader has
begun. A watch may be behind, or there is none: then the apiserver is asked.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from muster.admitters.kueue import KueueWorkload
from muster.cluster.alive import has_living_owner
from muster.cluster.stores import KUEUE_WORKLOADS
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.events import Regarding
from muster.kube.listing import list_all, list_objects
from muster.model.objects import (
    InvalidObjectError,
    Job,
    ObjectMeta,
    OwnerReference,
    decode,
)
from muster.model.resource import JOBS, Resource

_LONGEST_WRITE = 10.0

T = TypeVar("T")


class NotLeaderError(RuntimeError):
    """Another replica may hold the lease by now: nothing may be written."""


class Writer:
    """The client's writes for a leader; `budget` gives the seconds for which no other replica can write."""

    def __init__(self, client: Client, budget: Callable[[], float]) -> None:
        self._client = client
        self._budget = budget

    async def apply(self, resource: Resource, body: Mapping[str, Any], *, field_manager: str) -> bytes:
        """Server-side apply of the object that the body names; raises ApiError and NotLeaderError, as all of these."""
        meta = body["metadata"]
        place = resource, meta["name"], body, meta["namespace"]
        return await self._whole(partial(self._client.apply, *place, field_manager=field_manager))

    async def patch(
        self, resource: Resource, name: str, namespace: str, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> bytes:
        """Strategic merge patch of a built-in kind."""
        patch = self._client.strategic_merge_patch
        return await self._whole(partial(patch, resource, name, body, namespace, dry_run=dry_run))

    async def annotate(self, resource: Resource, meta: ObjectMeta, annotations: Mapping[str, str]) -> None:
        """Add annotations to the object of that name and UID; nothing else of it is touched."""
        body = {"metadata": {"uid": meta.uid, "annotations": dict(annotations)}}
        await self._whole(partial(self._client.merge_patch, resource, meta.name, body, meta.namespace))

    async def create(self, resource: Resource, body: Mapping[str, Any]) -> bytes:
        """Create the object in the namespace that the body names."""
        return await self._whole(partial(self._client.create, resource, body, body["metadata"]["namespace"]))

    async def delete(self, resource: Resource, meta: ObjectMeta, *, as_seen: bool = False) -> None:
        """Delete the object of that UID, `as_seen` only in that version; success when it is gone already."""
        delete = partial(self._client.delete, resource, meta.name, meta.namespace, uid=meta.uid)
        await self._whole(partial(delete, resource_version=meta.resource_version if as_seen else None))

    async def _whole(self, write: Callable[..., Coroutine[Any, Any, T]]) -> T:
        """Do the write; where its task is cancelled, end only after it, as long as the lease is ours."""
        writing = asyncio.ensure_future(self._in_time(write))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            try:
                if self._budget() > 0:
                    # Each has a deadline.
                    await asyncio.wait({writing})
            finally:
                writing.cancel()
            if not writing.cancelled() and writing.done():
                writing.exception()  # asked for, or asyncio complains
            raise
        finally:
            del writing  # the traceback of what it raises holds this frame

    async def _in_time(self, write: Callable[..., Coroutine[Any, Any, T]]) -> T:
        """Look at the lease and begin the write at once: before its turn the process may be stopped for long."""
        seconds = self._budget()
        if seconds <= 0:
            raise NotLeaderError("the lease is no longer ours")
        return await write(deadline=min(seconds, _LONGEST_WRITE))


MOST_JOBS = 100
"""Jobs of one workload that are touched; the others have their turn when these have their pods."""
_SECONDS = 5.0


class LiveReader:
    """Asks the apiserver; each read raises ApiError where there is no answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def has_living_owner(self, group: ObjectMeta) -> bool:
        """Return whether a PodGroup still has a living owner (`muster.cluster.alive`)."""
        return await has_living_owner(self._client, group)

    async def short_jobs(self, namespace: str, selector: str) -> list[ObjectMeta]:
        """Return the Jobs of the namespace that this label selector finds and that lack pods."""
        return await list_all(
            self._client,
            JOBS,
            _short,
            namespace=namespace,
            label_selector=selector,
            page=MOST_JOBS,
            deadline=_SECONDS,
        )

    async def maker_of_job(self, job: Regarding) -> OwnerReference | None:
        """Return the controller of a Job, a CronJob for example; None where it has none, or is gone."""
        named = f"metadata.name={job.name}"
        found = await list_objects(self._client, JOBS, Job, namespace=job.namespace, field_selector=named)
        return next((one.metadata.controller for one in found if one.metadata.uid == job.uid), None)

    async def still_admitted(self, workload: KueueWorkload) -> bool:
        """Return whether Kueue still admits the Workload.

        A job that is resumed by hand has all of its pods for some 100 ms, and an evicted RayCluster's outlive their
        quota by seconds.
        """
        meta = workload.metadata
        try:
            body = await self._client.get(KUEUE_WORKLOADS, meta.name, meta.namespace, deadline=_SECONDS)
        except ApiError as error:
            if error.not_found:
                return False
            raise
        now = decode(body, KueueWorkload)
        return now.metadata.uid == meta.uid and now.admitted


def _short(raw: bytes) -> ObjectMeta | None:
    try:
        job = decode(raw, Job)
    except InvalidObjectError:
        return None
    return job.metadata if job.short else None
