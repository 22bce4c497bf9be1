"""A queue vanishes while a gang waits: nothing is lost (issue 3, "Bad input")."""

import pytest

from muster.model.names import QUEUE_LABEL
from muster.model.resource import QUEUES
from muster.queueing.verdicts import no_such_queue
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, message, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("bare")


def test_gang_waits_for_its_queue_to_return(scene: Scene) -> None:
    """It says QueueNotFound on event and PodGroup, is not placed, and goes on when the queue is there again."""
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("holder").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-holder-pg", 2)
    scene.apply(ray_cluster("waiter").label(QUEUE_LABEL, queue).workers(1))
    scene.await_event("waiter", "WaitingForQuota")

    scene.delete(QUEUES, queue)
    group = scene.await_state("ray-waiter-pg", "QueueNotFound")
    assert message(group) == no_such_queue(queue, scene.namespace)
    assert scene.await_event("waiter", "QueueNotFound") == no_such_queue(queue, scene.namespace)
    scene.await_gated("ray-waiter-pg", 2)
    assert [phase(pod) for pod in scene.pods("ray-holder-pg")] == ["Running", "Running"], "who runs must run on"

    scene.apply(applied.queue(queue, cpu="2"))
    scene.await_state("ray-waiter-pg", "WaitingForQuota")
    scene.delete(RAY_CLUSTERS, "holder")
    scene.await_running("ray-waiter-pg", 2)
    scene.assert_started_together("ray-waiter-pg", 2)
    scene.assert_never_above({"cpu": "2"})
