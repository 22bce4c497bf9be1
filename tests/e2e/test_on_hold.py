"""Queues and workloads on hold, on the real cluster: what does not start, what is said, and that it goes on."""

from muster.model.names import QUEUE_LABEL, QUEUEING
from muster.model.resource import QUEUES
from tests.support.cli.in_process import muster
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, message, state
from tests.support.manifests.applied import RayCluster, ray_cluster


def _cluster(name: str, queue: str) -> RayCluster:
    return ray_cluster(name).label(QUEUE_LABEL, queue)


def _run(scene: Scene, *words: str) -> str:
    command, *rest = words
    done = muster(command, f"--kubeconfig={scene.testbed.kubeconfig}", f"--namespace={scene.namespace}", *rest)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_queue_and_workload_on_hold_one_after_the_other(scene: Scene) -> None:
    """Nobody waits behind the workload on hold, though the queue is strict."""
    queue = scene.queue(cpu="1")
    scene.annotate(QUEUES, queue, **{QUEUEING: "strict"})
    _run(scene, "hold", f"queue/{queue}")
    scene.apply(_cluster("first", queue))
    scene.await_state("ray-first-pg", "OnHold")
    scene.apply(_cluster("next", queue))
    held = scene.await_state("ray-next-pg", "OnHold")
    how = f"(its annotation muster.dev/hold); to resume it: muster resume queue/{queue}"
    assert message(held) == f'queue "{queue}" is on hold {how}'
    assert "  OnHold: " in _run(scene, "explain", "raycluster/next")
    _run(scene, "hold", "raycluster/first")
    how = f"(its annotation muster.dev/hold); to resume it: muster resume raycluster/first -n {scene.namespace}"
    scene.wait(
        "the workload's own hold to be said",
        lambda: message(scene.pod_group("ray-first-pg")) == f'RayCluster "first" is on hold {how}',
    )
    _run(scene, "resume", f"queue/{queue}")
    scene.await_running("ray-next-pg", 1)
    assert state(scene.pod_group("ray-first-pg")) == "OnHold"
    _run(scene, "resume", "raycluster/first")
    scene.await_state("ray-first-pg", "WaitingForQuota")
    scene.delete(RAY_CLUSTERS, "next")
    scene.await_running("ray-first-pg", 1)
    scene.assert_never_open_above()
