"""Gangs of a queue that was not there: when it comes, the ledger knows all of them before it decides."""

import pytest

from controller.admission_queue import LostGangs, Sweeps
from muster.model.names import ADMITTED, NAMESPACE_SELECTOR
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.bypass_queue import SMALL, gang, harness
from tests.support.controller.harness import Harness
from tests.support.controller.recorded_queue import RecordedQueue
from tests.support.manifests.observed import NAMESPACE, namespace, queue

NAMES = [f"g{number}" for number in range(6)]


def keys(*names: str) -> list[GangKey]:
    return [GangKey("team", name) for name in names]


def test_they_enter_one_by_one_and_those_that_ask_meanwhile_are_looked_at_afterwards() -> None:
    work, sweeps = RecordedQueue(), Sweeps()
    looked_at = work.added_keys
    entered: list[GangKey] = []
    lost = LostGangs(work, sweeps)
    first, second, other, late = keys("first", "second", "other", "late")
    lost.note(first, "q")
    lost.note(second, "q")
    lost.note(other, "elsewhere")
    lost.queue_found("q", entered.append)
    # A second gang that finds it out changes nothing.
    lost.queue_found("q", entered.append)
    steps = sweeps.steps()
    next(steps)
    assert entered == [first]
    assert lost.enter_before(late, "q")
    assert not lost.enter_before(late, "elsewhere")
    for _ in steps:
        pass
    assert (entered, looked_at) == ([first, second], [first, second, late])
    assert not lost.enter_before(late, "q")


def test_one_that_is_lost_no_more_is_not_entered() -> None:
    entered: list[GangKey] = []
    sweeps = Sweeps()
    lost = LostGangs(RecordedQueue(), sweeps)
    stays, goes = keys("stays", "goes")
    lost.note(stays, "q")
    lost.note(goes, "q")
    lost.queue_found("q", entered.append)
    lost.note(goes, None)
    for _ in sweeps.steps():
        pass
    assert entered == [stays]
    assert stays in lost
    assert goes not in lost


@pytest.mark.parametrize("first", [0, 3, 5])
async def test_the_oldest_starts_whoever_is_looked_at_first(first: int) -> None:
    """There is room for one; the watch shows the queue, and some gang is looked at before the others."""
    gangs = [gang(name, 2, created=f"2026-11-21T1{number}:00:00Z") for number, name in enumerate(NAMES)]
    world = harness(*gangs, cpu="2")
    world.drop_queue(queue())
    await world.settle()
    world.set_queue(queue(cpu="2"))
    await world.reconciler.reconcile(GangKey(NAMESPACE, f"ray-{NAMES[first]}-pg"))
    await world.settle()
    admitted = [name for name in NAMES if ADMITTED in world.annotations(f"ray-{name}-pg")]
    assert admitted == ["g0"]


def small_comes(world: Harness) -> None:
    """A gang of one pod comes, younger than the others."""
    small, pods = gang("small", 1, created="2026-11-21T11:00:00Z")
    world.set_workload(small)
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    world.watch()


@cases("above", ("the queue", False), ("the one above it", True))
async def test_one_that_comes_with_the_queue_does_not_start_before_those_that_waited_for_it(*, above: bool) -> None:
    """It is looked at first, and is the only one of which the ledger knows."""
    world = harness(gang("g0", 2, created="2026-11-21T10:00:00Z"), cpu="2")
    of_queue = queue(cpu="2")
    of_queue["spec"]["parent"] = "org"
    world.set_queue(of_queue)
    if not above:
        world.set_queue(queue("org"))
        world.drop_queue(of_queue)
    await world.settle()
    world.set_queue(queue("org") if above else of_queue)
    small_comes(world)
    await world.reconciler.reconcile(GangKey(NAMESPACE, SMALL))
    await world.settle()
    assert world.open_pods() == ["g0-0", "g0-1"]


async def test_one_that_comes_as_its_namespace_gets_the_queue_does_not_start_before_those_that_waited_there() -> None:
    world = harness(gang("g0", 2, created="2026-11-21T10:00:00Z"))
    world.set_queue(queue(cpu="2", annotations={NAMESPACE_SELECTOR: "team=ml"}))
    await world.settle()
    small_comes(world)
    world.set_namespace(namespace(labels={"team": "ml"}))
    await world.reconciler.reconcile(GangKey(NAMESPACE, SMALL))
    await world.settle()
    assert world.open_pods() == ["g0-0", "g0-1"]
