"""A Ray replica of several hosts beyond its gang's minimum: what was begun of it is finished, whoever comes between."""

import contextlib

import pytest

from controller.apiserver import NotLeaderError
from muster.kube.errors import ApiError
from muster.model.names import ADMITTED_FOR, STATE
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import GROUP, JSON, KEY, queue, ray_cluster, ray_pod, workers

SMALL = GangKey(KEY.namespace, "ray-small-pg")
LEAVES = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def host(name: str, replica: str, uid: str = "") -> JSON:
    """A host of that replica."""
    pod = ray_pod(name)
    pod["metadata"]["labels"]["ray.io/worker-group-replica-name"] = replica
    pod["metadata"]["uid"] = uid or pod["metadata"]["uid"]
    return pod


def world(*, strict: bool = False) -> Harness:
    """A head and a replica of two hosts, in a queue with room for another replica; two more gangs, of a head alone."""
    group = workers(replicas=2, minReplicas=1, maxReplicas=3, numOfHosts=2)
    said: JSON = {"annotations": {"muster.dev/queueing": "strict"}} if strict else {}
    return Harness(
        workloads=[
            ray_cluster(group, enableInTreeAutoscaling=True),
            ray_cluster(workers(replicas=0), name="small", uid="uid-small"),
            ray_cluster(workers(replicas=0), name="other", uid="uid-other"),
        ],
        pods=[ray_pod("head", "headgroup"), host("w-0", "a"), host("w-1", "a")],
        queues=[queue(cpu="5", **said)],
    )


def second_comes(harness: Harness) -> None:
    """The hosts of the second replica."""
    harness.client.pods |= {"x-0": host("x-0", "b"), "x-1": host("x-1", "b")}
    harness.watch()


async def half_open(error: Exception, *, strict: bool = False) -> Harness:
    """One host of the second replica is open, and the write for the other fails."""
    harness = await world(strict=strict).settled()
    second_comes(harness)
    harness.client.fails["patch x-1"] = [error]
    with contextlib.suppress(ApiError, NotLeaderError):
        await harness.work()
    assert harness.open_pods() == ["head", "w-0", "w-1", "x-0"]
    harness.watch()
    return harness


async def not_marked(error: Exception, *, strict: bool = False) -> Harness:
    """The second replica has come, and the write of its mark fails."""
    harness = await world(strict=strict).settled()
    second_comes(harness)
    harness.client.fails["mark"] = [error]
    with contextlib.suppress(ApiError):
        await harness.work()
    assert harness.open_pods() == ["head", "w-0", "w-1"]
    harness.client.fails.clear()
    return harness


def comes(harness: Harness, name: str = "small") -> None:
    head = ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}")
    harness.client.pods[f"{name}-head"] = head
    harness.watch()


async def all_looked_at(harness: Harness) -> None:
    for key in harness.cluster.gangs():
        harness.queue.add(key)
    await harness.settle()


@pytest.mark.parametrize("strict", [False, True])
async def test_another_leader_finishes_a_replica_before_anybody_has_its_room(strict: bool) -> None:
    harness = await half_open(NotLeaderError("lost"), strict=strict)
    comes(harness)
    harness.restart()
    await harness.reconciler.reconcile(SMALL)
    await all_looked_at(harness)
    assert harness.open_pods() == ["head", "w-0", "w-1", "x-0", "x-1"]


async def test_another_leader_whose_write_fails_too_keeps_the_rest_of_a_replica_in_mind() -> None:
    harness = await half_open(NotLeaderError("lost"))
    harness.restart()
    harness.client.fails["patch x-1"] = [ApiError(500, "", "broken")]
    with contextlib.suppress(ApiError):
        await harness.reconciler.reconcile(KEY)
    assert harness.open_pods() == ["head", "w-0", "w-1", "x-0"]
    harness.watch()
    comes(harness)
    await harness.reconciler.reconcile(SMALL)
    await all_looked_at(harness)
    assert harness.open_pods() == ["head", "w-0", "w-1", "x-0", "x-1"]


@pytest.mark.parametrize("strict", [False, True])
async def test_after_a_write_that_failed_the_rest_asks_for_no_room(strict: bool) -> None:
    harness = await half_open(ApiError(500, "", "broken"), strict=strict)
    comes(harness)
    await harness.reconciler.reconcile(SMALL)
    await all_looked_at(harness)
    assert harness.open_pods() == ["head", "w-0", "w-1", "x-0", "x-1"]
    assert "openingUnits" not in harness.annotations(GROUP)[ADMITTED_FOR]


