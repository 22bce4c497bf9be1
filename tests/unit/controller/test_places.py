"""Who has a place in its queue, and until when."""

import json

import pytest

from muster.kube.errors import ApiError
from muster.model.names import ADMITTED, ADMITTED_FOR, MESSAGE, STATE
from muster.model.pods import Pod
from muster.workloads.kubeflow import PYTORCH_JOB, TrainingJob
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.controller.two_gangs import SMALL, again, demo, members, pods_go, two, until_refused
from tests.support.manifests.observed import (
    GROUP,
    NO_QUEUE,
    made,
    pod,
    pod_group,
    priority_class,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_owner,
    ray_pod,
    workers,
)

NAMES = ("demo", "other")


async def test_the_next_gang_starts_when_the_first_is_gone() -> None:
    harness = await two().settled()
    workload_store(harness.cluster, RAY_CLUSTER).apply("deleted", made(RayCluster, ray_cluster()))
    pods_go(harness)
    await harness.settle()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_pods_that_outlive_their_workload_keep_its_place() -> None:
    harness = await two().settled()
    workload_store(harness.cluster, RAY_CLUSTER).apply("deleted", made(RayCluster, ray_cluster()))
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_a_foreign_group_holds_is_not_given_away() -> None:
    harness = await demo(
        groups=[pod_group("foreign", ours=False, phase="Running", minResources={"cpu": "2"})]
    ).settled()
    assert harness.open_pods() == []
    assert "cpu 2" in harness.annotations(GROUP)[MESSAGE]


async def test_a_workload_taken_out_of_musters_hands_is_left_alone() -> None:
    """Its pods keep the PodGroup that they are bound to, or Volcano would never look at them."""
    harness = await demo().settled()
    harness.set_workload(ray_cluster(labels={}))
    await harness.settle()
    assert harness.client.groups[GROUP]["spec"] == {"minMember": 1, "queue": "q"}
    assert harness.annotations(GROUP)[STATE] == "NotManaged"


