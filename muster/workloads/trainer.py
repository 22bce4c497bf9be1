"""TrainJob of Kubeflow Trainer (`trainer.kubeflow.org/v1alpha1`): a few settings for a runtime with the rest.

The runtime, of a namespace or of the cluster, holds the template of a JobSet; the Trainer fills in nodes and resources
and JobSet makes the pods. The template is changed here as by the Trainer 2.3.0 (pkg/runtime/core and
pkg/runtime/framework/plugins), and by 2.1.0 with its fields: it adds environment, volumes and ports, and never a
container but Flux's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from muster.model.names import GROUP_NAME, POD_GROUP_LABEL, read_key
from muster.model.objects import (
    InvalidObjectError,
    LocalObject,
    Object,
    ObjectMeta,
    ResourceList,
    TimedCondition,
    is_true,
)
from muster.model.pods import Container, PodTemplate, ResourceRequirements, TemplateMeta, with_init_containers
from muster.model.resource import Resource
from muster.model.times import seconds_of
from muster.model.topology import MODES, Topology
from muster.resources.amounts import parse_resources
from muster.workloads import jobset
from muster.workloads.bounds import Bounded
from muster.workloads.model import IntentSource, Kind, Origin, Reference, SchedulingPolicy, Source, TimeLimit, Workload
from muster.workloads.trainer_changes import JobSetTemplate, Override, RuntimeChanges, RuntimePatch

_GROUP, _VERSION = "trainer.kubeflow.org", "v1alpha1"
_FINAL = ("Complete", "Failed")

# The label on a replicated job's template that names its step of a TrainJob.
_STEP_LABEL = read_key("trainer.kubeflow.org/trainjob-ancestor-step")
_TRAINER_STEP = "trainer"
# The steps for which the Trainer always makes one Job.
_STEPS = (_TRAINER_STEP, "dataset-initializer", "model-initializer")
# It installs Flux in the nodes' pods, and has no requests but the defaults of a LimitRange.
_FLUX = Container(name="flux-installer")
# The name of the training container, and under MPI of the replicated job of the nodes.
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


class _Spec(Bounded, frozen=True):
    runtime_ref: _RuntimeRef = _RuntimeRef()
    trainer: _Trainer = _Trainer()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    pod_template_overrides: tuple[Override, ...] = ()
    runtime_patches: tuple[RuntimePatch, ...] = ()
    suspend: bool = False
    active_deadline_seconds: int | None = None
    managed_by: str = ""
    held: ClassVar[tuple[str, ...]] = ("pod_template_overrides", "runtime_patches", "trainer")

    def templates(self) -> Iterator[PodTemplate]:
        """Yield the templates of its patches; the pods' own are the runtime's."""
        for patch in self.runtime_patches:
            yield from patch.template.spec.templates()

    def extra_entries(self) -> int:
        """Return the number of entries that it adds to the runtime's templates."""
        given = self.trainer.resources_per_node
        amounts = len(given.requests or ()) + len(given.limits or ())
        overrides = sum(one.extra_entries() for one in self.pod_template_overrides)
        return amounts + overrides + sum(one.extra_entries() for one in self.runtime_patches)

    @property
    def changes(self) -> RuntimeChanges:
        """The changes to its runtime."""
        return RuntimeChanges(self.pod_template_overrides, self.runtime_patches)


