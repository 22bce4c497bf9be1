"""MPIJob of the MPI operator (`kubeflow.org/v2beta1`).

Its workers are pods of the MPIJob; its launcher is the pod of a batch Job of the MPIJob. Under `WaitForWorkersReady`
the launcher is made when all workers are ready. A minimum with it would never be reached, so it is not in the minimum,
is never held, and its room is kept from the beginning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from muster.model.names import read_key
from muster.model.objects import InvalidObjectError, Object, is_true
from muster.model.pods import PodTemplate
from muster.workloads.kubeflow import BoundedByPolicy, JobStatus, ReplicaSpec, check_mpi, roles_of
from muster.workloads.model import Kind, RoleSpec, TimeLimit, Workload, label_of

_JOB_LABEL = read_key("training.kubeflow.org/job-name")
_ROLE_LABEL = read_key("training.kubeflow.org/job-role")
LAUNCHER, _WORKER = "launcher", "worker"


class _Spec(BoundedByPolicy, frozen=True):
    mpi_replica_specs: dict[str, ReplicaSpec] = {}
    launcher_creation_policy: str = "AtStartup"
    held: ClassVar[tuple[str, ...]] = ("mpi_replica_specs",)

    def templates(self) -> Iterator[PodTemplate]:
        """Yield the pod templates of launcher and workers."""
        yield from (replica.template for replica in self.mpi_replica_specs.values())


class MPIJob(Object, frozen=True):
    """An MPI job."""

    api_version: str = "kubeflow.org/v2beta1"
    spec: _Spec = _Spec()
    status: JobStatus = JobStatus()


def _checked_roles(job: MPIJob) -> tuple[RoleSpec, ...]:
    """Return the roles of a job that the operator runs; it ignores others, with only an event (validation.go)."""
    path = "spec.mpiReplicaSpecs"
    specs = job.spec.mpi_replica_specs
    job.spec.check("spec")
    roles = roles_of(specs, path, missing=lambda name: int(name == LAUNCHER))
    check_mpi(specs, path)
    workers = specs.get("Worker")
    if workers is not None and not workers.replicas:
        found = "missing" if workers.replicas is None else "0 is below 1"
        raise InvalidObjectError(
            f"{path}.Worker.replicas",
            f"{found}; the MPI operator makes nothing of such a job: name a number of workers, or leave out Worker",
        )
    return roles


def _read(job: MPIJob) -> Workload:
    roles = _checked_roles(job)
    # The operator takes any other value for this one, too; without workers it has nothing to wait for.
    waits = job.spec.launcher_creation_policy not in ("", "AtStartup")
    workers = sum(role.replicas for role in roles if role.name == _WORKER)
    if waits and workers:
        roles = tuple(
            replace(role, minimum=0, gated=False, reserved=role.replicas) if role.name == LAUNCHER else role
            for role in roles
        )
    return Workload(
        kind=MPI_JOB,
        api_version=job.api_version,
        metadata=job.metadata,
        pod_group=job.metadata.name,
        roles=roles,
        policy=job.spec.run_policy.scheduling_policy,
        policy_path="spec.runPolicy.schedulingPolicy",
        suspended=job.spec.run_policy.suspend,
        finished=job.status.finished,
        failed=is_true(job.status.conditions, "Failed"),
        managed_by=job.spec.run_policy.managed_by,
        # If the launcher waits for its workers, each has to be ready (countReadyWorkerPods of 0.8.0).
        needs=workers if waits else 0,
        time_limits=() if waits else _time_limits(job),
    )


def _time_limits(job: MPIJob) -> tuple[TimeLimit, ...]:
    """Return the time limit of the launcher's Job, which does not exist while the launcher waits for its workers.

    The workers are deleted with it only if `cleanPodPolicy` is set so.
    """
    policy = job.spec.run_policy
    limit, goes = policy.time_limit(), policy.clean_pod_policy in ("All", "Running")
    return () if limit is None else (replace(limit, role=LAUNCHER, frees_after=0.0 if goes else None),)


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {
        "training.kubeflow.org/operator-name": "mpi-operator",
        _JOB_LABEL: workload.metadata.name,
        _ROLE_LABEL: role.name,
    }


MPI_JOB = Kind(
    group="kubeflow.org",
    versions=("v2beta1",),
    kind="MPIJob",
    plural="mpijobs",
    pod_label=_JOB_LABEL,
    maker="Kubeflow",
    decoded=MPIJob,
    policy=lambda job: job.spec.run_policy.scheduling_policy,
    read=_read,
    role_of=label_of(_ROLE_LABEL),
    pod_labels=_pod_labels,
    pods_of_jobs=True,
    # The operator (0.8.0) counts every event of a job, and of its objects, as one more failure: each touch doubles its
    # delay, up to 1000 s (enqueueMPIJob in mpi_job_controller.go).
    hears_touches=False,
)
