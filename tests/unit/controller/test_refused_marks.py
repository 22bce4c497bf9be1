"""Gangs whose admission the apiserver does not take: they keep no room from those behind them."""

from contextlib import suppress
from typing import SupportsIndex

import pytest

from muster.kube.errors import ApiError, Unreachable
from muster.model.names import STATE
from muster.queueing.ledger import GangKey
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, SMALL, gang, harness
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import NAMESPACE, gang_and_intent, queue, ray_cluster, read

TOO_LONG = ApiError(422, "Invalid", "metadata.annotations: Too long: may not be more than 262144 bytes")
ELDER, YOUNGER = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"


async def refused(times: int = 1000) -> Harness:
    """Of a queue of 4 cpu the first needs 3 and cannot be marked, the one behind it needs 2."""
    world = harness(gang("large", 3, created=ELDER), gang("small", 2, created=YOUNGER))
    world.client.fails[f"mark {LARGE}"] = [TOO_LONG for _ in range(times)]
    with pytest.raises(ApiError):
        await world.settle()
    await world.settle()
    return world


async def test_a_gang_whose_mark_is_refused_leaves_the_line() -> None:
    world = await refused()
    assert world.annotations(SMALL)[STATE] == "Admitted"
    assert world.open_pods() == ["small-0", "small-1"]
    (said,) = [note for _, reason, note in world.events() if reason == "Invalid"]
    assert said.startswith("it may start, but its admission cannot be written on its PodGroup: metadata.annotations: ")
    assert said.endswith("262144 bytes; others start before it")


@cases("seconds", ("broken off", 0), ("held up", 10))
async def test_so_does_one_whose_mark_is_refused_when_the_first_try_had_no_answer(seconds: float) -> None:
    """Until the watch would have shown the mark nobody knows whether it is there, and the room stays taken.

    It may have been written at the end of the time that a write has.
    """
    world = harness(gang("large", 3, created=ELDER), gang("small", 2, created=YOUNGER))

    class Tries(list[Exception]):
        def pop(self, index: SupportsIndex = -1) -> Exception:
            error = super().pop(index)
            world.now += 0 if error is TOO_LONG else seconds
            return error

    world.client.fails[f"mark {LARGE}"] = Tries([Unreachable("silent"), *[TOO_LONG] * 1000])

    async def looked_at() -> None:
        world.queue.add(GangKey(NAMESPACE, LARGE))
        with suppress(ApiError):
            await world.settle()
        world.queue.add(GangKey(NAMESPACE, LARGE))
        world.queue.add(GangKey(NAMESPACE, SMALL))

    for _ in range(4):
        await looked_at()
        world.now += 1
    assert str(world.term.ledger.used("q")["cpu"]) == "3"
    world.now += 1
    await looked_at()
    await world.settle()
    assert world.open_pods() == ["small-0", "small-1"]
    (said,) = [note for _, reason, note in world.events() if reason == "Invalid"]
    assert said.startswith("it may start, but its admission cannot be written on its PodGroup: ")


async def test_it_is_tried_again_after_half_a_minute() -> None:
    world = await refused(times=1)
    world.set_queue(queue(cpu="9"))
    world.now += 29.5
    world.queue.add(GangKey(NAMESPACE, LARGE))
    await world.settle()
    assert world.open_pods() == ["small-0", "small-1"]
    world.now += 0.5
    world.queue.add(GangKey(NAMESPACE, LARGE))
    await world.settle()
    assert world.open_pods() == ["large-0", "large-1", "large-2", "small-0", "small-1"]


async def test_it_is_tried_at_once_when_its_pod_group_has_changed() -> None:
    world = await refused(times=1)
    world.set_queue(queue(cpu="9"))
    world.client.groups[LARGE]["metadata"]["annotations"]["team/note"] = "shorter"
    await world.catch_up()
    assert world.open_pods() == ["large-0", "large-1", "large-2", "small-0", "small-1"]


def test_so_many_annotations_are_copied_to_a_pod_group_as_leave_room_for_marks() -> None:
    """An object holds 256 KiB of them; what schedulers read is short."""
    said = {"volcano.sh/short": "x", **{f"team/{number}": "é" * 20_000 for number in range(6)}}
    manifest = ray_cluster(annotations=said)
    wanted = SCHEDULERS["volcano"].pod_group(*gang_and_intent(manifest), read(manifest))
    copied = wanted["metadata"]["annotations"]
    assert copied.keys() == {"volcano.sh/short", "team/3", "team/4", "team/5"}


async def test_until_its_last_moment_others_start_before_it() -> None:
    world = await refused()
    workload, pods = gang("third", 3, created="2026-11-21T12:00:00Z")
    world.set_queue(queue(cpu="5"))
    world.now += 29.5
    world.queue.add(GangKey(NAMESPACE, LARGE))
    await world.settle()
    world.set_workload(workload)
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    await world.catch_up()
    assert world.open_pods() == ["small-0", "small-1", "third-0", "third-1", "third-2"]
