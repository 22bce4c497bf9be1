"""RayCluster, as KubeRay counts it. The kinds that make one are in ray_parents.py."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from muster.model.findings import Finding, Reason
from muster.model.names import read_key
from muster.model.objects import InvalidObjectError, LocalObject, Object, ObjectMeta
from muster.model.pods import Container, Pod, PodTemplate, ResourceRequirements, guaranteed, with_init_containers
from muster.workloads.bounds import Bounded
from muster.workloads.model import Autoscaling, Kind, RoleSpec, Unit, Workload

_HEAD = "headgroup"
_CLUSTER_LABEL = read_key("ray.io/cluster")
_GROUP_LABEL = read_key("ray.io/group")
_NODE_TYPE_LABEL = read_key("ray.io/node-type")
# Label of the hosts of a replica with several (feature RayMultiHostIndexing, by default from 1.6 on). KubeRay deletes a
# replica that lacks one of them.
_REPLICA_LABEL = read_key("ray.io/worker-group-replica-name")
_REDIS_CLEANUP = "redis-cleanup"
# The operator's default when maxReplicas is not given: no bound.
_UNBOUNDED = 2**31 - 1
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


class _CollectorOptions(LocalObject, frozen=True):
    resources: ResourceRequirements | None = None


class _HistoryServerOptions(LocalObject, frozen=True):
    collector_options: _CollectorOptions | None = None


class _TLSOptions(LocalObject, frozen=True):
    enabled: bool = False


class ClusterSpec(Bounded, frozen=True):
    """The spec of a Ray cluster, its own or in a kind above it."""

    head_group_spec: _HeadGroup | None = None
    worker_group_specs: tuple[_WorkerGroup, ...] = ()
    enable_in_tree_autoscaling: bool = False
    autoscaler_options: _AutoscalerOptions = _AutoscalerOptions()
    history_server_options: _HistoryServerOptions = _HistoryServerOptions()
    tls_options: _TLSOptions = _TLSOptions()
    suspend: bool = False
    managed_by: str = ""
    held: ClassVar[tuple[str, ...]] = (
        "head_group_spec",
        "worker_group_specs",
        "autoscaler_options",
        "history_server_options",
    )

    def templates(self) -> Iterator[PodTemplate]:
        """Yield the pod templates of the head and of all groups."""
        if self.head_group_spec is not None:
            yield self.head_group_spec.template
        yield from (group.template for group in self.worker_group_specs)

    def extra_entries(self) -> int:
        """Return the number of amounts of the autoscaler and of the collectors, one for each group."""
        collector = self.history_server_options.collector_options
        groups = 1 + len(self.worker_group_specs)
        asked = ((1, self.autoscaler_options.resources), (groups, collector.resources if collector else None))
        return sum(times * (len(one.requests) + len(one.limits)) for times, one in asked if one)


class RayCluster(Object, frozen=True):
    """A Ray cluster (`ray.io/v1`)."""

    api_version: str = "ray.io/v1"
    spec: ClusterSpec = ClusterSpec()


# KubeRay's additions to its pods (controllers/ray/common/pod.go of 1.6.2; collector and TLS: of 1.7.0).
_AUTOSCALER = guaranteed({"cpu": "500m", "memory": "512Mi"})
_WAIT_FOR_HEAD = Container(name="wait-gcs-ready", resources=guaranteed({"cpu": "200m", "memory": "256Mi"}))
_COLLECTOR = ResourceRequirements({"cpu": "50m", "memory": "64Mi"}, {"cpu": "200m", "memory": "256Mi"})
_WAIT_FOR_CERTIFICATE = Container(name="wait-for-tls-ip-san", resources=guaranteed({"cpu": "50m", "memory": "64Mi"}))


def _pod_group_name(cluster: str) -> str:
    """Return the name that KubeRay's own Volcano integration uses."""
    return f"ray-{cluster}-pg"


def _as_served(api_version: str, spec: ClusterSpec, path: str) -> tuple[ClusterSpec, tuple[Finding, ...]]:
    """Return the spec as the apiserver keeps it, which drops fields that v1alpha1 does not have."""
    if not api_version.endswith(_V1ALPHA1):
        return spec, ()
    groups = tuple(msgspec.structs.replace(one, num_of_hosts=1, suspend=False) for one in spec.worker_group_specs)
    served = msgspec.structs.replace(
        spec,
        worker_group_specs=groups,
        history_server_options=_HistoryServerOptions(),
        tls_options=_TLSOptions(),
    )
    both = zip(spec.worker_group_specs, groups, strict=True)
    dropped = [
        (f"{path}.workerGroupSpecs[{index}]", "numOfHosts nor suspend of a group")
        for index, (group, kept) in enumerate(both)
        if group != kept
    ]
    if (spec.history_server_options, spec.tls_options) != (served.history_server_options, served.tls_options):
        dropped.append((path, "historyServerOptions nor tlsOptions"))
    rest = "so that the apiserver drops them; use ray.io/v1"
    return served, tuple(
        Finding(Reason.FIELD_DROPPED, where, f"{where}: {api_version} knows neither {what}, {rest}")
        for where, what in dropped
    )


