"""Reservations: the same starts as a model that thinks everything over from the words of docs/queues.md."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from muster.queueing.forecast import forecast
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import DRAINS, ROOT, QueueView
from tests.support.manifests.observed import amounts
from tests.support.queueing.world import Holder, World

if TYPE_CHECKING:
    from muster.queueing.reservations import Reservation

NOW = 1_000_000.0
LEAVES = ("a1", "a2", "b")


def some_run(chance: random.Random) -> Run | None:
    if chance.random() < 0.3:
        return None
    seconds = chance.choice([100.0, 300.0, 900.0, 2000.0])
    kind = chance.choice(list(EndKind))
    return Run(seconds, kind, (seconds * 3,) if kind is EndKind.ABOUT and chance.random() < 0.5 else ())


def scene(seed: int) -> tuple[World, Ledger]:
    """A tree of three levels that is nearly full, claims with and without ends, and gangs that wait for some time."""
    chance, world, ledger = random.Random(seed), World(), Ledger()  # noqa: S311 - the same scene for the same seed
    trusts, drain_after = chance.random() < 0.7, chance.choice([None, 0.0, 600.0, 5000.0])
    for name, parent, cpu in ((ROOT, "", 12), ("a", ROOT, 9), ("a1", "a", 7), ("a2", "a", 6), ("b", ROOT, 6)):
        limit = amounts(cpu=str(chance.randint(cpu - 2, cpu + 2)), gpu=str(chance.randint(1, 4)))
        view = QueueView(
            *(name, "Open", limit, parent),
            patience=60.0,
            by_age=chance.random() < 0.5,
            strict=chance.random() < 0.05,
            trusts_estimates=trusts,
            drain_after=drain_after,
        )
        world.queues[name] = view
        ledger.set_queue(view)
    for number in range(chance.randint(2, 7)):
        run, key = some_run(chance), GangKey("team", f"runs-{number}")
        claim = amounts(cpu=str(chance.randint(1, 3)), gpu=str(chance.randint(0, 1)))
        end = run.from_(NOW - chance.choice([0.0, 50.0, 250.0, 1000.0])) if run is not None else None
        holder = Holder(chance.choice(LEAVES), claim, 0, "08:00", {}, idle=False, lasts=chance.random() < 0.1, end=end)
        world.held[key] = holder
        ledger.hold(key, holder.queue, claim, since=holder.since, lasts=holder.lasts, end=end)
    for number in range(chance.randint(2, 8)):
        since = chance.choice([None, NOW - 30, NOW - 100, NOW - 1000, NOW - 10_000])
        candidate = Candidate(
            GangKey("team", f"waits-{number}"),
            chance.choice(LEAVES),
            chance.choice([0, 0, 0, 1]),
            f"{chance.randint(10, 20)}:00",
            amounts(cpu=str(chance.randint(0, 6)), gpu=str(chance.choice([0, 0, 1, 2]))),
            passed_since=since,
            drain_after=chance.choice([None, 300.0, 5000.0]),
            lasts=chance.random() < 0.1,
            begun=chance.random() < 0.1,
            run=some_run(chance),
        )
        world.waits[candidate.key] = candidate
        ledger.wait(candidate)
    return world, ledger


@pytest.mark.parametrize("part", range(10))
def test_the_same_gangs_start_as_in_the_model(part: int) -> None:
    for seed in range(part * 300, part * 300 + 300):
        world, ledger = scene(seed)
        expected = [*world.fitting(NOW)]
        found = [key for queue in LEAVES for key in ledger.startable(queue, NOW)]
        assert sorted(set(found)) == sorted(expected), f"scene {seed}"


def everything(ledger: Ledger) -> object:
    """All that a ledger says of the gangs of a scene."""
    keys = [GangKey("team", f"{what}-{number}") for what in ("runs", "waits") for number in range(8)]
    return (
        [ledger.startable(queue, NOW) for queue in LEAVES],
        [(ledger.decide(key, NOW), ledger.holds(key), ledger.position(key, NOW)) for key in keys],
        [(ledger.used(queue), ledger.share(queue), ledger.waiting(queue)) for queue in LEAVES],
    )


def test_a_copy_decides_as_the_ledger_and_changes_nothing_of_it() -> None:
    for seed in range(200):
        _, ledger = scene(seed)
        before = everything(ledger)
        copy = ledger.copy()
        assert everything(copy) == before, f"scene {seed}"
        starts = [*forecast(copy, NOW)]
        assert starts == sorted(starts, key=lambda start: start.at)
        assert everything(ledger) == before, f"scene {seed}"


def test_a_start_behind_a_reservation_moves_it_no_later() -> None:
    """When all have started that may, it has its room at the time that it was told, or sooner.

    Gangs of which no end is known pass it where its time is a guess, and those that have begun always do.
    """
    seen = 0
    for seed in range(6000):
        world, ledger = scene(seed)
        if any(one.run is None or one.begun for one in world.waits.values()):
            continue
        told = {one.order.key: one.start for one in reservations(ledger)}
        for queue in LEAVES:
            ledger.start(queue, NOW)
        after = {one.order.key: one.start for one in reservations(ledger)}
        for key in told.keys() & after.keys():
            assert after[key] <= told[key], f"scene {seed}"
            seen += told[key] < float("inf")
    assert seen > 100


def reservations(ledger: Ledger) -> list[Reservation]:
    passes = (ledger._passes.of(queue, NOW) for queue in LEAVES)
    return [one for outcome in passes for one in outcome.reservations.made if not one.nothing_passes]


def test_a_gang_that_ends_in_time_passes_and_one_that_does_not_waits() -> None:
    ledger = Ledger()
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="10"), patience=60.0))
    ledger.hold(GangKey("team", "runs"), "q", amounts(cpu="6"), end=Run(600.0, EndKind.ENFORCED).from_(NOW))
    large = Candidate(GangKey("team", "large"), "q", 0, "10:00", amounts(cpu="8"), passed_since=NOW - 100)
    short, long, small = (
        Candidate(GangKey("team", name), "q", 0, since, amounts(cpu=cpu), run=Run(seconds, EndKind.ENFORCED))
        for name, since, cpu, seconds in (
            ("short", "11:00", "3", 600.0),
            ("long", "12:00", "3", 601.0),
            ("small", "13:00", "1", 9000.0),
        )
    )
    for one in (large, short, long, small):
        ledger.wait(one)
    assert ledger.startable("q", NOW) == [short.key, small.key]


@pytest.mark.parametrize(
    ("queues", "gangs", "drains"),
    [
        pytest.param(600.0, 7200.0, 600.0, id="as the queue says"),
        pytest.param(None, 7200.0, 7200.0, id="else as stands on the PodGroup of the gang that was passed"),
        pytest.param(None, None, DRAINS, id="else by default"),
    ],
)
def test_estimates_are_trusted_until_the_queue_drains(queues: float | None, gangs: float | None, drains: float) -> None:
    """Nothing happens meanwhile but time."""
    ledger, large, small = Ledger(), GangKey("team", "large"), GangKey("team", "small")
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="10"), patience=60.0, drain_after=queues))
    ledger.hold(GangKey("team", "runs"), "q", amounts(cpu="6"))
    ledger.wait(Candidate(large, "q", 0, "10:00", amounts(cpu="8"), passed_since=1000.0, drain_after=gangs))
    ledger.wait(Candidate(small, "q", 0, "11:00", amounts(cpu="3")))
    assert [ledger.startable("q", 1000.0 + drains + late) for late in (-1.0, 0.0)] == [[small], []]
