"""Volcano's own jobs beside muster's gangs in one queue (story B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.kube.resource import PODS
from muster.names import GANG, QUEUE_LABEL
from tests.builders import RUN_SECONDS, ray_cluster
from tests.recorder import VOLCANO_JOBS, Manifest
from tests.scene import gates, open_scene, phase, state

if TYPE_CHECKING:
    from hack.testbed import Testbed


def _volcano_job(name: str, queue: str, cpu: str, replicas: int = 1) -> Manifest:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "queue": queue,
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "tasks": [
                {
                    "replicas": replicas,
                    "name": "nginx",
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": {
                        # kwok ends the pods of any Job at once, unless told otherwise.
                        "metadata": {"annotations": {RUN_SECONDS: "3600"}},
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "nginx", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
                        },
                    },
                }
            ],
        },
    }


@pytest.mark.usefixtures("muster")
def test_what_a_volcano_job_holds_counts(testbed: Testbed) -> None:
    """A VolcanoJob runs untouched; a gang that does not fit beside it waits, and runs when it is gone."""
    with open_scene(testbed, "volcano-job", kinds=(VOLCANO_JOBS,)) as scene:
        queue = scene.queue(cpu="4")
        scene.apply(_volcano_job("job-1", queue, "3"))
        scene.wait("job-1 to run", lambda: [phase(pod) for pod in scene.pods()] == ["Running"])
        pod = scene.pods()[0]
        assert gates(pod) == []
        assert GANG not in pod["metadata"]["labels"]
        assert not [key for key in pod["metadata"]["annotations"] if key.startswith("muster.dev/")]

        scene.apply(ray_cluster("beside").label(QUEUE_LABEL, queue).workers(1))
        why = scene.await_event("beside", "WaitingForQuota")
        assert why.startswith(f'needs cpu 2 and memory 2Gi; queue "{queue}" has cpu 1 free of cpu 4')
        scene.await_gated("ray-beside-pg", 2)

        scene.delete(VOLCANO_JOBS, "job-1")
        scene.await_running("ray-beside-pg", 2)
        scene.assert_never_above({"cpu": "4"})
        gone = max(
            s.version for s in scene.recorder.history(PODS) if s.object["metadata"]["uid"] == pod["metadata"]["uid"]
        )
        assert scene.first_bound("ray-beside-pg") > gone


@pytest.mark.usefixtures("muster")
def test_what_a_volcano_job_holds_above_its_minimum_counts(testbed: Testbed) -> None:
    """Of a VolcanoJob with minAvailable 1 all three running pods take room."""
    with open_scene(testbed, "volcano-job-of-three", kinds=(VOLCANO_JOBS,)) as scene:
        queue = scene.queue(cpu="4")
        scene.apply(_volcano_job("job-1", queue, "1", replicas=3))
        scene.wait("job-1 to run", lambda: [phase(pod) for pod in scene.pods()] == ["Running"] * 3)
        scene.apply(ray_cluster("beside").label(QUEUE_LABEL, queue).workers(1))
        scene.wait("a decision", lambda: state(scene.pod_group("ray-beside-pg")) in {"WaitingForQuota", "Admitted"})
        assert state(scene.pod_group("ray-beside-pg")) == "WaitingForQuota"
