"""The jobs of the Training operator (`kubeflow.org/v1`): replica specs by type under a field of the kind's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

import msgspec

from muster.model.findings import Finding, Reason
from muster.model.names import read_key
from muster.model.objects import Condition, InvalidObjectError, LocalObject, Object, is_true
from muster.model.pods import Container, PodTemplate, ResourceRequirements, guaranteed, with_init_containers
from muster.model.texts import did_you_mean
from muster.model.times import seconds_of
from muster.workloads.bounds import Bounded
from muster.workloads.model import Autoscaling, Kind, RoleSpec, SchedulingPolicy, TimeLimit, Workload, label_of

_JOB_LABEL = read_key("training.kubeflow.org/job-name")
_ROLE_LABEL = read_key("training.kubeflow.org/replica-type")
_POLICY_PATH = "spec.runPolicy.schedulingPolicy"
# The roles that the others wait for: they come first if only a part of the pods is needed.
_LEADERS = ("master", "chief", "launcher")
_FINAL = ("Succeeded", "Failed")
# Most unknown replica types of a job in a message.
_NAMED = 3

# The operator's additions to its pods (pytorch/initcontainer.go and mpi/mpijob.go of 1.9.3).
_WAIT_FOR_MASTER = Container(
    name="init-pytorch",
    resources=ResourceRequirements({"cpu": "50m", "memory": "10Mi"}, {"cpu": "100m", "memory": "20Mi"}),
)
_KUBECTL_DELIVERY = Container(
    name="kubectl-delivery",
    resources=guaranteed({"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}),
)


class ReplicaSpec(LocalObject, frozen=True):
    """One replica type of a job."""

    replicas: int | None = None
    template: PodTemplate = PodTemplate()


class RunPolicy(LocalObject, frozen=True):
    """The settings for the run of a job as a whole."""

    suspend: bool = False
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    active_deadline_seconds: int | None = None
    managed_by: str = ""
    clean_pod_policy: str = ""

    def time_limit(self) -> TimeLimit | None:
        """Return the time limit of a job, with nothing but its length."""
        seconds = self.active_deadline_seconds
        path = "spec.runPolicy.activeDeadlineSeconds"
        return None if seconds is None else TimeLimit(path, f"{seconds} s", seconds=seconds)


def time_limits(job: TrainingJob) -> tuple[TimeLimit, ...]:
    """Return the time limit of a job of the Training operator.

    At its end the operator deletes the pods, but it looks only when something else happens (common/job.go of 1.9.3).
    """
    limit = job.spec.run_policy.time_limit()
    return () if limit is None else (replace(limit, since=job.status.clock_began, frees_after=0.0, exact=False),)


class JobStatus(LocalObject, frozen=True):
    """The status of a job."""

    conditions: tuple[Condition, ...] = ()
    start_time: str = ""

    @property
    def clock_began(self) -> float | None:
        """The start of the Training operator's count, in seconds of the wall clock; None before that.

        It begins when the first pods are made, and again when a suspended job is resumed; until the operator has seen
        that, the status has the old time (common/job.go and core/job.go of 1.9.3).
        """
        return None if is_true(self.conditions, "Suspended") else seconds_of(self.start_time)

    @property
    def finished(self) -> bool:
        """True if the job has ended, well or not."""
        return is_true(self.conditions, *_FINAL)


class _ElasticPolicy(LocalObject, frozen=True):
    min_replicas: int | None = None
    max_replicas: int | None = None
    metrics: tuple[Any, ...] = ()


class BoundedByPolicy(Bounded, frozen=True):
    """A job's spec; the minResources of its gang count in addition to the templates."""

    run_policy: RunPolicy = RunPolicy()

    def extra_entries(self) -> int:
        """Return the number of the gang's minResources."""
        return len(self.run_policy.scheduling_policy.min_resources or ())

    def without(self) -> Mapping[str, object]:
        """Return its policy without minResources, which asks for a gang as before."""
        policy = msgspec.structs.replace(self.run_policy.scheduling_policy, min_resources={})
        return {"run_policy": msgspec.structs.replace(self.run_policy, scheduling_policy=policy)}


