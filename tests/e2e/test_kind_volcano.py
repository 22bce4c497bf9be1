"""Volcano's own Job: Volcano runs it, and muster counts what it holds."""

import pytest

from hack.testbed import Testbed
from muster.model.names import QUEUE_LABEL
from muster.model.resource import PODS
from tests.support.cluster.recorder import RAY_CLUSTERS, VOLCANO_JOBS
from tests.support.cluster.scene import Scene, node_of, open_scene
from tests.support.manifests.applied import RUN_SECONDS, ray_cluster, volcano_job

pytestmark = pytest.mark.part("kinds")


def _says(scene: Scene, job: str) -> str:
    """Volcano's word for how far a Job is."""
    found = scene.recorder.get(VOLCANO_JOBS, job) or {}
    return str(found.get("status", {}).get("state", {}).get("phase", ""))


def _members(scene: Scene, job: str) -> list[str]:
    """The names of the pods of a Job."""
    return [
        pod["metadata"]["name"] for pod in scene.pods() if pod["metadata"]["labels"].get("volcano.sh/job-name") == job
    ]


@pytest.mark.usefixtures("muster")
def test_jobs_of_volcano_and_gangs_wait_for_each_other(testbed: Testbed) -> None:
    """All that a Job holds counts, its pods above minAvailable too; when it has ended the gang has the room.

    The next Job comes when the gang is gone.
    """
    with open_scene(testbed, "kind-volcano", kinds=(VOLCANO_JOBS, RAY_CLUSTERS)) as scene:
        queue = scene.queue(cpu="4")
        scene.create(volcano_job("first", queue, "1", replicas=3))
        # Of which minAvailable is one: with that alone the gang would fit beside it.
        scene.wait("the first to run", lambda: [bool(node_of(pod)) for pod in scene.pods()] == [True] * 3)
        scene.create(ray_cluster("beside").label(QUEUE_LABEL, queue).workers(2))
        scene.await_gated("ray-beside-pg", 3)
        scene.await_state("ray-beside-pg", "WaitingForQuota")

        scene.annotate(PODS, *_members(scene, "first"), **{RUN_SECONDS: "0"})
        scene.await_running("ray-beside-pg", 3)
        scene.wait("the first to be complete", lambda: _says(scene, "first") == "Completed")
        scene.create(volcano_job("second", queue, "2"))
        scene.wait("Volcano to hold the second back", lambda: _says(scene, "second") == "Pending")
        scene.delete(RAY_CLUSTERS, "beside")
        scene.wait("the second to run", lambda: _says(scene, "second") == "Running")
        scene.assert_never_above({"cpu": "4"})
