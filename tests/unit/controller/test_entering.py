"""A gang that cannot be read, by a defect: it keeps its place, and nobody else from theirs."""

import pytest

from controller import term
from muster.cluster.observe import observe
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from tests.support.controller.bypass_queue import RUNS, gang, harness, running, small_behind_large
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import NAMESPACE, queue


class _UnforeseenError(Exception):
    """What nobody knows of."""


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of gangs at which muster fails when it looks at them."""
    names: set[str] = set()

    def failing(key: GangKey, *args: object, **kwargs: object) -> GangSnapshot:
        if key.name in names:
            raise _UnforeseenError(key.name)
        return observe(key, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(term, "observe", failing)
    return names


async def settle(world: Harness) -> int:
    """As the controller does: an object's trouble does not stop the others. Gives how often it failed."""
    for failed in range(20):
        try:
            await world.settle()
        except _UnforeseenError:
            continue
        return failed
    raise AssertionError("never settles")


async def test_a_new_leader_counts_what_its_pod_group_asks_for(
    unread: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Else no leader could take office, or more would start than there is room for."""
    world = small_behind_large()
    unread.add(RUNS)
    world.restart()
    assert await settle(world) > 0
    assert [name for name in world.open_pods() if not name.startswith("runs")] == ["small-0"]
    [said] = [record.getMessage() for record in caplog.records if record.message.startswith("internal error")]
    assert said == (
        f"internal error: {NAMESPACE}/{RUNS} cannot be read; "
        "it keeps what its PodGroup asks for, and no more of it starts"
    )


async def test_it_is_as_any_other_when_it_can_be_read_again(unread: set[str]) -> None:
    """What it held meanwhile it does not keep."""
    world = small_behind_large()
    unread.add(RUNS)
    world.restart()
    await settle(world)
    unread.clear()
    for name in [name for name in world.client.pods if name.startswith("runs")]:
        del world.client.pods[name]
    world.watch()
    (workload, _), _ = running("runs", 2)
    world.drop_workload(workload)
    world.reconciler.gang_changed(GangKey(NAMESPACE, RUNS))
    await world.settle()
    assert len([name for name in world.open_pods() if name.startswith("large")]) == 3


async def test_the_others_of_a_queue_that_comes_enter_all_the_same(unread: set[str]) -> None:
    """Else nothing would be decided in that queue for as long as this leader lives."""
    names = ["first", "second", "third"]
    world = harness(*(gang(name, 1, created=f"2026-11-21T1{n}:00:00Z") for n, name in enumerate(names)), cpu="4")
    world.drop_queue(queue())
    await world.settle()
    unread.add("ray-second-pg")
    world.set_queue(queue(cpu="4"))
    await settle(world)
    assert world.open_pods() == ["first-0", "third-0"]
