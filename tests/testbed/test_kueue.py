"""Kueue on the testbed: it suspends what is in one of its queues, and lets it run when there is quota."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hack.testbed import Nodes, Testbed
from muster.kube.resource import Resource
from tests.support.cluster.backends import (
    CLUSTER_QUEUES,
    KUEUE_QUEUE,
    WORKLOADS,
    bound,
    cluster,
    cluster_queue,
    local_queue,
    resource_flavor,
)
from tests.support.cluster.objects import Manifest, has_condition
from tests.support.cluster.recorder import JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import Scene, open_scene
from tests.support.cluster.testbed_fixtures import OwnTestbed
from tests.support.manifests import applied

_QUEUE = "team"
_OPEN = {"spec": {"stopPolicy": "None"}}


@pytest.fixture(scope="module")
def kueue() -> Iterator[Testbed]:
    """One testbed for this file, with Kueue, KubeRay and kube-scheduler."""
    asked = cluster(kueue=True, scheduler="none", operators=["kuberay"])
    with Testbed.start(**asked, nodes=Nodes(count=2, gpu=0), progress=print) as running:
        running.api().create("/apis/kueue.x-k8s.io/v1beta2/resourceflavors", resource_flavor("plain"))
        yield running


@contextmanager
def _queue(testbed: Testbed, name: str, *kinds: Resource, cpu: str = "8") -> Iterator[Scene]:
    """Yield a namespace with a LocalQueue, and a ClusterQueue of the namespace's name that admits nothing yet."""
    with open_scene(testbed, name, [*kinds, WORKLOADS]) as scene:
        scene.create(cluster_queue(scene.namespace, "plain", stop_policy="Hold", cpu=cpu, memory="64Gi"))
        scene.create(local_queue(_QUEUE, scene.namespace))
        try:
            yield scene
        finally:
            scene.delete(CLUSTER_QUEUES, scene.namespace, wait=False)


def _job(name: str, cpu: str = "1") -> Manifest:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {KUEUE_QUEUE: _QUEUE}},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }


def _admitted_by_kueue(scene: Scene, kind: Resource, pods: int) -> None:
    """What waits is suspended and has no pods; opening the ClusterQueue is all that it needs."""
    scene.wait("its Workload", lambda: len(scene.recorder.now(WORKLOADS)) == 1)
    scene.wait("Kueue to say that it waits", lambda: has_condition(_workload(scene), "QuotaReserved", "False"))
    (waiting,) = scene.recorder.now(kind)
    assert waiting["spec"]["suspend"] is True
    assert scene.pods() == []
    scene.patch(CLUSTER_QUEUES, scene.namespace, _OPEN)
    scene.wait("its admission", lambda: has_condition(_workload(scene), "Admitted"))
    scene.wait("its pods to be bound", lambda: len(bound(scene.pods())) == pods)


def _workload(scene: Scene) -> Manifest:
    (found,) = scene.recorder.now(WORKLOADS)
    return found


@pytest.mark.long
def test_a_job_is_admitted_through_its_local_queue(kueue: Testbed) -> None:
    with _queue(kueue, "job", JOBS) as scene:
        scene.create(_job("train"))
        _admitted_by_kueue(scene, JOBS, 2)


@pytest.mark.long
def test_a_raycluster_is_admitted_through_its_local_queue(kueue: Testbed) -> None:
    with _queue(kueue, "raycluster", RAY_CLUSTERS) as scene:
        scene.create(applied.ray_cluster("train").label(KUEUE_QUEUE, _QUEUE).workers(2, cpu="1", memory="1Gi"))
        _admitted_by_kueue(scene, RAY_CLUSTERS, 3)


