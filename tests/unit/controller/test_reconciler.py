"""One gang at a time, with every write in view: the order that makes it safe to die at any moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from controller.writer import NotLeaderError
from muster.kube.errors import ApiError, Unreachable
from muster.ledger import GangKey
from muster.names import ADMITTED, MESSAGE, STATE
from muster.objects import Pod
from muster.workloads.kubeflow import PYTORCH_JOB, TrainingJob
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.unit.builders import (
    JSON,
    as_json,
    made,
    pod,
    pod_group,
    priority_class,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_pod,
    workers,
    workload_store,
)
from tests.unit.controller.recording import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.kube.resource import Resource

GROUP = "ray-demo-pg"
SMALL = queue(cpu="4", memory="6Gi")


def members(name: str = "demo", *, held: bool = True) -> list[JSON]:
    return [
        ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}", held=held),
        *(ray_pod(f"{name}-w-{n}", cluster=name, owner_uid=f"uid-{name}", held=held) for n in range(2)),
    ]


def demo(**changes: list[JSON]) -> Scene:
    """One gang of 3 cpu, assembled, in a queue of 4."""
    return Scene(**{"workloads": [ray_cluster()], "pods": members(), "queues": [SMALL], **changes})


def two() -> Scene:
    """Two gangs of 3 cpu in a queue of 4; `other` is the second by name."""
    return demo(
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other")],
        pods=[*members(), *members("other")],
    )


# One on the workload, one on its PodGroup.
EVENTS = ["create Event", "create Event"]


NAMES = ("demo", "other")


async def until_refused(scene: Scene) -> list[str]:
    """Work until a write fails; gives what was tried, the failed write last."""
    first = len(scene.client.writes)
    with pytest.raises((ApiError, NotLeaderError)):
        await scene.work()
    return [write.says for write in scene.client.writes[first:]]


def again(scene: Scene, *groups: str) -> None:
    """What the work queue does after a failure."""
    for key in list(scene.cluster.gangs()):
        if not groups or key.name in groups:
            scene.queue.add(key)


async def test_the_group_comes_first_then_the_mark_then_the_gates() -> None:
    scene = demo()
    written = await scene.work()
    assert written == [
        f"muster {GROUP}",
        f"mark {GROUP}",
        "patch demo-head",
        "patch demo-w-0",
        "patch demo-w-1",
        *EVENTS,
    ]


async def test_the_mark_is_the_uid_of_the_workload_on_this_very_group() -> None:
    """With the UID the apply can neither make a new PodGroup nor touch another of the same name."""
    scene = demo()
    await scene.work()
    mark = next(write for write in scene.client.writes if write.says == f"mark {GROUP}")
    assert mark.manager == "muster-ledger"
    assert mark.body["metadata"]["uid"] == f"uid-{GROUP}"
    assert mark.body["metadata"]["annotations"][ADMITTED] == "uid-demo"
    assert "spec" not in mark.body


async def test_a_settled_gang_is_not_written_again() -> None:
    scene = demo()
    await scene.settle()
    scene.client.writes.clear()
    again(scene)
    assert await scene.settle() == []


async def test_a_waiting_gang_is_not_written_again() -> None:
    scene = two()
    await scene.settle()
    scene.client.writes.clear()
    again(scene)
    assert await scene.settle() == []


async def test_of_two_gangs_one_runs_and_the_other_says_why_it_waits() -> None:
    scene = two()
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"
    assert scene.annotations("ray-other-pg")[MESSAGE] == (
        'needs cpu 3 and memory 3Gi; queue "q" has cpu 1 and memory 3Gi free of cpu 4 and memory 6Gi; '
        "position 1 of 1 waiting"
    )
    assert ADMITTED not in scene.annotations("ray-other-pg")


@pytest.mark.parametrize("room", [2, 3, 8, 12])
async def test_gangs_that_are_worked_on_at_once_never_share_room(room: int) -> None:
    """Between a decision and its mark in the cluster others decide: the room must be taken from the decision on."""
    names = ["a", "b", "c", "d", "e"]
    scene = Scene(
        workloads=[ray_cluster(name=name, uid=f"uid-{name}") for name in names],
        pods=[one for name in names for one in members(name)],
        queues=[queue(cpu=str(room))],
    )
    for _ in range(3):
        keys = [GangKey("team", f"ray-{name}-pg") for name in names]
        await asyncio.gather(*(scene.reconciler.reconcile(key) for key in keys))
        assert len(scene.open_pods()) == room // 3 * 3
        scene.watch()
    marked = [name for name in names if ADMITTED in scene.annotations(f"ray-{name}-pg")]
    assert marked == names[: room // 3]


async def test_the_next_gang_starts_when_the_first_is_gone() -> None:
    scene = two()
    await scene.settle()
    workload_store(scene.cluster, RAY_CLUSTER).apply("deleted", made(RayCluster, ray_cluster()))
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        del scene.client.pods[name]
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_pods_that_outlive_their_workload_keep_its_place() -> None:
    scene = two()
    await scene.settle()
    workload_store(scene.cluster, RAY_CLUSTER).apply("deleted", made(RayCluster, ray_cluster()))
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_no_group_is_made_before_the_first_held_pod() -> None:
    scene = demo(pods=[])
    assert await scene.settle() == []


async def test_a_gang_that_lacks_pods_gets_its_group_and_nothing_else_for_a_while() -> None:
    """An operator makes pods one by one: what lacks is said only after some seconds."""
    scene = demo(pods=members()[:2])
    assert await scene.settle() == [f"muster {GROUP}"]
    scene.now += 6
    again(scene)
    assert await scene.settle() == ["annotate demo", f"muster {GROUP}", f"muster-ledger {GROUP}", *EVENTS]
    assert scene.events() == [("Normal", "Assembling", "waiting for its pods: workers 1 of 2")]


# Whoever dies between two writes leaves what the next leader finds.
@pytest.mark.parametrize("survived", [0, 1, 2, 3, 4, 5])
async def test_a_leader_may_die_after_any_write(survived: int) -> None:
    scene = two()
    for write in ["muster ray-demo-pg", "mark ray-demo-pg", "create Event", "patch demo-head", "patch demo-w-0"]:
        scene.client.fails[write] = []
    tried = ["muster ray-demo-pg", "mark ray-demo-pg", "patch demo-head", "patch demo-w-0", "patch demo-w-1"]
    for write in tried[survived:]:
        scene.client.fails[write] = [NotLeaderError("killed")] * 3
    if survived < len(tried):
        await until_refused(scene)
    else:
        await scene.work()
    scene.client.fails.clear()
    scene.watch()
    scene.restart()
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert scene.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert ADMITTED not in scene.annotations("ray-other-pg")


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(demo, id="a gang to admit"),
        pytest.param(lambda: demo(queues=[]), id="a gang to refuse"),
        pytest.param(lambda: demo(groups=[pod_group(admitted="uid-demo")]), id="gates to open"),
        pytest.param(lambda: demo(groups=[pod_group(owner_uid="uid-old")]), id="a stale group"),
        pytest.param(lambda: demo(groups=[pod_group(ours=False)]), id="a foreign group"),
        pytest.param(lambda: demo(workloads=[ray_cluster(labels={})]), id="gates to release"),
        pytest.param(lambda: demo(workloads=[ray_cluster(workers(replicas=-1))]), id="invalid numbers"),
        pytest.param(
            lambda: demo(workloads=[ray_cluster(suspend=True)], groups=[pod_group(admitted="uid-demo")]),
            id="a mark to take back",
        ),
    ],
)
async def test_nothing_is_written_without_the_lease(prepare: Callable[[], Scene]) -> None:
    """A leader that lost its lease must not even say that a gang waits: it would take away the next leader's mark."""
    scene = prepare()
    scene.budget = 0.0
    # Where nothing but an event was due there is nothing to fail.
    with suppress(NotLeaderError):
        await scene.work()
    assert scene.client.writes == []


