"""The wall clock leaps (NTP, a virtual machine that was paused): what has not been waited for is not over."""

import pytest

from muster.model.names import REQUEUE_AFTER, STATE
from tests.support.controller.bypass_queue import LARGE, gang, harness, running
from tests.support.controller.two_gangs import again, demo
from tests.support.manifests.observed import GROUP, ray_cluster

HOUR = 3600.0


@pytest.mark.parametrize("leap", [400.0, HOUR, 24 * HOUR, -HOUR])
async def test_a_gang_that_was_just_admitted_has_its_whole_time_to_find_nodes(leap: float) -> None:
    world = await demo(workloads=[ray_cluster(annotations={REQUEUE_AFTER: "30m"})]).settled()
    world.leap = leap
    for seconds in (10.0, 280.0):
        world.now += seconds
        again(world)
        written = await world.settle()
        assert not [write for write in written if write.startswith("delete")]
        assert world.annotations(GROUP)[STATE] == "Admitted"
    world.now += 20.0
    again(world)
    await world.settle()
    assert world.annotations(GROUP)[STATE] == "Unschedulable", "five minutes that were waited for are over"


async def test_it_gives_its_place_back_after_as_long_as_it_waited() -> None:
    world = await demo(workloads=[ray_cluster(annotations={REQUEUE_AFTER: "30m"})]).settled()
    world.leap = -HOUR
    world.now += 1801.0
    again(world)
    assert [write for write in await world.settle() if write.startswith("delete")] == [
        *("delete demo-head", "delete demo-w-0", "delete demo-w-1")
    ]
    assert world.annotations(GROUP)[STATE] == "Requeued"


@pytest.mark.parametrize("leap", [400.0, HOUR, -HOUR])
async def test_the_patience_of_a_queue_lasts_as_long_as_it_says(leap: float) -> None:
    """The large gang is passed now; only when its minute is over nobody passes it any more."""
    runs, group = running("runs", 2)
    small, third = (gang(name, 1, created=f"2026-11-21T1{hour}:00:00Z") for name, hour in (("small", 1), ("third", 2)))
    large = gang("large", 3, created="2026-11-21T10:00:00Z")
    world = await harness(runs, large, small, groups=[group], annotations={"patience": "60s"}).settled()
    assert "small-0" in world.open_pods()
    world.leap = leap
    world.now += 10.0
    world.set_workload(third[0])
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in third[1]}
    world.watch()
    again(world)
    await world.settle()
    assert "third-0" in world.open_pods(), world.annotations(LARGE)