def _replicated(kind: str, version: str, field: str, container: str, *roles: str) -> Manifest:
    pod = {"containers": [{"name": container, "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
    replicas = {role: {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod}} for role in roles}
    return {"apiVersion": f"kubeflow.org/{version}", "kind": kind, "metadata": {}, "spec": {field: replicas}}


@pytest.mark.long
def test_every_kind_of_its_configuration_waits_in_its_queue(own_testbed: OwnTestbed) -> None:
    """Beside Volcano, with the operators of all of them."""
    operators = ["kuberay", "training", "mpi"]
    one = own_testbed(**cluster("volcano", kueue=True, operators=operators), nodes=Nodes(count=2, gpu=0))
    one.api().create("/apis/kueue.x-k8s.io/v1beta2/resourceflavors", resource_flavor("plain"))
    rays = applied.ray_cluster("").workers(1).manifest()["spec"]
    # Kueue refuses a RayJob that keeps its cluster.
    ray_job = {"rayClusterSpec": rays, "entrypoint": "x", "shutdownAfterJobFinishes": True}
    kinds: list[Manifest] = [
        _job(""),
        _replicated("MPIJob", "v2beta1", "mpiReplicaSpecs", "mpi", "Launcher", "Worker"),
        _replicated("PyTorchJob", "v1", "pytorchReplicaSpecs", "pytorch", "Master", "Worker"),
        _replicated("TFJob", "v1", "tfReplicaSpecs", "tensorflow", "Chief", "Worker"),
        {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {}, "spec": rays},
        {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {}, "spec": ray_job},
    ]
    with _queue(one, "kinds") as scene:
        for manifest in kinds:
            name = manifest["kind"].lower()
            scene.create(manifest | {"metadata": {"name": name, "labels": {KUEUE_QUEUE: _QUEUE}}})

        def waiting() -> list[str]:
            found = scene.recorder.now(WORKLOADS)
            assert not any(has_condition(one, "Admitted") for one in found)
            return sorted(one["metadata"]["ownerReferences"][0]["kind"] for one in found)

        expected = sorted(manifest["kind"] for manifest in kinds)
        scene.wait("a Workload of each", lambda: waiting() == expected)
        assert scene.pods() == []


@pytest.mark.long
def test_what_is_in_no_queue_of_kueues_is_left_alone(kueue: Testbed) -> None:
    with _queue(kueue, "free", JOBS) as scene:
        job = _job("free")
        del job["metadata"]["labels"]
        scene.create(job)
        scene.wait("its pods to be bound", lambda: len(bound(scene.pods())) == 2)
        assert scene.recorder.now(WORKLOADS) == []


@pytest.mark.long
def test_an_object_of_the_former_version_is_converted(kueue: Testbed) -> None:
    with _queue(kueue, "conversion") as scene:
        name = scene.namespace
        former = kueue.api().get(f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{name}/localqueues/{_QUEUE}")
        assert former["spec"]["clusterQueue"] == name


@pytest.mark.long
def test_kueue_takes_back_what_does_not_get_ready_in_the_time_that_was_set(kueue: Testbed) -> None:
    """The quota is larger than the nodes: what Kueue admits, kube-scheduler cannot place."""
    shipped = kueue.kueue_conf.read_text()
    impatient = {"timeout": "5s", "requeuingStrategy": {"backoffBaseSeconds": 600}}
    kueue.kueue_conf.write_text(json.dumps(json.loads(shipped) | {"waitForPodsReady": impatient}))
    kueue.restart_part("kueue")
    try:
        with _queue(kueue, "patience", JOBS, cpu="1000") as scene:
            scene.patch(CLUSTER_QUEUES, scene.namespace, _OPEN)
            scene.create(_job("train", cpu="100"))
            scene.wait("its eviction", lambda: "PodsReadyTimeout" in _evictions(scene))
    finally:
        kueue.kueue_conf.write_text(shipped)
        kueue.restart_part("kueue")


def _evictions(scene: Scene) -> list[str]:
    conditions = [
        one for found in scene.recorder.now(WORKLOADS) for one in found.get("status", {}).get("conditions", [])
    ]
    return [one["reason"] for one in conditions if one["type"] == "Evicted" and one["status"] == "True"]