def gang_of(
    api_version: str,
    metadata: ObjectMeta,
    spec: ClusterSpec,
    path: str,
    *,
    suspended: bool = False,
    finished: bool = False,
) -> Workload:
    """Return the gang of a cluster, or of a cluster that the operator has yet to make from the spec at that path.

    Raises InvalidObjectError if the spec cannot be a gang.
    """
    spec.check(path)
    spec, findings = _as_served(api_version, spec, path)
    roles, names = [_head(spec, path)], {_HEAD}
    for index, group in enumerate(spec.worker_group_specs):
        where = f"{path}.workerGroupSpecs[{index}]"
        if not group.group_name:
            raise InvalidObjectError(f"{where}.groupName", "missing; a worker group needs a name")
        if group.group_name in names:
            raise InvalidObjectError(f"{where}.groupName", f'"{group.group_name}" is taken; group names differ')
        names.add(group.group_name)
        roles.append(_workers(group, spec, where))
    return Workload(
        kind=RAY_CLUSTER,
        api_version=api_version,
        metadata=metadata,
        pod_group=_pod_group_name(metadata.name),
        roles=tuple(roles),
        suspended=suspended or spec.suspend,
        finished=finished,
        lasts=True,
        managed_by=spec.managed_by,
        findings=findings,
    )


def _head(spec: ClusterSpec, path: str) -> RoleSpec:
    if spec.head_group_spec is None:
        raise InvalidObjectError(f"{path}.headGroupSpec", "missing; a RayCluster has one head")
    template, where = spec.head_group_spec.template, f"{path}.headGroupSpec.template.spec"
    if spec.enable_in_tree_autoscaling:
        asked = spec.autoscaler_options.resources or _AUTOSCALER
        template = with_container(template, Container(name="autoscaler", resources=asked), where)
    return RoleSpec(_HEAD, 1, 1, _completed(template, spec, where), where, leads=True)


def _workers(group: _WorkerGroup, spec: ClusterSpec, path: str) -> RoleSpec:
    desired, least = _replicas(group, path)
    where, grows = f"{path}.template.spec", spec.enable_in_tree_autoscaling
    waiting = with_init_containers(group.template, (*group.template.spec.init_containers, _WAIT_FOR_HEAD))
    return RoleSpec(
        group.group_name,
        desired,
        least if grows else desired,
        _completed(waiting, spec, where),
        where,
        grows=grows,
        growth=_growth(group, path) if grows else None,
        unit=Unit(group.num_of_hosts, _REPLICA_LABEL) if group.num_of_hosts > 1 else None,
        added=1,
    )


def _growth(group: _WorkerGroup, path: str) -> Autoscaling | None:
    if group.suspend or group.max_replicas >= _UNBOUNDED:
        return None
    return Autoscaling(group.max_replicas * group.num_of_hosts, f"{path}.maxReplicas")


def _replicas(group: _WorkerGroup, path: str) -> tuple[int, int]:
    """Return the desired and the least number of pods, as KubeRay counts: clamp(replicas, min, max) x numOfHosts."""
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


def with_container(template: PodTemplate, more: Container, path: str) -> PodTemplate:
    """Return the template with a container of KubeRay in addition to the user's own; there must be one of these."""
    if not template.spec.containers:
        raise InvalidObjectError(f"{path}.containers", "empty; a pod has at least one container")
    spec = msgspec.structs.replace(template.spec, containers=(*template.spec.containers, more))
    return msgspec.structs.replace(template, spec=spec)


def _completed(template: PodTemplate, cluster: ClusterSpec, path: str) -> PodTemplate:
    """Return the template of a pod with KubeRay 1.7's additions for its history server and for mTLS."""
    collector, wait = cluster.history_server_options.collector_options, _WAIT_FOR_CERTIFICATE
    if collector is not None:
        template = with_container(
            template, Container(name="ray-history-collector", resources=collector.resources or _COLLECTOR), path
        )
    init = template.spec.init_containers
    if not cluster.tls_options.enabled or any(one.name == wait.name for one in init):
        return template
    return with_init_containers(template, (wait, *init))


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


RAY_CLUSTER = Kind(
    group="ray.io",
    versions=(_V1, _V1ALPHA1),
    kind="RayCluster",
    plural="rayclusters",
    pod_label=_CLUSTER_LABEL,
    # As KubeRay 1.6.2 checks names (controllers/ray/utils/validation.go).
    longest_name=53,
    maker="Ray",
    pod_group_name=_pod_group_name,
    decoded=RayCluster,
    read=lambda cluster: gang_of(cluster.api_version, cluster.metadata, cluster.spec, "spec"),
    role_of=_role_of,
    pod_labels=_pod_labels,
)
