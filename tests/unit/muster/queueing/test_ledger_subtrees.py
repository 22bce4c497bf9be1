"""Which queues compete, what is free in them, and whose claims and patience count."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from tests.support.calls import Calls
from tests.support.examples import examples
from tests.support.manifests.observed import amounts


def test_only_queues_below_a_common_limit_compete() -> None:
    """Where they did not, every start would settle all queues of the cluster anew."""
    org = [QueueView("org", "Open", amounts(cpu="9")), *(QueueView(one, "Open", {}, parent="org") for one in "ab")]
    books = Ledger()
    for view in (*org, QueueView("alone", "Open", amounts(cpu="9"))):
        books.set_queue(view)
    for queue in ("a", "b", "alone"):
        books.wait(Candidate(GangKey("team", f"in-{queue}"), queue, 0, "10:00", amounts(cpu="1")))
    assert books.competing("a") == {"a", "b"}
    assert books.competing("alone") == {"alone"}


def test_queues_below_one_that_is_strict_compete_for_its_turn_though_it_has_no_limit() -> None:
    books = Ledger()
    books.set_queue(QueueView("org", "Open", {}, strict=True))
    for queue, cpu in (("full", "1"), ("free", "9")):
        books.set_queue(QueueView(queue, "Open", amounts(cpu=cpu), parent="org"))
        books.wait(Candidate(GangKey("team", f"in-{queue}"), queue, 0, "10:00", amounts(cpu="1")))
    assert books.competing("full") == {"full", "free"}


_promises = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=5)


@settings(max_examples=examples(60))
@given(whole=st.integers(1, 20), queues=_promises, nodes=st.booleans())
def test_however_much_is_guaranteed_no_more_starts_than_there_is(
    whole: int, queues: list[tuple[int, int]], *, nodes: bool
) -> None:
    """Of gangs in as many queues, each with its guarantee; and the first starts where it asks for no more than that."""
    books = Ledger()
    if nodes:
        books.bound(amounts(cpu=str(whole)))
    else:
        books.set_queue(QueueView("org", "Open", amounts(cpu=str(whole))))
    for number, (guarantee, need) in enumerate(queues):
        kept = amounts(cpu=str(guarantee)) if guarantee else {}
        books.set_queue(QueueView(f"q{number}", "Open", {}, parent=ROOT if nodes else "org", guarantee=kept))
        books.wait(Candidate(GangKey("team", str(number)), f"q{number}", 0, "10:00", amounts(cpu=str(need))))
    fits = [
        need
        for number, (_, need) in enumerate(queues)
        if (found := books.decide(GangKey("team", str(number)), 0.0)) and found.fits
    ]
    assert sum(fits) <= whole
    assert fits or all(need > min(guarantee, whole) for guarantee, need in queues)


def test_a_claim_without_a_priority_gives_way_to_any_above_zero() -> None:
    """Zero is what pods without a class have in Kubernetes."""
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4"), preempts=True))
    books.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="4")))
    urgent = Candidate(GangKey("team", "urgent"), "q", 1, "10:00", amounts(cpu="4"), preempts=True)
    books.wait(urgent)
    decision = books.decide(urgent.key, 0.0)
    assert decision is not None
    assert decision.fits


def test_only_a_gang_for_which_others_are_evicted_counts_on_it() -> None:
    """Also where the queue says only later that its gangs preempt: each has the right line then."""
    books = Ledger()
    for preempts in (True, False, True):
        books.set_queue(QueueView("q", "Open", amounts(cpu="4"), preempts=preempts))
        books.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="4")))
        books.wait(Candidate(GangKey("team", "never"), "q", 2, "09:00", amounts(cpu="4")))
        books.wait(Candidate(GangKey("team", "urgent"), "q", 1, "10:00", amounts(cpu="4"), preempts=True))
        found = {name: books.decide(GangKey("team", name), 0.0) for name in ("never", "urgent")}
        assert [name for name, one in found.items() if one and one.fits] == ["urgent"] * preempts


def test_what_nobody_has_taken_is_free_to_the_last_bit() -> None:
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4", memory="6Gi")))
    books.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="3")))
    books.wait(Candidate(GangKey("team", "waits"), "q", 0, "10:00", amounts(cpu="3", memory="4Gi")))
    decision = books.decide(GangKey("team", "waits"), 0.0)
    assert decision is not None
    assert 'queue "q" has cpu 1 and memory 6Gi free of cpu 4 and memory 6Gi' in decision.message


def test_patience_ends_at_its_moment_however_often_a_gang_was_passed_before() -> None:
    """Moments that were overtaken are cleared away when there are many of them, and no other with them."""
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4"), patience=60.0, trusts_estimates=False))
    books.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="2")))
    large = Candidate(GangKey("team", "large"), "q", 0, "09:00", amounts(cpu="3"))
    small = Candidate(GangKey("team", "small"), "q", 0, "10:00", amounts(cpu="1"))
    books.wait(small)
    for since in range(1000, 1200):
        books.wait(replace(large, passed_since=float(since)))
    fits = [found.fits for now in (1258.0, 1260.0) if (found := books.decide(small.key, now))]
    assert fits == [True, False]


def below_one_limit(queues: int) -> Ledger:
    """So many queues below an organisation, in each of which one gang holds all and one waits; the root has a limit."""
    books = Ledger()
    books.set_queue(QueueView(ROOT, "Open", amounts(cpu="100000"), parent=""))
    books.set_queue(QueueView("org", "Open", amounts(cpu="100000")))
    for number in range(queues):
        books.set_queue(QueueView(f"q{number}", "Open", amounts(cpu="2"), parent="org", guarantee=amounts(cpu="1")))
        books.hold(Claim(GangKey("team", f"held-{number}"), f"q{number}", amounts(cpu="2")))
        books.wait(Candidate(GangKey("team", f"waits-{number}"), f"q{number}", 0, "10:00", amounts(cpu="1")))
    books.newly_startable("q0", 0.0)
    return books


CHANGES: dict[str, Callable[[Ledger], bool]] = {
    "goes": lambda books: books.drop_queue("q1"),
    "comes": lambda books: books.set_queue(QueueView("new", "Open", amounts(cpu="1"), parent="org")),
    "moves": lambda books: books.set_queue(QueueView("q2", "Open", amounts(cpu="2"))),
    "has another limit": lambda books: books.set_queue(QueueView("q3", "Open", amounts(cpu="9"), parent="org")),
    "has another weight": lambda books: books.set_queue(QueueView("q4", "Open", amounts(cpu="2"), "org", weight=9)),
}
FEW, MANY = 20, 80


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_queue_costs_nothing_for_its_siblings(change: str) -> None:
    """A hundred may go at once."""

    def calls(queues: int) -> int:
        books = below_one_limit(queues)
        with Calls() as counted:
            assert CHANGES[change](books)
        return counted.count

    assert calls(MANY) == calls(FEW)


@pytest.mark.parametrize("change", CHANGES)
def test_the_decision_after_it_costs_as_much_for_each_queue_however_many_there_are(change: str) -> None:
    """Each asked for the weights and guarantees of all its siblings: with a thousand of them that is a million."""

    def calls(queues: int) -> float:
        books = below_one_limit(queues)
        CHANGES[change](books)
        with Calls() as counted:
            books.newly_startable("q0", 0.0)
        return counted.count / queues

    assert calls(MANY) <= 1.05 * calls(FEW)


def test_queues_that_come_and_go_leave_nothing_behind() -> None:
    books = below_one_limit(3)

    def kept() -> int:
        return len(repr([vars(part) for part in (books._passes, books._holdings._usage)]))

    def come_and_go(numbers: range) -> None:
        for number in numbers:
            name, key = f"x{number}", GangKey("team", f"x{number}")
            books.set_queue(QueueView(name, "Open", amounts(cpu="1")))
            books.hold(Claim(key, name, amounts(cpu="1")))
            books.newly_startable(name, 0.0)
            books.forget(key)
            books.drop_queue(name)

    come_and_go(range(10, 11))
    before = kept()
    come_and_go(range(11, 61))
    assert kept() == before
