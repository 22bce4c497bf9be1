"""JobSet (`jobset.x-k8s.io/v1alpha2`): replicated jobs, each of several batch Jobs of several pods.

Jobs that depend on others, or come later in order, are made when those are ready or complete: only the first wave must
exist before the gang starts, the others join it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.objects import Condition, InvalidObjectError, LocalObject, ObjectMeta, Pod, PodTemplate
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JOB_SET", "JobSet", "ReplicatedJob", "wave_roles"]

_SET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
_FINAL = ("Completed", "Failed")


class _JobSpec(LocalObject, frozen=True):
    parallelism: int = 1
    completions: int | None = None
    template: PodTemplate = PodTemplate()


class _JobTemplate(LocalObject, frozen=True):
    spec: _JobSpec = _JobSpec()


class _DependsOn(LocalObject, frozen=True):
    name: str = ""
    status: str = ""


class ReplicatedJob(LocalObject, frozen=True):
    """So many equal Jobs."""

    name: str = ""
    replicas: int = 1
    depends_on: tuple[_DependsOn, ...] = ()
    template: _JobTemplate = _JobTemplate()


class _StartupPolicy(LocalObject, frozen=True):
    startup_policy_order: str = "AnyOrder"


class JobSetSpec(LocalObject, frozen=True):
    """What a JobSet is made of; also the template of Trainer's runtimes."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: _StartupPolicy = _StartupPolicy()
    suspend: bool = False


class _Status(LocalObject, frozen=True):
    conditions: tuple[Condition, ...] = ()
    terminal_state: str = ""


class JobSet(LocalObject, frozen=True):
    """A set of Jobs that belong together."""

    api_version: str = "jobset.x-k8s.io/v1alpha2"
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSetSpec = JobSetSpec()
    status: _Status = _Status()


def wave_roles(spec: JobSetSpec, path: str) -> tuple[RoleSpec, ...]:
    """The roles of a JobSet; those of later waves have no minimum. Raises InvalidObjectError for negative numbers."""
    if not spec.replicated_jobs:
        raise InvalidObjectError(f"{path}.replicatedJobs: empty; a JobSet has at least one")
    in_order = spec.startup_policy.startup_policy_order == "InOrder"
    roles = []
    for index, job in enumerate(spec.replicated_jobs):
        where = f"{path}.replicatedJobs[{index}]"
        parallelism = job.template.spec.parallelism
        for name, number in (("replicas", job.replicas), ("template.spec.parallelism", parallelism)):
            if number < 0:
                raise InvalidObjectError(f"{where}.{name}: {number} is negative; use 0 or more")
        completions = job.template.spec.completions
        at_once = parallelism if completions is None else min(parallelism, completions)
        pods = job.replicas * at_once
        first = not job.depends_on and (index == 0 or not in_order)
        template_path = f"{where}.template.spec.template.spec"
        roles.append(RoleSpec(job.name, pods, pods if first else 0, job.template.spec.template, template_path))
    return tuple(roles)


def _read(job_set: JobSet) -> Workload:
    return Workload(
        kind=JOB_SET,
        api_version=job_set.api_version,
        metadata=job_set.metadata,
        pod_group=job_set.metadata.name,
        roles=wave_roles(job_set.spec, "spec"),
        policy=SchedulingPolicy(),
        suspended=job_set.spec.suspend,
        finished=bool(job_set.status.terminal_state)
        or any(item.type in _FINAL and item.status == "True" for item in job_set.status.conditions),
    )


def _role_of(pod: Pod) -> str | None:
    return pod.metadata.labels.get(_JOB_LABEL)


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {_SET_LABEL: workload.metadata.name, _JOB_LABEL: role.name}


JOB_SET = Kind(
    group="jobset.x-k8s.io",
    versions=("v1alpha2",),
    kind="JobSet",
    plural="jobsets",
    pod_label=_SET_LABEL,
    pod_group_name=lambda name: name,
    decoded=JobSet,
    policy=lambda _: SchedulingPolicy(),
    read=_read,
    role_of=_role_of,
    pod_labels=_pod_labels,
)
