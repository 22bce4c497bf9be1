"""Jobs whose time runs out while their gangs wait."""

import asyncio

import pytest

from muster.kube.errors import ApiError
from muster.model.names import MESSAGE, STATE
from muster.model.times import seconds_of
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, KEY, pytorch_job, pytorch_pod, queue, ray_cluster, ray_pod

JOB = KEY._replace(name="train")
BEGAN = "2026-11-21T10:00:00Z"
START = seconds_of(BEGAN) or 0.0
NEAR = "spec.runPolicy.activeDeadlineSeconds ends at 2026-11-21T11:00:00Z"


def waiting(cpu: str = "2") -> Harness:
    """A job of 3 cpu and one hour, half an hour after its clock began, in a queue where that is free no more."""
    job = pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=3600, start_time=BEGAN)
    members: list[JSON] = [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    holder = [
        ray_pod(name, role, held=False) for name, role in (("h", "headgroup"), ("a", "workers"), ("b", "workers"))
    ]
    harness = Harness(
        workloads=[job, ray_cluster()], pods=[*members, *holder], queues=[queue(cpu=f"{3 + int(cpu)}", memory="9Gi")]
    )
    harness.now = START + 1800
    return harness


async def at(harness: Harness, seconds: float) -> None:
    harness.now = START + seconds
    harness.queue.add(JOB)
    await harness.settle()


def said(harness: Harness, reason: str) -> list[tuple[str, str]]:
    return [(kind, note) for kind, found, note in harness.events() if found == reason]


async def test_nothing_is_said_of_a_limit_that_is_far() -> None:
    harness = waiting()
    await at(harness, 3239)
    assert harness.annotations("train")[STATE] == "WaitingForQuota"
    assert harness.annotations("train")[MESSAGE].endswith("; position 1 of 1 waiting")
    assert said(harness, "DeadlineNear") == []


async def test_a_limit_that_is_near_is_said_once_and_stands_in_the_message() -> None:
    harness = waiting()
    for seconds in (3240, 3300, 3599):
        await at(harness, seconds)
    assert said(harness, "DeadlineNear") == [("Warning", f"{NEAR}, and the gang still waits")]
    assert harness.annotations("train")[STATE] == "WaitingForQuota"
    assert harness.annotations("train")[MESSAGE].endswith(f"; {NEAR}")


async def test_a_limit_that_is_near_is_said_of_a_gang_whose_queue_is_not_there() -> None:
    """It has no PodGroup, and its time runs all the same."""
    job = pytorch_job(policy={"queue": "none"}, activeDeadlineSeconds=3600, start_time=BEGAN)
    harness = Harness(workloads=[job], pods=[pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")])
    for seconds in (1800, 3240, 3300, 3599):
        await at(harness, seconds)
    assert said(harness, "DeadlineNear") == [("Warning", f"{NEAR}, and the gang still waits")]
    assert [note for _, note in said(harness, "QueueNotFound")][-1].endswith(f'is not open to namespace "team"; {NEAR}')


async def test_a_limit_that_is_near_is_said_of_a_gang_whose_queue_takes_no_pod_group() -> None:
    """Volcano's own webhook refuses it while the queue is closed, at each attempt."""
    job = pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=3600, start_time=BEGAN)
    members = [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    harness = Harness(workloads=[job], pods=members, queues=[queue(cpu="9", state="Closing")])
    harness.client.fails = {"muster train": [ApiError(400, "", "can only submit PodGroup to open queues")] * 9}
    for seconds in (1800, 3240, 3300, 3599):
        await at(harness, seconds)
    assert harness.client.groups == {}
    assert said(harness, "DeadlineNear") == [("Warning", f"{NEAR}, and the gang still waits")]
    assert [note for _, note in said(harness, "QueueClosed")][-1].endswith(f"takes no new work; {NEAR}")


async def test_a_limit_that_is_near_is_said_at_once() -> None:
    """Other words of a state that goes on wait for their turn."""
    harness = waiting()
    await at(harness, 3239)
    await at(harness, 3240)
    assert harness.annotations("train")[MESSAGE].endswith(f"; {NEAR}")


async def test_a_gang_whose_time_is_over_is_not_admitted_when_room_comes() -> None:
    harness = waiting()
    await at(harness, 3600)
    assert harness.annotations("train")[STATE] == "DeadlinePassed"
    assert len(said(harness, "DeadlinePassed")) == 1
    harness.set_queue(queue(cpu="100", memory="100Gi"))
    await harness.settle()
    assert [name for name in harness.open_pods() if name in {"m", "w-0", "w-1"}] == []


@cases("seconds, again", ("far: when it is near", 1800, 1440), ("near: at its end", 3300, 300))
async def test_the_gang_is_looked_at_again_when_something_changes_for_it(seconds: int, again: int) -> None:
    """Nothing happens in the cluster at that moment: nobody else would wake it."""
    harness = waiting()
    harness.queue.add(JOB)
    harness.now = START + seconds
    await harness.settle()
    due = harness.queue._core._due[JOB] - asyncio.get_running_loop().time()
    assert due == pytest.approx(again, abs=60)


async def test_who_waits_behind_a_gang_whose_time_is_over_is_looked_at() -> None:
    """In a strict queue it stood in everybody's way."""
    job = pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=3600, start_time=BEGAN)
    younger = ray_cluster(name="small", uid="uid-small", meta={"creationTimestamp": "2026-11-21T12:00:00Z"})
    younger["spec"]["workerGroupSpecs"] = []
    harness = Harness(
        workloads=[job, younger],
        pods=[
            pytorch_pod("m", "master"),
            pytorch_pod("w-0"),
            pytorch_pod("w-1"),
            ray_pod("s", "headgroup", cluster="small", owner_uid="uid-small"),
            *(ray_pod(f"x-{n}", cluster="gone", owner_uid="uid-gone", held=False) for n in range(2)),
        ],
        queues=[queue(cpu="3", memory="9Gi", annotations={"muster.dev/queueing": "strict"})],
    )
    harness.now = START + 1800
    await harness.settle()
    assert "s" not in harness.open_pods()
    await at(harness, 3600)
    assert "s" in harness.open_pods()


async def test_a_job_that_gets_more_time_waits_on() -> None:
    harness = waiting()
    await at(harness, 3600)
    harness.set_workload(pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=9000, start_time=BEGAN))
    await harness.settle()
    assert harness.annotations("train")[STATE] == "WaitingForQuota"


async def test_a_gang_that_runs_longer_than_its_user_said_is_told_of_once() -> None:
    """Nothing ends it."""
    job = pytorch_job(policy={"queue": "q"}, annotations={"muster.dev/runs-at-most": "2h"})
    members = [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    harness = Harness(workloads=[job], pods=members, queues=[queue(cpu="9", memory="9Gi")])
    harness.now = START
    await harness.settle()
    for seconds in (7200, 7559):
        await at(harness, seconds)
    assert said(harness, "RunsLonger") == []
    for seconds in (7560, 9000):
        await at(harness, seconds)
    assert said(harness, "RunsLonger") == [("Warning", "said 2h, runs 2h6m; gangs behind count on it")]
    assert len(harness.open_pods()) == 3
