"""One gang at a time, with every write in view: the order that makes it safe to die at any moment."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from controller.apiserver import NotLeaderError
from muster.kube.errors import ApiError, Unreachable
from muster.model.names import ADMITTED, MESSAGE, STATE
from muster.queueing.ledger import GangKey
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.controller.two_gangs import again, demo, members, two, until_refused
from tests.support.manifests.observed import GROUP, made, pod_group, priority_class, queue, ray_cluster, workers

# One on the workload, one on its PodGroup.
EVENTS = ["create Event", "create Event"]


async def test_the_group_comes_first_then_the_mark_then_the_gates() -> None:
    harness = demo()
    written = await harness.work()
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
    harness = demo()
    await harness.work()
    mark = next(write for write in harness.client.writes if write.says == f"mark {GROUP}")
    assert mark.manager == "muster-ledger"
    assert mark.body["metadata"]["uid"] == f"uid-{GROUP}"
    assert mark.body["metadata"]["annotations"][ADMITTED] == "uid-demo"
    assert "spec" not in mark.body


async def test_a_settled_gang_is_not_written_again() -> None:
    harness = await demo().settled()
    harness.client.writes.clear()
    again(harness)
    assert await harness.settle() == []


async def test_a_waiting_gang_is_not_written_again() -> None:
    harness = await two().settled()
    harness.client.writes.clear()
    again(harness)
    assert await harness.settle() == []


async def test_of_two_gangs_one_runs_and_the_other_says_why_it_waits() -> None:
    harness = await two().settled()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"
    assert harness.annotations("ray-other-pg")[MESSAGE] == (
        'needs cpu 3 and memory 3Gi; queue "q" has cpu 1 and memory 3Gi free of cpu 4 and memory 6Gi; '
        "position 1 of 1 waiting"
    )
    assert ADMITTED not in harness.annotations("ray-other-pg")


@pytest.mark.parametrize("room", [2, 3, 8, 12])
async def test_gangs_that_are_worked_on_at_once_never_share_room(room: int) -> None:
    """Between a decision and its mark in the cluster others decide: the room must be taken from the decision on."""
    names = ["a", "b", "c", "d", "e"]
    harness = Harness(
        workloads=[ray_cluster(name=name, uid=f"uid-{name}") for name in names],
        pods=[one for name in names for one in members(name)],
        queues=[queue(cpu=str(room))],
    )
    for _ in range(3):
        keys = [GangKey("team", f"ray-{name}-pg") for name in names]
        await asyncio.gather(*(harness.reconciler.reconcile(key) for key in keys))
        assert len(harness.open_pods()) == room // 3 * 3
        harness.watch()
    marked = [name for name in names if ADMITTED in harness.annotations(f"ray-{name}-pg")]
    assert marked == names[: room // 3]


async def test_no_group_is_made_before_the_first_held_pod() -> None:
    harness = demo(pods=[])
    assert await harness.settle() == []


async def test_a_gang_that_lacks_pods_gets_its_group_and_nothing_else_for_a_while() -> None:
    """An operator makes pods one by one: what lacks is said only after some seconds."""
    harness = demo(pods=members()[:2])
    assert await harness.settle() == [f"muster {GROUP}"]
    harness.now += 4.5
    again(harness)
    assert await harness.settle() == []
    harness.now += 0.5
    again(harness)
    assert await harness.settle() == ["annotate demo", f"muster {GROUP}", f"muster-ledger {GROUP}", *EVENTS]
    assert harness.events() == [("Normal", "Assembling", "waiting for its pods: workers 1 of 2")]


# Whoever dies between two writes leaves what the next leader finds.
@pytest.mark.parametrize("survived", [0, 1, 2, 3, 4, 5])
async def test_a_leader_may_die_after_any_write(survived: int) -> None:
    harness = two()
    for write in ["muster ray-demo-pg", "mark ray-demo-pg", "create Event", "patch demo-head", "patch demo-w-0"]:
        harness.client.fails[write] = []
    tried = ["muster ray-demo-pg", "mark ray-demo-pg", "patch demo-head", "patch demo-w-0", "patch demo-w-1"]
    for write in tried[survived:]:
        harness.client.fails[write] = [NotLeaderError("killed")] * 3
    if survived < len(tried):
        await until_refused(harness)
    else:
        await harness.work()
    harness.client.fails.clear()
    harness.watch()
    harness.restart()
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert ADMITTED not in harness.annotations("ray-other-pg")


@cases(
    "prepare",
    ("a gang to admit", demo),
    ("a gang to refuse", lambda: demo(queues=[])),
    ("gates to open", lambda: demo(groups=[pod_group(admitted="uid-demo")])),
    ("a stale group", lambda: demo(groups=[pod_group(owner_uid="uid-old")])),
    ("a foreign group", lambda: demo(groups=[pod_group(ours=False)])),
    ("gates to release", lambda: demo(workloads=[ray_cluster(labels={})])),
    ("invalid numbers", lambda: demo(workloads=[ray_cluster(workers(replicas=-1))])),
    (
        "a mark to take back",
        lambda: demo(workloads=[ray_cluster(suspend=True)], groups=[pod_group(admitted="uid-demo")]),
    ),
)
async def test_nothing_is_written_without_the_lease(prepare: Callable[[], Harness]) -> None:
    """A leader that lost its lease must not even say that a gang waits: it would take away the next leader's mark."""
    harness = prepare()
    harness.budget = 0.0
    # Where nothing but an event was due there is nothing to fail.
    with suppress(NotLeaderError):
        await harness.work()
    assert harness.client.writes == []


