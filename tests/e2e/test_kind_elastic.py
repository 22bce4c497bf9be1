"""An elastic PyTorchJob: so many workers as there is room for, from its minimum up."""

import pytest

from tests.support.cluster.recorder import PYTORCH_JOBS, Manifest
from tests.support.cluster.scene import Scene, admitted, message

pytestmark = pytest.mark.part("kinds")


def _elastic(name: str, queue: str, workers: int) -> Manifest:
    """A job of workers of 1 cpu that can go on with two of them, and says that two are enough to start."""
    container = {"name": "pytorch", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    worker = {"replicas": workers, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {
            "elasticPolicy": {"rdzvBackend": "c10d", "minReplicas": 2, "maxReplicas": 4},
            "runPolicy": {"schedulingPolicy": {"queue": queue, "minAvailable": 2}},
            "pytorchReplicaSpecs": {"Worker": worker},
        },
    }


def _scale(scene: Scene, name: str, workers: int) -> None:
    """What the autoscaler does that the operator makes for such a job."""
    scene.patch(PYTORCH_JOBS, name, {"spec": {"replicas": workers}}, "scale")


def test_an_elastic_job_starts_with_its_minimum_and_grows_and_shrinks_with_the_room(scene: Scene) -> None:
    """What it shrinks by lets the next one start; what it grows by waits for room like everybody else."""
    queue = scene.queue(cpu="5")
    scene.create(_elastic("first", queue, 2))
    scene.await_running("first", 2)
    _scale(scene, "first", 4)
    scene.await_running("first", 4)
    scene.create(_elastic("second", queue, 3))
    scene.await_gated("second", 3)
    scene.await_state("second", "WaitingForQuota")

    _scale(scene, "first", 2)
    scene.await_running("second", 3)
    _scale(scene, "first", 3)
    scene.wait("word of it", lambda: "no room yet for cpu 1" in message(scene.pod_group("first")))
    scene.end("second")
    assert not admitted(scene.await_state("second", "Finished")), "an ended job still holds its place"
    scene.await_running("first", 3)
    scene.end("first")
    scene.await_ended("first")
    scene.await_state("first", "Finished")
    for gang in ("first", "second"):
        assert scene.pod_group(gang)["spec"]["minMember"] == 2
        scene.assert_started_together(gang, 2)
    scene.assert_never_above({"cpu": "5"})
