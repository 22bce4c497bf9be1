"""Story A: PyTorchJobs of six pods in a queue of 8Gi; who runs next, and who may pass (issue 3, 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.resource import POD_GROUPS
from tests.builders import PyTorchJob, pytorch_job
from tests.scene import message, phase

if TYPE_CHECKING:
    from tests.scene import Scene

_SECONDS = 5


def _job(queue: str, priority: str = "") -> PyTorchJob:
    """The story's job: a master and five workers of 1Gi each; two of them do not fit."""
    policy = {"queue": queue} | ({"priorityClass": priority} if priority else {})
    return pytorch_job("job-").master(cpu="100m").workers(5, cpu="100m").policy(**policy)


def test_priority_overtakes_age(scene: Scene, urgent: str) -> None:
    """A1: J1 runs, J2 waits, then J3 with priority waits: J3 runs after J1, though younger, and J2 after J3."""
    queue = scene.queue(memory="8Gi")
    first = scene.create(_job(queue, urgent))
    scene.await_running(first, 6)
    group = scene.pod_group(first)
    assert (group["spec"]["minMember"], group["status"]["running"]) == (6, 6)
    second = scene.create(_job(queue).runs(_SECONDS))
    scene.await_event(second, "WaitingForQuota")
    third = scene.create(_job(queue, urgent).runs(_SECONDS))
    scene.await_event(third, "WaitingForQuota")
    scene.wait("the younger to be first", lambda: "position 1 of 2" in message(scene.pod_group(third)))
    scene.wait("the older to be second", lambda: "position 2 of 2" in message(scene.pod_group(second)))

    # Only now, so that it cannot have ended before the others came; those end by themselves.
    scene.end(first)
    scene.await_ended(third)
    scene.await_ended(second)

    scene.recorder.settle()
    ran = [scene.first_bound(job) for job in (first, third, second)]
    ended = [scene.succeeded(job) for job in (first, third, second)]
    assert ran[1] > ended[0], "the third was placed before the first had succeeded"
    assert ran[2] > ended[1], "the second was placed before the third had succeeded"
    phases = [
        (seen.name, phase(seen.object))
        for seen in scene.recorder.history(POD_GROUPS)
        if phase(seen.object) == "Running"
    ]
    assert list(dict.fromkeys(name for name, _ in phases)) == [first, third, second]
    for job in (first, second, third):
        scene.assert_started_together(job, 6)
    scene.assert_never_above({"memory": "8Gi"})


def test_passing_a_small_job_runs_before_a_waiting_large_one(scene: Scene, urgent: str) -> None:
    """A2: J2 waits for J1; J3, a master alone, fits beside J1 and runs at once; J2 runs when J1 has succeeded."""
    queue = scene.queue(memory="8Gi")
    first = scene.create(_job(queue, urgent))
    scene.await_running(first, 6)
    second = scene.create(_job(queue, urgent).runs(_SECONDS))
    scene.await_event(second, "WaitingForQuota")
    third = scene.create(
        pytorch_job("job-").master(cpu="100m").policy(queue=queue, priorityClass=urgent).runs(_SECONDS)
    )
    scene.wait("the small one to start", lambda: phase(scene.pod_group(third)) == "Running")
    assert scene.pod_group(third)["spec"]["minMember"] == 1

    scene.end(first)
    scene.await_ended(second)
    scene.recorder.settle()
    assert scene.first_bound(third) < scene.succeeded(first), "the small one waited for the first"
    assert scene.first_bound(third) < scene.first_bound(second), "the small one did not pass"
    assert scene.first_bound(second) > scene.succeeded(first), "the large one was placed before the first had succeeded"
    scene.assert_started_together(second, 6)
    scene.assert_never_above({"memory": "8Gi"})