_KINDS = ("pytorch", "tf", "xgb", "paddle", "jax", "mpi")


class _Spec(BoundedByPolicy, frozen=True):
    elastic_policy: _ElasticPolicy = _ElasticPolicy()
    enable_dynamic_worker: bool = False
    pytorch_replica_specs: dict[str, ReplicaSpec] = {}
    tf_replica_specs: dict[str, ReplicaSpec] = {}
    xgb_replica_specs: dict[str, ReplicaSpec] = {}
    paddle_replica_specs: dict[str, ReplicaSpec] = {}
    jax_replica_specs: dict[str, ReplicaSpec] = {}
    mpi_replica_specs: dict[str, ReplicaSpec] = {}
    held: ClassVar[tuple[str, ...]] = tuple(f"{kind}_replica_specs" for kind in _KINDS)

    def templates(self) -> Iterator[PodTemplate]:
        """Yield the pod templates of all replica types, for a job of any kind."""
        for field in self.held:
            yield from (replica.template for replica in getattr(self, field).values())


class TrainingJob(Object, frozen=True):
    """A job of any kind of the Training operator; only the replica specs of its own kind are filled."""

    api_version: str = "kubeflow.org/v1"
    spec: _Spec = _Spec()
    status: JobStatus = JobStatus()


def roles_of(
    specs: Mapping[str, ReplicaSpec],
    path: str,
    *,
    missing: Callable[[str], int] = lambda _: 1,
) -> tuple[RoleSpec, ...]:
    """Return the roles of a job, leaders first; `missing` is the number of pods of a role that sets none.

    Raises InvalidObjectError for a job without replica types, for one written twice, and for negative numbers.
    """
    if not specs:
        raise InvalidObjectError(path, "empty; a job has at least one replica type")
    names: set[str] = set()
    roles = []
    for type_, spec in specs.items():
        name = type_.lower()
        if name in names:
            raise InvalidObjectError(f"{path}.{type_}", "there twice, in other letters; a replica type is named once")
        names.add(name)
        replicas = missing(name) if spec.replicas is None else spec.replicas
        if replicas < 0:
            raise InvalidObjectError(f"{path}.{type_}.replicas", f"{replicas} is negative; use 0 or more")
        template_path = f"{path}.{type_}.template.spec"
        roles.append(RoleSpec(name, replicas, replicas, spec.template, template_path, leads=name in _LEADERS))
    # JSON objects have no order; an order of our own makes all answers equal.
    return tuple(sorted(roles, key=lambda role: (not role.leads, role.name)))


def check_mpi(specs: Mapping[str, ReplicaSpec], path: str) -> None:
    """Raise InvalidObjectError for an MPIJob that its operator does not run, with nothing but an event.

    Both operators demand one launcher, and the exact names of the replica types (mpi_validation.go of the Training
    operator 1.9.3, validation.go of the MPI operator).
    """
    if "Launcher" not in specs:
        raise InvalidObjectError(f"{path}.Launcher", "missing; an MPIJob has one launcher")
    for type_, spec in specs.items():
        if type_ not in _REPLICA_TYPES["MPIJob"]:
            raise InvalidObjectError(f"{path}.{type_}", "unknown; an MPIJob has a Launcher and Workers")
        if type_ == "Launcher" and spec.replicas not in (None, 1):
            raise InvalidObjectError(
                f"{path}.Launcher.replicas", f"{spec.replicas} is not 1; an MPIJob has one launcher"
            )


