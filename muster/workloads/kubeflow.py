"""The jobs of the Training operator (`kubeflow.org/v1`): replica specs by type under a field of the kind's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.objects import Condition, InvalidObjectError, LocalObject, ObjectMeta, Pod, PodTemplate
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PYTORCH_JOB", "PyTorchJob"]

_JOB_LABEL = "training.kubeflow.org/job-name"
_ROLE_LABEL = "training.kubeflow.org/replica-type"
_POLICY_PATH = "spec.runPolicy.schedulingPolicy"
# The roles that the others wait for: they come first when only a part of the pods is needed.
_LEADERS = ("master", "chief", "launcher")
_FINAL = ("Succeeded", "Failed")


class _ReplicaSpec(LocalObject, frozen=True):
    # The operator, not the CRD, makes 1 of a missing number.
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class _RunPolicy(LocalObject, frozen=True):
    suspend: bool = False
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class _PyTorchSpec(LocalObject, frozen=True):
    run_policy: _RunPolicy = _RunPolicy()
    pytorch_replica_specs: dict[str, _ReplicaSpec] = {}


class _Status(LocalObject, frozen=True):
    conditions: tuple[Condition, ...] = ()


class PyTorchJob(LocalObject, frozen=True):
    """A PyTorch training job."""

    api_version: str = "kubeflow.org/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _PyTorchSpec = _PyTorchSpec()
    status: _Status = _Status()


def _read_pytorch(job: PyTorchJob) -> Workload:
    return Workload(
        kind=PYTORCH_JOB,
        api_version=job.api_version,
        metadata=job.metadata,
        pod_group=job.metadata.name,
        roles=_roles(job.spec.pytorch_replica_specs, "spec.pytorchReplicaSpecs"),
        policy=job.spec.run_policy.scheduling_policy,
        policy_path=_POLICY_PATH,
        suspended=job.spec.run_policy.suspend,
        finished=any(condition.type in _FINAL and condition.status == "True" for condition in job.status.conditions),
    )


def _roles(specs: Mapping[str, _ReplicaSpec], path: str) -> tuple[RoleSpec, ...]:
    if not specs:
        raise InvalidObjectError(f"{path}: empty; a job has at least one replica type")
    roles = []
    for type_, spec in specs.items():
        if spec.replicas < 0:
            raise InvalidObjectError(f"{path}.{type_}.replicas: {spec.replicas} is negative; use 0 or more")
        name = type_.lower()
        leads = name in _LEADERS
        template_path = f"{path}.{type_}.template.spec"
        roles.append(RoleSpec(name, spec.replicas, spec.replicas, spec.template, template_path, leads=leads))
    # JSON objects have no order; one of our own makes every answer the same.
    return tuple(sorted(roles, key=lambda role: (not role.leads, role.name)))


def _role_of(pod: Pod) -> str | None:
    return pod.metadata.labels.get(_ROLE_LABEL)


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {
        "training.kubeflow.org/operator-name": f"{workload.kind.kind.lower()}-controller",
        _JOB_LABEL: workload.metadata.name,
        _ROLE_LABEL: role.name,
        "training.kubeflow.org/replica-index": "0",
    }


PYTORCH_JOB = Kind(
    group="kubeflow.org",
    versions=("v1",),
    kind="PyTorchJob",
    plural="pytorchjobs",
    pod_label=_JOB_LABEL,
    pod_group_name=lambda name: name,
    decoded=PyTorchJob,
    policy=lambda job: job.spec.run_policy.scheduling_policy,
    read=_read_pytorch,
    role_of=_role_of,
    pod_labels=_pod_labels,
)
