"""What does not ask for muster is as it would be without it (issue 3, 4.6)."""

import re
from typing import Any

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, QUEUE_LABEL
from muster.model.resource import EVENTS, POD_GROUPS, PODS
from tests.e2e.conftest import InstallOnBare
from tests.support.cluster.nudges import assert_soon, version_now
from tests.support.cluster.recorder import DEPLOYMENTS, JOBS, PYTORCH_JOBS, RAY_CLUSTERS, VOLCANO_JOBS, Manifest
from tests.support.cluster.scene import Scene, has_condition, open_scene, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import pytorch_job, ray_cluster, volcano_job

pytestmark = pytest.mark.part("bare")

_GANGS = {"ray-ours-pg": RAY_CLUSTERS, "ours": PYTORCH_JOBS}

# What no two objects share: identity, time, where it runs.
_INDIVIDUAL = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "startTime",
    "startedAt",
    "finishedAt",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastHeartbeatTime",
    "completionTime",
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "nodeName",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
}


# Volcano names the PodGroup of a Job after the Job's.
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _same(value: Any, namespace: str) -> Any:  # noqa: ANN401 - any part of a manifest
    """A manifest without what no two objects share."""
    if isinstance(value, dict):
        return {key: _same(item, namespace) for key, item in value.items() if key not in _INDIVIDUAL}
    if isinstance(value, list):
        return [_same(item, namespace) for item in value]
    if isinstance(value, str):
        text = _UID.sub("UID", value.replace(namespace, "NAMESPACE"))
        return re.sub(
            r"^(kube-api-access|[a-z-]*-head|[a-z-]*-worker|\w+-deployment-\w+|\w+-job)-\w{5}$", r"\1-*", text
        )
    return value


def _make_everything(scene: Scene) -> list[Manifest]:
    """Create what is none of muster's business and return its pods and itself, when all of it runs."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    scene.apply(
        applied.pod("alone"),
        applied.deployment("some-deployment", replicas=2),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "some-job"},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        },
        ray_cluster("silent").label("team", "blue").workers(2),
        pytorch_job("silent").workers(1),
        # Story B: it names a queue of Volcano, and is none of muster's business all the same.
        volcano_job("job-1", scene.queue(cpu="2"), "1"),
    )
    expected = 1 + 2 + 1 + 3 + 2 + 1
    done = {"Running", "Succeeded"}
    scene.wait("all pods to run", lambda: sum(phase(pod) in done for pod in scene.pods()) == expected)
    # Its end takes the finalizer off its pod.
    scene.wait(
        "the Job to be complete", lambda: [has_condition(j, "Complete") for j in scene.recorder.now(JOBS)] == [True]
    )
    scene.recorder.settle()
    specs: list[Manifest] = []
    for kind in (PODS, DEPLOYMENTS, JOBS, RAY_CLUSTERS, PYTORCH_JOBS, VOLCANO_JOBS, POD_GROUPS):
        items = [_same(item, scene.namespace) for item in scene.recorder.now(kind)]
        # A workload's status depends on the moment; its pods have come to rest.
        if kind != PODS:
            items = [{**item, "status": None} for item in items]
        if kind == POD_GROUPS:
            # They have no status subresource: each write of a status is a generation.
            for item in items:
                del item["metadata"]["generation"]
        specs += sorted(items, key=lambda item: (item["metadata"]["name"], str(item)))
    return specs


def test_equal_with_and_without_muster(bare: Testbed, install_on_bare: InstallOnBare) -> None:
    """Workloads without intent, Jobs of both kinds, a Deployment, a pod: equal to those made before muster came."""
    kinds = (RAY_CLUSTERS, PYTORCH_JOBS, VOLCANO_JOBS, DEPLOYMENTS, JOBS)
    with open_scene(bare, "without-muster", kinds) as scene:
        without = _make_everything(scene)
    install_on_bare()
    with open_scene(bare, "with-muster", kinds) as scene:
        with_muster = _make_everything(scene)
    assert len(without) == 10 + 5 + 1
    for after, before in zip(with_muster, without, strict=True):
        assert after == before


@pytest.fixture
def ours(scene: Scene) -> Scene:
    """A scene with a running RayCluster and a running PyTorchJob of muster's."""
    queue = scene.queue(cpu="8")
    scene.apply(
        ray_cluster("ours").label(QUEUE_LABEL, queue).workers(1),
        pytorch_job("ours").workers(1).policy(queue=queue),
    )
    for gang in _GANGS:
        scene.await_running(gang, 2)
    return scene


def test_outage_of_the_webhook_delays_gangs_and_nobody_else(ours: Scene, muster: MusterInstall) -> None:
    """All else is created as ever; pods of gangs come soon when the webhook is back, without anybody doing anything."""
    scene = ours
    muster.stop_webhooks()
    lost = {gang: _lose_a_worker(scene, gang) for gang in _GANGS}

    scene.apply(applied.pod("alone"), applied.deployment("some-deployment", replicas=2))
    scene.wait(
        "others to run", lambda: sum(phase(pod) == "Running" and GANG not in _labels(pod) for pod in scene.pods()) == 3
    )
    said = scene.refused(ray_cluster("late").label(QUEUE_LABEL, "default"))
    assert 'failed calling webhook "workloads.muster.dev"' in said
    # Both operators have tried, and could not.
    scene.wait("the operators to be refused", lambda: len(_refused(scene)) == len(_GANGS))
    assert [len(scene.pods(gang)) for gang in _GANGS] == [1, 1]
    kept = {pod["metadata"]["uid"] for gang in _GANGS for pod in scene.pods(gang)}

    muster.start_webhook()
    muster.wait_ready()
    back = version_now(scene)
    for gang, kind in _GANGS.items():
        uids = {pod["metadata"]["uid"] for pod in scene.await_running(gang, 2)}
        assert lost[gang] not in uids
        assert_soon(scene, kind, "ours", back, uids - kept, long=False)


def _lose_a_worker(scene: Scene, gang: str) -> str:
    """Take away a worker's pod, wait until it is gone, and return its UID."""
    worker = next(pod for pod in scene.pods(gang) if "worker" in pod["metadata"]["name"])
    name = worker["metadata"]["name"]
    scene.delete(PODS, name, wait=False)
    scene.wait(f"{name} to go", lambda: scene.recorder.get(PODS, name) is None)
    return str(worker["metadata"]["uid"])


def _refused(scene: Scene) -> set[str]:
    """The kinds whose operator says in an event that a webhook did not answer."""
    return {
        event["regarding"]["kind"]
        for event in scene.recorder.now(EVENTS)
        if "failed calling webhook" in event.get("note", "")
    }


def _labels(pod: Manifest) -> Manifest:
    return pod["metadata"].get("labels") or {}
