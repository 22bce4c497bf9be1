"""Reservations: the same starts as a model that thinks everything over from the words of docs/queues.md."""

import heapq
import random

import pytest

from muster.queueing.entries import Claim, EntryKey, Order
from muster.queueing.forecast import forecast, start
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import DRAINS, ROOT, QueueView
from muster.queueing.reservations import Reservation
from tests.support.cases import cases
from tests.support.manifests.observed import amounts
from tests.support.queueing.facts import Holder
from tests.support.queueing.world import World

NOW = 1_000_000.0
LEAVES = ("a1", "a2", "b")


def some_run(chance: random.Random) -> Run | None:
    if chance.random() < 0.3:
        return None
    seconds = chance.choice([100.0, 300.0, 900.0, 2000.0])
    kind = chance.choice(list(EndKind))
    return Run(
        seconds, kind, (seconds / 2, seconds, seconds * 3) if kind is EndKind.ABOUT and chance.random() < 0.5 else ()
    )


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
        ledger.hold(Claim(key, holder.queue, claim, since=holder.since, lasts=holder.lasts, end=end))
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
            start(ledger, queue, NOW)
        after = {one.order.key: one.start for one in reservations(ledger)}
        for key in told.keys() & after.keys():
            assert after[key] <= told[key], f"scene {seed}"
            seen += told[key] < float("inf")
    assert seen > 100


def reservations(ledger: Ledger) -> list[Reservation]:
    passes = (ledger.outcome(queue, NOW) for queue in LEAVES)
    return [one for outcome in passes for one in outcome.reservations.made if not one.nothing_passes]


def test_a_gang_that_ends_in_time_passes_and_one_that_does_not_waits() -> None:
    ledger = Ledger()
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="10"), patience=60.0))
    ledger.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="6"), end=Run(600.0, EndKind.ENFORCED).from_(NOW)))
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


@cases(
    "queues, gangs, drains",
    ("as the queue says", 600.0, 7200.0, 600.0),
    ("else as stands on the PodGroup of the gang that was passed", None, 7200.0, 7200.0),
    ("else by default", None, None, DRAINS),
)
def test_estimates_are_trusted_until_the_queue_drains(queues: float | None, gangs: float | None, drains: float) -> None:
    """Nothing happens meanwhile but time."""
    ledger, large, small = Ledger(), GangKey("team", "large"), GangKey("team", "small")
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="10"), patience=60.0, drain_after=queues))
    ledger.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="6")))
    ledger.wait(Candidate(large, "q", 0, "10:00", amounts(cpu="8"), passed_since=1000.0, drain_after=gangs))
    ledger.wait(Candidate(small, "q", 0, "11:00", amounts(cpu="3")))
    assert [ledger.startable("q", 1000.0 + drains + late) for late in (-1.0, 0.0)] == [[small], []]


class _History:
    """A tree of three levels where every run has a limit: gangs come, start, and end by their limits or before."""

    def __init__(self, seed: int) -> None:
        self.chance, self.ledger, self.now = random.Random(seed), Ledger(), NOW  # noqa: S311 - the same for the same seed
        chance = self.chance
        for name, parent, cpu in ((ROOT, "", 12), ("a", ROOT, 9), ("a1", "a", 7), ("a2", "a", 6), ("b", ROOT, 6)):
            limit = amounts(cpu=str(chance.randint(cpu - 2, cpu + 2)))
            strict = name != ROOT and chance.random() < 0.05
            patience = chance.choice([0.0, 60.0])
            self.ledger.set_queue(QueueView(name, "Open", limit, parent, by_age=True, strict=strict, patience=patience))
        self.comes = sorted(NOW + chance.choice([0.0, 0.0, chance.uniform(0, 4000)]) for _ in range(14))
        self.ends: list[tuple[float, GangKey]] = []
        self.told: dict[EntryKey, float] = {}
        self.orders: dict[EntryKey, Order] = {}
        self.kept = 0

    def go_on(self) -> bool:
        """To the next time at which anything happens; False where nothing does any more."""
        following = min([*self.comes[:1], *(at for at, _ in self.ends[:1]), self.ledger.next_moment()])
        if following == float("inf"):
            return False
        self.now = max(self.now, following)
        while self.ends and self.ends[0][0] <= self.now:
            self.ledger.forget(heapq.heappop(self.ends)[1])
        while self.comes and self.comes[0] <= self.now:
            del self.comes[0]
            number, chance = 99 - len(self.comes), self.chance
            one = Candidate(
                GangKey("team", f"gang-{number}"),
                chance.choice(LEAVES),
                0,
                f"{number}",
                amounts(cpu=str(chance.randint(1, 6))),
                run=Run(chance.choice([100.0, 300.0, 900.0, 2000.0]), chance.choice([EndKind.ENFORCED, EndKind.SAID])),
            )
            self.orders[one.key] = one.order
            self.ledger.wait(one)
        return True

    def start(self) -> None:
        """Have all start that may, and hear what is told to the others."""
        while changed := self.ledger.changed_subtrees(self.now):
            for key, waits in start(self.ledger, changed[0], self.now).items():
                assert waits.run is not None
                assert isinstance(key, GangKey)
                heapq.heappush(self.ends, (self.now + waits.run.seconds * self.chance.choice([0.5, 1.0, 1.0]), key))
                if (by := self.told.pop(key, None)) is not None:
                    assert self.now <= by
                    self.kept += 1
                self._comes_before(waits.order)
        for one in (one for queue in LEAVES for one in self.ledger.outcome(queue, self.now).reservations.made):
            if not one.nothing_passes:
                if one.order.key not in self.told:
                    self._comes_before(one.order)
                assert one.start <= self.told.get(one.order.key, one.start)
                self.told[one.order.key] = one.start

    def _comes_before(self, order: Order) -> None:
        """A gang takes room, or is told when: what was told to those behind it holds no longer."""
        self.told = {other: by for other, by in self.told.items() if self.orders[other] < order}


