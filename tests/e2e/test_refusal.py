"""What `kubectl apply` says of what it takes, beside the real Volcano.

Refusals need none: they are in tests/apiserver/test_refusals.py.
"""

import json

from muster.model.names import QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.resource import POD_GROUPS
from tests.support.cluster.scene import Scene, gates, node_of
from tests.support.manifests.applied import RayCluster, ray_cluster


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


def test_who_will_wait_for_room_is_told_so(scene: Scene) -> None:
    """As Volcano counts it, without what others use; the position is told as soon as the gang waits."""
    queue = scene.queue(cpu="4")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    second = ray_cluster("second").label(QUEUE_LABEL, queue).workers(1)
    line = (
        f'Warning: metadata.labels[{QUEUE_LABEL}]: gang "ray-second-pg" needs cpu 2; queue "{queue}" has '
        "less than that free now (its capability is cpu 4); the gang waits until there is room, and its event "
        "WaitingForQuota says its position"
    )
    scene.wait("the warning", lambda: line in _dry_run(scene, second).splitlines())
    scene.apply(second)
    assert scene.await_event("second", "WaitingForQuota").endswith("position 1 of 1 waiting")


def _dry_run(scene: Scene, workload: RayCluster) -> str:
    return scene.kubectl("create", "--dry-run=server", "-f-", text=_json(workload), check=False).stderr


def _json(workload: RayCluster) -> str:
    return json.dumps(workload.manifest())
