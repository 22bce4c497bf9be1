"""Kueue's objects: its Workloads and the quotas by which it admits them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from muster.admitters import KueueWorkload, newest
from muster.admitters.kueue_quota import ClusterQueue, LocalQueue, needs_of, never_fits
from muster.kube.store import Store
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.model.resource import Resource

# Kueue makes a Workload of this kind while its pods are plain gangs, which speak for themselves.
_JOB = "Job"

KUEUE_WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
LOCAL_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue")
CLUSTER_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)


class KueueObjects:
    """What Kueue makes of workloads, and the quotas by which it admits them."""

    def __init__(self) -> None:
        self.workloads: Store[KueueWorkload] = Store()
        self.workloads.index("owner", lambda workload: workload.owners)
        self.local_queues: Store[LocalQueue] = Store()
        self.cluster_queues: Store[ClusterQueue] = Store()

    def watched(self) -> Iterable[tuple[Resource, type[Any], Store[Any]]]:
        """What each store holds."""
        yield KUEUE_WORKLOADS, KueueWorkload, self.workloads
        yield LOCAL_QUEUES, LocalQueue, self.local_queues
        yield CLUSTER_QUEUES, ClusterQueue, self.cluster_queues

    def newest_of(self, uid: str) -> KueueWorkload | None:
        """The Workload that counts of the object with that UID."""
        return newest(self.workloads.by_index("owner", uid))

    def never_fits(self, workload: KueueWorkload) -> str:
        """Why its ClusterQueue can never hold the Workload; "" where it can, or where that is not known."""
        local = self.local_queues.get(workload.metadata.namespace, workload.spec.queue_name)
        queue = self.cluster_queues.get("", local.spec.cluster_queue) if local is not None else None
        with suppress(InvalidObjectError):
            return never_fits(needs_of(workload), queue) if queue is not None else ""
        return ""


def job_of_pod(pod: Pod) -> tuple[str, ...]:
    """The UID of the Job that controls a pod; none where no Job does."""
    job = pod.metadata.controller
    return (job.uid,) if job is not None and job.kind == _JOB else ()
