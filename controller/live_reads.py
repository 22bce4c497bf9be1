"""Reads of the apiserver at the moment in which a decision hangs on them: a watch may be behind, or there is none."""

from __future__ import annotations

from muster.admitters import KueueWorkload
from muster.cluster.alive import has_living_owner
from muster.cluster.stores import KUEUE_WORKLOADS
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.model.objects import Condition, InvalidObjectError, LocalObject, ObjectMeta, decode, is_true
from muster.model.resource import JOBS

MOST_JOBS = 100
"""Jobs of one workload that are touched; the others have their turn when these have their pods."""
_SECONDS = 5.0


class _JobSpec(LocalObject, frozen=True):
    parallelism: int = 1
    suspend: bool = False


class _JobStatus(LocalObject, frozen=True):
    active: int = 0
    conditions: tuple[Condition, ...] = ()


class _Job(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()

    @property
    def short(self) -> bool:
        """True if it has fewer pods than it may have, and would make more."""
        ended = is_true(self.status.conditions, "Complete", "Failed")
        idle = ended or self.spec.suspend or self.metadata.deletion_timestamp
        return not idle and self.status.active < self.spec.parallelism


class LiveReader:
    """Asks the apiserver; each read raises ApiError where there is no answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def has_living_owner(self, group: ObjectMeta) -> bool:
        """Return whether a PodGroup still has a living owner (`muster.cluster.alive`)."""
        return await has_living_owner(self._client, group)

    async def short_jobs(self, namespace: str, selector: str) -> list[ObjectMeta]:
        """Return the Jobs of the namespace that this label selector finds and that lack pods."""
        found = await list_all(
            self._client,
            JOBS,
            _short,
            namespace=namespace,
            label_selector=selector,
            page=MOST_JOBS,
            deadline=_SECONDS,
        )
        return found.items

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
        job = decode(raw, _Job)
    except InvalidObjectError:
        return None
    return job.metadata if job.short else None
