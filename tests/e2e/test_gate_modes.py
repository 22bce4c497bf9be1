"""Queues whose gangs are held only until they are whole, or not at all."""

from muster.model.names import GANG, GANG_SIZE, GATE, GATE_MODE, GROUP_NAME, QUEUE_LABEL
from muster.model.resource import PODS, QUEUES
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, gates, node_of
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster


def queue_of_mode(scene: Scene, mode: str, **capability: str) -> str:
    """A queue with this annotation from its first moment on."""
    manifest = applied.queue(scene.namespace, **capability)
    manifest["metadata"]["annotations"] = {GATE_MODE: mode}
    scene.adopt_queue(scene.namespace)
    scene.apply(manifest)
    scene.await_queue(scene.namespace)
    return scene.namespace


def test_assemble_opens_a_whole_gang_and_leaves_room_to_the_scheduler(scene: Scene) -> None:
    """In a full queue the gang is held until it is whole and then opened; Volcano makes it wait, whole, for room."""
    queue = queue_of_mode(scene, "assemble", cpu="3")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    scene.apply(ray_cluster("second").label(QUEUE_LABEL, queue).workers(2))
    scene.await_state("ray-second-pg", "Admitted")
    scene.wait("its gates to open", lambda: [gates(pod) for pod in scene.pods("ray-second-pg")] == [[], [], []])
    assert [node_of(pod) for pod in scene.pods("ray-second-pg")] == ["", "", ""]

    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("ray-second-pg", 3)
    for gang in ("ray-first-pg", "ray-second-pg"):
        scene.assert_started_together(gang, 3)
    scene.recorder.settle()
    first_seen = {seen.object["metadata"]["uid"]: gates(seen.object) for seen in reversed(scene.recorder.history(PODS))}
    assert set(map(tuple, first_seen.values())) == {(GATE,)}, "every member is held when it is made"
    scene.assert_never_placed_above({"cpu": "3"})


def test_off_binds_and_never_holds(scene: Scene) -> None:
    """The pods are in their queue and their PodGroup, which is there with the first of them; no gate is ever seen."""
    queue = queue_of_mode(scene, "off", cpu="3")
    probe = applied.pod("probe")
    probe["metadata"] |= {"labels": {GANG: "probe", QUEUE_LABEL: queue}, "annotations": {GANG_SIZE: "1"}}
    trial = f"{PODS.path(scene.namespace)}?dryRun=All"
    # Where it does not know the queue yet it holds pods, to be on the safe side.
    scene.wait("the webhook to know of the queue", lambda: not gates(scene.api.create(trial, probe)))
    scene.apply(ray_cluster("free").label(QUEUE_LABEL, queue).workers(2))
    pods = scene.await_running("ray-free-pg", 3)
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    assert {pod["metadata"]["annotations"][GROUP_NAME] for pod in pods} == {"ray-free-pg"}
    scene.recorder.settle()
    assert not any(gates(seen.object) for seen in scene.recorder.history(PODS))
    spec = scene.pod_group("ray-free-pg")["spec"]
    assert (spec["queue"], spec["minMember"]) == (queue, 3)
    scene.assert_started_together("ray-free-pg", 3)


def test_turned_off_a_queue_lets_those_go_that_wait(scene: Scene) -> None:
    """The annotation works at once, for those who were held before as well."""
    queue = scene.queue(cpu="3")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    scene.apply(ray_cluster("second").label(QUEUE_LABEL, queue).workers(2))
    scene.await_event("second", "WaitingForQuota")
    scene.annotate(QUEUES, queue, **{GATE_MODE: "off"})
    scene.wait("its gates to open", lambda: [gates(pod) for pod in scene.pods("ray-second-pg")] == [[], [], []])
    scene.assert_never_placed_above({"cpu": "3"})
