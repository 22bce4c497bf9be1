"""How gangs wait in a real queue: strictly, with patience, closed, lowered and raised, and past one that is nowhere."""

from muster.model.names import MANAGED, PASSED_SINCE, PATIENCE, QUEUE_LABEL, QUEUEING, RESERVES, UNPLACED_AFTER
from muster.model.resource import POD_GROUPS, QUEUES
from tests.support.cluster.propagation import await_accepted, await_said
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, admitted, gates, message, node_of, phase, state
from tests.support.cluster.timeline import timeline
from tests.support.manifests.applied import PyTorchJob, RayCluster, pod, pytorch_job, ray_cluster
from tests.support.pages.seeds import Point, told


def _cluster(name: str, queue: str, cpu: int) -> RayCluster:
    """A cluster of so many pods of 1 cpu."""
    cluster = ray_cluster(name).label(QUEUE_LABEL, queue)
    return cluster.workers(cpu - 1) if cpu > 1 else cluster


def _job(name: str, queue: str, cpu: int) -> PyTorchJob:
    """A job of so many pods of 1 cpu."""
    job = pytorch_job(name).policy(queue=queue).master(cpu="1")
    return job.workers(cpu - 1, cpu="1") if cpu > 1 else job


def _resize(scene: Scene, queue: str, **capability: str) -> int:
    """Give a queue this capability, and return the version from which it has it: Volcano writes its status any time."""
    return int(scene.patch(QUEUES, queue, {"spec": {"capability": capability}})["metadata"]["resourceVersion"])


def _annotate(scene: Scene, queue: str, key: str, value: str) -> None:
    scene.annotate(QUEUES, queue, **{key: value})


