"""RayCluster, as KubeRay counts it, and the kinds that make one: RayJob, RayService, RayCronJob.

A RayJob or RayService makes a RayCluster and hands its labels down, so that the gang is always the RayCluster's: a
retry or an upgrade is a new cluster and a new gang.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from muster.findings import Finding, Reason
from muster.objects import (
    Container,
    InvalidObjectError,
    LocalObject,
    ObjectMeta,
    Pod,
    PodTemplate,
    ResourceRequirements,
)
from muster.workloads.model import Growth, Kind, RoleSpec, SchedulingPolicy, TimeLimit, Workload, time_limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RAY_CLUSTER", "RAY_CRON_JOB", "RAY_JOB", "RAY_SERVICE", "RayCluster", "RayCronJob", "RayJob", "RayService"]

_HEAD = "headgroup"
_CLUSTER_LABEL = "ray.io/cluster"
_GROUP_LABEL = "ray.io/group"
_NODE_TYPE_LABEL = "ray.io/node-type"
_REDIS_CLEANUP = "redis-cleanup"
_TIMEOUT = "ray.io/initializing-timeout"  # annotation on RayServices
# The operator's default when maxReplicas is not given: no bound.
_UNBOUNDED = 2**31 - 1
# Five letters that the operator puts behind the name of what it makes.
_GENERATED = "-xxxxx"
_V1, _V1ALPHA1 = "v1", "v1alpha1"


class _HeadGroup(LocalObject, frozen=True):
    template: PodTemplate = PodTemplate()


class _WorkerGroup(LocalObject, frozen=True):
    group_name: str = ""
    replicas: int | None = None
    min_replicas: int = 0
    max_replicas: int = _UNBOUNDED
    num_of_hosts: int = 1
    suspend: bool = False
    template: PodTemplate = PodTemplate()


class _AutoscalerOptions(LocalObject, frozen=True):
    resources: ResourceRequirements | None = None


class _ClusterSpec(LocalObject, frozen=True):
    head_group_spec: _HeadGroup | None = None
    worker_group_specs: tuple[_WorkerGroup, ...] = ()
    enable_in_tree_autoscaling: bool = False
    autoscaler_options: _AutoscalerOptions = _AutoscalerOptions()
    suspend: bool = False


class RayCluster(LocalObject, frozen=True):
    """A Ray cluster (`ray.io/v1`)."""

    api_version: str = "ray.io/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _ClusterSpec = _ClusterSpec()


class _JobSpec(LocalObject, frozen=True):
    ray_cluster_spec: _ClusterSpec | None = None
    cluster_selector: dict[str, str] = {}
    submission_mode: str = "K8sJobMode"
    suspend: bool = False
    active_deadline_seconds: int | None = None
    pre_running_deadline_seconds: int | None = None

    def time_limits(self, path: str) -> tuple[TimeLimit, ...]:
        """How long the job may take, and how long until it runs (both count from the making of its cluster)."""
        return (
            *time_limits_of(self.active_deadline_seconds, f"{path}.activeDeadlineSeconds"),
            *time_limits_of(self.pre_running_deadline_seconds, f"{path}.preRunningDeadlineSeconds"),
        )


class _JobStatus(LocalObject, frozen=True):
    job_deployment_status: str = ""


class RayJob(LocalObject, frozen=True):
    """A job that makes a Ray cluster of its own, or runs in one that is there."""

    api_version: str = "ray.io/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()


class _UpgradeStrategy(LocalObject, frozen=True):
    type: str = "NewCluster"


class _ServiceSpec(LocalObject, frozen=True):
    upgrade_strategy: _UpgradeStrategy = _UpgradeStrategy()
    ray_cluster_config: _ClusterSpec = msgspec.field(default=_ClusterSpec(), name="rayClusterConfig")
    suspend: bool = False


class RayService(LocalObject, frozen=True):
    """A service on a Ray cluster of its own; two of them while it is upgraded."""

    api_version: str = "ray.io/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _ServiceSpec = _ServiceSpec()


class _CronSpec(LocalObject, frozen=True):
    job_template: _JobSpec = _JobSpec()
    suspend: bool = False


class RayCronJob(LocalObject, frozen=True):
    """Makes RayJobs by a schedule."""

    api_version: str = "ray.io/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _CronSpec = _CronSpec()


# What KubeRay adds to the pods that it makes (controllers/ray/common/pod.go and job.go of 1.6.1).
_AUTOSCALER = ResourceRequirements(requests={"cpu": "500m", "memory": "512Mi"})
_WAIT_FOR_HEAD = Container(
    name="wait-gcs-ready",
    resources=ResourceRequirements(requests={"cpu": "200m", "memory": "256Mi"}),
)
_SUBMITTER = Container(
    name="ray-job-submitter",
    resources=ResourceRequirements(
        requests={"cpu": "500m", "memory": "200Mi"},
        limits={"cpu": "1", "memory": "1Gi"},
    ),
)


def _pod_group_name(cluster: str) -> str:
    """As KubeRay's own Volcano integration names it."""
    return f"ray-{cluster}-pg"


