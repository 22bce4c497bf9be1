"""Manifests and stores for unit tests: each builder makes the smallest valid object, and takes what a test is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

from controller.cluster import Cluster
from muster.gang import Gang, gang_of
from muster.intent import Defaults, Intent, find_intent
from muster.ledger import GangKey
from muster.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, MUSTER, QUEUE_LABEL
from muster.objects import Pod, PodGroup, PriorityClass, Queue, decode
from muster.resources import parse_resources
from muster.workloads.kubeflow import PYTORCH_JOB, TrainingJob
from muster.workloads.ray import RAY_CLUSTER, RayCluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from muster.kube.client import Client
    from muster.kube.store import Store
    from muster.quantity import Quantity
    from muster.workloads import Decoded, Kind, Workload

__all__ = [
    "DEFAULTS",
    "GROUP",
    "JSON",
    "KEY",
    "NAMESPACE",
    "QUEUE_LABELS",
    "amounts",
    "as_client",
    "as_json",
    "filled",
    "gang_and_intent",
    "made",
    "pod",
    "pod_group",
    "priority_class",
    "pytorch_job",
    "pytorch_pod",
    "queue",
    "ray_cluster",
    "ray_pod",
    "read",
    "template",
    "workers",
    "workload_store",
]

JSON = dict[str, Any]
T = TypeVar("T")

NAMESPACE = "team"
# The gang of `ray_cluster()`.
GROUP = "ray-demo-pg"
KEY = GangKey(NAMESPACE, GROUP)
QUEUE_LABELS = {"volcano.sh/queue-name": "q"}
DEFAULTS = Defaults()
_OLD = "2026-11-21T10:00:00Z"


def as_json(value: object) -> str:
    return json.dumps(value)


def as_client(stand_in: object) -> Client:
    """The stand-in, typed as what it stands in for."""
    return cast("Client", stand_in)


def made(type_: type[T], manifest: JSON) -> T:
    return decode(as_json(manifest), type_)


def amounts(**raw: str) -> dict[str, Quantity]:
    """`cpu="1", gpu="2"`: resources by name; gpu is NVIDIA's."""
    return parse_resources({"nvidia.com/gpu" if name == "gpu" else name: text for name, text in raw.items()}, path="")


def template(cpu: str = "1", memory: str = "1Gi", **spec: object) -> JSON:
    requests = {"cpu": cpu, "memory": memory} if cpu else {}
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec}}


def workers(name: str = "workers", replicas: int | None = 2, **rest: object) -> JSON:
    """A worker group; `replicas` None leaves the field out."""
    counted = {} if replicas is None else {"replicas": replicas}
    return {"groupName": name, **counted, "template": template(), **rest}


def ray_cluster(
    *groups: JSON,
    name: str = "demo",
    uid: str = "uid-demo",
    labels: Mapping[str, str] = QUEUE_LABELS,
    annotations: Mapping[str, str] | None = None,
    head: JSON | None = None,
    meta: Mapping[str, object] | None = None,
    **spec: object,
) -> JSON:
    """A head of 1 cpu and, where no groups are given, two workers of 1 cpu; labelled for queue `q`."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid,
            "creationTimestamp": _OLD,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
            **(meta or {}),
        },
        "spec": {
            "headGroupSpec": {"template": head or template()},
            "workerGroupSpecs": list(groups or (workers(),)),
            **spec,
        },
    }


def pytorch_job(
    *,
    name: str = "train",
    uid: str = "uid-train",
    policy: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    replicas: Mapping[str, object] | None = None,
    conditions: Iterable[JSON] = (),
    **run_policy: object,
) -> JSON:
    """One master and two workers of 1 cpu each, unless `replicas` says otherwise; `policy` is the schedulingPolicy."""
    run = dict(run_policy) | ({} if policy is None else {"schedulingPolicy": dict(policy)})
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid,
            "creationTimestamp": _OLD,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "runPolicy": run,
            "pytorchReplicaSpecs": dict(
                replicas
                or {
                    "Master": {"replicas": 1, "template": template()},
                    "Worker": {"replicas": 2, "template": template()},
                },
            ),
        },
        "status": {"conditions": list(conditions)},
    }


def pod(
    name: str,
    *,
    owner: Mapping[str, object] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    meta: Mapping[str, object] | None = None,
    phase: str = "Pending",
    **spec: object,
) -> JSON:
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
            "ownerReferences": [dict(owner)] if owner else [],
            **(meta or {}),
        },
        "spec": {**template()["spec"], "schedulerName": "volcano", **spec},
        "status": {"phase": phase},
    }


def ray_pod(
    name: str,
    role: str = "workers",
    *,
    held: bool = True,
    cluster: str = "demo",
    owner_uid: str = "uid-demo",
    **rest: Any,  # noqa: ANN401 - whatever `pod` takes
) -> JSON:
    """A member of `ray_cluster()`, bound as the webhook binds it."""
    group = f"ray-{cluster}-pg"
    return pod(
        name,
        owner={"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": cluster, "uid": owner_uid, "controller": True},
        labels={"ray.io/cluster": cluster, "ray.io/group": role, GANG: group, QUEUE_LABEL: "q"},
        annotations={GROUP_NAME: group},
        schedulingGates=[{"name": GATE}] if held else [],
        **rest,
    )


def pytorch_pod(name: str, role: str = "worker", *, held: bool = True, **rest: Any) -> JSON:  # noqa: ANN401
    """A member of `pytorch_job()`, bound as the webhook binds it."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": "uid-train"}
    return pod(
        name,
        owner={**owner, "controller": True},
        labels={
            "training.kubeflow.org/job-name": "train",
            "training.kubeflow.org/replica-type": role,
            GANG: "train",
        },
        annotations={GROUP_NAME: "train"},
        schedulingGates=[{"name": GATE}] if held else [],
        **rest,
    )


