"""Jobs whose time runs out while their gangs wait."""

from __future__ import annotations

import asyncio

import pytest

from muster.names import MESSAGE, STATE
from muster.times import seconds_of
from tests.support.controller.recording_client import Scene
from tests.support.manifests.objects import JSON, KEY, pytorch_job, pytorch_pod, queue, ray_cluster, ray_pod

JOB = KEY._replace(name="train")
BEGAN = "2026-11-21T10:00:00Z"
START = seconds_of(BEGAN) or 0.0
NEAR = "spec.runPolicy.activeDeadlineSeconds ends at 2026-11-21T11:00:00Z"


def waiting(cpu: str = "2") -> Scene:
    """A job of 3 cpu and one hour, half an hour after its clock began, in a queue where that is free no more."""
    job = pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=3600, start_time=BEGAN)
    members: list[JSON] = [pytorch_pod("m", "master"), pytorch_pod("w-0"), pytorch_pod("w-1")]
    holder = [
        ray_pod(name, role, held=False) for name, role in (("h", "headgroup"), ("a", "workers"), ("b", "workers"))
    ]
    scene = Scene(
        workloads=[job, ray_cluster()], pods=[*members, *holder], queues=[queue(cpu=f"{3 + int(cpu)}", memory="9Gi")]
    )
    scene.now = START + 1800
    return scene


async def at(scene: Scene, seconds: float) -> None:
    scene.now = START + seconds
    scene.queue.add(JOB)
    await scene.settle()


def said(scene: Scene, reason: str) -> list[tuple[str, str]]:
    return [(kind, note) for kind, found, note in scene.events() if found == reason]


async def test_nothing_is_said_of_a_limit_that_is_far() -> None:
    scene = waiting()
    await at(scene, 3239)
    assert scene.annotations("train")[STATE] == "WaitingForQuota"
    assert scene.annotations("train")[MESSAGE].endswith("; position 1 of 1 waiting")
    assert said(scene, "DeadlineNear") == []


async def test_a_limit_that_is_near_is_said_once_and_stands_in_the_message() -> None:
    scene = waiting()
    for seconds in (3240, 3300, 3599):
        await at(scene, seconds)
    assert said(scene, "DeadlineNear") == [("Warning", f"{NEAR}, and the gang still waits")]
    assert scene.annotations("train")[STATE] == "WaitingForQuota"
    assert scene.annotations("train")[MESSAGE].endswith(f"; {NEAR}")


async def test_a_limit_that_is_near_is_said_at_once() -> None:
    """Other words of a state that goes on wait for their turn."""
    scene = waiting()
    await at(scene, 3239)
    await at(scene, 3240)
    assert scene.annotations("train")[MESSAGE].endswith(f"; {NEAR}")


async def test_a_gang_whose_time_is_over_is_not_admitted_when_room_comes() -> None:
    scene = waiting()
    await at(scene, 3600)
    assert scene.annotations("train")[STATE] == "DeadlinePassed"
    assert len(said(scene, "DeadlinePassed")) == 1
    scene.set_queue(queue(cpu="100", memory="100Gi"))
    await scene.settle()
    assert [name for name in scene.open_pods() if name in {"m", "w-0", "w-1"}] == []


@pytest.mark.parametrize(
    ("seconds", "again"),
    [pytest.param(1800, 1440, id="far: when it is near"), pytest.param(3300, 300, id="near: at its end")],
)
async def test_the_gang_is_looked_at_again_when_something_changes_for_it(seconds: int, again: int) -> None:
    """Nothing happens in the cluster at that moment: nobody else would wake it."""
    scene = waiting()
    scene.queue.add(JOB)
    scene.now = START + seconds
    await scene.settle()
    due = scene.queue._core._due[JOB] - asyncio.get_running_loop().time()
    assert due == pytest.approx(again, abs=60)


async def test_who_waits_behind_a_gang_whose_time_is_over_is_looked_at() -> None:
    """In a strict queue it stood in everybody's way."""
    job = pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=3600, start_time=BEGAN)
    younger = ray_cluster(name="small", uid="uid-small", meta={"creationTimestamp": "2026-11-21T12:00:00Z"})
    younger["spec"]["workerGroupSpecs"] = []
    scene = Scene(
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
    scene.now = START + 1800
    await scene.settle()
    assert "s" not in scene.open_pods()
    await at(scene, 3600)
    assert "s" in scene.open_pods()


async def test_a_job_that_gets_more_time_waits_on() -> None:
    scene = waiting()
    await at(scene, 3600)
    scene.set_workload(pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=9000, start_time=BEGAN))
    await scene.settle()
    assert scene.annotations("train")[STATE] == "WaitingForQuota"
