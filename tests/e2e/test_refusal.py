"""What `kubectl apply` says of what it takes, beside the real Volcano.

Refusals need none: they are in tests/apiserver/test_refusals.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from muster.kube.resource import POD_GROUPS
from muster.names import QUEUE_LABEL, SCHEDULER_LABEL
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import gates, node_of
from tests.support.manifests.applied import RayCluster, ray_cluster

if TYPE_CHECKING:
    from tests.support.cluster.scene import Scene


def test_queue_closed_while_a_gang_waits(scene: Scene) -> None:
    """The gang keeps waiting, says QueueClosed, and goes on when the queue is opened."""
    queue = scene.queue(cpu="1")
    for name in ("one", "two"):
        scene.apply(ray_cluster(name).label(QUEUE_LABEL, queue))
        scene.await_event(name, {"one": "Running", "two": "WaitingForQuota"}[name])
    scene.operate_queue(queue, "CloseQueue")
    scene.await_state("ray-two-pg", "QueueClosed")
    assert scene.await_event("two", "QueueClosed") == f'queue "{queue}" is Closing and takes no new work'
    scene.delete(RAY_CLUSTERS, "one")
    scene.wait("its pod to go", lambda: not scene.pods("ray-one-pg"))
    # There is room now; the queue stays Closing for as long as a PodGroup names it.
    assert all(not node_of(pod) for pod in scene.await_gated("ray-two-pg", 1))
    scene.operate_queue(queue, "OpenQueue")
    scene.await_running("ray-two-pg", 1)


def test_unknown_scheduler_is_left_alone_with_a_warning(scene: Scene) -> None:
    """A label value that muster does not know may be somebody else's: accepted, said, untouched."""
    cluster = ray_cluster("theirs").label(SCHEDULER_LABEL, "my-own").workers(1)
    done = scene.kubectl("apply", "-f-", text=_json(cluster))
    assert done.stderr.strip() == (
        'Warning: metadata.labels[ray.io/scheduler-name]: muster is not configured for scheduler "my-own" (volcano); '
        "it leaves this alone"
    )
    scene.wait("its pods", lambda: sum(bool(node_of(pod)) for pod in scene.pods()) == 2)
    for pod in scene.pods():
        assert (gates(pod), pod["spec"]["schedulerName"]) == ([], "default-scheduler")
    assert not scene.recorder.now(POD_GROUPS)


def test_who_will_wait_for_room_is_told_what_the_queue_holds(scene: Scene) -> None:
    """As Volcano counts it, and who waits there; the position is told as soon as the gang waits."""
    queue = scene.queue(cpu="4")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    second, third = (ray_cluster(name).label(QUEUE_LABEL, queue).workers(1) for name in ("second", "third"))

    def told(workload: RayCluster, who_waits: str) -> bool:
        name = workload.manifest()["metadata"]["name"]
        line = (
            f'Warning: metadata.labels[{QUEUE_LABEL}]: gang "ray-{name}-pg" needs cpu 2, and queue "{queue}" holds '
            f"cpu 3 of 4 (75 %); {who_waits}; it waits until there is room, and its event WaitingForQuota says its "
            "position"
        )
        return line in _dry_run(scene, workload).splitlines()

    scene.wait("the warning", lambda: told(second, f'no gang waits in queue "{queue}" yet'))
    scene.apply(second)
    assert scene.await_event("second", "WaitingForQuota").endswith("position 1 of 1 waiting")
    before = f'1 gang waits in queue "{queue}", 1 before it by priority and age'
    scene.wait("the warning of those who wait", lambda: told(third, before))


def _dry_run(scene: Scene, workload: RayCluster) -> str:
    return scene.kubectl("create", "--dry-run=server", "-f-", text=_json(workload), check=False).stderr


def _json(workload: RayCluster) -> str:
    return json.dumps(workload.manifest())
