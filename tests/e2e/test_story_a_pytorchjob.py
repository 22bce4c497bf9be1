"""Story A: PyTorchJobs of six pods in a queue of 8Gi; who runs next, and who may pass (issue 3, 4.3; issue 5, 6.1)."""

from tests.support.cluster.scene import Scene, message, phase
from tests.support.cluster.timeline import shown, timeline
from tests.support.manifests.applied import PyTorchJob, pytorch_job
from tests.support.pages.seeds import GATED, LEDGER, Point, told

_OUTSIDE = "Volcano 1.14 lets no PodGroup in that its queue cannot hold next to the running ones"


def _job(queue: str, priority: str = "") -> PyTorchJob:
    """The story's job: a master and five workers of 1Gi each; two of them do not fit."""
    policy = {"queue": queue} | ({"priorityClass": priority} if priority else {})
    return pytorch_job("job-").master(cpu="100m").workers(5, cpu="100m").policy(**policy)


def _made(scene: Scene, job: PyTorchJob) -> str:
    """Create the job, and return the name that the apiserver made."""
    return str(scene.create(job)["metadata"]["name"])


def _group(scene: Scene, job: str, running: int = 0) -> str:
    """What `kubectl get podgroup -o wide` shows of a job's PodGroup when Volcano has counted its running pods."""
    scene.wait(
        f"Volcano to count {running} running pods",
        lambda: scene.pod_group(job).get("status", {}).get("running", 0) == running,
    )
    group = scene.pod_group(job)
    return f"{phase(group)}, minMember {group['spec']['minMember']}, running {group['status'].get('running', 0)}"


def _states(scene: Scene, *jobs: str) -> str:
    """What the column STATE of `kubectl get` says of them."""
    lines = scene.kubectl("get", "pytorchjobs").stdout.splitlines()
    states = dict(line.split()[:2] for line in lines)
    assert states.pop("NAME") == "STATE"
    return ", ".join(states[job] for job in jobs)


def test_a1_priority_overtakes_age(scene: Scene, urgent: str) -> None:
    """A1: J1 runs, J2 waits, then J3 with priority waits: J3 runs after J1, though younger, and J2 after J3."""
    queue = scene.queue(memory="8Gi")
    first = _made(scene, _job(queue, urgent))
    scene.await_running(first, 6)
    runs = _group(scene, first, 6)
    second = _made(scene, _job(queue))
    why = scene.await_event(second, "WaitingForQuota").replace(queue, "test")
    third = _made(scene, _job(queue, urgent))
    scene.await_event(third, "WaitingForQuota")
    scene.await_gated(second, 6)
    scene.wait("the younger to be first", lambda: "position 1 of 2" in message(scene.pod_group(third)))
    scene.wait("the older to be second", lambda: "position 2 of 2" in message(scene.pod_group(second)))
    scene.wait("Volcano to look at it", lambda: phase(scene.pod_group(second)))
    waits, pods = _group(scene, second), shown(scene, second)
    scene.wait("the operator's word of both", lambda: _states(scene, first, second) == "Running, Created")
    states = _states(scene, first, second)

    for job, following in ((first, third), (third, second)):
        scene.end(job)
        scene.await_running(following, 6)
    scene.end(second)
    scene.await_ended(second)
    order = timeline(scene, {first: "J1", second: "J2", third: "J3"})
    for job in (first, second, third):
        scene.assert_started_together(job, 6)
    scene.assert_never_above({"memory": "8Gi"})
    told(
        "A1. The higher priority runs first, whatever its age",
        "PyTorchJobs of a master and five workers, 1Gi each, in a queue of 8Gi. J1 and J3 have a high priority, J2 has "
        "none.",
        Point(
            "order",
            "J1 starts, J1 runs, J2 waits, J3 waits, J1 ends, J3 starts, J3 runs, J3 ends, J2 starts, J2 runs, J2 ends",
            order,
        ),
        Point("PodGroup of J1, which has the job's name", "Running, minMember 6, running 6", runs),
        Point("PodGroup of J2 while it waits", "Inqueue, minMember 6, running 0", waits, _OUTSIDE),
        Point("STATE of J1 and J2 in `kubectl get pytorchjobs`", "Running, Created", states),
        Point("pods of J2 while it waits", "not shown", pods, GATED),
        Point("why J2 waits", "Volcano's events on its PodGroup", f"event on job and PodGroup: {why}", LEDGER),
    )


def test_a2_a_small_job_bypasses_a_waiting_large_one(scene: Scene, urgent: str) -> None:
    """A2: J2 waits for J1; J3, a master alone, fits beside J1 and runs at once; J2 runs when J1 has succeeded."""
    queue = scene.queue(memory="8Gi")
    first = _made(scene, _job(queue, urgent))
    scene.await_running(first, 6)
    second = _made(scene, _job(queue, urgent))
    scene.await_event(second, "WaitingForQuota")
    third = _made(scene, pytorch_job("job-").master(cpu="100m").policy(queue=queue, priorityClass=urgent))
    scene.await_running(third, 1)
    runs = _group(scene, third, 1)
    scene.end(third)
    scene.await_ended(third)
    scene.end(first)
    scene.await_running(second, 6)
    scene.end(second)
    scene.await_ended(second)
    order = timeline(scene, {first: "J1", second: "J2", third: "J3"})
    scene.assert_started_together(second, 6)
    scene.assert_never_above({"memory": "8Gi"})
    told(
        "A2. A smaller job passes one that waits",
        "The guide calls it backfill (Volcano's action of that name is something else, see B). J1 runs, J2 of the same "
        "size waits, J3 is a master without workers. [queues.md](queues.md#reservations) describes the rule.",
        Point(
            "order",
            "J1 starts, J1 runs, J2 waits, J3 starts, J3 runs, J3 ends, J1 ends, J2 starts, J2 runs, J2 ends",
            order,
        ),
        Point("PodGroup of J3", "Running, minMember 1, running 1", runs),
    )