def _read_cluster(cluster: RayCluster) -> Workload:
    return _workload(cluster.api_version, cluster.metadata, cluster.spec, "spec")


def _read_job(job: RayJob) -> Workload:
    spec = _cluster_of_job(job.spec, "spec")
    meta = _made(job.metadata, _GENERATED)
    if spec is None:
        return _without_gang(job.api_version, meta)
    # Once it has ended its cluster is about to go, if it is not gone.
    ended = job.status.job_deployment_status in ("Complete", "Failed")
    workload = _workload(job.api_version, meta, spec, "spec.rayClusterSpec", suspended=job.spec.suspend, finished=ended)
    return replace(workload, time_limits=job.spec.time_limits("spec"))


def _read_service(service: RayService) -> Workload:
    timeout = service.metadata.annotations.get(_TIMEOUT, "")
    workload = _workload(
        service.api_version,
        _made(service.metadata, _GENERATED),
        service.spec.ray_cluster_config,
        "spec.rayClusterConfig",
        suspended=service.spec.suspend,
    )
    limits = (TimeLimit(f"metadata.annotations[{_TIMEOUT}]", timeout),) if timeout else ()
    in_place = service.spec.upgrade_strategy.type == "None"
    return replace(workload, time_limits=limits, twice="" if in_place else "spec.upgradeStrategy")


def _read_cron_job(cron: RayCronJob) -> Workload:
    spec = _cluster_of_job(cron.spec.job_template, "spec.jobTemplate")
    meta = _made(cron.metadata, _GENERATED * 2)
    if spec is None:
        return _without_gang(cron.api_version, meta)
    # Suspending a schedule concerns the jobs to come; each of those is judged when it is made.
    workload = _workload(cron.api_version, meta, spec, "spec.jobTemplate.rayClusterSpec")
    return replace(workload, time_limits=cron.spec.job_template.time_limits("spec.jobTemplate"))


def _cluster_of_job(job: _JobSpec, path: str) -> _ClusterSpec | None:
    """The cluster that a job makes, or None when it runs in one that is there already."""
    if job.cluster_selector:
        return None
    spec = job.ray_cluster_spec
    if spec is None:
        raise InvalidObjectError(f"{path}.rayClusterSpec", "missing; a RayJob makes a cluster or selects one")
    if job.submission_mode != "SidecarMode" or spec.head_group_spec is None:
        return spec
    # KubeRay takes no submitterPodTemplate in this mode.
    head = msgspec.structs.replace(
        spec.head_group_spec,
        template=_with_container(
            spec.head_group_spec.template,
            _SUBMITTER,
            f"{path}.rayClusterSpec.headGroupSpec.template.spec",
        ),
    )
    return msgspec.structs.replace(spec, head_group_spec=head)


def _made(parent: ObjectMeta, suffix: str) -> ObjectMeta:
    """Metadata of the cluster that a parent makes: its labels and annotations, and a name still to be generated."""
    return ObjectMeta(
        name=f"{parent.name}{suffix}",
        namespace=parent.namespace,
        labels=parent.labels,
        annotations=parent.annotations,
        creation_timestamp=parent.creation_timestamp,
        deletion_timestamp=parent.deletion_timestamp,
    )


def _without_gang(api_version: str, metadata: ObjectMeta) -> Workload:
    return Workload(
        kind=RAY_CLUSTER,
        api_version=api_version,
        metadata=metadata,
        pod_group="",
        roles=(),
        policy=SchedulingPolicy(),
    )


def _as_served(api_version: str, group: _WorkerGroup) -> _WorkerGroup:
    """The group as the apiserver keeps it: its v1alpha1 knows neither hosts nor suspended groups, and drops both."""
    if api_version.endswith(_V1ALPHA1):
        return msgspec.structs.replace(group, num_of_hosts=1, suspend=False)
    return group


def _workload(  # the gang of a cluster, its own or one to be made
    api_version: str,
    metadata: ObjectMeta,
    spec: _ClusterSpec,
    path: str,
    *,
    suspended: bool = False,
    finished: bool = False,
) -> Workload:
    head = spec.head_group_spec
    if head is None:
        raise InvalidObjectError(f"{path}.headGroupSpec", "missing; a RayCluster has one head")
    template, head_path = head.template, f"{path}.headGroupSpec.template.spec"
    if spec.enable_in_tree_autoscaling:
        asked = spec.autoscaler_options.resources or _AUTOSCALER
        template = _with_container(template, Container(name="autoscaler", resources=asked), head_path)
    roles = [RoleSpec(_HEAD, 1, 1, template, head_path, leads=True)]
    names, findings = {_HEAD}, []
    for index, group in enumerate(spec.worker_group_specs):
        where = f"{path}.workerGroupSpecs[{index}]"
        if not group.group_name:
            raise InvalidObjectError(f"{where}.groupName", "missing; a worker group needs a name")
        if group.group_name in names:
            raise InvalidObjectError(f"{where}.groupName", f'"{group.group_name}" is taken; group names differ')
        names.add(group.group_name)
        served = _as_served(api_version, group)
        if served != group:
            message = (
                f"{where}: {api_version} knows neither numOfHosts nor suspend of a group, so that the apiserver drops "
                "them; use ray.io/v1"
            )
            findings.append(Finding(Reason.FIELD_DROPPED, where, message))
        desired, least = _replicas(served, where)
        grows = spec.enable_in_tree_autoscaling
        template = _waiting_for_head(group.template)
        minimum = least if grows else desired
        growth = _growth(served, where) if grows else None
        roles.append(
            RoleSpec(
                group.group_name,
                desired,
                minimum,
                template,
                f"{where}.template.spec",
                grows=grows,
                growth=growth,
            )
        )
    return Workload(
        kind=RAY_CLUSTER,
        api_version=api_version,
        metadata=metadata,
        pod_group=_pod_group_name(metadata.name),
        roles=tuple(roles),
        policy=SchedulingPolicy(),
        suspended=suspended or spec.suspend,
        finished=finished,
        findings=tuple(findings),
    )


