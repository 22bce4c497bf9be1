"""Pods that have nodes and do not become ready: said after the queue's patience with gangs that have no use of room."""

from typing import Any

import pytest

from muster.gangs.intent import requeue_after
from muster.gangs.pod_patch import membership
from muster.model.names import ADMITTED, MESSAGE, REQUEUE_AFTER, STATE
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.two_gangs import again, demo, members
from tests.support.manifests.observed import GROUP, JSON, gang_and_intent, queue, ray_cluster

READY: JSON = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def waiting(reason: str, phase: str = "Pending", kind: str = "containerStatuses") -> JSON:
    return {"phase": phase, kind: [{"name": "main", "state": {"waiting": {"reason": reason, "message": "long"}}}]}


async def placed(status: JSON, **changes: Any) -> Harness:  # noqa: ANN401 - of the harness
    """A gang that was admitted and placed, of which one worker has this status."""
    world = await demo(**changes).settled()
    for name, pod in world.client.pods.items():
        pod["spec"]["nodeName"] = "n"
        pod["status"] = status if name == "demo-w-1" else READY
    await world.catch_up()
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


def _asking(text: str, *, stamped: bool = True) -> dict[str, Any]:
    """The gang, whose workload says this of requeue-after, and whose pods the webhook made so."""
    pods = members()
    for pod in pods if stamped else ():
        pod["metadata"]["annotations"] = {**pod["metadata"]["annotations"], REQUEUE_AFTER: text}
    return {"workloads": [ray_cluster(annotations={REQUEUE_AFTER: text})], "pods": pods}


async def _written_after(world: Harness, seconds: float) -> list[str]:
    world.now += seconds
    again(world)
    return [write for write in await world.settle() if write.startswith("delete")]


async def test_a_gang_gives_its_place_back_for_pods_that_are_not_ready_where_its_workload_says_so() -> None:
    world = await placed(waiting("ImagePullBackOff"), **_asking("10m,not-ready"))
    assert await _written_after(world, 599) == []
    assert await _written_after(world, 1) == ["delete demo-head", "delete demo-w-0", "delete demo-w-1"]
    assert (ADMITTED in world.annotations(GROUP), world.annotations(GROUP)[STATE]) == (False, "Requeued")
    words = "1 of its 3 pods have nodes and are not ready (demo-w-1: ImagePullBackOff) after 10m, so that the place is "
    assert world.annotations(GROUP)[MESSAGE] == f"{words}given back and its pods are deleted"


@cases(
    "changes",
    ("the annotation asks for unplaced gangs alone", _asking("10m")),
    ("its pods were made before it was asked for", _asking("10m,not-ready", stamped=False)),
    ("it cannot be read", _asking("10m,unready")),
)
async def test_no_placed_pod_is_deleted_unasked(changes: dict[str, Any]) -> None:
    world = await placed(waiting("ImagePullBackOff"), **changes)
    assert await _written_after(world, 86_400) == []


async def test_a_gang_that_becomes_ready_in_time_keeps_its_place() -> None:
    world = await placed(waiting("ImagePullBackOff"), **_asking("10m,not-ready"))
    await after(world, 599, READY)
    assert await _written_after(world, 86_400) == []


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("30m", (1800.0, False)),
        ("30m,not-ready", (1800.0, True)),
        ("1h , not-ready", (3600.0, True)),
        ("not-ready", None),
        ("30m,", None),
        ("30m,not-ready,x", None),
        ("soon", None),
        ("", None),
    ],
)
def test_what_the_annotation_says(text: str, asked: tuple[float, bool] | None) -> None:
    assert requeue_after(text) == asked


def test_the_webhook_writes_on_pods_what_their_workload_asks_for() -> None:
    for text, stamped in (("30m,not-ready", "30m,not-ready"), ("30m", None)):
        gang, intent = gang_and_intent(ray_cluster(annotations={REQUEUE_AFTER: text}))
        member = membership(gang.roles[0], gang, intent, intent.gang_scheduler)
        assert member.annotations.get(REQUEUE_AFTER) == stamped
