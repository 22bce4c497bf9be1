"""Gangs that change while they run: a member is replaced, a cluster grows, a job is suspended and resumed."""

from muster.model.names import GATE, QUEUE_LABEL
from muster.model.resource import PODS
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import Scene, admitted, alive, gates, message, node_of, phase
from tests.support.manifests.applied import pytorch_job, ray_cluster


def test_nobody_takes_a_lost_members_place(scene: Scene) -> None:
    """A worker is lost while a gang that would fit its place waits: the replacement runs, the other waits on."""
    queue = scene.queue(cpu="3")
    scene.apply(ray_cluster("running").label(QUEUE_LABEL, queue).workers(2))
    before = {pod["metadata"]["uid"] for pod in scene.await_running("ray-running-pg", 3)}
    scene.apply(ray_cluster("waiting").label(QUEUE_LABEL, queue))
    scene.await_event("waiting", "WaitingForQuota")

    lost = next(
        pod for pod in scene.pods("ray-running-pg") if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"
    )
    scene.delete(PODS, lost["metadata"]["name"], wait=False)
    scene.wait("the worker to go", lambda: scene.recorder.get(PODS, lost["metadata"]["name"]) is None)
    after = {pod["metadata"]["uid"] for pod in scene.await_running("ray-running-pg", 3)}
    assert len(after - before) == 1
    scene.recorder.settle()
    assert [gates(pod) for pod in scene.pods("ray-waiting-pg")] == [[GATE]]
    assert not any(
        node_of(seen.object)
        for seen in scene.recorder.history(PODS)
        if seen.object["metadata"]["labels"]["ray.io/cluster"] == "waiting"
    )
    scene.assert_never_above({"cpu": "3"})