@pytest.mark.parametrize("marked", [True, False])
async def test_its_room_is_kept_while_the_scheduler_takes_others_back(marked: bool) -> None:
    """Meanwhile nothing beyond the minimum is opened; without an answer nobody knows whether the mark is there."""
    harness = await half_open(ApiError(500, "", "broken")) if marked else await not_marked(ApiError(500, "", "broken"))
    harness.client.pods["w-1"]["status"] = {"phase": "Running", "conditions": [LEAVES]}
    harness.watch()
    del harness.client.pods["w-1"]
    comes(harness)
    comes(harness, "other")
    # The minimum keeps 3500m for itself, with the autoscaler of its head.
    harness.set_queue(queue(cpu="5500m"))
    await all_looked_at(harness)
    # One host has gone, so that there is room for one of the two.
    assert harness.open_pods() == ["head", "small-head", "w-0", "x-0"]
    harness.now += 100
    await all_looked_at(harness)
    assert harness.open_pods() == ["head", "small-head", "w-0", "x-0", "x-1"]


async def test_the_mark_comes_before_the_first_gate_and_goes_with_the_last() -> None:
    harness = await world().settled()
    second_comes(harness)
    written = await harness.settle()
    assert written[:3] == [f"mark {GROUP}", "patch x-0", "patch x-1"]
    assert "openingUnits" not in harness.annotations(GROUP)[ADMITTED_FOR]


async def test_the_mark_goes_with_the_last_gate_whoever_opened_the_first() -> None:
    harness = await half_open(NotLeaderError("lost"))
    assert "openingUnits" in harness.annotations(GROUP)[ADMITTED_FOR]
    harness.restart()
    await harness.reconciler.reconcile(KEY)
    assert "x-1" in harness.open_pods()
    assert "openingUnits" not in harness.annotations(GROUP)[ADMITTED_FOR]


async def test_a_gang_that_runs_is_said_to_run_while_it_grows() -> None:
    harness = await world().settled()
    harness.client.groups[GROUP]["status"] = {"phase": "Running"}
    await harness.catch_up()
    second_comes(harness)
    harness.client.fails["patch x-0"] = [ApiError(500, "", "broken")]
    with contextlib.suppress(ApiError):
        await harness.work()
    said = harness.annotations(GROUP)
    assert "openingUnits" in said[ADMITTED_FOR]
    assert said[STATE] == "Running"


async def test_what_may_not_be_marked_keeps_no_room_from_those_before_it() -> None:
    harness = await not_marked(ApiError(403, "Forbidden", "no"), strict=True)
    comes(harness)
    await harness.reconciler.reconcile(SMALL)
    await all_looked_at(harness)
    assert harness.open_pods() == ["head", "small-head", "w-0", "w-1"]


@pytest.mark.parametrize("restarts", [False, True])
@cases("marked", ("all open", False), ("the mark still there", True))
async def test_what_comes_for_an_evicted_host_needs_room(restarts: bool, marked: bool) -> None:
    """The scheduler took it back for another gang, which has its room now; the other host of it runs on."""
    harness = await half_open(NotLeaderError("lost"))
    mark = harness.annotations(GROUP)[ADMITTED_FOR]
    assert "openingUnits" in mark
    harness.restart()
    await all_looked_at(harness)
    assert "x-1" in harness.open_pods()
    if marked:
        harness.client.groups[GROUP]["metadata"]["annotations"][ADMITTED_FOR] = mark
    harness.client.pods["x-1"]["status"] = {"phase": "Running", "conditions": [LEAVES]}
    harness.watch()
    del harness.client.pods["x-1"]
    comes(harness)
    await harness.reconciler.reconcile(KEY)
    await all_looked_at(harness)
    assert "small-head" in harness.open_pods()
    harness.client.pods["x-1"] = host("x-1", "b", uid="uid-again")
    harness.watch()
    if restarts:
        harness.restart()
    harness.now += 100
    await all_looked_at(harness)
    assert harness.open_pods() == ["head", "small-head", "w-0", "w-1", "x-0"]
    harness.set_queue(queue(cpu="6"))
    await all_looked_at(harness)
    assert "x-1" in harness.open_pods()