class _Status(LocalObject, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()
    jobs_status: tuple[jobset.JobsStatus, ...] = ()


class TrainJob(Object, frozen=True):
    """A TrainJob, without its runtime."""

    api_version: str = f"{_GROUP}/{_VERSION}"
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def time_limits(self) -> tuple[TimeLimit, ...]:
        """Its own limit (Trainer 2.3): from its creation on, or from its last resumption."""
        seconds = self.spec.active_deadline_seconds
        if not seconds:
            return ()
        began = self.metadata.creation_timestamp
        for one in self.status.conditions:
            if (one.type, one.status) == ("Suspended", "False"):
                began = one.last_transition_time
        since = None if self.spec.suspend else seconds_of(began)
        return (TimeLimit("spec.activeDeadlineSeconds", f"{seconds} s", since, seconds, frees_after=0.0),)


class _MPI(LocalObject, frozen=True):
    run_launcher_as_node: bool = False


class _Flux(LocalObject, frozen=True):
    pass


class _MLPolicy(LocalObject, frozen=True):
    num_nodes: int | None = None
    mpi: _MPI | None = None
    flux: _Flux | None = None


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


class _RuntimeSpec(LocalObject, frozen=True):
    ml_policy: _MLPolicy | None = None
    pod_group_policy: _PodGroupPolicy = _PodGroupPolicy()
    template: JobSetTemplate = JobSetTemplate()


class TrainingRuntime(Object, frozen=True):
    """A runtime of a namespace, or of the cluster: they look alike."""

    spec: _RuntimeSpec = _RuntimeSpec()


TRAINING_RUNTIME = Source(Resource(_GROUP, _VERSION, "trainingruntimes", "TrainingRuntime"), TrainingRuntime)
CLUSTER_TRAINING_RUNTIME = Source(
    Resource(_GROUP, _VERSION, "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False), TrainingRuntime
)
_SOURCES = (TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)


@dataclass(frozen=True, slots=True)
class _Joined:
    """A TrainJob with its runtime."""

    job: TrainJob
    runtime: TrainingRuntime
    made: jobset.JobSet | None = None
    """The JobSet that the Trainer made of both: a changed runtime does not change it (`Build` of its plugin jobset)."""

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
        resource = source.resource
        if (resource.group, resource.kind) == (ref.api_group, ref.kind) and ref.name:
            return Reference(source, job.metadata.namespace if resource.namespaced else "", ref.name)
    return None


def _intent_sources(workload: TrainJob | _Joined) -> tuple[IntentSource, ...]:
    """Return the sources of the JobSet's metadata: the TrainJob, then the runtime, which may have changed since."""
    job = workload if isinstance(workload, TrainJob) else workload.job
    own = (*job.spec.changes.intent_sources(), IntentSource("spec", job.spec.labels, job.spec.annotations))
    if isinstance(workload, TrainJob):
        return own
    where, metadata = f"{workload.runtime_name}: spec.template.metadata", workload.runtime.spec.template.metadata
    made = workload.made.metadata if workload.made is not None else None
    of_made = (
        (IntentSource(f"JobSet {made.name}: metadata", made.labels, made.annotations),) if made is not None else ()
    )
    return *own, *of_made, IntentSource(where, metadata.labels, metadata.annotations)


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
    timeout = policy.coscheduling.schedule_timeout_seconds if policy.coscheduling else None
    if workload.made is not None:
        spec, path = workload.made.spec, f"JobSet {job.metadata.name}: spec"
        annotations = workload.made.metadata.annotations
    else:
        template, path = workload.runtime.spec.template.spec, f"{workload.runtime_name}: spec.template.spec"
        template.check(path)
        spec = replace(template, replicated_jobs=tuple(_replicated_jobs(job, workload.runtime.spec)))
        annotations = {}
        for source in reversed(_intent_sources(workload)):
            annotations |= source.annotations
    roles = jobset.wave_roles(spec, path, annotations)
    return Workload(
        kind=TRAIN_JOB,
        api_version=job.api_version,
        metadata=job.metadata,
        pod_group=job.metadata.name,
        roles=roles,
        remaining_roles=jobset.roles_left(spec, path, annotations, job.status.jobs_status),
        findings=jobset.late_followers(roles),
        time_limits=(*job.time_limits, *jobset.time_limits(spec, path)),
        policy=SchedulingPolicy(schedule_timeout_seconds=timeout),
        policy_path=f"{workload.runtime_name}: spec.podGroupPolicy.coscheduling",
        suspended=job.spec.suspend,
        managed_by=job.spec.managed_by,
        finished=is_true(job.status.conditions, *_FINAL),
        failed=is_true(job.status.conditions, "Failed"),
        topology=_topology(policy, workload.runtime_name),
    )


def _replicated_jobs(job: TrainJob, runtime: _RuntimeSpec) -> Iterator[jobset.ReplicatedJob]:
    """Yield the replicated jobs of the JobSet that the Trainer makes."""
    nodes = job.spec.trainer.num_nodes
    if nodes is not None and nodes < 0:
        raise InvalidObjectError("spec.trainer.numNodes", f"{nodes} is negative; use 0 or more")
    policy = runtime.ml_policy
    mpi = policy.mpi if policy else None
    as_node = mpi is not None and mpi.run_launcher_as_node
    counted = False
    changes = job.spec.changes
    for of_runtime in runtime.template.spec.replicated_jobs:
        replicated = changes.made_in(of_runtime)
        step = replicated.template.metadata.labels.get(_STEP_LABEL, "")
        trains = step == _TRAINER_STEP
        count = replicated.template.spec.parallelism
        if trains and policy is not None:
            count = 1 if policy.num_nodes is None else policy.num_nodes
        count = max(count, 1)
        # Under MPI the nodes are found by name, else by the step, and only the first of several.
        if not counted and nodes is not None and (replicated.name == _NODE if mpi else trains):
            counted = True
            count = max(nodes - 1, 1) if as_node else nodes
        template = replicated.template.spec.template
        if policy is not None and policy.flux is not None and replicated.name == _NODE:
            template = with_init_containers(template, (*template.spec.init_containers, _FLUX))
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


def _with_resources(template: PodTemplate, given: _Resources) -> PodTemplate:
    """Return the template with resourcesPerNode.

    From Trainer 2.3 on it is merged over the runtime's resources; before, it replaced them as a whole. The version is
    not known until the JobSet is made, so that each amount is the larger of both: a request of the runtime stays, or
    becomes a limit that comes without a request, for no pod requests more than its limit.
    """
    if given.requests is None and given.limits is None:
        return template
    requests, limits = given.requests or {}, given.limits or {}
    # Their path is known only here.
    parse_resources(requests, path=f"{_PER_NODE}.requests")
    parse_resources(limits, path=f"{_PER_NODE}.limits")

    def of(container: Container) -> Container:
        had = container.resources
        if container.name != _NODE or not _sound(had):
            return container
        as_limits = {name: limit for name, limit in limits.items() if name in had.requests}
        larger = ResourceRequirements({**had.requests, **as_limits, **requests}, {**had.limits, **limits})
        return replace(container, resources=larger)

    return replace(template, spec=replace(template.spec, containers=tuple(of(one) for one in template.spec.containers)))


def _sound(resources: ResourceRequirements) -> bool:
    """True if all amounts are valid; an invalid one stays, to be reported with its path."""
    try:
        parse_resources(resources.requests, path="")
        parse_resources(resources.limits, path="")
    except InvalidObjectError:
        return False
    return True


def _bound(template: PodTemplate, policy: _PodGroupPolicy, group: str) -> PodTemplate:
    """Return the template as the Trainer binds it to a PodGroup of its own, if the runtime asks for that."""
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
    pod_label=jobset.JOB_SET.pod_label,
    maker=jobset.JOB_SET.maker,
    decoded=TrainJob,
    read=_read,
    role_of=jobset.JOB_SET.role_of,
    pod_labels=jobset.JOB_SET.pod_labels,
    in_waves=True,
    pods_of_jobs=True,
    intent_sources=_intent_sources,
    origin=Origin(
        sources=_SOURCES,
        path="spec.runtimeRef.name",
        of=_runtime_of,
        joined=_Joined,
        makes=jobset.JOB_SET,
        as_made=lambda joined, made: _Joined(joined.job, joined.runtime, made),
    ),
)
