"""How gangs wait in a real queue: strictly, with patience, closed, lowered and raised, and past one that is nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.resource import QUEUES
from muster.names import PASSED_SINCE, PATIENCE, QUEUE_LABEL, QUEUEING
from tests.support.cluster.propagation import await_said
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import message, state
from tests.support.manifests.workloads import pytorch_job, ray_cluster

if TYPE_CHECKING:
    from tests.support.cluster.scene import Scene
    from tests.support.manifests.workloads import PyTorchJob, RayCluster


def _cluster(name: str, queue: str, cpu: int) -> RayCluster:
    """A cluster of so many pods of 1 cpu."""
    cluster = ray_cluster(name).label(QUEUE_LABEL, queue)
    return cluster.workers(cpu - 1) if cpu > 1 else cluster


def _annotate(scene: Scene, queue: str, key: str, value: str) -> None:
    scene.patch(QUEUES, queue, {"metadata": {"annotations": {key: value}}})


def test_in_a_strict_queue_a_small_gang_waits_behind_a_large_one(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    _annotate(scene, queue, QUEUEING, "strict")
    scene.apply(_cluster("first", queue, 2))
    scene.await_running("ray-first-pg", 2)
    scene.apply(_cluster("large", queue, 3))
    scene.await_state("ray-large-pg", "WaitingForQuota")
    scene.apply(_cluster("small", queue, 1))
    waiting = scene.await_state("ray-small-pg", "WaitingForQuota")
    assert 'nobody passes gang "ray-large-pg" here' in message(waiting)
    scene.delete(RAY_CLUSTERS, "first")
    # Both fit now.
    scene.await_running("ray-large-pg", 3)
    scene.await_running("ray-small-pg", 1)
    scene.assert_never_open_above()


def test_a_gang_is_passed_only_until_its_patience_is_over(scene: Scene) -> None:
    """Of the same second, names decide who is first: the large one's is."""
    queue = scene.queue(cpu="4")
    scene.apply(_cluster("first", queue, 2))
    scene.await_running("ray-first-pg", 2)
    scene.apply(_cluster("large", queue, 4))
    scene.await_state("ray-large-pg", "WaitingForQuota")
    scene.apply(_cluster("small-one", queue, 1))
    scene.await_running("ray-small-one-pg", 1)
    scene.wait(
        "the passing to be written down",
        lambda: PASSED_SINCE in scene.pod_group("ray-large-pg")["metadata"]["annotations"],
    )
    _annotate(scene, queue, PATIENCE, "0s")
    scene.apply(_cluster("small-two", queue, 1))
    assert "nobody passes" in message(scene.await_state("ray-small-two-pg", "WaitingForQuota"))
    scene.delete(RAY_CLUSTERS, "small-one")
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("ray-large-pg", 4)
    scene.recorder.settle()
    assert state(scene.pod_group("ray-small-two-pg")) == "WaitingForQuota"
    scene.assert_never_open_above()


def test_a_closed_queue_starts_nothing_and_an_opened_one_goes_on(scene: Scene) -> None:
    queue = scene.queue(cpu="3")
    scene.apply(_cluster("first", queue, 3))
    scene.await_running("ray-first-pg", 3)
    scene.apply(_cluster("next", queue, 2))
    scene.await_state("ray-next-pg", "WaitingForQuota")
    _command(scene, queue, "CloseQueue")
    scene.await_queue(queue, "Closing")
    scene.await_state("ray-next-pg", "QueueClosed")
    await_said(scene, _cluster("refused", queue, 1), f'queue "{queue}" is Closing')
    assert f'queue "{queue}" is Closing' in scene.try_apply(_cluster("refused", queue, 1))
    scene.delete(RAY_CLUSTERS, "first")
    scene.wait("the first to be gone", lambda: not scene.pods("ray-first-pg"))
    assert state(scene.pod_group("ray-next-pg")) == "QueueClosed"
    _command(scene, queue, "OpenQueue")
    scene.await_running("ray-next-pg", 2)
    scene.assert_never_open_above()


def test_a_queue_raised_and_lowered_while_gangs_wait(scene: Scene) -> None:
    """Raised, it lets in who is next and no more; lowered, it keeps what runs and says who is too large by now."""
    queue = scene.queue(cpu="4")
    scene.apply(_cluster("first", queue, 3))
    scene.await_running("ray-first-pg", 3)
    for name in ("next", "third"):
        scene.apply(_cluster(name, queue, 3))
        scene.await_state(f"ray-{name}-pg", "WaitingForQuota")
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "6"}}})
    scene.await_running("ray-next-pg", 3)
    assert state(scene.pod_group("ray-third-pg")) == "WaitingForQuota"
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "2"}}})
    lowered = scene.await_state("ray-third-pg", "ExceedsCapability")
    assert message(lowered) == f'needs cpu 3, queue "{queue}" has capability cpu 2'
    for gang in ("ray-first-pg", "ray-next-pg"):
        scene.await_running(gang, 3)
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "9"}}})
    scene.await_running("ray-third-pg", 3)
    scene.assert_never_open_above()


def test_a_gang_that_volcano_places_nowhere_lets_others_pass_after_a_minute(scene: Scene) -> None:
    """Its queue has room for it. No node has so much memory, or Volcano holds it back for the other queue's fair share.

    The nodes have room for the second, but each of two queues wants more than its half of the cluster.
    """
    queue = scene.queue(cpu="3")
    scene.apply(_cluster("nowhere", queue, 2).head(memory="4000Gi"))
    scene.await_state("ray-nowhere-pg", "Admitted")
    scene.apply(_cluster("next", queue, 2))
    scene.await_state("ray-next-pg", "WaitingForQuota")

    half, other = scene.queue("-half", cpu="42"), scene.queue("-other", cpu="40")
    scene.apply(_pods_of_seven("busy", other, 2))
    scene.await_running("busy", 2)
    scene.apply(_pods_of_seven("wanting", other, 5))
    scene.await_state("wanting", "WaitingForQuota")
    scene.apply(_pods_of_seven("beyond", half, 5))
    scene.await_state("beyond", "Admitted")
    scene.apply(_pods_of_seven("within", half, 4))
    scene.await_state("within", "WaitingForQuota")

    nowhere = scene.await_state("ray-nowhere-pg", "Unschedulable")
    assert "the scheduler finds no place: " in message(nowhere)
    scene.await_running("ray-next-pg", 2)
    scene.await_running("within", 4)
    scene.await_state("beyond", "Unschedulable")

    # Half of the cluster is enough for it now, and its claim counts again.
    scene.end("within")
    scene.delete(PYTORCH_JOBS, "wanting")
    scene.await_running("beyond", 5)
    assert scene.pod_group("beyond")["spec"]["minResources"] == {"cpu": "35", "memory": "5Gi"}
    scene.assert_never_open_above()


def _pods_of_seven(name: str, queue: str, pods: int) -> PyTorchJob:
    return pytorch_job(name).policy(queue=queue).master(cpu="7").workers(pods - 1, cpu="7")


def _command(scene: Scene, queue: str, action: str) -> None:
    """What `vcctl queue operate` does."""
    uid = scene.api.get(QUEUES.path(name=queue))["metadata"]["uid"]
    target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": queue, "uid": uid, "controller": True}
    manifest = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "operate-", "ownerReferences": [target]},
        "action": action,
        "target": target,
    }
    scene.create(manifest)
