"""How long an admission pass holds, and how many gangs it lets start."""

import gc
import random
import weakref
from dataclasses import replace

import pytest

from muster.queueing.entries import Claim, EntryKey, Growth
from muster.queueing.growth import room_to_grow
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from tests.support.calls import Calls
from tests.support.cases import cases
from tests.support.manifests.observed import amounts

NOW = 1000.0
QUEUES = ("a", "b", "c")


def waits(number: int, queue: str, cpu: int, priority: int = 0) -> Candidate:
    key = GangKey("team", f"g{number:03}")
    return Candidate(key, queue, priority, f"{number:03}", amounts(cpu=str(cpu)), preempts=number % 4 > 0)


def start(ledger: Ledger, key: EntryKey) -> bool:
    """The gang holds what it waited for; whether anything changed for others."""
    one = ledger.candidate(key)
    assert one is not None
    return ledger.hold(one.claim(NOW))


def filled(seed: int, at_once: int, *, preempts: bool = False) -> Ledger:
    """Forty gangs that wait in three queues below one limit, with room for about half of them."""
    chance, ledger = random.Random(seed), Ledger(at_once)  # noqa: S311 - the same gangs for the same seed
    ledger.set_queue(QueueView(ROOT, "Open", amounts(cpu="60"), parent="", by_age=seed % 2 == 0))
    for queue in QUEUES:
        limit = amounts(cpu=str(chance.randrange(20, 40)))
        ledger.set_queue(QueueView(queue, "Open", limit, weight=chance.choice([1, 2]), preempts=preempts))
    for number in range(40):
        ledger.wait(waits(number, chance.choice(QUEUES), chance.randrange(1, 6), chance.choice([0, 0, 10])))
    return ledger


@pytest.mark.parametrize("preempts", [False, True])
@pytest.mark.parametrize("at_once", [1, 2, 7])
@pytest.mark.parametrize("seed", range(12))
def test_however_few_a_pass_lets_start_the_same_gangs_do_in_the_end(seed: int, at_once: int, preempts: bool) -> None:
    """Each start that makes room for the next ones to be known is news for those who wait."""
    whole, ledger = filled(seed, 1000, preempts=preempts), filled(seed, at_once, preempts=preempts)
    expected = whole.startable("a", NOW)
    started: list[EntryKey] = []
    ledger.newly_startable("a", NOW)
    while found := ledger.startable("a", NOW):
        assert len(found) <= at_once
        started.append(found[0])
        start(ledger, found[0])
    assert started == expected
    assert len(expected) > 7


def test_the_next_are_known_when_half_have_started() -> None:
    ledger = Ledger(at_once=4)
    ledger.set_queue(QueueView("a", "Open", amounts(cpu="100")))
    for number in range(10):
        ledger.wait(waits(number, "a", 1))
    first = ledger.newly_startable("a", NOW)
    assert first is not None
    assert len(first) == 4
    for key in first[:2]:
        assert ledger.newly_startable("a", NOW) is None
        start(ledger, key)
    following = ledger.newly_startable("a", NOW)
    assert following is not None
    assert [key.name for key in following] == ["g002", "g003", "g004", "g005"]


def test_one_that_may_start_after_others_is_told_so() -> None:
    ledger = Ledger(at_once=2)
    ledger.set_queue(QueueView("a", "Open", amounts(cpu="100")))
    for number in range(5):
        ledger.wait(waits(number, "a", 1))
    decision = ledger.decide(GangKey("team", "g004"), NOW)
    assert decision is not None
    assert not decision.fits
    assert decision.message == "needs cpu 1; there is room, and 2 gangs start before it; position 3 of 5 waiting"