def _growth(group: _WorkerGroup, path: str) -> Growth | None:
    if group.suspend or group.max_replicas >= _UNBOUNDED:
        return None
    return Growth(group.max_replicas * group.num_of_hosts, f"{path}.maxReplicas")


def _replicas(group: _WorkerGroup, path: str) -> tuple[int, int]:
    """Desired and least number of pods, as KubeRay counts: clamp(replicas, min, max) x numOfHosts; suspended is 0."""
    for name, value in (
        ("replicas", group.replicas),
        ("minReplicas", group.min_replicas),
        ("maxReplicas", group.max_replicas),
    ):
        if value is not None and value < 0:
            raise InvalidObjectError(f"{path}.{name}", f"{value} is negative; a number of pods is 0 or more")
    if group.num_of_hosts < 1:
        # KubeRay multiplies by it: no pod would ever be made.
        raise InvalidObjectError(
            f"{path}.numOfHosts", f"{group.num_of_hosts} is below 1; a replica has at least one host"
        )
    if group.min_replicas > group.max_replicas:
        raise InvalidObjectError(
            f"{path}.minReplicas",
            f"{group.min_replicas} is above maxReplicas {group.max_replicas}; raise maxReplicas or lower minReplicas",
        )
    if group.suspend:
        return 0, 0
    wanted = group.min_replicas if group.replicas is None else group.replicas
    desired = min(max(wanted, group.min_replicas), group.max_replicas)
    return desired * group.num_of_hosts, group.min_replicas * group.num_of_hosts


def _with_container(template: PodTemplate, more: Container, path: str) -> PodTemplate:
    """With one of KubeRay's beside the user's own, of which there must be one."""
    if not template.spec.containers:
        raise InvalidObjectError(f"{path}.containers", "empty; a pod has at least one container")
    spec = msgspec.structs.replace(template.spec, containers=(*template.spec.containers, more))
    return msgspec.structs.replace(template, spec=spec)


def _waiting_for_head(template: PodTemplate) -> PodTemplate:
    spec = msgspec.structs.replace(template.spec, init_containers=(*template.spec.init_containers, _WAIT_FOR_HEAD))
    return msgspec.structs.replace(template, spec=spec)


def _role_of(pod: Pod) -> str | None:
    labels = pod.metadata.labels
    # The pod that empties Redis when a cluster is deleted looks like its head; held back, the deletion would hang.
    return None if labels.get(_NODE_TYPE_LABEL) == _REDIS_CLEANUP else labels.get(_GROUP_LABEL)


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {
        "ray.io/is-ray-node": "yes",
        _CLUSTER_LABEL: workload.metadata.name,
        _NODE_TYPE_LABEL: "head" if role.leads else "worker",
        _GROUP_LABEL: role.name,
    }


def _no_policy(_: object) -> SchedulingPolicy:
    return SchedulingPolicy()


def _parent(kind: str, plural: str, decoded: type, read: object, versions: tuple[str, ...]) -> Kind:
    """A kind that makes a RayCluster and has no pods of its own that wait."""
    return Kind(
        group="ray.io",
        versions=versions,
        kind=kind,
        plural=plural,
        pod_label="",
        pod_group_name=_pod_group_name,
        decoded=decoded,
        policy=_no_policy,
        read=read,  # type: ignore[arg-type]
        role_of=_role_of,
        pod_labels=_pod_labels,
        owns_gang=False,
    )


RAY_CLUSTER = Kind(
    group="ray.io",
    versions=(_V1, _V1ALPHA1),
    kind="RayCluster",
    plural="rayclusters",
    pod_label=_CLUSTER_LABEL,
    pod_group_name=_pod_group_name,
    decoded=RayCluster,
    policy=_no_policy,
    read=_read_cluster,
    role_of=_role_of,
    pod_labels=_pod_labels,
)
RAY_JOB = _parent("RayJob", "rayjobs", RayJob, _read_job, (_V1, _V1ALPHA1))
RAY_SERVICE = _parent("RayService", "rayservices", RayService, _read_service, (_V1, _V1ALPHA1))
RAY_CRON_JOB = _parent("RayCronJob", "raycronjobs", RayCronJob, _read_cron_job, (_V1,))
