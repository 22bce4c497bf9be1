"""What claims below a queue take of the queues above it: what may be placed there, and no more."""

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.resources.amounts import Resources
from muster.resources.quantity import ZERO
from tests.support.manifests.observed import amounts

PARENTS = {ROOT: "", "a": ROOT, "b": ROOT, "a1": "a", "a2": "a", "b1": "b", "a11": "a1", "a12": "a1"}


class _Holder(NamedTuple):
    """A gang of a queue: what it claims, what of that runs, and what is only asked for."""

    queue: str
    claim: int
    running: int
    asked: int


def cpu(number: int) -> Resources:
    return amounts(cpu=str(number)) if number else {}


def books(limits: dict[str, int], held: list[_Holder]) -> Ledger:
    """A ledger with these gangs."""
    ledger = Ledger()
    for name, parent in PARENTS.items():
        ledger.set_queue(QueueView(name, "Open", cpu(limits.get(name, 0)), parent=parent))
    for number, one in enumerate(held):
        hold(ledger, number, one)
    return ledger


def hold(ledger: Ledger, number: int, one: _Holder) -> None:
    running = min(one.running, one.claim)
    ledger.hold(
        Claim(
            GangKey("n", f"g{number}"),
            one.queue,
            cpu(one.claim),
            running=cpu(running),
            asked=cpu(one.asked),
            lasts=True,
        )
    )


def used(ledger: Ledger, queue: str) -> int:
    return ledger.used(queue).get("cpu", ZERO).nano // 10**9


holders = st.lists(
    st.builds(
        _Holder, st.sampled_from(list(PARENTS)), st.integers(0, 30), st.integers(0, 6), st.sampled_from([0, 0, 4, 1000])
    ),
    max_size=8,
)
limits = st.dictionaries(st.sampled_from(list(PARENTS)), st.integers(1, 12))


@given(limits, limits, holders, st.randoms(use_true_random=False))
def test_a_queue_hands_up_its_limit_at_most_and_what_runs_of_it(
    before: dict[str, int], now: dict[str, int], held: list[_Holder], random: random.Random
) -> None:
    """Whatever was before: the same facts, in any order, are the same ledger."""
    ledger = books(before, held)
    used(ledger, ROOT)
    for name, parent in PARENTS.items():
        ledger.set_queue(QueueView(name, "Open", cpu(now.get(name, 0)), parent=parent))
    places = [*enumerate(held)]
    random.shuffle(places)
    fresh = books(now, [])
    for number, one in places:
        hold(fresh, number, one)
    for name in PARENTS:
        assert used(ledger, name) == used(fresh, name)
    for name in PARENTS:
        own = [one for one in held if one.queue == name]
        most = sum(one.claim for one in own)
        for child in (one for one, parent in PARENTS.items() if parent == name):
            runs = sum(min(one.running, one.claim) for one in held if child in ledger.tree.path(one.queue))
            most += min(used(ledger, child), now[child] + runs) if child in now else used(ledger, child)
        asked = sum(one.asked for one in own)
        assert most <= used(ledger, name) <= max(most, min(most + asked, now.get(name, most + asked)))


def test_claims_of_which_no_more_can_be_placed_keep_no_gang_of_a_sibling_waiting() -> None:
    ledger = books({"a": 20, "a1": 4, "a2": 20}, [_Holder("a11", 1000, 2, 0)])
    ledger.wait(Candidate(GangKey("n", "large"), "a2", 0, "2026", cpu(14)))
    assert ledger.startable("a2", 0.0) == [GangKey("n", "large")]
    ledger.wait(Candidate(GangKey("n", "larger"), "a2", 0, "2025", cpu(15)))
    assert ledger.startable("a2", 0.0) == [GangKey("n", "large")]
    ledger.forget(GangKey("n", "larger"))
    hold(ledger, 0, _Holder("a11", 1000, 3, 0))
    assert ledger.startable("a2", 0.0) == []


def test_what_is_asked_for_takes_what_is_free_and_nothing_of_others() -> None:
    ledger = books({"a": 10, "a1": 4}, [_Holder("a11", 1, 1, 1000), _Holder("a12", 0, 0, 1000)])
    assert (used(ledger, "a11"), used(ledger, "a1"), used(ledger, "a")) == (4, 4, 4)
    ledger.wait(Candidate(GangKey("n", "small"), "a12", 0, "2026", cpu(1)))
    assert ledger.startable("a12", 0.0) == []
    ledger.wait(Candidate(GangKey("n", "beside"), "a2", 0, "2026", cpu(6)))
    assert ledger.startable("a2", 0.0) == [GangKey("n", "beside")]
    ledger.hold(Claim(GangKey("n", "beside"), "a2", cpu(6)))
    ledger.forget(GangKey("n", "g0"))
    assert (used(ledger, "a12"), used(ledger, "a")) == (4, 10)


@pytest.mark.parametrize("queue", ["unknown", "a/"])
def test_a_queue_that_is_not_there_has_nothing_free(queue: str) -> None:
    ledger = books({ROOT: 10, "a": 10}, [_Holder(queue, 0, 0, 1000)])
    assert [used(ledger, name) for name in (ROOT, "a")] == [0, 0]


def test_that_more_or_less_of_a_claim_runs_is_news_only_where_a_queue_is_beyond_its_limit() -> None:
    ledger = books({"a": 20, "a1": 4}, [_Holder("a11", 3, 0, 0)])
    ledger.newly_startable("a11", 0.0)
    assert not ledger.hold(Claim(GangKey("n", "g0"), "a11", cpu(3), running=cpu(3), lasts=True))
    assert ledger.newly_startable("a11", 0.0) is None
    hold(ledger, 1, _Holder("a12", 5, 0, 0))
    ledger.newly_startable("a11", 0.0)
    assert ledger.hold(Claim(GangKey("n", "g0"), "a11", cpu(3), running=cpu(2), lasts=True))
    assert ledger.newly_startable("a11", 0.0) is not None