async def overtaken(scene: Scene) -> None:
    """A more urgent gang comes after the mark of the first failed, and is worked on before that is tried again."""
    labels = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    urgent = made(RayCluster, ray_cluster(name="urgent", uid="uid-urgent", labels=labels))
    workload_store(scene.cluster, RAY_CLUSTER).apply("added", urgent)
    scene.client.pods |= {item["metadata"]["name"]: item for item in members("urgent")}
    scene.watch()
    await scene.reconciler.reconcile(GangKey("team", "ray-urgent-pg"))


async def test_a_refused_mark_gives_the_room_back() -> None:
    scene = demo(classes=[priority_class("high", 1000)])
    scene.client.fails["mark ray-demo-pg"] = [ApiError(409, "Conflict", "another group")]
    await until_refused(scene)
    assert scene.open_pods() == []
    await overtaken(scene)
    await scene.settle()
    assert scene.open_pods() == ["urgent-head", "urgent-w-0", "urgent-w-1"]


@pytest.mark.parametrize("took_effect", [True, False], ids=["written all the same", "not written"])
@pytest.mark.parametrize("error", [Unreachable("silent"), ApiError(500, "", "broken")], ids=["silence", "500"])
async def test_a_mark_of_unknown_fate_keeps_its_room(error: ApiError, took_effect: bool) -> None:  # noqa: FBT001
    """Else the room would be given to another gang, while the mark may stand in the cluster."""
    scene = demo(classes=[priority_class("high", 1000)])
    scene.client.took_effect = took_effect
    scene.client.fails["mark ray-demo-pg"] = [error]
    await until_refused(scene)
    await overtaken(scene)
    assert scene.open_pods() == []
    again(scene)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_gate_that_was_not_opened_is_tried_again() -> None:
    scene = demo()
    scene.client.fails["patch demo-w-0"] = [ApiError(500, "", "broken")]
    await until_refused(scene)
    again(scene)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_gate_that_met_a_conflict_is_tried_again() -> None:
    scene = demo()
    scene.client.fails["patch demo-w-0"] = [ApiError(409, "Conflict", "many writers")]
    await scene.settle()
    again(scene)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_an_opened_gate_is_not_patched_again_before_the_watch_shows_it() -> None:
    scene = demo()
    await scene.work()
    again(scene)
    assert [write for write in await scene.work() if write.startswith("patch")] == []