def test_nothing_grows_while_others_may_start_that_are_not_known_yet() -> None:
    """They stand before it."""
    ledger = Ledger(at_once=2)
    ledger.set_queue(QueueView("a", "Open", amounts(cpu="100")))
    ledger.hold(Claim(GangKey("team", "runs"), "a", amounts(cpu="1")))
    for number in range(3):
        ledger.wait(waits(number, "a", 1))
    grown = Growth(GangKey("team", "runs"), "a"), amounts(cpu="2"), NOW
    assert not ledger.fits_more(*grown)
    assert room_to_grow(ledger.outcome("a", NOW), "a") is None
    start(ledger, GangKey("team", "g000"))
    assert ledger.fits_more(*grown)


def tree(gangs: int) -> Ledger:
    """Ten queues, each with a limit of its own, and as many gangs that hold as wait."""
    ledger = Ledger()
    for number in range(10):
        ledger.set_queue(QueueView(f"q{number}", "Open", amounts(cpu="1")))
    for number in range(gangs):
        one = waits(number, f"q{number % 10}", 1)
        if number // 10 % 2:
            ledger.wait(one)
        else:
            ledger.hold(one.claim(NOW))
    for queue in ledger.changed_subtrees(NOW):
        ledger.newly_startable(queue, NOW)
    return ledger


@cases(
    "view",
    ("a queue comes", QueueView("new", "Open", amounts(cpu="1"))),
    ("a queue moves", QueueView("q0", "Open", amounts(cpu="1"), parent="q1")),
    ("the root is limited", QueueView(ROOT, "Open", amounts(cpu="99"), parent="")),
)
def test_a_change_of_the_tree_costs_by_its_queues(view: QueueView) -> None:
    """Fifty thousand claims were counted again, in one step, for each queue that came."""
    counts = []
    for gangs in (100, 400):
        ledger = tree(gangs)
        with Calls() as calls:
            ledger.set_queue(view)
        counts.append(calls.count)
    assert counts[1] <= counts[0] + 10


def test_a_queue_that_comes_is_news_for_nobody_who_does_not_compete_with_it() -> None:
    ledger = tree(100)
    ledger.set_queue(QueueView("new", "Open", amounts(cpu="1"), parent="q3"))
    assert [ledger.competing(queue) for queue in ledger.changed_subtrees(NOW)] == [{"q3"}]


def test_a_pass_that_is_over_is_gone_at_once() -> None:
    """The processes' cycle collector looks once at each object: what stands in a circle then would stay for ever."""
    ledger = filled(0, 1000)
    for key in ledger.startable("a", NOW):
        ledger.passed_by(key, NOW)
    over = weakref.ref(ledger.outcome("a", NOW).usage)
    gc.disable()
    try:
        ledger.bound(amounts(cpu="50"))
        assert over() is None
    finally:
        gc.enable()


def test_where_no_siblings_compete_it_does_not_matter_who_starts_first() -> None:
    """Each start would otherwise be news for all, and a flood of gangs cost a pass for each of them."""
    ledger = Ledger()
    ledger.set_queue(QueueView("a", "Open", amounts(cpu="100")))
    for number in range(3):
        ledger.wait(waits(number, "a", 1))
    first = ledger.newly_startable("a", NOW)
    assert first is not None
    for key in reversed(first):
        start(ledger, key)
        assert ledger.newly_startable("a", NOW) is None


def test_a_pass_holds_on_though_everybody_who_could_be_passed_has_been() -> None:
    """Those of the siblings are looked for when they are asked about, and their line may be empty by then."""
    ledger = Ledger()
    ledger.set_queue(QueueView(ROOT, "Open", amounts(cpu="10"), parent=""))
    for name in ("a", "b"):
        ledger.set_queue(QueueView(name, "Open", amounts(cpu="10")))
    runs = GangKey("team", "runs")
    ledger.hold(Claim(runs, "a", amounts(cpu="4")))
    large = waits(1, "a", 8), waits(2, "b", 8)
    for one in large:
        ledger.wait(one)
    assert ledger.passed_by(runs, NOW, growth=True) == [one.key for one in large]
    for one in large:
        ledger.wait(replace(one, passed_since=NOW))
    assert ledger.passed_by(runs, NOW, growth=True) == []
