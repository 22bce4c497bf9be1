"""Chaos where another scheduler than Volcano places: as in tests/e2e/test_chaos.py, and its own programs are killed."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from muster.schedulers import named
from tests.e2e.conftest import QUICK_LEASE, VALUES
from tests.support.cluster.backends import cluster
from tests.support.cluster.chaos import World, open_world
from tests.support.cluster.chaos_plan import DEFAULT_SEED, QUEUES
from tests.support.cluster.pair_scene import PairScene, open_pair_scene

STEPS = 120
_QUEUES = dict(zip(QUEUES, ({"cpu": "8"}, {"cpu": "5"}), strict=True))

pytestmark = pytest.mark.long


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A cluster of this test's own, muster with two controllers, and two small queues."""
    product = request.param
    values = {**VALUES, **QUICK_LEASE, "schedulers": f"{{{product}}}", "queues.source": "muster"}
    (scheduler,) = named(product).values()
    with Testbed.start(**cluster(product), nodes=Nodes(count=3, cpu="6", gpu=0), progress=print) as testbed:
        scenes = open_pair_scene(testbed, "chaos", product, gaps=True)
        with open_world(testbed, scenes, scheduler, values) as world:
            assert isinstance(world.scene, PairScene)
            for name, capability in _QUEUES.items():
                world.scene.gang_queue(name.removeprefix("chaos"), capability=capability)
            yield world


@pytest.mark.parametrize("world", ["coscheduling", "kubernetes"], indirect=True)
def test_nothing_is_half_started_lost_or_stuck(world: World) -> None:
    world.survive(DEFAULT_SEED, STEPS, _QUEUES)
