"""Which queues compete, what is free in them, and whose claims and patience count."""

from __future__ import annotations

from dataclasses import replace

from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_tree import QueueView
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


def test_a_claim_without_a_priority_gives_way_to_any_above_zero() -> None:
    """Zero is what pods without a class have in Kubernetes."""
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4"), preempts=True))
    books.hold(GangKey("team", "runs"), "q", amounts(cpu="4"))
    urgent = Candidate(GangKey("team", "urgent"), "q", 1, "10:00", amounts(cpu="4"))
    books.wait(urgent)
    decision = books.decide(urgent.key, 0.0)
    assert decision is not None
    assert decision.fits


def test_what_nobody_has_taken_is_free_to_the_last_bit() -> None:
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4", memory="6Gi")))
    books.hold(GangKey("team", "runs"), "q", amounts(cpu="3"))
    books.wait(Candidate(GangKey("team", "waits"), "q", 0, "10:00", amounts(cpu="3", memory="4Gi")))
    decision = books.decide(GangKey("team", "waits"), 0.0)
    assert decision is not None
    assert 'queue "q" has cpu 1 and memory 6Gi free of cpu 4 and memory 6Gi' in decision.message


def test_patience_ends_at_its_moment_however_often_a_gang_was_passed_before() -> None:
    """Moments that were overtaken are cleared away when there are many of them, and no other with them."""
    books = Ledger()
    books.set_queue(QueueView("q", "Open", amounts(cpu="4"), patience=60.0))
    books.hold(GangKey("team", "runs"), "q", amounts(cpu="2"))
    large = Candidate(GangKey("team", "large"), "q", 0, "09:00", amounts(cpu="3"))
    small = Candidate(GangKey("team", "small"), "q", 0, "10:00", amounts(cpu="1"))
    books.wait(small)
    for since in range(1000, 1200):
        books.wait(replace(large, passed_since=float(since)))
    fits = [found.fits for now in (1258.0, 1260.0) if (found := books.decide(small.key, now))]
    assert fits == [True, False]