def _unknown_types(kind: str, specs: Iterable[str], path: str) -> Iterator[Finding]:
    """Yield findings for replica types that a kind lacks: its operator refuses the job, or makes no pods of them."""
    known = _REPLICA_TYPES[kind]
    taken = {one.lower() for one in known}
    for type_ in islice((one for one in specs if one.lower() not in taken), _NAMED):
        where = f"{path}.{type_}"
        words = f'"{type_}" is no replica type of a {kind} ({", ".join(known)}){did_you_mean(type_, known)}'
        yield Finding(Reason.MISSPELLED, where, f"{where}: {words}")


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {
        "training.kubeflow.org/operator-name": f"{workload.kind.kind.lower()}-controller",
        _JOB_LABEL: workload.metadata.name,
        _ROLE_LABEL: role.name,
        "training.kubeflow.org/replica-index": "0",
    }


def _with_init_container(role: RoleSpec, init: Container) -> RoleSpec:
    template = with_init_containers(role.template, (*role.template.spec.init_containers, init))
    return replace(role, template=template, added=1)


def _completed(kind: str, roles: tuple[RoleSpec, ...]) -> tuple[RoleSpec, ...]:
    """Return the roles with the operator's additions to their pods."""
    if kind == "PyTorchJob" and any(role.name == "master" for role in roles):
        return tuple(_with_init_container(role, _WAIT_FOR_MASTER) if role.name == "worker" else role for role in roles)
    if kind == "MPIJob":
        return tuple(
            _with_init_container(role, _KUBECTL_DELIVERY) if role.name == "launcher" else role for role in roles
        )
    return roles


def _as_served(role: RoleSpec) -> RoleSpec:
    """Return the role as the apiserver keeps it: the operator's CRDs do not have pod-level `resources`."""
    spec = msgspec.structs.replace(role.template.spec, resources=ResourceRequirements())
    return replace(role, template=msgspec.structs.replace(role.template, spec=spec))


def _dropped(roles: tuple[RoleSpec, ...]) -> list[Finding]:
    return [
        Finding(
            Reason.FIELD_DROPPED,
            f"{role.path}.resources",
            f"{role.path}.resources: the CRDs of the Training operator do not have pod-level `resources`, so that the "
            "apiserver drops them; set the requests of the containers",
        )
        for role in roles
        if role.template.spec.resources.named
    ]


def _of_elastic(elastic: _ElasticPolicy, roles: tuple[RoleSpec, ...], policy: SchedulingPolicy) -> list[Finding]:
    """Return the findings for an elastic job. Raises InvalidObjectError for bounds that no job can have."""
    path = "spec.elasticPolicy"
    least, most = elastic.min_replicas, elastic.max_replicas
    for name, number in (("minReplicas", least), ("maxReplicas", most)):
        if number is not None and number < 0:
            raise InvalidObjectError(f"{path}.{name}", f"{number} is negative; a number of workers is 0 or more")
    if least is not None and most is not None and least > most:
        raise InvalidObjectError(
            f"{path}.minReplicas",
            f"{least} is above maxReplicas {most}; raise maxReplicas or lower minReplicas",
        )
    workers = sum(role.replicas for role in roles if role.name == "worker")
    if least is None or least >= workers or policy.min_available is not None:
        return []
    line = (
        f"{path}.minReplicas: {least} workers are enough for the job, but its gang waits for all {workers}; "
        f"set {_POLICY_PATH}.minAvailable to start with fewer pods"
    )
    return [Finding(Reason.ELASTIC_WAITS_FOR_ALL, f"{path}.minReplicas", line)]


def _grown(role: RoleSpec, elastic: _ElasticPolicy) -> RoleSpec:
    """Return the workers with the bounds of the autoscaler that the operator makes if metrics are set for it."""
    if role.name != "worker" or not elastic.metrics or elastic.max_replicas is None:
        return role
    return replace(role, growth=Autoscaling(elastic.max_replicas, "spec.elasticPolicy.maxReplicas"))


