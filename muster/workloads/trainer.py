"""TrainJob of Kubeflow Trainer (`trainer.kubeflow.org/v1alpha1`): a few numbers for a runtime that has the rest.

The runtime, of a namespace or of the cluster, holds the template of a JobSet; the Trainer fills in nodes and resources
and JobSet makes the pods. What is done here to the template is what the Trainer 2.1.0 does to it (pkg/runtime/core and
pkg/runtime/framework/plugins): it adds environment, volumes and ports, and never a container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from muster.model.names import GROUP_NAME, POD_GROUP_LABEL
from muster.model.objects import (
    Container,
    InvalidObjectError,
    LocalObject,
    ObjectMeta,
    PodTemplate,
    ResourceList,
    ResourceRequirements,
    SchedulingGate,
    TemplateMeta,
    TimedCondition,
    is_true,
)
from muster.model.times import seconds_of
from muster.model.topology import MODES, Topology
from muster.resources.amounts import parse_resources
from muster.workloads.bounds import TEMPLATE, Bounded
from muster.workloads.jobset import (
    JOB_SET,
    JobSet,
    JobSetSpec,
    JobsStatus,
    ReplicatedJob,
    late_followers,
    roles_left,
    time_limits,
    wave_roles,
)
from muster.workloads.model import Kind, Origin, Reference, SchedulingPolicy, Source, TimeLimit, Voice, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CLUSTER_TRAINING_RUNTIME", "TRAINING_RUNTIME", "TRAIN_JOB", "TrainJob", "TrainingRuntime"]

_GROUP, _VERSION = "trainer.kubeflow.org", "v1alpha1"
_FINAL = ("Complete", "Failed")

# The label on a replicated job's template that says which step of a TrainJob it is.
_STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER_STEP = "trainer"
# Of these the Trainer always makes one Job.
_STEPS = (_TRAINER_STEP, "dataset-initializer", "model-initializer")
# The name of the container that trains, and under MPI of the replicated job of the nodes.
_NODE = "node"
_PER_NODE = "spec.trainer.resourcesPerNode"


class _RuntimeRef(LocalObject, frozen=True):
    api_group: str = _GROUP
    kind: str = "ClusterTrainingRuntime"
    name: str = ""


class _Resources(LocalObject, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class _Trainer(LocalObject, frozen=True):
    num_nodes: int | None = None
    resources_per_node: _Resources = _Resources()


class _TargetJob(LocalObject, frozen=True):
    name: str = ""


class _OverrideSpec(LocalObject, frozen=True):
    scheduling_gates: tuple[SchedulingGate, ...] = ()


class _Override(LocalObject, frozen=True):
    """Of what it may change, only this concerns a gang: it can give a container neither resources nor a priority."""

    target_jobs: tuple[_TargetJob, ...] = ()
    metadata: TemplateMeta = TemplateMeta()
    spec: _OverrideSpec = _OverrideSpec()


def _weight(override: _Override) -> int:
    """It is applied to each job that it names."""
    meta = override.metadata
    each = TEMPLATE + len(meta.labels) + len(meta.annotations) + len(override.spec.scheduling_gates)
    return (1 + len(override.target_jobs)) * each


class _Spec(Bounded, frozen=True):
    runtime_ref: _RuntimeRef = _RuntimeRef()
    trainer: _Trainer = _Trainer()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    pod_template_overrides: tuple[_Override, ...] = ()
    suspend: bool = False
    active_deadline_seconds: int | None = None
    managed_by: str = ""
    held: ClassVar[tuple[str, ...]] = ("pod_template_overrides", "trainer")

    def templates(self) -> Iterable[PodTemplate]:
        """None: they are the runtime's."""
        return ()

    def beside(self) -> int:
        """How many entries it adds to the runtime's templates."""
        given = self.trainer.resources_per_node
        return sum(map(_weight, self.pod_template_overrides)) + len(given.requests or ()) + len(given.limits or ())


