"""The objects of the bench: CRDs, namespaces, and workers of a RayCluster as KubeRay makes them."""

import asyncio
import json
import time
from typing import Any

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from muster.kube.client import Client
from muster.model.resource import PODS, Resource

RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")
_CRDS = (
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml"),
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"),
    ("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayclusters.yaml"),
)
# Where no webhook is asked, where one in Go, and where muster's.
NAMESPACES = ("none", "go", "muster")
_SIZE = 8000
_CREATED, _AT_ONCE = 400, 16
_SECONDS = 120.0
_WORKERS = 100_000
_RESOURCES = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}


def prepare(testbed: Testbed) -> None:
    """Have the apiserver serve the CRDs, and make namespaces in which pods can be created."""
    for module, file in _CRDS:
        testbed.kubectl("apply", "--server-side", f"--filename={testbed.module_dir(module) / file}")
    established = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    wait_for("the CRDs to be served", lambda: testbed.kubectl(*established))
    for name in NAMESPACES:
        testbed.kubectl("create", "namespace", name)
        testbed.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=120s")


def cluster(api: Api, namespace: str) -> dict[str, Any]:
    """A labelled RayCluster there, as the apiserver has it."""
    template = {"spec": {"containers": [{"name": "ray", "image": "none", "resources": _RESOURCES}]}}
    workers = {"groupName": "workers", "replicas": _WORKERS, "minReplicas": _WORKERS, "maxReplicas": _WORKERS}
    return api.create(
        RAY_CLUSTERS.path(namespace),
        {
            "apiVersion": RAY_CLUSTERS.api_version,
            "kind": RAY_CLUSTERS.kind,
            "metadata": {"name": "demo", "labels": {"volcano.sh/queue-name": "default"}},
            "spec": {
                "headGroupSpec": {"rayStartParams": {}, "template": template},
                "workerGroupSpecs": [{**workers, "rayStartParams": {}, "template": template}],
            },
        },
    )


def worker(cluster: dict[str, Any], number: int, *, size: int = _SIZE) -> dict[str, Any]:
    """One of its workers, of about so many bytes."""
    meta = cluster["metadata"]
    owner = {"apiVersion": cluster["apiVersion"], "kind": cluster["kind"], "name": meta["name"], "uid": meta["uid"]}
    container: dict[str, Any] = {
        "name": "ray-worker",
        "image": "rayproject/ray:2.52.0",
        "resources": _RESOURCES,
        "readinessProbe": {"exec": {"command": ["bash", "-c", "wget " + "x" * 300]}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"demo-workers-worker-{number}",
            "namespace": meta["namespace"],
            "labels": {
                "ray.io/cluster": meta["name"],
                "ray.io/group": "workers",
                "ray.io/node-type": "worker",
                "app.kubernetes.io/name": "kuberay",
            },
            "annotations": {"ray.io/ft-enabled": "false"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        # No scheduler takes it while it is there, whether muster holds it or not.
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }
    variable = {"name": "RAY_VARIABLE_00000", "value": "v" * 60}
    count = max(0, size - len(json.dumps(pod))) // (len(json.dumps(variable)) + 2)
    container["env"] = [{**variable, "name": f"RAY_VARIABLE_{index:05}"} for index in range(count)]
    return pod


def review(pod: dict[str, Any]) -> bytes:
    """The review that the apiserver sends of its creation."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return json.dumps(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                "kind": kind,
                "resource": resource,
                "requestKind": kind,
                "requestResource": resource,
                "name": pod["metadata"]["name"],
                "namespace": pod["metadata"]["namespace"],
                "operation": "CREATE",
                "userInfo": {"username": "system:serviceaccount:ray-system:kuberay-operator"},
                "object": pod,
                "oldObject": None,
                "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        }
    ).encode()


async def creations(testbed: Testbed, namespace: str) -> float:
    """Pods a second that the apiserver creates in a namespace, which is empty again afterwards."""
    limit = asyncio.Semaphore(_AT_ONCE)
    async with await Client.connect(kubeconfig=str(testbed.kubeconfig), user_agent="muster-bench") as client:
        owner = json.loads(await client.get(RAY_CLUSTERS, "demo", namespace, deadline=_SECONDS))

        async def create(number: int) -> None:
            async with limit:
                await client.create(PODS, worker(owner, number), namespace, deadline=_SECONDS)

        async def delete(number: int) -> None:
            async with limit:
                await client.delete(PODS, worker(owner, number, size=0)["metadata"]["name"], namespace, deadline=60)

        started = time.perf_counter()
        await asyncio.gather(*(create(number) for number in range(_CREATED)))
        seconds = time.perf_counter() - started
        await asyncio.gather(*(delete(number) for number in range(_CREATED)))
    return _CREATED / seconds
