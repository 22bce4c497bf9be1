"""RayCluster, as KubeRay counts it.

A RayJob or RayService makes a RayCluster and hands its labels down, so that the gang is always the RayCluster's: a
retry or an upgrade is a new cluster and a new gang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.objects import InvalidObjectError, LocalObject, ObjectMeta, Pod, PodTemplate
from muster.workloads.model import Kind, RoleSpec, SchedulingPolicy, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RAY_CLUSTER", "RayCluster"]

_HEAD = "headgroup"
_CLUSTER_LABEL = "ray.io/cluster"
_GROUP_LABEL = "ray.io/group"
_NODE_TYPE_LABEL = "ray.io/node-type"
# The operator's default when maxReplicas is not given: no bound.
_UNBOUNDED = 2**31 - 1


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


class _Spec(LocalObject, frozen=True):
    head_group_spec: _HeadGroup | None = None
    worker_group_specs: tuple[_WorkerGroup, ...] = ()
    enable_in_tree_autoscaling: bool = False
    suspend: bool = False


class RayCluster(LocalObject, frozen=True):
    """A Ray cluster (`ray.io/v1`)."""

    api_version: str = "ray.io/v1"
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


def _pod_group_name(cluster: str) -> str:
    """As KubeRay's own Volcano integration names it."""
    return f"ray-{cluster}-pg"


def _read(cluster: RayCluster) -> Workload:
    head = cluster.spec.head_group_spec
    if head is None:
        raise InvalidObjectError("spec.headGroupSpec: missing; a RayCluster has one head")
    roles = [RoleSpec(_HEAD, 1, 1, head.template, "spec.headGroupSpec.template.spec", leads=True)]
    for index, group in enumerate(cluster.spec.worker_group_specs):
        path = f"spec.workerGroupSpecs[{index}]"
        if not group.group_name:
            raise InvalidObjectError(f"{path}.groupName: missing; a worker group needs a name")
        if roles and any(role.name == group.group_name for role in roles):
            raise InvalidObjectError(f'{path}.groupName: "{group.group_name}" is taken; group names differ')
        desired, least = _replicas(group, path)
        minimum = least if cluster.spec.enable_in_tree_autoscaling else desired
        roles.append(RoleSpec(group.group_name, desired, minimum, group.template, f"{path}.template.spec"))
    return Workload(
        kind=RAY_CLUSTER,
        api_version=cluster.api_version,
        metadata=cluster.metadata,
        pod_group=_pod_group_name(cluster.metadata.name),
        roles=tuple(roles),
        policy=SchedulingPolicy(),
        suspended=cluster.spec.suspend,
    )


def _replicas(group: _WorkerGroup, path: str) -> tuple[int, int]:
    """Desired and least number of pods, as KubeRay counts: clamp(replicas, min, max) x numOfHosts; suspended is 0."""
    for name, value in (("replicas", group.replicas), ("minReplicas", group.min_replicas)):
        if value is not None and value < 0:
            raise InvalidObjectError(f"{path}.{name}: {value} is negative; a number of pods is 0 or more")
    if group.min_replicas > group.max_replicas:
        raise InvalidObjectError(
            f"{path}.minReplicas: {group.min_replicas} is above maxReplicas {group.max_replicas}; "
            "raise maxReplicas or lower minReplicas",
        )
    if group.suspend:
        return 0, 0
    wanted = group.min_replicas if group.replicas is None else group.replicas
    hosts = max(group.num_of_hosts, 1)
    return min(max(wanted, group.min_replicas), group.max_replicas) * hosts, group.min_replicas * hosts


def _role_of(pod: Pod) -> str | None:
    return pod.metadata.labels.get(_GROUP_LABEL)


def _pod_labels(workload: Workload, role: RoleSpec) -> Mapping[str, str]:
    return {
        "ray.io/is-ray-node": "yes",
        _CLUSTER_LABEL: workload.metadata.name,
        _NODE_TYPE_LABEL: "head" if role.leads else "worker",
        _GROUP_LABEL: role.name,
    }


RAY_CLUSTER = Kind(
    group="ray.io",
    versions=("v1", "v1alpha1"),
    kind="RayCluster",
    plural="rayclusters",
    pod_label=_CLUSTER_LABEL,
    pod_group_name=_pod_group_name,
    decoded=RayCluster,
    policy=lambda _: SchedulingPolicy(),
    read=_read,
    role_of=_role_of,
    pod_labels=_pod_labels,
)
