"""Story B: Volcano's own jobs, alone and beside muster's gangs in one queue, and its `backfill` action.

That a Job of Volcano is the same with and without muster, object by object, is in test_untouched.py.
"""

import re
from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.names import GANG, GANG_SIZE, QUEUE_LABEL
from muster.model.resource import PODS, QUEUES
from tests.support.cluster.recorder import RAY_CLUSTERS, VOLCANO_JOBS, Manifest
from tests.support.cluster.scene import Scene, alive, gates, open_scene, phase
from tests.support.cluster.timeline import timeline
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster, volcano_job
from tests.support.pages.seeds import Point, told

# What a Job passes through from one run to the next: Volcano (1.14.1) may restart it twice for one eviction, or call it
# Pending before it calls it Restarting, the busier the machine the more often.
_BETWEEN = re.compile(r"(?<=Running, )(?=[\w, ]*Restarting)(?:(?:Restarting|Pending), )+(?=Running)")


@pytest.fixture
def volcanic(testbed: Testbed, muster: object, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene in which Volcano's Jobs are on record."""
    del muster
    with open_scene(testbed, request.node.name.removeprefix("test_"), kinds=(VOLCANO_JOBS, RAY_CLUSTERS)) as scene:
        yield scene


def test_b_a_volcano_job_runs_is_evicted_runs_again_and_completes(volcanic: Scene) -> None:
    """B: and one that asks for 3 cpu in its queue of 2 is refused with these numbers."""
    scene = volcanic
    queue = scene.queue(cpu="2")
    scene.patch(QUEUES, queue, {"spec": {"reclaimable": False}})
    refused = scene.refused(volcano_job("too-large", queue, "3")).partition("denied the request: ")[2]

    scene.apply(volcano_job("job-1", queue, "1"))
    scene.wait("job-1 to run", lambda: _phases(scene)[-1:] == ["Running"])
    first = scene.pods()[0]
    name = first["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    scene.api.create(f"{PODS.path(scene.namespace, name)}/eviction", eviction)
    scene.wait("job-1 to run again", lambda: _phases(scene).count("Running") == 2 and _phases(scene)[-1] == "Running")
    scene.wait("its pod", lambda: [phase(pod) for pod in scene.pods()] == ["Running"])
    again = scene.pods()[0]
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    # In one update: of a pod that changes before it ends Volcano may hear so late that it leaves Completing out.
    scene.patch(PODS, again["metadata"]["name"], {"status": {"phase": "Succeeded"}}, "status")
    scene.wait("job-1 to be complete", lambda: _phases(scene)[-1] == "Completed")
    scene.recorder.settle()
    touched = [seen for seen in scene.recorder.history(PODS) if gates(seen.object) or GANG in _labels(seen.object)]
    told(
        "B. A Job of Volcano, evicted and restarted",
        "One task of 1 cpu, `minAvailable: 1`, PodEvicted → RestartJob, TaskCompleted → CompleteJob, in a queue of 2 "
        "cpu that is not reclaimable. Every object is the same as without muster (`tests/e2e/test_untouched.py`).",
        Point(
            "phases of the Job",
            "Pending, Running, Restarting, Pending, Running, Completing, Completed",
            ", ".join(_phases(scene)),
        ),
        Point("pods with a key of muster", "0", str(len(touched))),
        Point(
            "the same Job with 3 cpu",
            "accepted, and Pending for good",
            f"refused: {refused.replace(queue, 'test')}",
            "muster refuses what can never run",
        ),
    )


def test_b_volcanos_backfill_places_a_gang_that_asks_for_nothing(scene: Scene) -> None:
    """B: a gang of pods without requests passes muster in a full queue, and Volcano's `backfill` action places it."""
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("full").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-full-pg", 2)
    for index in range(3):
        pod = applied.pod(f"light-{index}")
        pod["metadata"] |= {"labels": {GANG: "light", QUEUE_LABEL: queue}, "annotations": {GANG_SIZE: "3"}}
        scene.apply(pod)
    scene.await_running("light", 3)
    scene.assert_started_together("light", 3)
    told(
        "B. Volcano's `backfill` action: pods without requests",
        "A cluster fills the queue; then three pods without requests opt in as one gang.",
        Point(
            "order",
            "the cluster starts, the cluster runs, the gang starts, the gang runs",
            timeline(scene, {"ray-full-pg": "the cluster", "light": "the gang"}),
        ),
    )


def test_b_what_a_volcano_job_holds_counts(volcanic: Scene) -> None:
    """A VolcanoJob runs untouched; a gang that does not fit beside it waits, and runs when it is gone."""
    scene = volcanic
    queue = scene.queue(cpu="4")
    scene.apply(volcano_job("job-1", queue, "3"))
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
    # A pod that is being deleted does not count, neither with Volcano nor with muster.
    uid = pod["metadata"]["uid"]
    left = scene.recorder.first(PODS, lambda one: one["metadata"]["uid"] == uid and not alive(one), "its end").version
    assert scene.first_bound("ray-beside-pg") > left


def _phases(scene: Scene) -> list[str]:
    """The phases of job-1, one after another, from the record; between two runs a restart is shown once.

    How Volcano restarts a Job is Volcano's. muster touches neither the Job nor its pods, as the point above counts.
    """
    seen = [seen.object for seen in scene.recorder.history(VOLCANO_JOBS) if seen.name == "job-1" and not seen.gone]
    phases = [job.get("status", {}).get("state", {}).get("phase", "") for job in seen]
    changes = [phase for before, phase in zip(["", *phases], phases, strict=False) if phase != before]
    return _BETWEEN.sub("Restarting, Pending, ", ", ".join(changes)).split(", ") if changes else []


def _labels(pod: Manifest) -> Manifest:
    return pod["metadata"].get("labels") or {}