async def overtaken(harness: Harness) -> None:
    """A more urgent gang comes after the mark of the first failed, and is worked on before that is tried again."""
    labels = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}
    urgent = made(RayCluster, ray_cluster(name="urgent", uid="uid-urgent", labels=labels))
    workload_store(harness.cluster, RAY_CLUSTER).apply("added", urgent)
    harness.client.pods |= {item["metadata"]["name"]: item for item in members("urgent")}
    harness.watch()
    await harness.reconciler.reconcile(GangKey("team", "ray-urgent-pg"))


async def test_a_refused_mark_gives_the_room_back() -> None:
    harness = demo(classes=[priority_class("high", 1000)])
    harness.client.fails["mark ray-demo-pg"] = [ApiError(409, "Conflict", "another group")]
    await until_refused(harness)
    assert harness.open_pods() == []
    await overtaken(harness)
    await harness.settle()
    assert harness.open_pods() == ["urgent-head", "urgent-w-0", "urgent-w-1"]


@cases("took_effect", ("written all the same", True), ("not written", False))
@cases("error", ("silence", Unreachable("silent")), ("500", ApiError(500, "", "broken")))
async def test_a_mark_of_unknown_fate_keeps_its_room(error: ApiError, took_effect: bool) -> None:
    """Else the room would be given to another gang, while the mark may stand in the cluster."""
    harness = demo(classes=[priority_class("high", 1000)])
    harness.client.took_effect = took_effect
    harness.client.fails["mark ray-demo-pg"] = [error]
    await until_refused(harness)
    await overtaken(harness)
    assert harness.open_pods() == []
    again(harness)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_gate_that_was_not_opened_is_tried_again() -> None:
    harness = demo()
    harness.client.fails["patch demo-w-0"] = [ApiError(500, "", "broken")]
    await until_refused(harness)
    again(harness)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_a_gate_that_met_a_conflict_is_tried_again() -> None:
    harness = demo()
    harness.client.fails["patch demo-w-0"] = [ApiError(409, "Conflict", "many writers")]
    await harness.settle()
    again(harness)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_an_opened_gate_is_not_patched_again_before_the_watch_shows_it() -> None:
    harness = demo()
    await harness.work()
    again(harness)
    assert [write for write in await harness.work() if write.startswith("patch")] == []


async def test_running_is_said_when_volcano_says_so() -> None:
    harness = await demo().settled()
    harness.client.groups[GROUP]["status"] = {"phase": "Running"}
    await harness.catch_up()
    assert harness.annotations(GROUP)[STATE] == "Running"
    assert [reason for _, reason, _ in harness.events()] == ["Admitted", "Running"]


async def test_a_new_leader_keeps_a_mark_that_its_watch_has_not_shown_yet() -> None:
    """The leader before died right after the mark; the watch is late, and the room is taken all the same."""
    harness = two()
    harness.client.fails = {"patch": [Unreachable("reset")] * 3}
    await until_refused(harness)
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    harness.client.fails = {}
    harness.restart()
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_of_a_gang_that_is_gone_nothing_is_remembered() -> None:
    """A leader sees thousands come and go in its time."""
    manifest = ray_cluster()
    harness = await Harness(workloads=[manifest], pods=members(), queues=[queue(cpu="9")]).settled()
    harness.client.pods.clear()
    harness.client.groups.clear()
    harness.drop_workload(manifest)
    await harness.catch_up()
    assert list(harness.term.expectations._of) == []
    assert harness.term.reporter._last == {}