def queue(name: str = "q", *, state: str = "Open", **capability: str) -> JSON:
    return {"metadata": {"name": name}, "spec": {"capability": capability}, "status": {"state": state}}


def priority_class(name: str, value: int, *, default: bool = False) -> JSON:
    return {"metadata": {"name": name}, "value": value, "globalDefault": default}


def pod_group(
    name: str = GROUP,
    *,
    owner: Mapping[str, object] | None = None,
    owner_uid: str = "uid-demo",
    admitted: str = "",
    annotations: Mapping[str, str] | None = None,
    ours: bool = True,
    phase: str = "",
    meta: Mapping[str, object] | None = None,
    **spec: object,
) -> JSON:
    """The PodGroup that muster makes for `ray_cluster()`, unless told otherwise."""
    owner = owner or {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": owner_uid}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "labels": {MANAGED_BY: MUSTER} if ours else {},
            "annotations": ({ADMITTED: admitted} if admitted else {}) | dict(annotations or {}),
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            **(meta or {}),
        },
        "spec": {
            "minMember": 3,
            "minTaskMember": {"headgroup": 1, "workers": 2},
            "minResources": {"cpu": "3", "memory": "3Gi"},
            "queue": "q",
            **spec,
        },
        "status": {"phase": phase},
    }


def filled(
    *,
    workloads: Iterable[JSON] = (),
    pods: Iterable[JSON] = (),
    groups: Iterable[JSON] = (),
    queues: Iterable[JSON] = (),
    classes: Iterable[JSON] = (),
) -> Cluster:
    """The controller's picture of a cluster that holds exactly these objects."""
    cluster = Cluster()
    cluster.pods.replace_all([made(Pod, item) for item in pods])
    cluster.pod_groups.replace_all([made(PodGroup, item) for item in groups])
    cluster.queues.replace_all([made(Queue, item) for item in queues])
    cluster.priority_classes.replace_all([made(PriorityClass, item) for item in classes])
    by_kind: dict[Kind, list[Decoded]] = {RAY_CLUSTER: [], PYTORCH_JOB: []}
    for item in workloads:
        if item["kind"] == "RayCluster":
            by_kind[RAY_CLUSTER].append(made(RayCluster, item))
        else:
            by_kind[PYTORCH_JOB].append(made(TrainingJob, item))
    for kind, objects in by_kind.items():
        workload_store(cluster, kind).replace_all(objects)
    return cluster


def workload_store(cluster: Cluster, kind: Kind) -> Store[Decoded]:
    return cluster._workloads[kind]


def read(manifest: JSON) -> Workload:
    """The workload of a manifest."""
    ray = manifest["kind"] == "RayCluster"
    kind = RAY_CLUSTER if ray else PYTORCH_JOB
    return kind.read(made(RayCluster if ray else TrainingJob, manifest))


def gang_and_intent(manifest: JSON, priorities: Mapping[str, int] | None = None) -> tuple[Gang, Intent]:
    """Gang and intent of a workload that is muster's."""
    workload = read(manifest)
    intent = find_intent(workload, DEFAULTS)
    assert intent is not None
    return gang_of(workload, intent, priorities or {}), intent