async def test_the_group_of_a_former_workload_is_deleted_by_uid_and_made_anew() -> None:
    scene = demo(groups=[pod_group(owner_uid="uid-old", admitted="uid-old")])
    assert await scene.work() == [f"delete {GROUP}"]
    assert scene.client.writes[0].uid == f"uid-{GROUP}"
    scene.watch()
    assert (await scene.settle())[:2] == [f"muster {GROUP}", f"mark {GROUP}"]


async def test_a_group_that_is_being_deleted_is_not_deleted_again() -> None:
    stale = pod_group(owner_uid="uid-old", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"})
    assert await demo(groups=[stale]).work() == []


async def test_the_mark_of_a_former_life_lets_nobody_through() -> None:
    """Also when the group was adopted by hand."""
    scene = demo(groups=[pod_group(admitted="uid-old")], queues=[queue(cpu="1")])
    await scene.settle()
    assert scene.open_pods() == []
    assert ADMITTED not in scene.annotations(GROUP)


async def test_a_lost_mark_is_written_again_before_anything_else_is_opened() -> None:
    pods = members()
    pods[0]["spec"]["schedulingGates"] = []
    scene = demo(pods=pods, groups=[pod_group()], queues=[])
    assert [write for write in await scene.work() if write != "create Event"] == [
        f"mark {GROUP}",
        "patch demo-w-0",
        "patch demo-w-1",
    ]


async def test_a_somebody_elses_group_is_left_alone_and_said() -> None:
    scene = demo(groups=[pod_group(ours=False)])
    assert await scene.settle() == ["create Event"]
    assert scene.events() == [
        (
            "Warning",
            "ForeignPodGroup",
            'a PodGroup "ray-demo-pg" that muster did not make is in the way; delete or rename it',
        ),
    ]


async def test_a_foreign_group_without_our_pods_is_nobodys_business() -> None:
    """The operator's own gang flag is on."""
    assert await demo(pods=[], groups=[pod_group(ours=False)]).settle() == []


async def test_what_a_foreign_group_holds_is_not_given_away() -> None:
    scene = demo(groups=[pod_group("foreign", ours=False, phase="Running", minResources={"cpu": "2"})])
    await scene.settle()
    assert scene.open_pods() == []
    assert "cpu 2" in scene.annotations(GROUP)[MESSAGE]


async def test_a_workload_taken_out_of_musters_hands_is_let_go() -> None:
    """They get the PodGroup that they are bound to, or Volcano would never look at them."""
    scene = demo(workloads=[ray_cluster(labels={})])
    written = await scene.settle()
    assert written[:4] == [f"muster {GROUP}", "patch demo-head", "patch demo-w-0", "patch demo-w-1"]
    assert scene.client.groups[GROUP]["spec"] == {"minMember": 1, "queue": "q"}
    assert scene.annotations(GROUP)[STATE] == "NotManaged"


async def test_a_suspended_workload_gives_its_mark_back_and_its_room() -> None:
    scene = two()
    await scene.settle()
    suspended = ray_cluster(suspend=True)
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, suspended))
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        del scene.client.pods[name]
    scene.watch()
    await scene.settle()
    assert ADMITTED not in scene.annotations(GROUP)
    assert scene.annotations(GROUP)[STATE] == "Suspended"
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_a_resumed_workload_queues_again() -> None:
    scene = two()
    await scene.settle()
    store = workload_store(scene.cluster, RAY_CLUSTER)
    store.apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        del scene.client.pods[name]
    scene.watch()
    await scene.settle()
    store.apply("modified", made(RayCluster, ray_cluster()))
    scene.client.pods |= {item["metadata"]["name"]: item for item in members()}
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    assert scene.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_a_finished_job_says_so_and_gives_its_mark_back() -> None:
    job = pytorch_job(policy={"queue": "q"})
    scene = Scene(
        workloads=[job],
        pods=[pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")],
        queues=[SMALL],
    )
    await scene.settle()
    assert scene.open_pods() == ["m", "w-0", "w-1"]
    done = pytorch_job(policy={"queue": "q"}, conditions=[{"type": "Succeeded", "status": "True"}])
    workload_store(scene.cluster, PYTORCH_JOB).apply("modified", made(TrainingJob, done))
    await scene.settle()
    assert (scene.annotations("train")[STATE], scene.annotations("train").get(ADMITTED)) == ("Finished", None)


async def test_a_queue_that_vanishes_holds_the_gang_until_it_returns() -> None:
    scene = two()
    await scene.settle()
    scene.drop_queue(SMALL)
    await scene.settle()
    assert scene.annotations("ray-other-pg")[STATE] == "QueueNotFound"
    scene.set_queue(queue(cpu="8", memory="8Gi"))
    await scene.settle()
    assert len(scene.open_pods()) == 6


async def test_a_queue_whose_capability_cannot_be_read_admits_nobody() -> None:
    scene = demo(queues=[queue(cpu="four")])
    await scene.settle()
    assert scene.events() == [("Warning", "QueueNotFound", 'queue "q" does not exist')]
    scene.set_queue(SMALL)
    await scene.settle()
    assert len(scene.open_pods()) == 3


async def test_a_queue_that_grows_wakes_who_waits() -> None:
    scene = two()
    await scene.settle()
    scene.set_queue(queue(cpu="6", memory="6Gi"))
    await scene.settle()
    assert len(scene.open_pods()) == 6


async def test_a_priority_class_that_comes_late_still_counts() -> None:
    """A gang whose class nobody knew counted 0; with its value it is first."""
    urgent = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    scene = demo(
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other", labels=urgent)],
        pods=[*members(), *members("other")],
        queues=[],
        classes=[priority_class("high", 1000)],
    )
    await scene.settle()
    scene.set_queue(SMALL)
    await scene.settle()
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]