def _needs(spec: _Spec, roles: tuple[RoleSpec, ...], kind: str) -> int:
    """Return the number of pods that the job needs to work: each pod gets that number, unless the job is elastic."""
    if kind == "MPIJob" or spec.enable_dynamic_worker:
        return 0
    least = spec.elastic_policy.min_replicas
    return sum(role.replicas if role.name != "worker" or least is None else least for role in roles)


def _scaled(field: str) -> Callable[[TrainingJob, int], TrainingJob]:
    """Return the function that sets the number of workers, as the job's scale subresource does."""

    def scaled(job: TrainingJob, replicas: int) -> TrainingJob:
        specs: Mapping[str, ReplicaSpec] = getattr(job.spec, field)
        workers = msgspec.structs.replace(specs.get("Worker", ReplicaSpec()), replicas=replicas)
        spec = msgspec.structs.replace(job.spec, **{field: {**specs, "Worker": workers}})
        return msgspec.structs.replace(job, spec=spec)

    return scaled


# The replica types that the Training operator 1.9.3 takes, in any case but for MPIJobs, there of both operators.
_REPLICA_TYPES: Mapping[str, tuple[str, ...]] = {
    "PyTorchJob": ("Master", "Worker"),
    "TFJob": ("Chief", "Master", "PS", "Worker", "Evaluator"),
    "XGBoostJob": ("Master", "Worker"),
    "PaddleJob": ("Master", "Worker"),
    "JAXJob": ("Worker",),
    "MPIJob": ("Launcher", "Worker"),
}


def _kind(kind: str, prefix: str) -> Kind:
    path, field = f"spec.{prefix}ReplicaSpecs", f"{prefix}_replica_specs"

    def read(job: TrainingJob) -> Workload:
        job.spec.check("spec")
        specs: Mapping[str, ReplicaSpec] = getattr(job.spec, field)
        # Only for this kind the operator makes no worker if the number is missing.
        missing = (lambda name: int(name == "launcher")) if kind == "MPIJob" else (lambda _: 1)
        roles = roles_of(specs, path, missing=missing)
        if kind == "MPIJob":
            check_mpi(specs, path)
        policy = job.spec.run_policy.scheduling_policy
        return Workload(
            kind=made,
            api_version=job.api_version,
            metadata=job.metadata,
            pod_group=job.metadata.name,
            roles=_completed(kind, tuple(_grown(_as_served(role), job.spec.elastic_policy) for role in roles)),
            policy=policy,
            policy_path=_POLICY_PATH,
            suspended=job.spec.run_policy.suspend,
            finished=job.status.finished,
            failed=is_true(job.status.conditions, "Failed"),
            managed_by=job.spec.run_policy.managed_by,
            time_limits=time_limits(job),
            needs=_needs(job.spec, roles, kind),
            findings=(
                *_unknown_types(kind, specs, path),
                *_dropped(roles),
                *_of_elastic(job.spec.elastic_policy, roles, policy),
            ),
        )

    made = Kind(
        group="kubeflow.org",
        versions=("v1",),
        kind=kind,
        plural=f"{kind.lower()}s",
        pod_label=_JOB_LABEL,
        maker="Kubeflow",
        decoded=TrainingJob,
        policy=lambda job: job.spec.run_policy.scheduling_policy,
        read=read,
        role_of=label_of(_ROLE_LABEL),
        pod_labels=_pod_labels,
        # The operator's CRDs (1.9.3) that have the scale subresource.
        scaled=_scaled(field) if kind in ("PyTorchJob", "PaddleJob", "JAXJob") else None,
    )
    return made


PYTORCH_JOB = _kind("PyTorchJob", "pytorch")
TF_JOB = _kind("TFJob", "tf")
XGBOOST_JOB = _kind("XGBoostJob", "xgb")
PADDLE_JOB = _kind("PaddleJob", "paddle")
JAX_JOB = _kind("JAXJob", "jax")
MPI_JOB_V1 = _kind("MPIJob", "mpi")
