"""The jobs of the Training operator (`kubeflow.org/v1`): replica specs by type under a field of the kind's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from muster.objects import (
    Condition,
    Container,
    InvalidObjectError,
    LocalObject,
    ObjectMeta,
    Pod,
    PodTemplate,
    ResourceRequirements,
)
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["JAX_JOB", "MPI_JOB_V1", "PADDLE_JOB", "PYTORCH_JOB", "TF_JOB", "XGBOOST_JOB", "TrainingJob"]

_JOB_LABEL = "training.kubeflow.org/job-name"
_ROLE_LABEL = "training.kubeflow.org/replica-type"
_POLICY_PATH = "spec.runPolicy.schedulingPolicy"
# The roles that the others wait for: they come first when only a part of the pods is needed.
_LEADERS = ("master", "chief", "launcher")
_FINAL = ("Succeeded", "Failed")

# What the operator adds to the pods that it makes (pytorch/initcontainer.go and mpi/mpijob.go of 1.9.3).
_WAIT_FOR_MASTER = Container(
    name="init-pytorch",
    resources=ResourceRequirements(
        requests={"cpu": "50m", "memory": "10Mi"},
        limits={"cpu": "100m", "memory": "20Mi"},
    ),
)
_KUBECTL_DELIVERY = Container(
    name="kubectl-delivery",
    resources=ResourceRequirements(requests={"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}),
)


class ReplicaSpec(LocalObject, frozen=True):
    """One replica type of a job."""

    replicas: int | None = None
    template: PodTemplate = PodTemplate()


class RunPolicy(LocalObject, frozen=True):
    """What concerns the run of a job as a whole."""

    suspend: bool = False
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class JobStatus(LocalObject, frozen=True):
    """How far a job is."""

    conditions: tuple[Condition, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the job has ended, well or not."""
        return any(condition.type in _FINAL and condition.status == "True" for condition in self.conditions)


class _Spec(LocalObject, frozen=True):
    run_policy: RunPolicy = RunPolicy()
    pytorch_replica_specs: dict[str, ReplicaSpec] = {}
    tf_replica_specs: dict[str, ReplicaSpec] = {}
    xgb_replica_specs: dict[str, ReplicaSpec] = {}
    paddle_replica_specs: dict[str, ReplicaSpec] = {}
    jax_replica_specs: dict[str, ReplicaSpec] = {}
    mpi_replica_specs: dict[str, ReplicaSpec] = {}


class TrainingJob(LocalObject, frozen=True):
    """A job of any kind of the Training operator; only the replica specs of its own kind are filled."""

    api_version: str = "kubeflow.org/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: JobStatus = JobStatus()


def roles_of(
    specs: Mapping[str, ReplicaSpec],
    path: str,
    *,
    missing: Callable[[str], int] = lambda _: 1,
) -> tuple[RoleSpec, ...]:
    """The roles of a job, leaders first; `missing` is how many pods a role has that names no number.

    Raises InvalidObjectError for a job without replica types, and for negative numbers.
    """
    if not specs:
        raise InvalidObjectError(f"{path}: empty; a job has at least one replica type")
    roles = []
    for type_, spec in specs.items():
        name = type_.lower()
        replicas = missing(name) if spec.replicas is None else spec.replicas
        if replicas < 0:
            raise InvalidObjectError(f"{path}.{type_}.replicas: {replicas} is negative; use 0 or more")
        template_path = f"{path}.{type_}.template.spec"
        roles.append(RoleSpec(name, replicas, replicas, spec.template, template_path, leads=name in _LEADERS))
    # JSON objects have no order; one of our own makes every answer the same.
    return tuple(sorted(roles, key=lambda role: (not role.leads, role.name)))


def policy_of(job: TrainingJob) -> SchedulingPolicy:
    """What the user wrote of scheduling in `runPolicy`."""
    return job.spec.run_policy.scheduling_policy


def _role_of(pod: Pod) -> str | None:
    return pod.metadata.labels.get(_ROLE_LABEL)


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {
        "training.kubeflow.org/operator-name": f"{workload.kind.kind.lower()}-controller",
        _JOB_LABEL: workload.metadata.name,
        _ROLE_LABEL: role.name,
        "training.kubeflow.org/replica-index": "0",
    }


def _with_init_container(role: RoleSpec, init: Container) -> RoleSpec:
    spec = role.template.spec
    spec = msgspec.structs.replace(spec, init_containers=(*spec.init_containers, init))
    template = msgspec.structs.replace(role.template, spec=spec)
    return RoleSpec(role.name, role.replicas, role.minimum, template, role.path, role.leads)


def _completed(kind: str, roles: tuple[RoleSpec, ...]) -> tuple[RoleSpec, ...]:
    """The roles with what the operator adds to their pods."""
    if kind == "PyTorchJob" and any(role.name == "master" for role in roles):
        return tuple(_with_init_container(role, _WAIT_FOR_MASTER) if role.name == "worker" else role for role in roles)
    if kind == "MPIJob":
        return tuple(
            _with_init_container(role, _KUBECTL_DELIVERY) if role.name == "launcher" else role for role in roles
        )
    return roles


def _kind(kind: str, plural: str, field: str) -> Kind:
    path = "spec." + field

    def read(job: TrainingJob) -> Workload:
        specs: Mapping[str, ReplicaSpec] = getattr(job.spec, _ATTRIBUTES[field])
        # Only here, the operator makes no worker of a missing number.
        missing = (lambda name: int(name == "launcher")) if kind == "MPIJob" else (lambda _: 1)
        return Workload(
            kind=made,
            api_version=job.api_version,
            metadata=job.metadata,
            pod_group=job.metadata.name,
            roles=_completed(kind, roles_of(specs, path, missing=missing)),
            policy=job.spec.run_policy.scheduling_policy,
            policy_path=_POLICY_PATH,
            suspended=job.spec.run_policy.suspend,
            finished=job.status.finished,
        )

    made = Kind(
        group="kubeflow.org",
        versions=("v1",),
        kind=kind,
        plural=plural,
        pod_label=_JOB_LABEL,
        pod_group_name=lambda name: name,
        decoded=TrainingJob,
        policy=policy_of,
        read=read,
        role_of=_role_of,
        pod_labels=_pod_labels,
    )
    return made


_ATTRIBUTES = {
    "pytorchReplicaSpecs": "pytorch_replica_specs",
    "tfReplicaSpecs": "tf_replica_specs",
    "xgbReplicaSpecs": "xgb_replica_specs",
    "paddleReplicaSpecs": "paddle_replica_specs",
    "jaxReplicaSpecs": "jax_replica_specs",
    "mpiReplicaSpecs": "mpi_replica_specs",
}

PYTORCH_JOB = _kind("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs")
TF_JOB = _kind("TFJob", "tfjobs", "tfReplicaSpecs")
XGBOOST_JOB = _kind("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs")
PADDLE_JOB = _kind("PaddleJob", "paddlejobs", "paddleReplicaSpecs")
JAX_JOB = _kind("JAXJob", "jaxjobs", "jaxReplicaSpecs")
MPI_JOB_V1 = _kind("MPIJob", "mpijobs", "mpiReplicaSpecs")