async def test_a_replacement_is_opened_at_once() -> None:
    scene = demo()
    await scene.settle()
    del scene.client.pods["demo-w-1"]
    scene.client.pods["demo-w-2"] = ray_pod("demo-w-2")
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-2"]


async def test_a_surplus_member_waits_and_starts_when_there_is_room() -> None:
    scene = demo(queues=[queue(cpu="3", memory="6Gi")])
    await scene.settle()
    scene.client.pods["demo-w-2"] = ray_pod("demo-w-2")
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert scene.annotations(GROUP)[MESSAGE].endswith("; no room yet for cpu 1 and memory 1Gi more (demo-w-2)")
    scene.set_queue(queue(cpu="4", memory="6Gi"))
    await scene.settle()
    assert "demo-w-2" in scene.open_pods()


async def test_a_scaled_up_workload_keeps_the_numbers_of_its_group() -> None:
    """Volcano blocks the replacement of a crashed member when minMember rises above what runs."""
    scene = demo()
    await scene.settle()
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(workers(replicas=5))))
    await scene.settle()
    assert scene.client.groups[GROUP]["spec"]["minMember"] == 3


async def test_an_invalid_edit_is_said_and_changes_nothing_else() -> None:
    scene = two()
    await scene.settle()
    broken = made(RayCluster, ray_cluster(workers(minReplicas=3, maxReplicas=1)))
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", broken)
    await scene.settle()
    assert (scene.annotations(GROUP)[STATE], scene.annotations(GROUP)[ADMITTED]) == ("Invalid", "uid-demo")
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_drifted_is_put_right() -> None:
    scene = demo()
    await scene.settle()
    scene.client.groups[GROUP]["spec"]["queue"] = "q"
    scene.client.groups[GROUP]["spec"]["minResources"] = {"cpu": "1"}
    scene.client.groups[GROUP]["spec"]["minMember"] = 9
    scene.watch()
    await scene.settle()
    assert scene.client.groups[GROUP]["spec"]["minMember"] == 3


