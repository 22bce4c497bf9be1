"""Objects as a watch shows them, for unit tests: the smallest valid one of each kind, with UID and status.

What users apply, complete enough for the real CRDs, is in `applied`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, Intent, find_intent
from muster.gangs.roles import Gang
from muster.kube.client import Client
from muster.model.findings import Finding
from muster.model.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, MUSTER, QUEUE_LABEL
from muster.model.objects import decode
from muster.queueing.ledger import GangKey
from muster.resources.amounts import parse_resources
from muster.resources.quantity import Quantity
from muster.workloads import Workload, kind_of

JSON = dict[str, Any]
T = TypeVar("T")

NAMESPACE = "team"
# The words of admission and controller for the queue of a gang in that namespace.
NO_QUEUE = f'queue "q" does not exist, or is not open to namespace "{NAMESPACE}"'
ASK = "; name another one, or ask its administrator"
# The gang of `ray_cluster()`.
GROUP = "ray-demo-pg"
KEY = GangKey(NAMESPACE, GROUP)
QUEUE_LABELS = {"volcano.sh/queue-name": "q"}
DEFAULTS = Defaults()
_OLD = "2026-11-21T10:00:00Z"


def lines(findings: Iterable[Finding]) -> tuple[str, ...]:
    """What people read of these."""
    return tuple(one.message for one in findings)


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
    start_time: str = "",
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
        "status": {"conditions": list(conditions), **({"startTime": start_time} if start_time else {})},
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


def ray_owner(name: str = "demo", uid: str = "", **more: object) -> JSON:
    """The reference to a RayCluster; its UID is like its name, unless told otherwise."""
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": uid or f"uid-{name}", **more}


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
        owner=ray_owner(cluster, owner_uid, controller=True),
        labels={"ray.io/cluster": cluster, "ray.io/group": role, GANG: group, QUEUE_LABEL: "q"},
        annotations={GROUP_NAME: group},
        schedulingGates=[{"name": GATE}] if held else [],
        **rest,
    )


def pytorch_pod(
    name: str,
    role: str = "worker",
    *,
    job: str = "train",
    held: bool = True,
    **rest: Any,  # noqa: ANN401
) -> JSON:
    """A member of `pytorch_job()`, or of another one of that name, bound as the webhook binds it."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job, "uid": f"uid-{job}"}
    return pod(
        name,
        owner={**owner, "controller": True},
        labels={
            "training.kubeflow.org/job-name": job,
            "training.kubeflow.org/replica-type": role,
            GANG: job,
        },
        annotations={GROUP_NAME: job},
        schedulingGates=[{"name": GATE}] if held else [],
        **rest,
    )


def queue(
    name: str = "q", *, state: str = "Open", annotations: Mapping[str, str] | None = None, **capability: str
) -> JSON:
    return {
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"capability": capability},
        "status": {"state": state},
    }


def namespace(*, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None) -> JSON:
    return {"metadata": {"name": NAMESPACE, "labels": dict(labels or {}), "annotations": dict(annotations or {})}}


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
    owner = owner or ray_owner(uid=owner_uid)
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


def limit_range(name: str = "usual", namespace: str = NAMESPACE, **default_request: str) -> JSON:
    """A LimitRange that gives these requests to containers without."""
    item = {"type": "Container", "defaultRequest": default_request}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"limits": [item]}}


def resource_quota(hard: Mapping[str, str], *, used: Mapping[str, str] | None = None, name: str = "quota") -> JSON:
    """A ResourceQuota of the namespace for every pod; `used` is what is charged to it, 0 where that is not said."""
    status = {"hard": dict(hard), "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"hard": dict(hard)}, "status": status}


def elastic_quota(
    largest: Mapping[str, str] | None = None,
    least: Mapping[str, str] | None = None,
    *,
    name: str = "elastic",
    namespace: str = NAMESPACE,
) -> JSON:
    """An ElasticQuota of scheduler-plugins with this `max` and `min`."""
    spec = {key: dict(amounts) for key, amounts in (("max", largest), ("min", least)) if amounts is not None}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def runtime_class(name: str, **overhead: str) -> JSON:
    """A RuntimeClass whose pods take so much more."""
    return {"metadata": {"name": name}, "overhead": {"podFixed": overhead}}


def old_pod(name: str, role: str = "workers", **rest: Any) -> JSON:  # noqa: ANN401 - whatever `pod` takes
    """A pod of `ray_cluster()` that came without muster, and runs by the default scheduler."""
    of_cluster = ray_pod(name, role, held=False, **{"phase": "Running", "schedulerName": "default-scheduler", **rest})
    for key in (GANG, QUEUE_LABEL):
        of_cluster["metadata"]["labels"].pop(key, None)
    of_cluster["metadata"]["annotations"] = {}
    return of_cluster


def read(manifest: JSON) -> Workload:
    """The workload of a manifest."""
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    return kind.read(made(kind.decoded, manifest))


def gang_and_intent(manifest: JSON, priorities: Mapping[str, int] | None = None) -> tuple[Gang, Intent]:
    """Gang and intent of a workload that is muster's."""
    workload = read(manifest)
    intent = find_intent(workload, DEFAULTS)
    assert intent is not None
    return gang_of(workload, intent, priorities or {}), intent
