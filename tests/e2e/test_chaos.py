"""Whatever is killed and whoever comes and goes: nothing starts in part, nothing is over its limit, nothing is stuck.

What is done, to what and in which order is a plan made of the seed alone (`tests.support.cluster.chaos_plan`), and a
step that is refused while something is down is tried until it is done. So the same seed gives the same steps.

Short in `make test`. `MUSTER_CHAOS_SEED=7 pytest tests/e2e/test_chaos.py -m long` for a long one of another seed.
Beside Volcano: tests/pairs/test_chaos_elsewhere.py.
"""

import os
from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.schedulers import named
from tests.e2e.conftest import QUICK_LEASE, VALUES
from tests.support.cluster.chaos import World, open_world
from tests.support.cluster.chaos_plan import DEFAULT_SEED, QUEUES, SHORT
from tests.support.cluster.recorder import Manifest
from tests.support.cluster.scene import open_scene

pytestmark = pytest.mark.part("bare")

_SEED = int(os.environ.get("MUSTER_CHAOS_SEED", DEFAULT_SEED))
_LONG = 600
_QUEUES = dict(zip(QUEUES, ({"cpu": "8"}, {"cpu": "5"}), strict=True))
# One node takes no pods, so that the queues find less room than they allow.
_CORDONED = "node-3"
# What the steps leave behind has to go through the queues.
_SECONDS_PER_STEP = 6


@pytest.fixture
def breakable(bare: Testbed) -> Iterator[Testbed]:
    """The session's testbed, without muster and with a node less; whoever breaks it leaves it running."""
    bare.kubectl("cordon", _CORDONED)
    yield bare
    bare.kubectl("uncordon", _CORDONED)


@pytest.fixture
def world(breakable: Testbed, request: pytest.FixtureRequest) -> Iterator[World]:
    """Muster with two controllers on a testbed that may break, and two small queues."""
    # The namespace of the one before may still be going.
    scenes = open_scene(breakable, f"chaos-{request.node.callspec.params['steps']}", gaps=True)
    (volcano,) = named("volcano").values()
    with open_world(breakable, scenes, volcano, {**VALUES, **QUICK_LEASE}) as world:
        for name, capability in _QUEUES.items():
            world.scene.adopt_queue(name)
            world.scene.apply(_queue(name, capability))
            world.scene.await_queue(name)
        yield world


def _queue(name: str, capability: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": False, "capability": capability},
    }


@pytest.mark.parametrize(
    "steps",
    [
        SHORT,
        pytest.param(_LONG, marks=[pytest.mark.long, pytest.mark.timeout(_SECONDS_PER_STEP * _LONG)]),
    ],
)
def test_nothing_is_half_started_lost_or_stuck(world: World, steps: int) -> None:
    world.survive(_SEED, steps, _QUEUES)
