"""Who is compared, and what a user of each writes: plain pods as a gang, and RayClusters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from muster.kube.resource import POD_GROUPS, QUEUES, Resource
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, KUEUE_QUEUE, MANAGED, QUEUE_LABEL
from muster.observe.kueue_objects import CLUSTER_QUEUES, LOCAL_QUEUES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CONTENDERS",
    "MEMBER",
    "RAW",
    "RAW_GATE",
    "RAY_CLUSTERS",
    "Contender",
    "Manifest",
    "queue_of",
    "queues",
]

Manifest = dict[str, Any]

RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")
_FLAVORS = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False)
_FLAVOR = "any"
MEMBER = "hack.muster.dev/gang"
"""The bench's own label on plain pods, by which its watch knows a gang of any contender."""
RAW_GATE = "hack.muster.dev/raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to start gangs.

    `gate` is on its plain pods until they may start, "" for none; `kueue` names the configuration with which Kueue runs
    in its turn, "" for none; `flag` is whether KubeRay has `--batch-scheduler=volcano`. `plain` and `rays` tell whether
    it is measured with plain pods and with RayClusters.
    """

    name: str
    title: str
    namespace: str
    gate: str = ""
    kueue: str = ""
    flag: bool = False
    plain: bool = True
    rays: bool = True

    def pod(self, gang: str, number: int, size: int, queue: str, **requests: str) -> Manifest:
        """A plain pod of a gang, as its user writes it, with what it asks for."""
        labels, annotations, spec = self._said(gang, size, queue)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{gang}-{number}", "labels": {MEMBER: gang, **labels}, "annotations": annotations},
            "spec": {**_template(requests)["spec"], **spec},
        }

    def _said(self, gang: str, size: int, queue: str) -> tuple[Manifest, Manifest, Manifest]:
        """Labels, annotations and fields of the spec of a plain pod."""
        if self.kueue:
            labels = {KUEUE_QUEUE: queue, "kueue.x-k8s.io/pod-group-name": gang}
            return labels, {"kueue.x-k8s.io/pod-group-total-count": str(size)}, {}
        if self.gate == GATE:
            return {GANG: gang, QUEUE_LABEL: queue}, {GANG_SIZE: str(size)}, {}
        if self.gate == RAW_GATE:
            # As large as the others' pods.
            labels, annotations = {"hack.muster.dev/queue": queue}, {"hack.muster.dev/size": str(size)}
            return labels, annotations, {"schedulingGates": [{"name": RAW_GATE}], "schedulerName": "nobody"}
        return {}, {GROUP_NAME: gang}, {"schedulerName": "volcano"}

    def groups(self, gang: str, size: int, queue: str) -> list[tuple[Resource, Manifest]]:
        """What its user writes beside the plain pods of a gang: with Volcano alone, a PodGroup."""
        if self.gate or self.kueue:
            return []
        spec = {"minMember": size, "queue": queue}
        return [(POD_GROUPS, _manifest(POD_GROUPS, gang, spec))]

    def ray_cluster(self, name: str, pods: int, queue: str, **requests: str) -> Manifest:
        """A RayCluster of so many pods, one of them the head, each of which asks for this."""
        workers = {
            "groupName": "workers",
            "replicas": pods - 1,
            "minReplicas": pods - 1,
            "maxReplicas": pods - 1,
            "rayStartParams": {},
            "template": _template(requests),
        }
        spec = {
            "rayVersion": "2.52.0",
            "headGroupSpec": {"rayStartParams": {}, "template": _template(requests)},
            "workerGroupSpecs": [workers],
        }
        manifest = _manifest(RAY_CLUSTERS, name, spec)
        manifest["metadata"]["labels"] = self._labels(queue)
        return manifest

    def _labels(self, queue: str) -> dict[str, str]:
        if self.kueue:
            return {KUEUE_QUEUE: queue}
        if self.gate == GATE:
            return {QUEUE_LABEL: queue}
        # The queue's label means something to muster as well.
        return {QUEUE_LABEL: queue, MANAGED: "false"} if self.flag else {}


RAW = Contender(name="raw", title="raw patches", namespace="peers-raw", gate=RAW_GATE, rays=False)
_KUEUE = Contender(name="", title="", namespace="peers-kueue", gate="kueue.x-k8s.io/admission")
CONTENDERS = (
    RAW,
    Contender(name="nothing", title="KubeRay, no add-on", namespace="peers-nothing", plain=False),
    Contender(name="muster", title="muster", namespace="peers-muster", gate=GATE),
    replace(_KUEUE, name="kueue-shipped", title="Kueue as shipped", kueue="shipped"),
    replace(_KUEUE, name="kueue-tuned", title="Kueue, tuned", kueue="tuned"),
    Contender(name="volcano", title="Volcano alone", namespace="peers-volcano", flag=True),
)
"""In the order of the report; in a run each is first in turn."""


def queues(contender: Contender, name: str, quota: Mapping[str, str]) -> list[tuple[Resource, Manifest]]:
    """The objects of a queue of a contender with that quota; none for one that has no queues."""
    if contender.kueue:
        resources = [{"name": resource, "nominalQuota": most} for resource, most in quota.items()]
        group = {"coveredResources": [*quota], "flavors": [{"name": _FLAVOR, "resources": resources}]}
        wide = f"{contender.namespace}-{name}"
        return [
            (_FLAVORS, _manifest(_FLAVORS, _FLAVOR, {})),
            (CLUSTER_QUEUES, _manifest(CLUSTER_QUEUES, wide, {"namespaceSelector": {}, "resourceGroups": [group]})),
            (LOCAL_QUEUES, _manifest(LOCAL_QUEUES, name, {"clusterQueue": wide})),
        ]
    if contender.gate == GATE or contender.flag:
        spec = {"weight": 1, "reclaimable": False, "capability": dict(quota)}
        return [(QUEUES, _manifest(QUEUES, queue_of(contender, name), spec))]
    return []


def queue_of(contender: Contender, name: str) -> str:
    """What a workload of the contender says for its queue of that name; Volcano's Queues are in no namespace."""
    return name if contender.kueue else f"{contender.namespace}-{name}"


def _template(requests: Mapping[str, str]) -> Manifest:
    resources: Manifest = {"requests": dict(requests)}
    # Extended resources are limited, or refused.
    if limits := {name: amount for name, amount in requests.items() if "/" in name}:
        resources["limits"] = limits
    return {"spec": {"containers": [{"name": "main", "image": "none", "resources": resources}]}}


def _manifest(resource: Resource, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