def test_in_a_strict_queue_a_small_gang_waits_behind_a_large_one(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    _annotate(scene, queue, QUEUEING, "strict")
    scene.apply(_cluster("first", queue, 2))
    scene.await_running("ray-first-pg", 2)
    scene.apply(_cluster("large", queue, 3))
    scene.await_state("ray-large-pg", "WaitingForQuota")
    # It fits beside the first, and not beside the large one.
    scene.apply(_cluster("small", queue, 2))
    waiting = scene.await_state("ray-small-pg", "WaitingForQuota")
    assert 'there is room, but gang "ray-large-pg" is before it in a strict queue' in message(waiting)
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("ray-large-pg", 3)
    scene.delete(RAY_CLUSTERS, "large")
    scene.await_running("ray-small-pg", 2)
    assert _admission(scene, "ray-large-pg") < _admission(scene, "ray-small-pg")
    scene.assert_never_open_above()


def _admission(scene: Scene, gang: str) -> int:
    """The version from which the gang was admitted."""
    return scene.recorder.first(
        POD_GROUPS, lambda group: group["metadata"]["name"] == gang and bool(admitted(group))
    ).version


def test_a_gang_that_waits_stays_held_whatever_its_owner_takes_back(scene: Scene) -> None:
    """By way of its label, of opting out and of a pod that muster lets pass: nothing opens before there is room."""
    queue = scene.queue(cpu="2")
    scene.apply(_cluster("holder", queue, 2))
    scene.await_running("ray-holder-pg", 2)
    scene.apply(_cluster("waiter", queue, 2))
    waiter = scene.await_state("ray-waiter-pg", "WaitingForQuota")["metadata"]["ownerReferences"][0]
    stranger = pod("stranger")
    labels = {"ray.io/cluster": "waiter", "ray.io/group": "none-of-its", "ray.io/node-type": "worker"}
    scene.apply({**stranger, "metadata": {"name": "stranger", "labels": labels, "ownerReferences": [waiter]}})
    beside = "pods that came without muster open nothing (stranger)"
    scene.wait("word of the pod", lambda: beside in message(scene.pod_group("ray-waiter-pg")))
    scene.label(RAY_CLUSTERS, "waiter", **{QUEUE_LABEL: None, MANAGED: "false"})
    assert f'stays in queue "{queue}"' in scene.await_event("waiter", "StillHeld")
    assert [gates(one) for one in scene.pods("ray-waiter-pg")] == [["muster.dev/gang"]] * 2
    assert state(scene.pod_group("ray-waiter-pg")) == "WaitingForQuota"
    scene.delete(RAY_CLUSTERS, "holder")
    scene.wait("it to run", lambda: [phase(one) for one in scene.pods("ray-waiter-pg")] == ["Running"] * 2)
    # Nothing of it is held any more: it is as it says.
    scene.await_state("ray-waiter-pg", "NotManaged")
    scene.assert_never_open_above()


def test_a_gang_whose_admission_cannot_be_written_keeps_no_room_from_those_behind_it(scene: Scene) -> None:
    """Its workload may have as many annotations as an object holds; who fills up its PodGroup as well is Invalid."""
    # Of the same second, names decide who is first.
    queue = scene.queue(cpu="3")
    scene.apply(_job("first", queue, 3))
    scene.await_running("first", 3)
    full = _cluster("full", queue, 2)
    for part in range(5):
        full = full.annotate(f"team/note-{part}", "x" * 51_200)
    scene.apply(full)
    group = scene.await_state("ray-full-pg", "WaitingForQuota")
    copied = _size_of_annotations(group)
    assert 102_400 < copied < 131_072 + 1_000
    # What is left is less than any mark needs.
    scene.annotate(POD_GROUPS, "ray-full-pg", filler="y" * (_MOST_ANNOTATED - copied - len("filler") - 10))
    scene.apply(_cluster("later", queue, 3))
    scene.await_state("ray-later-pg", "WaitingForQuota")
    scene.delete(PYTORCH_JOBS, "first")
    said = scene.await_event("full", "Invalid")
    assert said.startswith("it may start, but its admission cannot be written on its PodGroup: ")
    assert said.endswith("; others start before it")
    scene.await_running("ray-later-pg", 3)
    assert [gates(one) for one in scene.pods("ray-full-pg")] == [["muster.dev/gang"]] * 2
    # With the cause gone it is as any other.
    scene.annotate(POD_GROUPS, "ray-full-pg", filler=None)
    scene.delete(RAY_CLUSTERS, "later")
    scene.await_running("ray-full-pg", 2)
    scene.assert_never_open_above()


# Bytes of all annotations of an object, in which the apiserver counts their keys.
_MOST_ANNOTATED = 262_144


def _size_of_annotations(group: Manifest) -> int:
    return sum(len(key.encode()) + len(text.encode()) for key, text in group["metadata"]["annotations"].items())


def test_a_gang_is_bypassed_only_until_its_patience_is_over(scene: Scene) -> None:
    """Of the same second, names decide who is first: the large one's is. Those that run are jobs, and end some day."""
    queue = scene.queue(cpu="4")
    scene.apply(_job("first", queue, 2))
    scene.await_running("first", 2)
    scene.apply(_cluster("large", queue, 4))
    scene.await_state("ray-large-pg", "WaitingForQuota")
    scene.apply(_job("small-one", queue, 1))
    scene.await_running("small-one", 1)
    scene.wait(
        "the passing to be written down",
        lambda: PASSED_SINCE in scene.pod_group("ray-large-pg")["metadata"]["annotations"],
    )
    _annotate(scene, queue, RESERVES, "bounds")
    _annotate(scene, queue, PATIENCE, "0s")
    scene.apply(_cluster("small-two", queue, 1))
    held_up = message(scene.await_state("ray-small-two-pg", "WaitingForQuota"))
    assert f'queue "{queue}" reserves cpu for gang "ray-large-pg"' in held_up
    scene.delete(PYTORCH_JOBS, "small-one")
    scene.delete(PYTORCH_JOBS, "first")
    scene.await_running("ray-large-pg", 4)
    scene.recorder.settle()
    assert state(scene.pod_group("ray-small-two-pg")) == "WaitingForQuota"
    scene.assert_never_open_above()


def test_a_closed_queue_keeps_what_runs_starts_nothing_and_an_opened_one_goes_on(scene: Scene) -> None:
    """Closing, for it holds something, or Closed: it takes nobody new and says so; what waits there says so, too."""
    queue = scene.queue(cpu="3")
    scene.apply(_cluster("first", queue, 3))
    ran = _uids(scene.await_running("ray-first-pg", 3))
    scene.apply(_cluster("next", queue, 2))
    scene.await_state("ray-next-pg", "WaitingForQuota")
    scene.operate_queue(queue, "CloseQueue")
    scene.await_queue(queue, "Closing")
    scene.await_state("ray-next-pg", "QueueClosed")
    assert scene.await_event("next", "QueueClosed") == f'queue "{queue}" is Closing and takes no new work'
    _assert_refused_as(scene, queue, "Closing")
    assert _uids(scene.await_running("ray-first-pg", 3)) == ran, "what runs is to run on"
    scene.delete(RAY_CLUSTERS, "first")
    scene.wait("the first to be gone", lambda: not scene.pods("ray-first-pg"))
    # There is room now; the queue stays Closing for as long as a PodGroup names it.
    assert not any(node_of(pod) for pod in scene.await_gated("ray-next-pg", 2))
    assert state(scene.pod_group("ray-next-pg")) == "QueueClosed"
    scene.operate_queue(queue, "OpenQueue")
    scene.await_running("ray-next-pg", 2)
    scene.assert_never_open_above()

    scene.delete(RAY_CLUSTERS, "next")
    scene.wait("its PodGroup to go", lambda: not scene.recorder.now(POD_GROUPS))
    scene.operate_queue(queue, "CloseQueue")
    scene.await_queue(queue, "Closed")
    _assert_refused_as(scene, queue, "Closed")
    scene.operate_queue(queue, "OpenQueue")
    scene.await_queue(queue)
    late = _cluster("late", queue, 1)
    await_accepted(scene, late)
    scene.apply(late)
    scene.await_running("ray-late-pg", 1)


def _assert_refused_as(scene: Scene, queue: str, as_what: str) -> None:
    """Who comes now is refused in one line, as soon as the webhook knows of it."""
    cluster = _cluster("refused", queue, 1)
    await_said(scene, cluster, f'queue "{queue}" is {as_what}')
    assert scene.refused(cluster) == (
        'QueueClosed: admission webhook "workloads.muster.dev" denied the request: '
        f'metadata.labels[volcano.sh/queue-name]: queue "{queue}" is {as_what} and takes no new work; '
        "use an open queue or have this one opened"
    )


def _uids(pods: list[Manifest]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_a_queue_raised_and_lowered_while_gangs_wait(scene: Scene) -> None:
    """D5: raised, it lets in who is next and no more; lowered, it keeps what runs and says who is too large by now."""
    queue = scene.queue(cpu="3")
    scene.apply(_cluster("first", queue, 2))
    ran = _uids(scene.await_running("ray-first-pg", 2))
    for name in ("next", "third"):
        scene.apply(_cluster(name, queue, 2))
        scene.await_state(f"ray-{name}-pg", "WaitingForQuota")
    raised = _resize(scene, queue, cpu="4")
    ran |= _uids(scene.await_running("ray-next-pg", 2))
    assert state(scene.pod_group("ray-third-pg")) == "WaitingForQuota"
    order = timeline(
        scene, {"ray-first-pg": "cluster 1", "ray-next-pg": "cluster 2"}, [(raised, "the queue is raised")]
    )

    _resize(scene, queue, cpu="1")
    lowered = scene.await_state("ray-third-pg", "ExceedsCapability")
    assert message(lowered) == f'needs cpu 2, queue "{queue}" has capability cpu 1'
    assert _uids([*scene.await_running("ray-first-pg", 2), *scene.await_running("ray-next-pg", 2)]) == ran
    _resize(scene, queue, cpu="6")
    scene.await_running("ray-third-pg", 2)
    told(
        "D5. The capability is raised while a cluster waits",
        "Three clusters of 2 cpu in a queue of 3, which then has 4: the second runs, and the third still waits.",
        Point(
            "order",
            "cluster 1 starts, cluster 1 runs, cluster 2 waits, the queue is raised, cluster 2 starts, cluster 2 runs",
            order,
        ),
    )
    scene.assert_never_open_above()


def test_an_unplaced_gang_lets_others_bypass_it_after_a_while(scene: Scene) -> None:
    """Its queue has room for it. No node has so much memory, or Volcano holds it back for the other queue's fair share.

    The nodes have room for the second, but each of two queues wants more than its half of the cluster. The first asked
    for no requeue: it keeps its pods, open.
    """
    queue = scene.queue(cpu="3")
    _annotate(scene, queue, UNPLACED_AFTER, "1h")
    scene.apply(_cluster("nowhere", queue, 2).head(memory="4000Gi"))
    scene.await_state("ray-nowhere-pg", "Admitted")
    stuck = _uids(scene.pods("ray-nowhere-pg"))
    scene.apply(_cluster("next", queue, 2))
    scene.await_state("ray-next-pg", "WaitingForQuota")

    half, other = scene.queue("-half", cpu="42"), scene.queue("-other", cpu="40")
    _annotate(scene, half, UNPLACED_AFTER, "1h")
    scene.apply(_pods_of_seven("busy", other, 2))
    scene.await_running("busy", 2)
    scene.apply(_pods_of_seven("wanting", other, 5))
    scene.await_state("wanting", "WaitingForQuota")
    scene.apply(_pods_of_seven("beyond", half, 5))
    scene.await_state("beyond", "Admitted")
    scene.apply(_pods_of_seven("within", half, 4))
    scene.await_state("within", "WaitingForQuota")

    # Not before, so that all of them have been seen to wait, however long that took.
    for name in (queue, half):
        _annotate(scene, name, UNPLACED_AFTER, "1s")
    nowhere = scene.await_state("ray-nowhere-pg", "Unschedulable")
    assert "the scheduler finds no place: " in message(nowhere)
    scene.await_running("ray-next-pg", 2)
    scene.await_running("within", 4)
    scene.await_state("beyond", "Unschedulable")
    assert _uids(scene.pods("ray-nowhere-pg")) == stuck
    assert [gates(pod) for pod in scene.pods("ray-nowhere-pg")] == [[], []]

    # Half of the cluster is enough for it now, and its claim counts again.
    scene.end("within")
    scene.delete(PYTORCH_JOBS, "wanting")
    scene.await_running("beyond", 5)
    assert scene.pod_group("beyond")["spec"]["minResources"] == {"cpu": "35", "memory": "5Gi"}
    scene.assert_never_open_above()


def _pods_of_seven(name: str, queue: str, pods: int) -> PyTorchJob:
    return pytorch_job(name).policy(queue=queue).master(cpu="7").workers(pods - 1, cpu="7")