async def test_a_deleted_group_of_a_running_gang_comes_back_with_its_mark() -> None:
    scene = demo()
    await scene.settle()
    scene.client.groups.clear()
    scene.client.applied.clear()
    scene.watch()
    written = await scene.settle()
    assert written[:2] == [f"muster {GROUP}", f"mark {GROUP}"]


async def test_running_is_said_when_volcano_says_so() -> None:
    scene = demo()
    await scene.settle()
    scene.client.groups[GROUP]["status"] = {"phase": "Running"}
    scene.watch()
    await scene.settle()
    assert scene.annotations(GROUP)[STATE] == "Running"
    assert [reason for _, reason, _ in scene.events()] == ["Admitted", "Running"]


async def test_a_refused_event_does_not_hinder_scheduling() -> None:
    scene = demo()
    scene.client.fails["create Event"] = [ApiError(403, "Forbidden", "no events here")] * 9
    await scene.settle()
    assert len(scene.open_pods()) == 3


async def test_the_same_words_are_said_once_and_other_numbers_not_at_once() -> None:
    scene = demo(queues=[queue(cpu="2")])
    await scene.settle()
    scene.set_queue(queue(cpu="1"))
    await scene.settle()
    assert [note for _, _, note in scene.events()] == ['needs cpu 3, queue "q" has capability cpu 2']
    assert scene.annotations(GROUP)[MESSAGE] == 'needs cpu 3, queue "q" has capability cpu 1'
    scene.now += 31
    scene.set_queue(queue(cpu="2500m"))
    await scene.settle()
    assert [note for _, _, note in scene.events()][1:] == ['needs cpu 3, queue "q" has capability cpu 2500m']


async def test_a_new_leader_does_not_repeat_what_was_said() -> None:
    scene = demo(queues=[queue(cpu="2")])
    await scene.settle()
    scene.restart()
    assert await scene.settle() == []


async def test_an_event_regards_the_workload_and_names_this_process() -> None:
    scene = demo()
    await scene.settle()
    event = next(write.body for write in scene.client.writes if write.verb == "create")
    assert event["regarding"] == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "namespace": "team",
        "name": "demo",
        "uid": "uid-demo",
    }
    assert (event["reportingController"], event["reportingInstance"]) == (
        "muster.dev/controller",
        "muster-controller-0",
    )


