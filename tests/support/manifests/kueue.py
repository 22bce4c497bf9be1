"""Objects of Kueue's as Kueue writes them: Workloads by their conditions, and ClusterQueues."""

from collections.abc import Mapping

from tests.support.manifests.observed import JSON

_AT = "2026-11-21T10:00:00Z"


def _condition(type_: str, status: str, reason: str, message: str = "") -> JSON:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": _AT}


PENDING = [_condition("QuotaReserved", "False", "Pending", "insufficient unused quota for cpu, 2 more needed")]
RESERVED = [_condition("QuotaReserved", "True", "QuotaReserved")]
ADMITTED = [*RESERVED, _condition("Admitted", "True", "Admitted"), _condition("PodsReady", "False", "WaitForStart")]
# The one write with which an eviction begins: quota and admission are still there.
EVICTED = [*ADMITTED, _condition("Evicted", "True", "PodsReadyTimeout", "Exceeded the PodsReady timeout ns/w")]
FINISHED = [*ADMITTED, _condition("Finished", "True", "WorkloadSliceReplaced")]


def kueue_workload(
    conditions: list[JSON],
    *pod_sets: JSON,
    name: str = "raycluster-demo-4e95f",
    uid: str = "uid-workload",
    owner_uid: str = "uid-demo",
    namespace: str = "ns",
    created: str = _AT,
    annotations: Mapping[str, str] | None = None,
    active: bool = True,
    **status: object,
) -> JSON:
    """Return a Workload that Kueue has made of the object of that UID."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": owner_uid, "controller": True}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": created,
            "labels": {"kueue.x-k8s.io/job-uid": owner_uid},
            "annotations": dict(annotations or {}),
            "ownerReferences": [owner],
        },
        "spec": {"queueName": "team", "active": active, "podSets": list(pod_sets)},
        "status": {"conditions": conditions, **status},
    }


def pod_set(name: str, count: int, **requests: str) -> JSON:
    """Return a pod set of so many pods that each ask for this."""
    container = {"name": "main", "resources": {"requests": requests}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container]}}}


def flavored_queue(*flavors: Mapping[str, str], cohort: str = "") -> JSON:
    """Return a ClusterQueue with one resource group, of these flavors."""
    group = {
        "coveredResources": sorted({resource for flavor in flavors for resource in flavor}),
        "flavors": [
            {"name": f"f{number}", "resources": [{"name": name, "nominalQuota": most} for name, most in flavor.items()]}
            for number, flavor in enumerate(flavors)
        ],
    }
    return {"metadata": {"name": "cq"}, "spec": {"cohortName": cohort, "resourceGroups": [group]}}
