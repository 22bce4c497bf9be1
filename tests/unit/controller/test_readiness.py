"""Pods that have nodes and do not become ready: said after the queue's patience with gangs that have no use of room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from muster.model.names import MESSAGE, STATE
from tests.support.controller.two_gangs import again, demo
from tests.support.manifests.observed import GROUP, JSON, queue

if TYPE_CHECKING:
    from tests.support.controller.recording_client import Harness

READY: JSON = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def waiting(reason: str, phase: str = "Pending", kind: str = "containerStatuses") -> JSON:
    return {"phase": phase, kind: [{"name": "main", "state": {"waiting": {"reason": reason, "message": "long"}}}]}


async def placed(status: JSON, **changes: Any) -> Harness:  # noqa: ANN401 - of the harness
    """A gang that was admitted and placed, of which one worker has this status."""
    world = demo(**changes)
    await world.settle()
    for name, pod in world.client.pods.items():
        pod["spec"]["nodeName"] = "n"
        pod["status"] = status if name == "demo-w-1" else READY
    world.watch()
    await world.settle()
    return world


async def after(world: Harness, seconds: float, status: JSON | None = None) -> str:
    """What its PodGroup says so many seconds later, when its worker has this status."""
    world.now += seconds
    if status is not None:
        world.client.pods["demo-w-1"]["status"] = status
        world.watch()
    again(world)
    await world.settle()
    return world.annotations(GROUP)[MESSAGE]


def told(world: Harness) -> list[str]:
    return [note for kind, reason, note in world.events() if (kind, reason) == ("Warning", "NotReady")]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (waiting("ImagePullBackOff"), "ImagePullBackOff"),
        (waiting("CreateContainerError"), "CreateContainerError"),
        (waiting("CrashLoopBackOff", "Running"), "CrashLoopBackOff"),
        (waiting("ErrImagePull", kind="initContainerStatuses"), "ErrImagePull"),
        (waiting("ContainerCreating"), "not started"),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, "not ready"),
    ],
)
async def test_it_is_said_after_the_queues_patience_and_once_as_an_event(status: JSON, reason: str) -> None:
    world = await placed(status)
    assert "not ready" not in await after(world, 299)
    assert told(world) == []
    words = f"1 of its 3 pods have nodes and are not ready (demo-w-1: {reason})"
    assert (await after(world, 1)).endswith(f"; {words}")
    await after(world, 3600)
    assert told(world) == [words]
    assert world.annotations(GROUP)[STATE] in ("Admitted", "Running")
    assert len(world.client.pods) == 3, "nothing is deleted unasked"


async def test_a_queue_says_how_long_that_is() -> None:
    short = queue(cpu="4", memory="6Gi")
    short["metadata"]["annotations"] = {"muster.dev/unplaced-after": "20s"}
    world = await placed(waiting("ImagePullBackOff"), queues=[short])
    assert "ImagePullBackOff" in await after(world, 20)


async def test_what_becomes_ready_is_said_no_more() -> None:
    world = await placed(waiting("ImagePullBackOff"))
    assert "ImagePullBackOff" in await after(world, 300)
    assert "ready" not in await after(world, 1, READY)
    assert "ready" not in await after(world, 299, waiting("ImagePullBackOff")), "its time begins again"


async def test_what_crashes_again_and_again_is_not_ready_between_two_crashes() -> None:
    crashes = waiting("CrashLoopBackOff", "Running")
    world, said = await placed(crashes), ""
    for _ in range(3):
        await after(world, 60, READY)
        said = await after(world, 60, crashes)
    assert "demo-w-1: CrashLoopBackOff" in said
    assert "ready" not in await after(world, 601, READY)


async def test_a_gang_all_of_whose_pods_are_ready_says_nothing() -> None:
    world = await placed(READY)
    assert "ready" not in await after(world, 3600)
    assert told(world) == []