class _Status(LocalObject, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()
    jobs_status: tuple[JobsStatus, ...] = ()


class TrainJob(LocalObject, frozen=True):
    """A TrainJob, without its runtime."""

    api_version: str = f"{_GROUP}/{_VERSION}"
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def time_limits(self) -> tuple[TimeLimit, ...]:
        """Its own limit (Trainer 2.3): from its creation on, or from when it was last resumed."""
        seconds = self.spec.active_deadline_seconds
        if not seconds:
            return ()
        began = self.metadata.creation_timestamp
        for one in self.status.conditions:
            if (one.type, one.status) == ("Suspended", "False"):
                began = one.last_transition_time
        since = None if self.spec.suspend else seconds_of(began)
        return (TimeLimit("spec.activeDeadlineSeconds", f"{seconds} s", since, seconds),)


class _MPI(LocalObject, frozen=True):
    run_launcher_as_node: bool = False


class _MLPolicy(LocalObject, frozen=True):
    num_nodes: int | None = None
    mpi: _MPI | None = None


class _NetworkTopology(LocalObject, frozen=True):
    # The defaults are the CRD's.
    mode: str = "hard"
    highest_tier_allowed: int = 1


class _Volcano(LocalObject, frozen=True):
    network_topology: _NetworkTopology | None = None


class _Coscheduling(LocalObject, frozen=True):
    schedule_timeout_seconds: int = 60


class _PodGroupPolicy(LocalObject, frozen=True):
    coscheduling: _Coscheduling | None = None
    volcano: _Volcano | None = None


class _JobSetTemplate(LocalObject, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: JobSetSpec = JobSetSpec()


class _RuntimeSpec(LocalObject, frozen=True):
    ml_policy: _MLPolicy | None = None
    pod_group_policy: _PodGroupPolicy = _PodGroupPolicy()
    template: _JobSetTemplate = _JobSetTemplate()


class TrainingRuntime(LocalObject, frozen=True):
    """A runtime of a namespace, or of the cluster: they look alike."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _RuntimeSpec = _RuntimeSpec()


TRAINING_RUNTIME = Source(
    group=_GROUP,
    version=_VERSION,
    kind="TrainingRuntime",
    plural="trainingruntimes",
    namespaced=True,
    decoded=TrainingRuntime,
)
CLUSTER_TRAINING_RUNTIME = Source(
    group=_GROUP,
    version=_VERSION,
    kind="ClusterTrainingRuntime",
    plural="clustertrainingruntimes",
    namespaced=False,
    decoded=TrainingRuntime,
)
_SOURCES = (TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)


@dataclass(frozen=True, slots=True)
class _Joined:
    """A TrainJob with its runtime."""

    job: TrainJob
    runtime: TrainingRuntime
    made: JobSet | None = None
    """The JobSet that the Trainer made of them: another runtime does not change it (`Build` of its plugin jobset)."""

    @property
    def metadata(self) -> ObjectMeta:
        return self.job.metadata

    @property
    def runtime_name(self) -> str:
        ref = self.job.spec.runtime_ref
        return f"{ref.kind} {ref.name}"


def _runtime_of(job: TrainJob) -> Reference | None:
    ref = job.spec.runtime_ref
    for source in _SOURCES:
        if (source.group, source.kind) == (ref.api_group, ref.kind) and ref.name:
            return Reference(source, job.metadata.namespace if source.namespaced else "", ref.name)
    return None


def _voices(workload: TrainJob | _Joined) -> tuple[Voice, ...]:
    """What becomes the metadata of the JobSet: the TrainJob's goes over the runtime's."""
    job = workload if isinstance(workload, TrainJob) else workload.job
    own = Voice("spec", job.spec.labels, job.spec.annotations)
    if isinstance(workload, TrainJob):
        return (own,)
    metadata = workload.runtime.spec.template.metadata
    return own, Voice(f"{workload.runtime_name}: spec.template.metadata", metadata.labels, metadata.annotations)


def _read(workload: TrainJob | _Joined) -> Workload:
    if isinstance(workload, TrainJob):
        ref = workload.spec.runtime_ref
        if not ref.name:
            raise InvalidObjectError("spec.runtimeRef.name", "missing; name the runtime that the TrainJob runs in")
        raise InvalidObjectError(
            "spec.runtimeRef",
            f'"{ref.kind}" of "{ref.api_group}" is no runtime; '
            f"use TrainingRuntime or ClusterTrainingRuntime of {_GROUP}",
        )
    job, policy = workload.job, workload.runtime.spec.pod_group_policy
    job.spec.check("spec")
    workload.runtime.spec.template.spec.check(f"{workload.runtime_name}: spec.template.spec")
    timeout = policy.coscheduling.schedule_timeout_seconds if policy.coscheduling else None
    template = workload.runtime.spec.template.spec
    jobs = tuple(_replicated_jobs(job, workload.runtime.spec))
    spec = replace(template, replicated_jobs=jobs)
    path = f"{workload.runtime_name}: spec.template.spec"
    annotations = {**workload.runtime.spec.template.metadata.annotations, **job.spec.annotations}
    if workload.made is not None:
        spec, path, annotations = (
            workload.made.spec,
            f"JobSet {job.metadata.name}: spec",
            workload.made.metadata.annotations,
        )
    roles = wave_roles(spec, path, annotations)
    return Workload(
        kind=TRAIN_JOB,
        api_version=job.api_version,
        metadata=job.metadata,
        pod_group=job.metadata.name,
        roles=roles,
        remaining_roles=roles_left(spec, path, annotations, job.status.jobs_status),
        findings=late_followers(roles),
        time_limits=(*job.time_limits, *time_limits(spec, path)),
        policy=SchedulingPolicy(schedule_timeout_seconds=timeout),
        policy_path=f"{workload.runtime_name}: spec.podGroupPolicy.coscheduling",
        suspended=job.spec.suspend,
        managed_by=job.spec.managed_by,
        finished=is_true(job.status.conditions, *_FINAL),
        topology=_topology(policy, workload.runtime_name),
    )


def _replicated_jobs(job: TrainJob, runtime: _RuntimeSpec) -> Iterator[ReplicatedJob]:
    """The replicated jobs of the JobSet that the Trainer makes."""
    nodes = job.spec.trainer.num_nodes
    if nodes is not None and nodes < 0:
        raise InvalidObjectError("spec.trainer.numNodes", f"{nodes} is negative; use 0 or more")
    policy = runtime.ml_policy
    mpi = policy.mpi if policy else None
    as_node = mpi is not None and mpi.run_launcher_as_node
    counted = False
    overrides: dict[str, dict[int, _Override]] = {}
    for number, override in enumerate(job.spec.pod_template_overrides):
        for target in override.target_jobs:
            # One that names a job twice is one.
            overrides.setdefault(target.name, {})[number] = override
    for replicated in runtime.template.spec.replicated_jobs:
        step = replicated.template.metadata.labels.get(_STEP_LABEL, "")
        trains = step == _TRAINER_STEP
        count = replicated.template.spec.parallelism
        if trains and policy is not None:
            count = 1 if policy.num_nodes is None else policy.num_nodes
        count = max(count, 1)
        # Under MPI the nodes are known by name, elsewhere by the step, and of several only the first.
        if not counted and nodes is not None and (replicated.name == _NODE if mpi else trains):
            counted = True
            count = max(nodes - 1, 1) if as_node else nodes
        template = _overridden(replicated.template.spec.template, overrides.get(replicated.name, {}).values())
        if trains or (as_node and replicated.name == _NODE):
            template = _with_resources(template, job.spec.trainer.resources_per_node)
        spec = replace(
            replicated.template.spec,
            parallelism=count,
            completions=count,
            template=_bound(template, runtime.pod_group_policy, job.metadata.name),
        )
        yield replace(
            replicated,
            replicas=1 if step in _STEPS else replicated.replicas,
            template=replace(replicated.template, spec=spec),
        )


def _overridden(template: PodTemplate, overrides: Iterable[_Override]) -> PodTemplate:
    labels, annotations = dict(template.metadata.labels), dict(template.metadata.annotations)
    gates = {gate.name: gate for gate in template.spec.scheduling_gates}
    for override in overrides:
        labels |= override.metadata.labels
        annotations |= override.metadata.annotations
        gates |= {gate.name: gate for gate in override.spec.scheduling_gates}
    metadata = TemplateMeta(labels=labels, annotations=annotations)
    return PodTemplate(metadata=metadata, spec=replace(template.spec, scheduling_gates=tuple(gates.values())))


def _with_resources(template: PodTemplate, given: _Resources) -> PodTemplate:
    """The template with resourcesPerNode, which replaces what the runtime has as a whole."""
    if given.requests is None and given.limits is None:
        return template
    resources = ResourceRequirements(requests=given.requests or {}, limits=given.limits or {})
    # Here it is still known where they stand.
    parse_resources(resources.requests, path=f"{_PER_NODE}.requests")
    parse_resources(resources.limits, path=f"{_PER_NODE}.limits")

    def of(container: Container) -> Container:
        return replace(container, resources=resources) if container.name == _NODE else container

    return replace(template, spec=replace(template.spec, containers=tuple(of(one) for one in template.spec.containers)))


def _bound(template: PodTemplate, policy: _PodGroupPolicy, group: str) -> PodTemplate:
    """The template as the Trainer binds it to a PodGroup of its own, where the runtime asks for that."""
    labels, annotations = dict(template.metadata.labels), dict(template.metadata.annotations)
    if policy.volcano:
        annotations[GROUP_NAME] = group
    if policy.coscheduling:
        labels[POD_GROUP_LABEL] = group
    return replace(template, metadata=TemplateMeta(labels=labels, annotations=annotations))


def _topology(policy: _PodGroupPolicy, runtime: str) -> Topology | None:
    asked = policy.volcano.network_topology if policy.volcano else None
    if asked is None:
        return None
    if asked.mode not in MODES:
        path = f"{runtime}: spec.podGroupPolicy.volcano.networkTopology.mode"
        raise InvalidObjectError(path, f'"{asked.mode}" is not a mode; use hard or soft')
    return Topology(asked.mode, asked.highest_tier_allowed)


TRAIN_JOB = Kind(
    group=_GROUP,
    versions=(_VERSION,),
    kind="TrainJob",
    plural="trainjobs",
    # A JobSet of the same name makes its pods.
    pod_label=JOB_SET.pod_label,
    maker=JOB_SET.maker,
    pod_group_name=lambda name: name,
    decoded=TrainJob,
    policy=lambda _: SchedulingPolicy(),
    read=_read,
    role_of=JOB_SET.role_of,
    pod_labels=JOB_SET.pod_labels,
    reads=JOB_SET.reads | {_STEP_LABEL},
    in_waves=True,
    pods_of_jobs=True,
    voices=_voices,
    origin=Origin(
        sources=_SOURCES,
        path="spec.runtimeRef.name",
        of=_runtime_of,
        joined=_Joined,
        makes=JOB_SET,
        as_made=lambda joined, made: _Joined(joined.job, joined.runtime, made),
    ),
)