async def test_a_new_leader_keeps_a_mark_that_its_watch_has_not_shown_yet() -> None:
    """The leader before died right after the mark; the watch is late, and the room is taken all the same."""
    scene = two()
    scene.client.fails = {"patch": [Unreachable("reset")] * 3}
    await until_refused(scene)
    assert scene.annotations(GROUP)[ADMITTED] == "uid-demo"
    scene.client.fails = {}
    scene.restart()
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_a_mark_given_back_counts_no_more_though_the_watch_still_shows_it() -> None:
    """Suspended, another gang took the room, resumed: all that before the watch shows that the mark went."""
    scene = two()
    await scene.settle()
    demo_store = workload_store(scene.cluster, RAY_CLUSTER)
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        scene.client.pods[name]["metadata"]["deletionTimestamp"] = "2026-11-21T10:10:00Z"
    scene.cluster.pods.replace_all([made(Pod, item) for item in scene.client.pods.values()])
    demo_store.apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    await scene.work()
    assert ADMITTED not in scene.annotations(GROUP)
    for member in members():
        scene.client.pods[member["metadata"]["name"]] = member
    scene.cluster.pods.replace_all([made(Pod, item) for item in scene.client.pods.values()])
    demo_store.apply("modified", made(RayCluster, ray_cluster()))
    await scene.work()
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    assert scene.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_a_gang_taken_out_of_musters_hands_keeps_its_place() -> None:
    """Its pods run on, whatever its labels say by now."""
    scene = two()
    await scene.settle()
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(labels={})))
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_pods_of_others_hold_above_their_minimum_is_not_given_away() -> None:
    """A group of Volcano's own whose minResources say 1 cpu, and whose pods take 3."""
    others = [
        pod(f"job-1-{number}", annotations={"scheduling.k8s.io/group-name": "job-1"}, nodeName="n")
        for number in range(3)
    ]
    foreign = pod_group(name="job-1", ours=False, phase="Running", minResources={"cpu": "1"})
    scene = demo(pods=[*members(), *others], groups=[foreign])
    await scene.settle()
    assert scene.annotations(GROUP)[STATE] == "WaitingForQuota"


async def test_a_refused_pod_group_is_said_and_takes_no_room() -> None:
    """By a quota, say: the next gang must not wait for one that can never start."""
    scene = two()
    scene.client.fails = {f"muster {GROUP}": [ApiError(403, "Forbidden", "exceeded quota: podgroups")] * 9}
    for _ in range(3):
        try:
            await scene.settle()
        except ApiError:
            scene.queue.add(GangKey("team", GROUP))
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    assert ("Warning", "Invalid", "the PodGroup was refused: exceeded quota: podgroups") in scene.events()


async def test_a_pod_group_refused_for_its_queue_says_so_and_starts_when_the_queue_is_open() -> None:
    """As Volcano's own webhook refuses it: it keeps its place in line, and needs no further attempt of its own."""
    scene = demo(queues=[queue(cpu="4", memory="4Gi", state="Closing")])
    scene.client.fails = {f"muster {GROUP}": [ApiError(400, "", "can only submit PodGroup to open queues")]}
    await scene.work()
    assert scene.events() == [("Warning", "QueueClosed", 'queue "q" is Closing and takes no new work')]
    scene.set_queue(SMALL)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_no_pod_group_is_made_in_a_queue_with_others_below_it() -> None:
    """Where that is only warned of: one PodGroup there stops the whole cluster under Volcano's capacity plugin."""
    below = {"metadata": {"name": "below"}, "spec": {"parent": "q"}, "status": {"state": "Open"}}
    scene = demo(queues=[SMALL, below])
    await scene.settle()
    assert scene.client.groups == {}
    assert scene.events() == [("Warning", "QueueNotLeaf", 'queue "q" has queues below it and takes no gangs itself')]
    scene.drop_queue(below)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_the_pod_group_of_a_running_gang_that_is_refused_is_said_and_its_place_kept() -> None:
    """Somebody deleted it, and the queue has been closed since."""
    scene = two()
    await scene.settle()
    del scene.client.groups[GROUP]
    scene.set_queue(queue(cpu="4", state="Closing"))
    scene.client.fails = {f"muster {GROUP}": [ApiError(400, "", "can only submit PodGroup to open queues")] * 9}
    scene.watch()
    await until_refused(scene)
    assert ("Warning", "QueueClosed", 'queue "q" is Closing and takes no new work') in scene.events()
    scene.set_queue(SMALL)
    await scene.work()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"], "its place is another's"