@pytest.mark.parametrize("part", range(4))
def test_a_gang_starts_by_the_time_it_was_told_unless_one_before_it_starts(part: int) -> None:
    """In every history in which no run takes longer than was said, and the time only moves towards now."""
    kept = 0
    for seed in range(part * 100, part * 100 + 100):
        history = _History(seed)
        while history.go_on():
            history.start()
        left = [history.ledger.candidate(key) for queue in LEAVES for key in history.ledger.waiting(queue)]
        for_ever = [one for one in left if one and history.ledger.refusal(one, history.now) is None]
        assert not for_ever, f"history {seed}: a gang waits for ever"
        kept += history.kept
    assert kept > 50


def longest_wait_behind_small_gangs(seed: int, view: QueueView, run: Run | None) -> float:
    """The most seconds that a large gang has waited since it was passed, when small gangs end or another one starts.

    Another small one comes whenever one ends; each runs for up to 500 s, whatever is known of it.
    """
    chance, ledger, ends = random.Random(seed), Ledger(), [(NOW, GangKey("team", "first"))]  # noqa: S311 - the same
    ledger.set_queue(view)
    large, longest = Candidate(GangKey("team", "large"), "q", 0, "2026", amounts(cpu="8"), run=run), 0.0
    for number in range(400):
        now = ends[0][0]
        ledger.forget(heapq.heappop(ends)[1])
        for name in (f"small-{number}-a", f"small-{number}-b"):
            ledger.wait(Candidate(GangKey("team", name), "q", 0, f"2027-{number:03}", amounts(cpu="1"), run=run))
        if number == 9:
            ledger.wait(large)
        for key in start(ledger, "q", now):
            assert isinstance(key, GangKey)
            heapq.heappush(ends, (now + chance.uniform(50, 500), key))
        waits = ledger.candidate(large.key)
        if number > 9 and waits is None:
            break
        if waits is not None and waits.passed_since is not None:
            longest = max(longest, now - waits.passed_since)
    assert ledger.holds(large.key)
    return longest


@cases("about", ("nothing known", None), ("too short", 100.0), ("as they run", 500.0))
@pytest.mark.parametrize("seed", range(5))
def test_a_large_gang_waits_no_longer_than_its_queue_takes_to_drain(seed: int, about: float | None) -> None:
    """Whatever is known of the small ones."""
    view = QueueView("q", "Open", amounts(cpu="8"), patience=60.0, drain_after=3000.0)
    run = Run(about, EndKind.ABOUT) if about else None
    assert longest_wait_behind_small_gangs(seed, view, run) <= 3000 + 500


@pytest.mark.parametrize("seed", range(10))
def test_lies_about_run_times_delay_a_large_gang_by_no_more_than_they_run(seed: int) -> None:
    """All say a minute: the patience, the minute that is believed, and the longest run."""
    view = QueueView("q", "Open", amounts(cpu="8"), patience=60.0, trusts_estimates=False)
    assert longest_wait_behind_small_gangs(seed, view, Run(60.0, EndKind.SAID)) <= 60 + 60 + 500
