"""The kinds that make a RayCluster: RayJob, RayService, RayCronJob.

The cluster gets their labels, so that the gang is always the RayCluster's: a retry or an upgrade is a new cluster and a
new gang. A RayCronJob passes no labels on; muster finds it above the cluster. A retry has its RayJob's place in the
queue (`Kind.carried_on_by`), an upgrade its own.
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from muster.model.findings import Finding, Reason
from muster.model.names import REQUEUE_AFTER, read_key
from muster.model.objects import InvalidObjectError, LocalObject, Object, ObjectMeta
from muster.model.pods import Container, PodTemplate, ResourceRequirements, TemplateSpec
from muster.model.times import seconds_of
from muster.workloads.model import RoleSpec, TimeLimit, Workload
from muster.workloads.ray import RAY_CLUSTER, ClusterSpec, gang_of, with_container

_TIMEOUT = read_key("ray.io/initializing-timeout")  # annotation on RayServices
# Five letters that the operator appends to the names of its objects.
_GENERATED = "-xxxxx"
# The value of a rule or policy that deletes the whole cluster. `DeleteWorkers` leaves its head, the least part of it.
_DELETING = ("DeleteCluster", "DeleteSelf")
# KubeRay's addition to the head's pods in SidecarMode (controllers/ray/common/job.go of 1.6.2).
_SUBMITTER = Container(
    name="ray-job-submitter",
    resources=ResourceRequirements({"cpu": "500m", "memory": "200Mi"}, {"cpu": "1", "memory": "1Gi"}),
)


class _DeletionCondition(LocalObject, frozen=True):
    job_status: str = ""
    job_deployment_status: str = ""
    ttl_seconds: int = 0


class _DeletionRule(LocalObject, frozen=True):
    policy: str = ""
    condition: _DeletionCondition = _DeletionCondition()

    @property
    def succeeded(self) -> bool:
        return self.condition.job_status == "SUCCEEDED"


class _DeletionPolicy(LocalObject, frozen=True):
    policy: str = ""


class _DeletionStrategy(LocalObject, frozen=True):
    on_success: _DeletionPolicy = _DeletionPolicy()
    deletion_rules: tuple[_DeletionRule, ...] = ()

    @property
    def leaves_cluster(self) -> bool:
        policies = (self.on_success.policy, *(one.policy for one in self.deletion_rules if one.succeeded))
        return not any(policy in (*_DELETING, "DeleteWorkers") for policy in policies)

    @property
    def frees_after(self) -> float | None:
        """Seconds from the deadline until the cluster is gone, with any result of the job.

        At its deadline a job has failed as a deployment, and not as a Ray job: `onFailure` does not apply.
        """
        deleting = [rule for rule in self.deletion_rules if rule.policy in _DELETING]
        well = [rule.condition.ttl_seconds for rule in deleting if rule.succeeded]
        late = [one.condition.ttl_seconds for one in deleting if one.condition.job_deployment_status == "Failed"]
        return float(max(min(well), min(late))) if well and late else None


class _JobSpec(LocalObject, frozen=True):
    ray_cluster_spec: ClusterSpec | None = None
    cluster_selector: dict[str, str] = {}
    submission_mode: str = "K8sJobMode"
    submitter_pod_template: PodTemplate | None = None
    suspend: bool = False
    managed_by: str = ""
    active_deadline_seconds: int | None = None
    pre_running_deadline_seconds: int | None = None
    shutdown_after_job_finishes: bool = False
    ttl_seconds_after_finished: int = 0
    deletion_strategy: _DeletionStrategy | None = None

    @property
    def leaves_cluster(self) -> bool:
        """True if its cluster stays when it has ended (handleDeletionRules and others of rayjob_controller.go)."""
        if self.deletion_strategy is None:
            return not self.shutdown_after_job_finishes
        return self.deletion_strategy.leaves_cluster

    def time_limits(self, path: str, since: float | None = None) -> tuple[TimeLimit, ...]:
        """Return the limits of its run time and of its start; both count from the creation of its cluster."""
        most, until_it_runs = self.active_deadline_seconds, self.pre_running_deadline_seconds
        limits = []
        if most is not None:
            field, frees_after = f"{path}.activeDeadlineSeconds", self._frees_after
            limits.append(TimeLimit(field, f"{most} s", since, most, frees_after=frees_after))
        if until_it_runs is not None:
            limits.append(TimeLimit(f"{path}.preRunningDeadlineSeconds", f"{until_it_runs} s", since, until_it_runs))
        return tuple(limits)

    @property
    def _frees_after(self) -> float | None:
        """Seconds from the deadline until its cluster is deleted; None if it stays, or nothing checks the time."""
        if self.submission_mode == "InteractiveMode":
            return None
        if self.deletion_strategy is not None:
            return self.deletion_strategy.frees_after
        return float(self.ttl_seconds_after_finished) if self.shutdown_after_job_finishes else None


class _JobStatus(LocalObject, frozen=True):
    job_deployment_status: str = ""
    ray_cluster_name: str = ""
    start_time: str = ""

    @property
    def ended(self) -> bool:
        return self.job_deployment_status in ("Complete", "Failed")


class RayJob(Object, frozen=True):
    """A job that makes a Ray cluster of its own, or runs in an existing one."""

    api_version: str = "ray.io/v1"
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()

    @property
    def time_limits(self) -> tuple[TimeLimit, ...]:
        """Its time limits, which count from the making of its cluster, and for the cluster of a retry again."""
        running = not self.spec.suspend and self.status.ray_cluster_name
        return self.spec.time_limits("spec", seconds_of(self.status.start_time) if running else None)


class _UpgradeStrategy(LocalObject, frozen=True):
    type: str = "NewCluster"


class _ServiceSpec(LocalObject, frozen=True):
    upgrade_strategy: _UpgradeStrategy = _UpgradeStrategy()
    ray_cluster_config: ClusterSpec = msgspec.field(default=ClusterSpec(), name="rayClusterConfig")
    suspend: bool = False
    managed_by: str = ""


class _ServiceCluster(LocalObject, frozen=True):
    ray_cluster_name: str = ""


class _ServiceStatus(LocalObject, frozen=True):
    active_service_status: _ServiceCluster = _ServiceCluster()
    pending_service_status: _ServiceCluster = _ServiceCluster()


class RayService(Object, frozen=True):
    """A service on a Ray cluster of its own; two of them while it is upgraded."""

    api_version: str = "ray.io/v1"
    spec: _ServiceSpec = _ServiceSpec()
    status: _ServiceStatus = _ServiceStatus()


class _CronSpec(LocalObject, frozen=True):
    job_template: _JobSpec = _JobSpec()
    suspend: bool = False


class RayCronJob(Object, frozen=True):
    """Makes RayJobs by a schedule."""

    api_version: str = "ray.io/v1"
    spec: _CronSpec = _CronSpec()


def _read_job(job: RayJob) -> Workload:
    spec = _cluster_of_job(job.spec, "spec")
    meta = _made(job.metadata, _GENERATED)
    if spec is None:
        return _without_gang(job.api_version, meta, "spec.clusterSelector")
    # Once it has ended, its cluster is deleted or about to be.
    suspended, finished = job.spec.suspend, job.status.ended
    workload = gang_of(job.api_version, meta, spec, "spec.rayClusterSpec", suspended=suspended, finished=finished)
    submitters = _submitters(job.spec, "spec")
    limits, lasts = job.time_limits, job.spec.leaves_cluster
    failed = job.status.job_deployment_status == "Failed"
    return replace(
        workload,
        failed=failed,
        time_limits=limits,
        outside_gang=submitters,
        managed_by=job.spec.managed_by,
        lasts=lasts,
    )


def _submitters(job: _JobSpec, path: str) -> tuple[RoleSpec, ...]:
    """Return the pod that submits the job, if it has one."""
    if job.submission_mode != "K8sJobMode":
        return ()
    template = job.submitter_pod_template or PodTemplate(spec=TemplateSpec(containers=(_SUBMITTER,)))
    return (RoleSpec("submitter", 1, 0, template, f"{path}.submitterPodTemplate.spec"),)


def _read_service(service: RayService) -> Workload:
    timeout = service.metadata.annotations.get(_TIMEOUT, "")
    workload = gang_of(
        service.api_version,
        _made(service.metadata, _GENERATED),
        service.spec.ray_cluster_config,
        "spec.rayClusterConfig",
        suspended=service.spec.suspend,
    )
    limits = (TimeLimit(f"metadata.annotations[{_TIMEOUT}]", timeout),) if timeout else ()
    in_place = service.spec.upgrade_strategy.type == "None"
    doubles = "" if in_place else "spec.upgradeStrategy"
    return replace(workload, time_limits=limits, upgrade_doubles=doubles, managed_by=service.spec.managed_by)


def _read_cron_job(cron: RayCronJob) -> Workload:
    spec = _cluster_of_job(cron.spec.job_template, "spec.jobTemplate")
    meta = _made(cron.metadata, _GENERATED * 2)
    if spec is None:
        return _without_gang(cron.api_version, meta, "spec.jobTemplate.clusterSelector")
    # Suspending a schedule concerns later jobs; each of them is judged when it is made.
    workload = gang_of(cron.api_version, meta, spec, "spec.jobTemplate.rayClusterSpec")
    made, findings = cron.spec.job_template, (*workload.findings, *_not_handed_down(cron.metadata))
    limits = made.time_limits("spec.jobTemplate")
    submitters = _submitters(made, "spec.jobTemplate")
    return replace(
        workload,
        time_limits=limits,
        outside_gang=submitters,
        managed_by=made.managed_by,
        findings=findings,
        lasts=made.leaves_cluster,
    )


def _not_handed_down(cron: ObjectMeta) -> Iterator[Finding]:
    """Yield findings for keys that are read on the cluster alone: KubeRay (raycronjob_controller.go) copies none."""
    if cron.annotations.get(REQUEUE_AFTER):
        path = f"metadata.annotations[{REQUEUE_AFTER}]"
        rest = "it is ignored for this kind: KubeRay gives the RayJobs of a RayCronJob none of its annotations"
        yield Finding(Reason.VALUE_IGNORED, path, f"{path}: {rest}")


def _clusters_of_job(job: RayJob) -> tuple[str, ...]:
    """Return the cluster of the current try, which KubeRay names before it makes it."""
    return () if job.status.ended else (job.status.ray_cluster_name,)


def _clusters_of_service(service: RayService) -> tuple[str, ...]:
    """Return the active and the pending cluster; the pending one carries on only if the active one is gone."""
    status = service.status
    return status.active_service_status.ray_cluster_name, status.pending_service_status.ray_cluster_name


def _cluster_of_job(job: _JobSpec, path: str) -> ClusterSpec | None:
    """Return the cluster that a job makes, or None if it runs in an existing one."""
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
        template=with_container(
            spec.head_group_spec.template,
            _SUBMITTER,
            f"{path}.rayClusterSpec.headGroupSpec.template.spec",
        ),
    )
    return msgspec.structs.replace(spec, head_group_spec=head)


def _made(parent: ObjectMeta, suffix: str) -> ObjectMeta:
    """Return metadata of the cluster that a parent makes: its labels and annotations, and a name to be generated."""
    return ObjectMeta(
        name=f"{parent.name}{suffix}",
        namespace=parent.namespace,
        labels=parent.labels,
        annotations=parent.annotations,
        created=parent.creation_timestamp,
        deletion_timestamp=parent.deletion_timestamp,
    )


def _without_gang(api_version: str, metadata: ObjectMeta, path: str) -> Workload:
    rest = "the job runs in the RayCluster that it selects and makes none, so that its labels ask for nothing"
    return Workload(
        kind=RAY_CLUSTER,
        api_version=api_version,
        metadata=metadata,
        findings=(Finding(Reason.NO_PODS, path, f"{path}: {rest}; label that RayCluster"),),
    )


# The cluster of a RayJob or RayService gets six characters more, and so does the RayJob of a RayCronJob.
RAY_JOB = replace(
    RAY_CLUSTER,
    kind="RayJob",
    longest_name=47,
    plural="rayjobs",
    decoded=RayJob,
    read=_read_job,
    pod_label="",
    owns_gang=False,
    carried_on_by=_clusters_of_job,
)
RAY_SERVICE = replace(
    RAY_JOB,
    kind="RayService",
    plural="rayservices",
    decoded=RayService,
    read=_read_service,
    carried_on_by=_clusters_of_service,
)
# Each of its RayJobs is work of its own, with an age of its own.
RAY_CRON_JOB = replace(
    RAY_JOB,
    versions=("v1",),
    kind="RayCronJob",
    longest_name=41,
    plural="raycronjobs",
    decoded=RayCronJob,
    read=_read_cron_job,
    carried_on_by=lambda _: (),
)
