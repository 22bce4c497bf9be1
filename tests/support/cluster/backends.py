"""Clusters with other schedulers, or with Kueue: what a testbed is asked for, and the objects that their users write.

`Testbed.start(**cluster("coscheduling"))`, or `own_testbed(**cluster("kubernetes"))`, is a cluster without Volcano;
`cluster("volcano", kueue=True)` is one with Volcano and Kueue.
"""

from collections.abc import Iterable
from typing import TypedDict

from hack.testbed.kubernetes import DEFAULT_KUBERNETES
from muster.model.resource import ELASTIC_QUOTAS, Resource
from tests.support.cluster.objects import Manifest, node_of

COSCHEDULING_POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
NATIVE_POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
CLUSTER_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)
LOCAL_QUEUES = Resource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue")
RESOURCE_FLAVORS = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False)
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""The label by which a workload names its LocalQueue."""

SCHEDULERS = {
    "volcano": (["volcano"], DEFAULT_KUBERNETES),
    "coscheduling": (["coscheduling"], DEFAULT_KUBERNETES),
    "coscheduling-as-default": (["coscheduling-as-default"], DEFAULT_KUBERNETES),
    "kubernetes": ([], "1.37"),
    # kube-scheduler, which knows no gangs.
    "none": ([], DEFAULT_KUBERNETES),
}
"""The scheduler of gangs, by name: the testbed's add-ons, and its Kubernetes."""


class Cluster(TypedDict):
    """Arguments of `Testbed.start`."""

    parts: list[str]
    kubernetes: str


def cluster(
    scheduler: str = "volcano", *, kueue: bool = False, operators: Iterable[str] = ("kuberay", "training")
) -> Cluster:
    """Return what to ask a testbed for: a scheduler of gangs, a key of `SCHEDULERS`, perhaps Kueue, and operators."""
    addons, kubernetes = SCHEDULERS[scheduler]
    return Cluster(parts=[*addons, *operators, *(["kueue"] if kueue else [])], kubernetes=kubernetes)


def coscheduling_pod_group(name: str, min_member: int) -> Manifest:
    """Return a PodGroup of scheduler-plugins."""
    return _manifest(COSCHEDULING_POD_GROUPS, name, {"minMember": min_member})


def elastic_quota(name: str, **limit: str) -> Manifest:
    """Return an ElasticQuota that guarantees its namespace so much, and no more than that."""
    return _manifest(ELASTIC_QUOTAS, name, {"min": limit, "max": limit})


def resource_flavor(name: str) -> Manifest:
    """Return a ResourceFlavor that is any node."""
    return _manifest(RESOURCE_FLAVORS, name, {})


def cluster_queue(name: str, flavor: str, **quota: str) -> Manifest:
    """Return a ClusterQueue for all namespaces, with a quota of one flavor."""
    resources = [{"name": resource, "nominalQuota": most} for resource, most in quota.items()]
    group = {"coveredResources": [*quota], "flavors": [{"name": flavor, "resources": resources}]}
    return _manifest(CLUSTER_QUEUES, name, {"namespaceSelector": {}, "resourceGroups": [group]})


def local_queue(name: str, cluster_queue_name: str) -> Manifest:
    """Return a LocalQueue that leads to a ClusterQueue."""
    return _manifest(LOCAL_QUEUES, name, {"clusterQueue": cluster_queue_name})


def member(name: str, *, labels: dict[str, str] | None = None, cpu: str = "1", **spec: object) -> Manifest:
    """Return a pod of one container that asks for so much cpu."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def bound(pods: Iterable[Manifest]) -> list[str]:
    """Return the names of the pods with a node."""
    return [pod["metadata"]["name"] for pod in pods if node_of(pod)]


def scheduled(pod: Manifest) -> str:
    """Return "reason: message" of a pod's condition PodScheduled, "" where it has none."""
    conditions = pod.get("status", {}).get("conditions") or []
    found = [
        f"{one.get('reason', '')}: {one.get('message', '')}" for one in conditions if one["type"] == "PodScheduled"
    ]
    return "".join(found)


def _manifest(resource: Resource, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