async def test_a_new_pod_group_that_another_webhook_sends_elsewhere_is_put_right_before_anything_is_decided() -> None:
    """Volcano's own sends those of queue "default" to the queue of the namespace, when they are made."""
    scene = demo()
    apply = scene.client.apply

    async def elsewhere(resource: Resource, name: str, body: JSON, *args: Any, **rest: Any) -> bytes:  # noqa: ANN401
        made_new = name not in scene.client.groups
        answer = await apply(resource, name, body, *args, **rest)
        if not made_new:
            return answer
        scene.client.groups[name]["spec"]["queue"] = "elsewhere"
        return as_json(scene.client.versioned(scene.client.groups[name])).encode()

    scene.client.apply = elsewhere  # type: ignore[method-assign]
    written = await scene.work()
    assert written[:3] == [f"muster {GROUP}", f"muster {GROUP}", f"mark {GROUP}"]
    assert scene.client.groups[GROUP]["spec"]["queue"] == "q"


async def test_pods_of_a_former_workload_of_the_name_take_room() -> None:
    """Deleted and made anew under its name: until the garbage collector has come by, its old pods run."""
    scene = two()
    await scene.settle()
    store = workload_store(scene.cluster, RAY_CLUSTER)
    store.apply("deleted", made(RayCluster, ray_cluster()))
    store.apply("added", made(RayCluster, ray_cluster(uid="uid-new")))
    new = ray_pod("new-head", "headgroup", owner_uid="uid-new")
    scene.client.pods[new["metadata"]["name"]] = new
    scene.watch()
    await scene.settle()
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        del scene.client.pods[name]
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]


@pytest.mark.parametrize("follows", [False, True], ids=["deleted", "deleted and made anew"])
async def test_pods_of_a_deleted_workload_whose_gates_were_just_opened_take_room(follows: bool) -> None:  # noqa: FBT001
    """The watch of pods is behind, and shows them as held: they may run all the same."""
    scene = two()
    await scene.work()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    store = workload_store(scene.cluster, RAY_CLUSTER)
    store.apply("deleted", made(RayCluster, ray_cluster()))
    if follows:
        store.apply("added", made(RayCluster, ray_cluster(uid="uid-new")))
    for _ in range(3):
        await scene.work()
        scene.watch_groups()
        again(scene)
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"
    assert ADMITTED not in scene.annotations("ray-other-pg")


async def test_a_suspended_workload_keeps_its_place_until_its_pods_go() -> None:
    scene = two()
    await scene.settle()
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    await scene.settle()
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_the_room_of_a_suspended_workload_is_free_when_its_mark_is_gone() -> None:
    """Resumed before that, it is admitted still: nobody else may have got its room."""
    scene = two()
    await scene.settle()
    store = workload_store(scene.cluster, RAY_CLUSTER)
    store.apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    for name in ("demo-head", "demo-w-0", "demo-w-1"):
        del scene.client.pods[name]
    scene.watch()
    scene.client.fails[f"muster-ledger {GROUP}"] = [ApiError(500, "", "broken")]
    with pytest.raises(ApiError):
        await scene.settle()
    await scene.settle()
    store.apply("modified", made(RayCluster, ray_cluster()))
    scene.client.pods |= {item["metadata"]["name"]: item for item in members()}
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_gang_that_is_suspended_keeps_the_place_of_pods_that_only_the_watch_shows_as_held() -> None:
    scene = two()
    await scene.work()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(suspend=True)))
    for _ in range(3):
        await scene.work()
        scene.watch_groups()
    assert scene.annotations(GROUP)[STATE] == "Suspended"
    assert scene.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


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
    groups = []
    for name in NAMES:
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": f"uid-{name}"}
        groups.append(pod_group(f"ray-{name}-pg", owner=owner, admitted=f"uid-{name}"))
    scene = Scene(workloads=clusters.values(), pods=[*pods, surplus], groups=groups, queues=[queue(cpu="6")])
    await scene.settle()
    assert f"{grown}-w-2" not in scene.open_pods()