async def test_a_suspended_workload_gives_its_mark_back_and_its_room() -> None:
    harness = await two().settled()
    suspended = ray_cluster(suspend=True)
    workload_store(harness.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, suspended))
    pods_go(harness)
    await harness.settle()
    assert ADMITTED not in harness.annotations(GROUP)
    assert harness.annotations(GROUP)[STATE] == "Suspended"
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_a_resumed_workload_queues_again() -> None:
    harness = await two().settled()
    store = workload_store(harness.cluster, RAY_CLUSTER)
    store.apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    pods_go(harness)
    await harness.settle()
    store.apply("modified", made(RayCluster, ray_cluster()))
    harness.client.pods |= {item["metadata"]["name"]: item for item in members()}
    await harness.catch_up()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    assert harness.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_a_finished_job_says_so_and_gives_its_mark_back() -> None:
    job = pytorch_job(policy={"queue": "q"})
    harness = await Harness(
        workloads=[job],
        pods=[pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")],
        queues=[SMALL],
    ).settled()
    assert harness.open_pods() == ["m", "w-0", "w-1"]
    done = pytorch_job(policy={"queue": "q"}, conditions=[{"type": "Succeeded", "status": "True"}])
    workload_store(harness.cluster, PYTORCH_JOB).apply("modified", made(TrainingJob, done))
    await harness.settle()
    assert (harness.annotations("train")[STATE], harness.annotations("train").get(ADMITTED)) == ("Finished", None)


async def test_a_queue_that_vanishes_holds_the_gang_until_it_returns() -> None:
    harness = await two().settled()
    harness.drop_queue(SMALL)
    await harness.settle()
    assert harness.annotations("ray-other-pg")[STATE] == "QueueNotFound"
    harness.set_queue(queue(cpu="8", memory="8Gi"))
    await harness.settle()
    assert len(harness.open_pods()) == 6


async def test_a_queue_whose_capability_cannot_be_read_admits_nobody() -> None:
    harness = await demo(queues=[queue(cpu="four")]).settled()
    assert harness.events() == [("Warning", "QueueNotFound", NO_QUEUE)]
    harness.set_queue(SMALL)
    await harness.settle()
    assert len(harness.open_pods()) == 3


async def test_a_queue_that_grows_wakes_who_waits() -> None:
    harness = await two().settled()
    harness.set_queue(queue(cpu="6", memory="6Gi"))
    await harness.settle()
    assert len(harness.open_pods()) == 6


async def test_a_priority_class_that_comes_late_still_counts() -> None:
    """A gang whose class nobody knew counted 0; with its value it is first."""
    urgent = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    harness = await demo(
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other", labels=urgent)],
        pods=[*members(), *members("other")],
        queues=[],
        classes=[priority_class("high", 1000)],
    ).settled()
    harness.set_queue(SMALL)
    await harness.settle()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_a_replacement_is_opened_at_once() -> None:
    harness = await demo().settled()
    del harness.client.pods["demo-w-1"]
    harness.client.pods["demo-w-2"] = ray_pod("demo-w-2")
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-2"]


async def test_a_surplus_member_waits_and_starts_when_there_is_room() -> None:
    harness = await demo(queues=[queue(cpu="3", memory="6Gi")]).settled()
    harness.client.pods["demo-w-2"] = ray_pod("demo-w-2")
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.annotations(GROUP)[MESSAGE].endswith("; no room yet for cpu 1 and memory 1Gi more (demo-w-2)")
    harness.set_queue(queue(cpu="4", memory="6Gi"))
    await harness.settle()
    assert "demo-w-2" in harness.open_pods()


async def test_of_many_surplus_members_three_are_named() -> None:
    """Each that comes is a write of the message: with all names the bytes would grow with their square."""
    harness = await demo(queues=[queue(cpu="3", memory="6Gi")]).settled()
    harness.client.pods |= {f"demo-w-{number}": ray_pod(f"demo-w-{number}") for number in range(2, 8)}
    await harness.catch_up()
    said = harness.annotations(GROUP)[MESSAGE]
    assert said.endswith("no room yet for cpu 6 and memory 6Gi more (demo-w-2, demo-w-3, demo-w-4 and 3 more)")


async def test_a_mark_given_back_counts_no_more_though_the_watch_still_shows_it() -> None:
    """Suspended, another gang took the room, resumed: all that before the watch shows that the mark went."""
    harness = await two().settled()
    demo_store = workload_store(harness.cluster, RAY_CLUSTER)
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        harness.client.pods[name]["metadata"]["deletionTimestamp"] = "2026-11-21T10:10:00Z"
    harness.cluster.pods.of("volcano").replace_all([made(Pod, item) for item in harness.client.pods.values()])
    demo_store.apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    await harness.work()
    assert ADMITTED not in harness.annotations(GROUP)
    for member in members():
        harness.client.pods[member["metadata"]["name"]] = member
    harness.cluster.pods.of("volcano").replace_all([made(Pod, item) for item in harness.client.pods.values()])
    demo_store.apply("modified", made(RayCluster, ray_cluster()))
    await harness.work()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    assert harness.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_a_gang_taken_out_of_musters_hands_keeps_its_place() -> None:
    """Its pods run on, whatever its labels say by now."""
    harness = await two().settled()
    workload_store(harness.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(labels={})))
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_pods_of_others_hold_above_their_minimum_is_not_given_away() -> None:
    """A group of Volcano's own whose minResources say 1 cpu, and whose pods take 3."""
    others = [
        pod(f"job-1-{number}", annotations={"scheduling.k8s.io/group-name": "job-1"}, nodeName="n")
        for number in range(3)
    ]
    foreign = pod_group(name="job-1", ours=False, phase="Running", minResources={"cpu": "1"})
    harness = await demo(pods=[*members(), *others], groups=[foreign]).settled()
    assert harness.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_pods_of_a_former_workload_of_the_name_take_room() -> None:
    """Deleted and made anew under its name: until the garbage collector has come by, its old pods run."""
    harness = await two().settled()
    store = workload_store(harness.cluster, RAY_CLUSTER)
    store.apply("deleted", made(RayCluster, ray_cluster()))
    store.apply("added", made(RayCluster, ray_cluster(uid="uid-new")))
    new = ray_pod("new-head", "headgroup", owner_uid="uid-new")
    harness.client.pods[new["metadata"]["name"]] = new
    await harness.catch_up()
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"
    pods_go(harness)
    await harness.settle()
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]


