"""What a gang keeps of its queue's room, and of Volcano's, while it is nowhere, at rest, or short of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.ledger import GangKey
from muster.names import ADMITTED_AT, MESSAGE, STATE
from muster.times import text_of
from tests.support.controller.bypass_queue import LARGE, RUNS, SMALL, gang, harness, running

if TYPE_CHECKING:
    from tests.support.manifests.observed import JSON


async def test_a_gang_unplaced_after_a_minute_is_in_nobodys_way() -> None:
    """Its gates stay open, and the scheduler stays all-or-nothing."""
    world = harness(gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z"))
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    assert world.annotations(LARGE)[ADMITTED_AT] == text_of(world.now)
    condition = {"type": "Unschedulable", "status": "True", "message": "3/4 tasks in gang unschedulable"}
    world.client.groups[LARGE]["status"] = {"phase": "Inqueue", "conditions": [condition]}
    world.now += 61
    world.watch()
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "Unschedulable"
    assert world.annotations(LARGE)[MESSAGE].endswith("the scheduler finds no place: 3/4 tasks in gang unschedulable")
    assert world.annotations(SMALL)[STATE] == "Admitted"


@pytest.mark.parametrize("said", [{}, {ADMITTED_AT: "long ago"}], ids=["missing", "unreadable"])
async def test_a_gang_of_which_nobody_knows_when_it_was_admitted_has_its_minute_from_now(said: JSON) -> None:
    """Marked by hand, or by another version; the time is written once."""
    nowhere, group = running("runs", 4)
    group["metadata"]["annotations"] |= said
    world = harness(nowhere, gang("small", 1), groups=[group])
    await world.settle()
    assert [world.annotations(name)[STATE] for name in (RUNS, SMALL)] == ["Admitted", "WaitingForQuota"]
    assert world.annotations(RUNS)[ADMITTED_AT] == text_of(world.now)
    marks = [write for write in world.client.writes if write.says == f"mark {RUNS}"]
    assert len(marks) == 1
    world.now += 61
    world.queue.add(GangKey("team", RUNS))
    await world.settle()
    assert [world.annotations(name)[STATE] for name in (RUNS, SMALL)] == ["Unschedulable", "Admitted"]


async def test_a_claim_is_hard_again_when_the_gang_gets_a_node() -> None:
    world = harness(gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z"))
    await world.settle()
    world.client.pods["large-0"]["spec"]["nodeName"] = "n"
    world.now += 61
    world.watch()
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


async def test_a_soft_claim_keeps_no_room_with_volcano_until_the_gang_gets_a_node() -> None:
    """Volcano reserves minResources for a group in its queue, and would let nobody past whom muster admits past it."""
    world = harness(gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z"))
    await world.settle()
    reserved = world.client.groups[LARGE]["spec"]["minResources"]
    assert reserved == {"cpu": "4", "memory": "4Gi"}
    world.now += 61
    await world.settle()
    world.restart()
    await world.settle()
    assert world.client.groups[LARGE]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.client.pods["large-0"]["spec"]["nodeName"] = "n"
    world.watch()
    await world.settle()
    assert world.client.groups[LARGE]["spec"]["minResources"] == reserved


async def test_a_gang_all_of_whose_pods_crash_at_once_keeps_their_places_for_a_minute() -> None:
    """However long ago it was admitted: in the moment before its operator makes them anew nobody takes its room."""
    crashing, group = running("runs", 4)
    for pod in crashing[1]:
        pod["spec"]["nodeName"] = "node-1"
    group["metadata"]["annotations"][ADMITTED_AT] = text_of(0.0)
    world = harness(crashing, gang("large", 3, created="2026-11-21T10:00:00Z"), groups=[group])
    await world.settle()
    world.now += 500.0
    for pod in crashing[1]:
        del world.client.pods[pod["metadata"]["name"]]
    world.watch()
    await world.settle()
    assert [world.annotations(name)[STATE] for name in (RUNS, LARGE)] == ["Admitted", "WaitingForQuota"]
    world.now += 60.0
    world.queue.add(GangKey("team", RUNS))
    await world.settle()
    assert [world.annotations(name)[STATE] for name in (RUNS, LARGE)] == ["Unschedulable", "Admitted"]


async def test_a_workload_at_rest_keeps_no_room_with_volcano_until_it_waits_again() -> None:
    """Volcano takes the PodGroup of a suspended workload, which has no pods, into its queue, and keeps room for it."""
    workload, pods = gang("runs", 2)
    world = harness((workload, pods))
    await world.settle()
    reserved = world.client.groups[RUNS]["spec"]["minResources"]
    assert reserved == {"cpu": "2", "memory": "2Gi"}
    at_rest = {**workload, "spec": {**workload["spec"], "suspend": True}}
    world.set_workload(at_rest)
    await world.settle()
    assert world.client.groups[RUNS]["spec"]["minResources"] == reserved, "Volcano keeps nothing for it yet"
    world.client.pods.clear()
    world.client.groups[RUNS]["status"] = {"phase": "Inqueue"}
    world.watch()
    await world.settle()
    assert world.client.groups[RUNS]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.restart()
    await world.settle()
    assert world.client.groups[RUNS]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.set_workload(workload)
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in gang("runs", 2)[1]}
    world.watch()
    await world.settle()
    assert world.client.groups[RUNS]["spec"]["minResources"] == reserved
    assert world.annotations(RUNS)[STATE] == "Admitted"


async def test_a_gang_that_lacks_pods_keeps_no_room_with_volcano_until_it_has_them() -> None:
    """Volcano leaves out what held pods ask for, but not those that are still to come, which may never be made."""
    workload, pods = gang("large", 3)
    world = harness((workload, pods[:2]))
    await world.settle()
    reserved = world.client.groups[LARGE]["spec"]["minResources"]
    world.now += 6
    world.queue.add(GangKey("team", LARGE))
    await world.settle()
    assert world.client.groups[LARGE]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.client.pods[pods[2]["metadata"]["name"]] = pods[2]
    world.watch()
    await world.settle()
    assert world.client.groups[LARGE]["spec"]["minResources"] == reserved
    assert world.annotations(LARGE)[STATE] == "Admitted"