def test_growing_beyond_the_room_waits_while_the_gang_runs(scene: Scene) -> None:
    """A cluster is scaled up where the queue is full: the newcomer is held and said, and runs when there is room.

    Nor does it take the place of the head, which dies meanwhile.
    """
    queue = scene.queue(cpu="5")
    cluster = ray_cluster("growing").label(QUEUE_LABEL, queue)
    scene.apply(cluster.workers(2), ray_cluster("neighbour").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-growing-pg", 3)
    scene.await_running("ray-neighbour-pg", 2)

    scene.apply(cluster.workers(3))
    scene.wait("a newcomer", lambda: len(scene.pods("ray-growing-pg")) == 4)
    gang = "ray-growing-pg"
    scene.wait("word of it", lambda: "no room yet for cpu 1" in message(scene.pod_group(gang)))
    assert sorted(gates(pod) for pod in scene.pods(gang)) == [[], [], [], [GATE]]
    assert sum(phase(pod) == "Running" for pod in scene.pods(gang)) == 3
    assert scene.pod_group(gang)["spec"]["minMember"] == 3, "Volcano would block replacements"

    (newcomer,) = (pod["metadata"]["uid"] for pod in scene.pods(gang) if gates(pod) == [GATE])
    (lost,) = (pod["metadata"]["name"] for pod in scene.pods(gang) if "-head-" in pod["metadata"]["name"])
    scene.delete(PODS, lost, wait=False)
    scene.wait("the head to go", lambda: scene.recorder.get(PODS, lost) is None)
    scene.wait("another head to run", lambda: sum(phase(pod) == "Running" for pod in scene.pods(gang)) == 3)
    scene.recorder.settle()
    assert [pod["metadata"]["uid"] for pod in scene.pods(gang) if gates(pod) == [GATE]] == [newcomer]

    scene.delete(RAY_CLUSTERS, "neighbour")
    scene.await_running(gang, 4)
    scene.assert_never_above({"cpu": "5"})


def test_a_held_newcomer_is_the_replacement_of_a_running_worker_that_kuberay_deletes(scene: Scene) -> None:
    """Scaled up in a full queue and down again at the cost of one that runs: the one that waited takes its place."""
    queue = scene.queue(cpu="4")
    cluster = ray_cluster("swapping").label(QUEUE_LABEL, queue)
    gang = "ray-swapping-pg"
    scene.apply(cluster.workers(2), ray_cluster("neighbour").label(QUEUE_LABEL, queue))
    scene.await_running("ray-neighbour-pg", 1)
    running = [pod["metadata"]["name"] for pod in scene.await_running(gang, 3)]
    scene.apply(cluster.workers(3))
    scene.wait("word of it", lambda: "no room yet for cpu 1" in message(scene.pod_group(gang)))
    (newcomer,) = (pod["metadata"]["name"] for pod in scene.pods(gang) if gates(pod) == [GATE])

    lost = next(name for name in running if "-worker-" in name)
    scene.apply(cluster.workers(2, scaleStrategy={"workersToDelete": [lost]}))
    names = {pod["metadata"]["name"] for pod in scene.await_running(gang, 3)}
    assert names == {newcomer, *running} - {lost}
    scene.assert_never_above({"cpu": "4"})


def test_shrinking_gives_room_to_others(scene: Scene) -> None:
    """A cluster that is scaled down lets a waiting one in."""
    queue = scene.queue(cpu="4")
    cluster = ray_cluster("shrinking").label(QUEUE_LABEL, queue)
    scene.apply(cluster.workers(3))
    scene.await_running("ray-shrinking-pg", 4)
    scene.apply(ray_cluster("waiting").label(QUEUE_LABEL, queue).workers(1))
    scene.await_event("waiting", "WaitingForQuota")
    scene.apply(cluster.workers(1))
    scene.await_running("ray-waiting-pg", 2)
    scene.await_running("ray-shrinking-pg", 2)
    scene.assert_never_above({"cpu": "4"})


def test_suspended_job_gives_its_room_and_queues_again(scene: Scene) -> None:
    """Suspended, a job holds nothing and another runs; resumed, it waits for that one as if it were new."""
    queue = scene.queue(cpu="3")
    one, two = (pytorch_job(name).workers(2).policy(queue=queue) for name in ("one", "two"))
    scene.apply(one)
    scene.await_running("one", 3)
    scene.apply(two)
    scene.await_event("two", "WaitingForQuota")

    scene.apply(one.suspended())
    scene.await_running("two", 3)
    group = scene.await_state("one", "Suspended")
    assert not admitted(group), "a mark of the former run must not let the next one in"

    scene.apply(one.suspended(suspend=False))
    scene.await_state("one", "WaitingForQuota")
    scene.await_gated("one", 3)
    scene.end("two")
    scene.await_ended("two")
    scene.wait("one to run again", lambda: sum(alive(p) and phase(p) == "Running" for p in scene.pods("one")) == 3)
    scene.assert_never_above({"cpu": "3"})
    assert scene.recorder.get(PYTORCH_JOBS, "one") is not None


def test_a_suspended_job_keeps_no_room_from_who_comes_later(scene: Scene) -> None:
    """Volcano takes its PodGroup into the queue again though it has no pods: it asks for nothing there."""
    queue = scene.queue(cpu="3")
    one, two = (pytorch_job(name).workers(2).policy(queue=queue) for name in ("one", "two"))
    scene.apply(one)
    scene.await_running("one", 3)
    scene.apply(one.suspended())
    scene.wait("Volcano to take the PodGroup in", lambda: phase(scene.pod_group("one")) == "Inqueue")

    scene.apply(two)
    scene.await_running("two", 3)
    assert not scene.events("two", "Unschedulable"), "after a minute it would have run all the same"


def test_recreated_under_the_same_name_is_a_new_gang(scene: Scene) -> None:
    """Deleted and made again at once, a cluster is not taken for its former self: mark and PodGroup are its own."""
    queue = scene.queue(cpu="3")
    cluster = ray_cluster("phoenix").label(QUEUE_LABEL, queue).workers(1)
    gang = "ray-phoenix-pg"
    scene.apply(cluster)
    former = {pod["metadata"]["uid"] for pod in scene.await_running(gang, 2)}
    group = scene.pod_group(gang)

    scene.delete(RAY_CLUSTERS, "phoenix")
    scene.apply(cluster.workers(2))
    scene.wait("the former pods to go", lambda: not former & {pod["metadata"]["uid"] for pod in scene.pods(gang)})
    pods = scene.await_running(gang, 3)
    # Each kind has a watch of its own.
    scene.recorder.settle()
    owner = scene.recorder.get(RAY_CLUSTERS, "phoenix")
    assert owner is not None
    now = scene.pod_group(gang)
    assert now["metadata"]["uid"] != group["metadata"]["uid"]
    assert now["metadata"]["ownerReferences"][0]["uid"] == admitted(now) == owner["metadata"]["uid"]
    assert now["spec"]["minMember"] == 3
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods} == {owner["metadata"]["uid"]}
    scene.assert_never_above({"cpu": "3"})