@cases("follows", ("deleted", False), ("deleted and made anew", True))
async def test_pods_of_a_deleted_workload_whose_gates_were_just_opened_take_room(follows: bool) -> None:
    """The watch of pods is behind, and shows them as held: they may run all the same."""
    harness = two()
    await harness.work()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    store = workload_store(harness.cluster, RAY_CLUSTER)
    store.apply("deleted", made(RayCluster, ray_cluster()))
    if follows:
        store.apply("added", made(RayCluster, ray_cluster(uid="uid-new")))
    for _ in range(3):
        await harness.work()
        harness.watch_groups()
        again(harness)
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"
    assert ADMITTED not in harness.annotations("ray-other-pg")


async def test_a_suspended_workload_keeps_its_place_until_its_pods_go() -> None:
    harness = await two().settled()
    workload_store(harness.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    await harness.settle()
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_the_room_of_a_suspended_workload_is_free_when_its_mark_is_gone() -> None:
    """Resumed before that, it is admitted still: nobody else may have got its room."""
    harness = await two().settled()
    store = workload_store(harness.cluster, RAY_CLUSTER)
    store.apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    pods_go(harness)
    harness.client.fails[f"muster-ledger {GROUP}"] = [ApiError(500, "", "broken")]
    with pytest.raises(ApiError):
        await harness.settle()
    await harness.settle()
    store.apply("modified", made(RayCluster, ray_cluster()))
    harness.client.pods |= {item["metadata"]["name"]: item for item in members()}
    await harness.catch_up()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_gang_that_is_suspended_keeps_the_place_of_pods_that_only_the_watch_shows_as_held() -> None:
    harness = two()
    await harness.work()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    workload_store(harness.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    for _ in range(3):
        await harness.work()
        harness.watch_groups()
    assert harness.annotations(GROUP)[STATE] == "Suspended"
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


# Which of two gangs a new leader enters first is chance.
@pytest.mark.parametrize("grown", ["demo", "other"])
async def test_a_new_leader_gives_no_room_to_surplus_that_another_gang_holds(grown: str) -> None:
    """While it enters what is there, the room of those who are not in yet only seems free."""
    clusters = {
        name: ray_cluster(workers(replicas=2 + (name == grown)), name=name, uid=f"uid-{name}") for name in NAMES
    }
    pods = [
        ray_pod(f"{name}-{pod}", role, held=False, cluster=name, owner_uid=f"uid-{name}")
        for name in NAMES
        for pod, role in (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
    ]
    surplus = ray_pod(f"{grown}-w-2", cluster=grown, owner_uid=f"uid-{grown}")
    groups = [pod_group(f"ray-{name}-pg", owner=ray_owner(name), admitted=f"uid-{name}") for name in NAMES]
    harness = await Harness(
        workloads=clusters.values(), pods=[*pods, surplus], groups=groups, queues=[queue(cpu="6")]
    ).settled()
    assert f"{grown}-w-2" not in harness.open_pods()


# The next leader, and a user who makes it larger again, have nothing else to go by.
@cases("taken_over", ("the same leader", False), ("a new leader", True))
async def test_room_of_a_gang_that_becomes_smaller_is_free_when_its_mark_says_so(*, taken_over: bool) -> None:
    harness = await two().settled()
    harness.set_workload(ray_cluster(workers(replicas=0)))
    del harness.client.pods["demo-w-0"], harness.client.pods["demo-w-1"]
    harness.watch()
    harness.client.fails[f"mark {GROUP}"] = [ApiError(500, "InternalError", "try again")]
    if taken_over:
        harness.restart()
    await until_refused(harness)
    harness.watch()
    await harness.work()
    assert ADMITTED not in harness.annotations("ray-other-pg")
    again(harness)
    written = await harness.settle()
    assert json.loads(harness.annotations(GROUP)[ADMITTED_FOR])["minMember"] == 1
    assert written.index(f"mark {GROUP}") < written.index("mark ray-other-pg")
