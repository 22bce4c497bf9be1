"""Volcano's own Job (`batch.volcano.sh/v1alpha1`): judged against its queue like every other gang, never touched.

Volcano makes its PodGroup and its pods; what it asks for is said in its own fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.objects import InvalidObjectError, LocalObject, ObjectMeta, Pod, PodTemplate
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VOLCANO_JOB", "VolcanoJob"]

_FINAL = ("Completed", "Failed", "Terminated", "Aborted")


class _Task(LocalObject, frozen=True):
    name: str = ""
    replicas: int = 1
    min_available: int | None = None
    template: PodTemplate = PodTemplate()


class _Spec(LocalObject, frozen=True):
    scheduler_name: str = "volcano"
    queue: str = "default"
    priority_class_name: str = ""
    min_available: int | None = None
    tasks: tuple[_Task, ...] = ()


class _State(LocalObject, frozen=True):
    phase: str = ""


class _Status(LocalObject, frozen=True):
    state: _State = _State()


class VolcanoJob(LocalObject, frozen=True):
    """A job of Volcano's own kind."""

    api_version: str = "batch.volcano.sh/v1alpha1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def _policy(job: VolcanoJob) -> SchedulingPolicy:
    available = job.spec.min_available
    # Volcano takes 0 for "not said", and its own webhook refuses what is below.
    return SchedulingPolicy(
        queue=job.spec.queue,
        priority_class=job.spec.priority_class_name,
        min_available=available or None,
    )


def _read(job: VolcanoJob) -> Workload:
    if not job.spec.tasks:
        raise InvalidObjectError("spec.tasks: empty; a Job has at least one task")
    roles = []
    for index, task in enumerate(job.spec.tasks):
        if task.replicas < 0:
            raise InvalidObjectError(f"spec.tasks[{index}].replicas: {task.replicas} is negative; use 0 or more")
        minimum = task.replicas if task.min_available is None else min(task.min_available, task.replicas)
        path = f"spec.tasks[{index}].template.spec"
        roles.append(RoleSpec(task.name or f"default{index}", task.replicas, minimum, task.template, path))
    return Workload(
        kind=VOLCANO_JOB,
        api_version=job.api_version,
        metadata=job.metadata,
        pod_group=job.metadata.name,
        roles=tuple(roles),
        policy=_policy(job),
        policy_path="spec",
        finished=job.status.state.phase in _FINAL,
    )


def _role_of(_: Pod) -> str | None:
    return None


def _pod_labels(workload: Workload, _: RoleSpec) -> Mapping[str, str]:
    return {"volcano.sh/job-name": workload.metadata.name}


VOLCANO_JOB = Kind(
    group="batch.volcano.sh",
    versions=("v1alpha1",),
    kind="Job",
    plural="jobs",
    pod_label="",
    pod_group_name=lambda name: name,
    decoded=VolcanoJob,
    policy=_policy,
    read=_read,
    role_of=_role_of,
    pod_labels=_pod_labels,
    owns_gang=False,
)
