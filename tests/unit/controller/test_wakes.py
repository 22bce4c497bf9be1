"""Coscheduling is asked again for open pods that it turned away, soon at first, and less and less often."""

import pytest

from muster.kube.errors import ApiError
from muster.model.names import NUDGE
from muster.queueing.ledger import GangKey
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.controller import bypass_queue
from tests.support.controller.harness import Harness
from tests.support.controller.observations import touches_and_looks
from tests.support.manifests.observed import JSON, queue

COSCHEDULING = SCHEDULERS["scheduler-plugins-scheduler"]
KEY = GangKey("team", bypass_queue.LARGE)


class OfCoscheduling(Harness):
    """All gangs are of coscheduling."""

    scheduler = COSCHEDULING


def world_of(product: type[Harness] = OfCoscheduling, *, cpu: str = "9") -> Harness:
    """A gang of three pods in a queue that admits it, or not."""
    workload, pods = bypass_queue.gang("large", 3, created="2026-11-21T10:00:00Z")
    for one in pods:
        one["spec"]["schedulerName"] = product.scheduler.name
    return product(workloads=[workload], pods=pods, queues=[queue(cpu=cpu)])


async def touches(world: Harness, seconds: int = 60) -> list[JSON]:
    """What is written on the PodGroup alone while so many seconds pass."""
    first = len(world.client.writes)
    for _ in range(seconds):
        world.queue.add(KEY)
        await world.settle()
        world.now += 1
    return [write.body for write in world.client.writes[first:] if (write.verb, write.kind) == ("annotate", "PodGroup")]


def place(world: Harness, name: str = "large") -> None:
    for pod, manifest in world.client.pods.items():
        if pod.startswith(name):
            manifest["spec"]["nodeName"] = "n"
    world.watch()


async def test_the_pod_group_of_open_pods_without_a_node_is_touched() -> None:
    world = world_of()
    said = await touches(world)
    assert len(said) == 23
    assert [list(body["metadata"]["annotations"]) for body in said] == [[NUDGE]] * 23
    assert all(list(body) == ["metadata"] for body in said), "only metadata"


async def test_one_replacement_without_a_node_is_enough() -> None:
    world = await world_of().settled()
    place(world)
    first = next(iter(world.client.pods.values()))
    del first["spec"]["nodeName"]
    world.watch()
    assert await touches(world)


async def test_with_nodes_for_all_there_is_nothing_to_ask_for() -> None:
    world = await world_of().settled()
    place(world)
    assert await touches(world) == []


@cases(
    "product, cpu",
    ("a scheduler that looks again by itself", Harness, "9"),
    ("pods that are held", OfCoscheduling, "2"),
)
async def test_nobody_is_asked_in_vain(product: type[Harness], cpu: str) -> None:
    assert await touches(world_of(product, cpu=cpu)) == []


async def test_a_refused_touch_is_said_and_hinders_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_of().settled()
    world.client.fails = {"annotate": [ApiError(403, "Forbidden", "no")] * 99}
    assert len(await touches(world)) == 23
    said = [record.getMessage() for record in caplog.records if getattr(record, "event", "") == "wake.failed"]
    assert said == [f"{KEY}: cannot ask its scheduler: 403 Forbidden: no"] * 23


async def test_a_gang_without_nodes_is_looked_at_once_more_only_after_a_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await world_of().settled()
    assert await touches_and_looks(world, KEY, monkeypatch) == {(0, 1), (1, 2)}
