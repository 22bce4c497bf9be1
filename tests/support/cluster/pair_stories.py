"""Stories of docs/seeds.md as each scheduler beside Volcano must tell them, in muster's own queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.resource import PODS, PRIORITY_CLASSES
from muster.model.names import GATE
from tests.support.cluster.objects import gates, message, state
from tests.support.cluster.recorder import PYTORCH_JOBS
from tests.support.manifests.applied import pytorch_job

if TYPE_CHECKING:
    from tests.support.cluster.pair_scene import PairScene

__all__ = ["closed_queue", "crash_under_load", "priority_overtakes_age"]

_CRASHES = (1, 2, 2)


def priority_overtakes_age(scene: PairScene) -> None:
    """A1: two jobs wait for a third; the younger has the priority, and runs first."""
    urgent = f"urgent-{scene.namespace}"
    made = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind, "metadata": {"name": urgent}}
    scene.create({**made, "value": 1000})
    try:
        queue = scene.gang_queue(capability={"cpu": "3"})
        scene.apply(pytorch_job("first").policy(queue=queue).workers(1))
        scene.await_placed("first", 2)
        scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
        scene.await_state("second", "WaitingForQuota")
        scene.apply(pytorch_job("third").policy(queue=queue, priorityClass=urgent).workers(1))
        scene.wait("the younger to be first", lambda: "position 1 of 2" in message(scene.pod_group("third")))
        scene.wait("the older to be second", lambda: "position 2 of 2" in message(scene.pod_group("second")))
        for job, following in (("first", "third"), ("third", "second")):
            scene.delete(PYTORCH_JOBS, job)
            scene.await_placed(following, 2)
        assert scene.first_bound("third") < scene.last_ungated("second", 1)
        for job in ("first", "second", "third"):
            scene.assert_started_together(job, 2)
        scene.assert_never_above({"cpu": "3"}, queue)
    finally:
        scene.delete(PRIORITY_CLASSES, urgent)


def crash_under_load(scene: PairScene) -> None:
    """C5: of two jobs in a queue for one and a half one loses a worker, then two at once, then two again."""
    queue = scene.gang_queue(capability={"cpu": "6"})
    scene.apply(pytorch_job("first").policy(queue=queue).workers(3))
    scene.await_placed("first", 4)
    scene.apply(pytorch_job("second").policy(queue=queue).workers(3))
    scene.await_state("second", "WaitingForQuota")
    for count in _CRASHES:
        workers = [pod for pod in scene.pods("first") if "worker" in pod["metadata"]["name"]][:count]
        lost = {pod["metadata"]["uid"] for pod in workers}
        scene.delete(PODS, *(pod["metadata"]["name"] for pod in workers))
        scene.wait(
            "the crash to be seen",
            lambda lost=lost: lost.isdisjoint(pod["metadata"]["uid"] for pod in scene.pods("first")),  # type: ignore[misc]
        )
        scene.await_placed("first", 4)
    waits = [pod for pod in scene.recorder.history(PODS) if pod.name.startswith("second-")]
    assert waits
    assert all(gates(seen.object) == [GATE] for seen in waits)
    scene.delete(PYTORCH_JOBS, "first")
    scene.await_placed("second", 4)
    scene.assert_started_together("second", 4)
    scene.assert_never_above({"cpu": "6"}, queue)


def closed_queue(scene: PairScene) -> None:
    """What runs in a queue stays when it is closed, what waits there waits on, and nothing new comes."""
    queue = scene.gang_queue(capability={"cpu": "3"})
    scene.apply(pytorch_job("runs").policy(queue=queue).workers(1))
    scene.await_placed("runs", 2)
    ran = sorted(scene.living("runs"))
    scene.apply(pytorch_job("waits").policy(queue=queue).workers(1))
    scene.await_state("waits", "WaitingForQuota")
    scene.set_queue(queue, closed=True)
    scene.await_state("waits", "QueueClosed")
    late = pytorch_job("late").policy(queue=queue)
    scene.wait("the webhook to know", lambda: "is Closed" in "".join(scene.told(late)))
    assert f'queue "{queue}" is Closed and takes no new work' in scene.refused(late)
    assert ran == sorted(scene.living("runs"))
    scene.delete(PYTORCH_JOBS, "runs")
    scene.wait("room", lambda: not scene.pods("runs"))
    assert all(gates(pod) == [GATE] for pod in scene.pods("waits"))
    assert state(scene.pod_group("waits")) == "QueueClosed"
    scene.set_queue(queue, closed=False)
    scene.await_placed("waits", 2)
    scene.assert_never_above({"cpu": "3"}, queue)
