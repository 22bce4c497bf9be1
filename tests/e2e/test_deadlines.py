"""A job whose time runs out while its gang waits."""

from dataclasses import replace

import pytest

from muster.model.names import GATE, QUEUE_LABEL
from muster.model.resource import PODS
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import Scene, gates, has_condition
from tests.support.manifests.applied import pytorch_job, ray_cluster

pytestmark = pytest.mark.part("time")

# Long enough for muster to see the job before its time is nearly over, on a busy machine, too.
_SECONDS = 60


def test_a_job_whose_time_is_over_never_starts(scene: Scene) -> None:
    """It is warned of, said to be near, said to be over; and room that comes then goes to nobody in vain."""
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("holder").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-holder-pg", 2)
    job = replace(pytorch_job("late").policy(queue=queue), run_policy={"activeDeadlineSeconds": _SECONDS})
    said = "\n".join(scene.apply(job))
    assert f"spec.runPolicy.activeDeadlineSeconds: {_SECONDS} s are counted while the gang waits for room" in said

    assert "and the gang still waits" in scene.await_event("late", "DeadlineNear")
    assert "deadline has passed" in scene.await_event("late", "DeadlinePassed")
    scene.delete(RAY_CLUSTERS, "holder")
    # The operator fails it when it looks at it next.
    scene.label(PYTORCH_JOBS, "late", look="now")
    scene.wait("the job to fail", lambda: has_condition(scene.recorder.get(PYTORCH_JOBS, "late") or {}, "Failed"))
    scene.recorder.settle()
    pods = [seen.object for seen in scene.recorder.history(PODS) if seen.object["metadata"]["name"].startswith("late")]
    assert pods
    assert all(gates(pod) == [GATE] for pod in pods)
    scene.assert_never_open_above()
