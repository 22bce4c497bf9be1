"""Gangs of a queue that has queues below it are a leaf below it: whatever they do, and whatever the others do."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.entries import Claim, EntryKey, Growth
from muster.queueing.growth import GrowthQueue
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, minus
from tests.support.manifests.observed import amounts

NOW = 1_000_000.0
# Three levels; gangs may hold in any of them, and the lowest take new ones.
PARENTS = {ROOT: "", "a": ROOT, "b": ROOT, "a1": "a", "a2": "a", "b1": "b", "a11": "a1", "a12": "a1"}
INNER = ("root", "a", "b", "a1")
LEAVES = ("a2", "b1", "a11", "a12")


class _Holder(NamedTuple):
    """An admitted gang, and the claim that it would like to have instead (None: it wants no more)."""

    queue: str
    claim: Resources
    soft: Resources
    spare: Resources
    priority: int
    lasts: bool
    wants: Resources | None


def cpu(number: int) -> Resources:
    return amounts(cpu=str(number)) if number else {}


def key(name: str, number: int) -> GangKey:
    return GangKey("team", f"{name}-{number}")


limits = st.dictionaries(st.sampled_from(list(PARENTS)), st.integers(2, 14).map(cpu), max_size=4)
holders = st.lists(
    st.builds(
        _Holder,
        st.sampled_from([*INNER, *LEAVES]),
        st.integers(1, 5).map(cpu),
        st.sampled_from([{}, {}, cpu(1)]),
        st.sampled_from([{}, cpu(1)]),
        st.integers(0, 1),
        st.booleans(),
        st.none() | st.integers(2, 8).map(cpu),
    ),
    max_size=7,
)
waiting = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 8).map(cpu), st.integers(0, 1), st.sampled_from([None, 700.0])),
    max_size=6,
)
settings_of = st.fixed_dictionaries(
    {},
    optional={
        name: st.fixed_dictionaries(
            {},
            optional={
                "by_age": st.booleans(),
                "strict": st.booleans(),
                "weight": st.integers(1, 3),
                "guarantee": st.integers(1, 3).map(cpu),
                "deserved": st.integers(1, 4).map(cpu),
            },
        )
        for name in PARENTS
        if name != ROOT
    },
)


class _World:
    """A ledger with these gangs; `apart` has those of queues that have others below them in a leaf with an object."""

    def __init__(
        self,
        own: dict[str, Resources],
        settings: dict[str, dict[str, object]],
        held: list[_Holder],
        wait: list[tuple[str, Resources, int, float | None]],
        *,
        apart: bool,
        reclaims: bool = False,
    ) -> None:
        self.ledger = Ledger()
        self.growing = GrowthQueue()
        for name, parent in PARENTS.items():
            how: dict[str, Any] = settings.get(name, {}) if name != ROOT else {"reclaims": reclaims}
            self.ledger.set_queue(QueueView(name, "Open", own.get(name, {}), parent=parent, **how))
        for one in held if apart else ():
            if one.queue in INNER:
                self.ledger.set_queue(QueueView(self._leaf(one.queue), "Open", {}, parent=one.queue))
        self.wants: dict[GangKey, tuple[str, Resources]] = {}
        for number, one in enumerate(held):
            queue = self._leaf(one.queue) if apart and one.queue in INNER else one.queue
            gang, since = key("runs", number), f"2025-{number:02}"
            how = {"priority": one.priority, "since": since, "lasts": one.lasts, "spare": one.spare, "soft": one.soft}
            self.ledger.hold(Claim(gang, queue, one.claim, **how))
            if one.wants and (more := amounts_of(minus(one.wants, one.claim))):
                self.wants[gang] = queue, one.wants
                self.growing.enter(gang, Growth(gang, queue, one.priority, since, refused=((one.wants, more),)))
        for number, (queue, need, priority, passed) in enumerate(wait):
            how = {"passed_since": None if passed is None else NOW - passed, "reclaims": True}
            self.ledger.wait(Candidate(key("waits", number), queue, priority, f"2026-{number:02}", need, **how))

    @staticmethod
    def _leaf(queue: str) -> str:
        return f"{queue}-itself"

    def starts(self) -> list[EntryKey]:
        """Which gangs start, one after the other, as the reconciler has it."""
        started: list[EntryKey] = []
        while found := [gang for queue in LEAVES for gang in self.ledger.startable(queue, NOW)]:
            waits = self.ledger.candidate(found[0])
            assert waits is not None
            started.append(waits.key)
            for passed in self.ledger.passed_by(waits.key, NOW):
                other = self.ledger.candidate(passed)
                assert other is not None
                started.append(passed)
                self.ledger.wait(replace(other, passed_since=NOW))
            self.ledger.hold(waits.claim(NOW))
        return started

    def turns(self) -> list[list[GangKey]]:
        """Which gangs have their turns to grow, in each subtree."""
        subtrees = {frozenset(self.ledger.competing(queue)) for queue, _ in self.wants.values()}
        return [self._turns(set(one)) for one in sorted(subtrees, key=sorted)]

    def _turns(self, queues: set[str]) -> list[GangKey]:
        outcome = self.ledger.outcome(min(queues), NOW)
        found, turn = [], self.growing.first(outcome)
        while turn is not None:
            found.append(turn.gang)
            turn = self.growing.first(outcome, passed=turn.passed)
        return found

    def may_grow(self) -> set[GangKey]:
        """Those for whose growth there is room."""
        return {
            gang
            for gang, (queue, claim) in self.wants.items()
            if self.ledger.fits_more(Growth(gang, queue), claim, NOW)
        }


@given(limits, settings_of, holders, waiting, st.booleans())
def test_gangs_of_an_inner_queue_are_as_gangs_of_a_leaf_below_it(
    own: dict[str, Resources],
    settings: dict[str, dict[str, object]],
    held: list[_Holder],
    wait: list[tuple[str, Resources, int, float | None]],
    reclaims: bool,
) -> None:
    """Who starts, who is passed, who grows, what is given back, and what each queue uses."""
    for queue in {one.queue for one in held} & settings.keys():
        # What is guaranteed to the queue itself is no guarantee of its leaf.
        settings = {**settings, queue: {name: one for name, one in settings[queue].items() if name != "guarantee"}}
    inner, apart = (_World(own, settings, held, wait, apart=apart, reclaims=reclaims) for apart in (False, True))
    assert inner.turns() == apart.turns()
    assert inner.may_grow() == apart.may_grow()
    for name in PARENTS:
        assert dict(amounts_of(inner.ledger.used(name))) == dict(amounts_of(apart.ledger.used(name)))
    assert inner.starts() == apart.starts()


@given(limits, settings_of, holders, waiting)
def test_each_gang_that_may_grow_has_its_turn_wherever_it_is(
    own: dict[str, Resources],
    settings: dict[str, dict[str, object]],
    held: list[_Holder],
    wait: list[tuple[str, Resources, int, float | None]],
) -> None:
    world = _World(own, settings, held, wait, apart=False)
    assert {gang for turns in world.turns() for gang in turns} == world.may_grow()


@given(
    st.lists(st.sampled_from(INNER), min_size=1, max_size=3),
    st.integers(4, 7),
    st.lists(st.tuples(st.sampled_from(["a11", "a12", "a2"]), st.integers(1, 3)), min_size=2, max_size=9),
    st.sampled_from([{ROOT: cpu(12)}, {"a": cpu(12)}, {"a": cpu(12), "a1": cpu(11)}]),
)
def test_no_gang_waits_for_ever_behind_smaller_ones_where_others_run_above_it(
    above: list[str], large: int, small: list[tuple[str, int]], own: dict[str, Resources]
) -> None:
    """Services of queues that got others below them take a part of the room for ever, and no more than that.

    By age: a gang that wants more than its queue's share may wait for as long as siblings have less (docs/queues.md).
    """
    held = [_Holder(queue, cpu(1), {}, {}, 0, True, None) for queue in above]
    world = _World(own, {one: {"by_age": True, "trusts_estimates": False} for one in PARENTS}, held, [], apart=False)
    ledger, mine = world.ledger, Candidate(key("large", 0), "a11", 0, "2026-01", cpu(large))
    running: list[EntryKey] = []
    for turn in range(60):
        now = NOW + 301 * turn
        for number in range(2 * turn, 2 * turn + 2 + 6 * (turn == 0)):
            queue, size = small[number % len(small)]
            ledger.wait(Candidate(key("small", number + 8 * (turn > 0)), queue, 0, "2026-02", cpu(size)))
        for gang in [gang for queue in LEAVES for gang in ledger.startable(queue, now)]:
            starts = ledger.candidate(gang)
            decided = ledger.decide(gang, now)
            if starts is None or decided is None or not decided.fits:
                continue
            for passed in ledger.passed_by(gang, now):
                waits = ledger.candidate(passed)
                assert waits is not None
                ledger.wait(replace(waits, passed_since=now))
            ledger.hold(starts.claim(NOW))
            running.append(gang)
        if turn == 0:
            # It comes when most of the room is taken.
            ledger.wait(mine)
        if mine.key in running:
            return
        if running:
            ledger.forget(running.pop(0))
    raise AssertionError("it waits for ever")


def grown(ledger: Ledger, queue: str, most: int) -> int:
    """The most that a gang of 1 cpu there may hold."""
    gang = key("runs", 0)
    ledger.hold(Claim(gang, queue, cpu(1)))
    fits = [ledger.fits_more(Growth(gang, queue), cpu(size), NOW) for size in range(2, most + 1)]
    assert all(before or not after for before, after in pairwise(fits))
    return 1 + fits.count(True)


def test_a_gang_of_an_inner_queue_does_not_grow_into_what_is_guaranteed_below_it() -> None:
    ledger = Ledger()
    ledger.set_queue(QueueView("org", "Open", cpu(10)))
    assert grown(ledger, "org", 12) == 10
    ledger.set_queue(QueueView("team", "Open", {}, parent="org", guarantee=cpu(6)))
    assert grown(ledger, "org", 12) == 4
    ledger.drop_queue("team")
    assert grown(ledger, "org", 12) == 10


@pytest.mark.parametrize("first", ["before", "after"])
def test_the_share_of_a_queues_own_gangs_is_that_of_one_more_queue_below_it(first: str) -> None:
    """From when on it has queues below it, whichever came first."""
    ledger = Ledger()
    ledger.set_queue(QueueView("org", "Open", cpu(12)))
    if first == "before":
        ledger.hold(Claim(key("runs", 0), "org", cpu(3)))
    for name in ("x", "y"):
        ledger.set_queue(QueueView(name, "Open", {}, parent="org"))
    if first == "after":
        assert ledger.share("x") == 0
        ledger.hold(Claim(key("runs", 0), "org", cpu(3)))
    ledger.hold(Claim(key("runs", 1), "x", cpu(2)))
    assert ledger.share("x") == 0.5
    ledger.forget(key("runs", 0))
    assert ledger.share("x") == pytest.approx(1 / 3)
    ledger.drop_queue("y")
    assert ledger.share("x") is None
