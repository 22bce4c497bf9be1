"""Volcano's own Job (`batch.volcano.sh/v1alpha1`): judged against its queue like every other gang, never touched.

Volcano makes its PodGroup and its pods; its needs are in its own fields.
"""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from muster.model.names import (
    PRIORITY_CLASS_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
    TOPOLOGY_MODE_LABEL,
    TOPOLOGY_TIER_LABEL,
)
from muster.model.objects import InvalidObjectError, LocalObject, Object
from muster.model.pods import PodTemplate
from muster.model.topology import MODES, Topology
from muster.workloads.bounds import Bounded
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, Workload

_SCHEDULER, _DEFAULT_QUEUE = "volcano", "default"
# Volcano writes the UID of the Job there.
_GENERATED = "-xxxxx"
# Keys without effect on a Volcano Job.
_LABELS = (SCHEDULER_LABEL, QUEUE_LABEL, PRIORITY_CLASS_LABEL, TOPOLOGY_MODE_LABEL, TOPOLOGY_TIER_LABEL)
_ABORTED = ("Aborting", "Aborted")  # until a Command resumes it
_FINAL = ("Completed", "Failed", "Terminated")


class _PartitionPolicy(LocalObject, frozen=True):
    min_partitions: int = 0
    partition_size: int = 0


class _Task(LocalObject, frozen=True):
    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    partition_policy: _PartitionPolicy | None = None
    template: PodTemplate = PodTemplate()


class _NetworkTopology(LocalObject, frozen=True):
    mode: str = "hard"
    highest_tier_allowed: int | None = None


class _Spec(Bounded, frozen=True):
    scheduler_name: str = ""
    queue: str = ""
    priority_class_name: str = ""
    min_available: int | None = None
    network_topology: _NetworkTopology | None = None
    tasks: tuple[_Task, ...] = ()
    held: ClassVar[tuple[str, ...]] = ("tasks",)

    def templates(self) -> Iterator[PodTemplate]:
        """Yield the pod templates of all tasks."""
        yield from (task.template for task in self.tasks)


class _State(LocalObject, frozen=True):
    phase: str = ""


class _Status(LocalObject, frozen=True):
    state: _State = _State()


class VolcanoJob(Object, frozen=True):
    """A job of Volcano's own kind."""

    api_version: str = "batch.volcano.sh/v1alpha1"
    spec: _Spec = _Spec()
    status: _Status = _Status()


def _policy(job: VolcanoJob) -> SchedulingPolicy:
    available = job.spec.min_available
    # Volcano takes 0 as unset, and its own webhook refuses negative numbers.
    return SchedulingPolicy(
        queue=job.spec.queue or _DEFAULT_QUEUE,
        priority_class=job.spec.priority_class_name,
        min_available=available or None,
    )


def _read(job: VolcanoJob) -> Workload:
    job.spec.check("spec")
    if not job.spec.tasks:
        raise InvalidObjectError("spec.tasks", "empty; a Job has at least one task")
    names: set[str] = set()
    roles = []
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}]"
        name = task.name or f"default{index}"
        if name in names:
            raise InvalidObjectError(f"{path}.name", f'"{name}" is taken; task names differ')
        names.add(name)
        if task.replicas < 0:
            raise InvalidObjectError(f"{path}.replicas", f"{task.replicas} is negative; use 0 or more")
        roles.append(RoleSpec(name, task.replicas, _minimum(task, path), task.template, f"{path}.template.spec"))
    meta = job.metadata
    return Workload(
        kind=VOLCANO_JOB,
        api_version=job.api_version,
        metadata=msgspec.structs.replace(
            meta,
            labels={key: value for key, value in meta.labels.items() if key not in _LABELS},
            annotations={key: value for key, value in meta.annotations.items() if key != QUEUE_ANNOTATION},
        ),
        pod_group=meta.name + _GENERATED,
        roles=tuple(roles),
        policy=_policy(job),
        policy_path="spec",
        priority_field="priorityClassName",
        priority_of_pods=False,
        scheduler=job.spec.scheduler_name or _SCHEDULER,
        suspended=job.status.state.phase in _ABORTED,
        finished=job.status.state.phase in _FINAL,
        failed=job.status.state.phase in ("Failed", "Terminated"),
        topology=_topology(job.spec.network_topology),
        # Below their sum Volcano ignores the tasks' own numbers.
        needs=sum(role.minimum for role in roles) if any(task.min_available for task in job.spec.tasks) else 0,
    )


def _topology(asked: _NetworkTopology | None) -> Topology | None:
    if asked is None:
        return None
    path, tier = "spec.networkTopology", asked.highest_tier_allowed
    if asked.mode not in MODES:
        raise InvalidObjectError(f"{path}.mode", f'"{asked.mode}" is not a mode; use hard or soft')
    if tier is not None and tier < 0:
        raise InvalidObjectError(f"{path}.highestTierAllowed", f"{tier} is negative; use 0 or more")
    return Topology(asked.mode, tier)


def _minimum(task: _Task, path: str) -> int:
    """Return a task's own minimum, as Volcano's webhook defaults and checks it."""
    partitions = task.partition_policy
    if task.min_available is not None:
        minimum, where = task.min_available, f"{path}.minAvailable"
    elif partitions is not None and (least := partitions.min_partitions * partitions.partition_size):
        minimum, where = least, f"{path}.partitionPolicy.minPartitions"
    else:
        return task.replicas
    if minimum < 0:
        raise InvalidObjectError(where, f"{minimum} pods are fewer than none; use 0 or more")
    if minimum > task.replicas:
        raise InvalidObjectError(
            where,
            f"{minimum} pods are more than the {task.replicas} of the task; lower it or raise its replicas",
        )
    return minimum


VOLCANO_JOB = Kind(
    group="batch.volcano.sh",
    versions=("v1alpha1",),
    kind="Job",
    plural="jobs",
    pod_label="",
    pod_group_name=lambda name: name + _GENERATED,
    decoded=VolcanoJob,
    policy=_policy,
    read=_read,
    role_of=lambda _: None,
    pod_labels=lambda workload, _: {"volcano.sh/job-name": workload.metadata.name},
    owns_gang=False,
)
