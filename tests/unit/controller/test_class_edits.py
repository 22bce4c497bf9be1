"""A priority class that is asked for when the pods are there: pods keep theirs, and their user hears it."""

from typing import Any

from muster.model.names import MESSAGE
from tests.support.cases import cases
from tests.support.controller.bypass_queue import gang, harness, running
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, priority_class

LATE = "ray-late-pg"
CLASSES = [priority_class("high", 1000), priority_class("low", 10)]


def waits(**made_with: Any) -> Harness:  # noqa: ANN401 - of the pods
    """A gang of 4 cpu that waits in a full queue, and whose pods were made with this class."""
    runs, group = running("runs", 4)
    workload, pods = gang("late", 4)
    for pod in pods:
        pod["spec"] |= made_with
    return harness(runs, (workload, pods), groups=[group], classes=CLASSES)


def asking(name: str) -> JSON:
    return gang("late", 4, labels={"ray.io/priority-class-name": name})[0]


async def asks(world: Harness, name: str) -> str:
    """What the gang's PodGroup says when its workload has asked for this class."""
    await world.settle()
    world.set_workload(asking(name))
    await world.settle()
    world.now += 1
    await world.settle()
    return world.annotations(LATE)[MESSAGE]


def told(world: Harness) -> list[str]:
    return [note for _, reason, note in world.events() if reason == "StillHeld"]


@cases(
    "made_with, kept",
    ("none", {"priority": 0}, "no priority class"),
    ("a lower one", {"priority": 10, "priorityClassName": "low"}, 'priority class "low"'),
)
async def test_pods_keep_the_class_that_they_were_made_with_and_that_is_said(made_with: JSON, kept: str) -> None:
    world = waits(**made_with)
    said = await asks(world, "high")
    words = f'its pods keep what they were made with, {kept}; for "high" delete the workload and apply it again'
    assert said.endswith(f"; {words}")
    assert told(world) == [words]
    await asks(world, "high")
    assert told(world) == [words], "once"


async def test_who_asks_for_the_class_of_the_pods_hears_nothing() -> None:
    world = waits(priority=1000, priorityClassName="high")
    assert "made with" not in await asks(world, "high")
    assert told(world) == []


async def test_it_is_said_no_more_when_the_class_is_taken_back() -> None:
    world = waits(priority=10, priorityClassName="low")
    assert "made with" in await asks(world, "high")
    assert "made with" not in await asks(world, "low")
