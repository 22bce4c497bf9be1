"""ElasticQuotas in the ledger, one rule after the other; `test_ledger_namespaces.py` has all of them in any history."""

from dataclasses import replace

import pytest

from muster.model.gang_states import GangState
from muster.queueing.entries import Growth
from muster.queueing.ledger import Candidate, Decision, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from muster.resources.elastic_quotas import NamespaceLimit
from tests.support.manifests.observed import amounts

NOW = 1_000_000.0


def waiting(name: str, cpu: int, *, namespace: str = "team", queue: str = "q", since: str = "10:00") -> Candidate:
    return Candidate(GangKey(namespace, name), queue, 0, since, amounts(cpu=str(cpu)), limited=True)


def quota(most: int, least: int = 0) -> NamespaceLimit:
    return NamespaceLimit(("quota",), amounts(cpu=str(most)), amounts(cpu=str(least)))


def ledger(*views: QueueView, **limits: NamespaceLimit | None) -> Ledger:
    """With a queue q that limits nothing, beside these; `plenty` keeps the sum of all min out of the way."""
    made = Ledger()
    for view in (QueueView("q", "Open", {}), *views):
        made.set_queue(replace(view, trusts_estimates=False))
    for namespace, limit in {"plenty": quota(1000, 1000), **limits}.items():
        made.limit_namespace(namespace, limit)
    return made


def hold(books: Ledger, candidate: Candidate) -> None:
    books.hold(candidate.claim(NOW))


def decision(books: Ledger, candidate: Candidate) -> Decision:
    found = books.decide(candidate.key, NOW)
    assert found is not None
    return found


def test_a_namespace_holds_no_more_than_its_max_in_all_queues_together() -> None:
    books = ledger(QueueView("r", "Open", {}), team=quota(4))
    hold(books, waiting("runs", 2))
    one, other = waiting("one", 2, queue="r", since="09:00"), waiting("other", 2)
    books.wait(one)
    books.wait(other)
    assert books.startable("q", NOW) == [one.key]
    assert decision(books, other) == Decision(
        fits=False,
        state=GangState.WAITING_FOR_QUOTA,
        message='needs cpu 2; ElasticQuota "quota" has cpu 0 free of cpu 4; position 1 of 1 waiting',
    )


def test_a_gang_that_its_namespace_keeps_waiting_holds_up_nobody_in_its_queue() -> None:
    """Not even in a strict queue, whose first gang it is, or after its patience."""
    books = ledger(QueueView("s", "Open", amounts(cpu="4"), strict=True), team=quota(2))
    hold(books, waiting("runs", 1))
    books.wait(replace(waiting("large", 2, queue="s", since="08:00"), passed_since=NOW - 9000))
    guest = waiting("guest", 4, namespace="other", queue="s")
    books.wait(guest)
    assert books.startable("s", NOW) == [guest.key]


def test_within_a_namespace_a_smaller_gang_passes_until_the_patience_of_the_queue_is_over() -> None:
    books = ledger(team=quota(4))
    hold(books, waiting("runs", 2))
    large, small = waiting("large", 3, since="08:00"), waiting("small", 2)
    books.wait(large)
    books.wait(small)
    assert books.startable("q", NOW) == [small.key]
    assert books.passed_by(small.key, NOW) == [large.key]
    books.wait(replace(large, passed_since=NOW - 9000))
    assert books.startable("q", NOW) == []
    assert decision(books, small).message == (
        "needs cpu 2; there is room, but what the ElasticQuotas of its namespace leave is reserved "
        'for gang "large"; position 2 of 2 waiting'
    )


def test_nothing_is_kept_for_a_gang_that_what_never_ends_leaves_no_room() -> None:
    books = ledger(team=quota(4))
    hold(books, replace(waiting("serves", 2), lasts=True))
    large = replace(waiting("large", 3, since="08:00"), passed_since=NOW - 9000)
    small = waiting("small", 2)
    books.wait(large)
    books.wait(small)
    assert books.startable("q", NOW) == [small.key]
    assert decision(books, large).message.endswith(
        "smaller gangs may go first, for what does not end by itself leaves it no room; position 1 of 2 waiting"
    )


def test_what_is_kept_in_a_queue_is_kept_in_the_namespace() -> None:
    """Else it would have room in its queue when others have taken what its namespace had."""
    books = ledger(QueueView("full", "Open", amounts(cpu="4")), team=quota(4))
    hold(books, waiting("guest", 4, namespace="other", queue="full"))
    large = replace(waiting("large", 3, queue="full", since="08:00"), passed_since=NOW - 9000)
    small = waiting("small", 2)
    books.wait(large)
    books.wait(small)
    assert books.startable("q", NOW) == []
    books.wait(replace(large, passed_since=NOW))
    assert books.startable("q", NOW) == [small.key]


def unlimited(name: str, cpu: int, **where: str) -> Candidate:
    """A gang of a scheduler that heeds no quotas."""
    return replace(waiting(name, cpu, **where), limited=False)


def test_what_starts_and_stays_in_the_namespace_ends_what_was_kept_there_in_vain_from_then_on() -> None:
    books = ledger(team=quota(5))
    hold(books, waiting("runs", 2))
    serves = replace(unlimited("serves", 2, since="09:00"), lasts=True)
    small = waiting("small", 1)
    for one in (replace(waiting("large", 4, since="08:00"), passed_since=NOW - 9000), serves, small):
        books.wait(one)
    assert books.startable("q", NOW) == [serves.key]
    hold(books, serves)
    assert books.startable("q", NOW) == [small.key]


def test_what_starts_and_stays_in_the_queue_does_so_too() -> None:
    books = ledger(QueueView("t", "Open", amounts(cpu="8")), team=quota(4))
    hold(books, waiting("runs", 1, queue="t"))
    serves = replace(unlimited("serves", 5, namespace="other", queue="t", since="09:00"), lasts=True)
    small = waiting("small", 1, queue="t")
    large = replace(waiting("large", 4, queue="t", since="08:00"), passed_since=NOW - 9000)
    for one in (large, serves, small):
        books.wait(one)
    assert books.startable("t", NOW) == [serves.key]
    hold(books, serves)
    assert books.startable("t", NOW) == [small.key]


def test_who_loses_its_room_in_the_namespace_keeps_none_in_its_queue() -> None:
    books = ledger(QueueView("t", "Open", amounts(cpu="4")), team=quota(4))
    hold(books, waiting("guest", 3, namespace="other", queue="t"))
    takes, next_guest = unlimited("takes", 2), waiting("next", 1, namespace="other", queue="t", since="11:00")
    large = replace(waiting("large", 3, queue="t", since="08:00"), passed_since=NOW - 9000)
    for one in (large, takes, next_guest):
        books.wait(one)
    assert books.startable("t", NOW) == [takes.key]
    hold(books, takes)
    assert books.startable("t", NOW) == [next_guest.key]


def test_who_borrows_gets_what_is_left_of_all_min_and_who_does_not_gets_its_own() -> None:
    books = ledger(plenty=None, team=quota(8, 2), other=quota(8, 4))
    hold(books, waiting("borrows", 4, namespace="other"))
    first, second = waiting("first", 2, since="08:00"), waiting("second", 2, since="09:00")
    for one in (first, second):
        books.wait(one)
    assert books.startable("q", NOW) == [first.key]
    assert decision(books, second).message == (
        "needs cpu 2; the ElasticQuotas of all namespaces have cpu 0 free of cpu 6 together; position 1 of 2 waiting"
    )
    hold(books, waiting("more", 2, namespace="other"))
    # All min are used up: what borrowed gives it back.
    assert books.startable("q", NOW) == [first.key]


def test_who_does_not_know_all_quotas_knows_no_sum() -> None:
    books = ledger(plenty=None)
    books.limit_namespace("team", quota(4), whole=False)
    one, other = waiting("one", 3, since="08:00"), waiting("other", 2)
    books.wait(one)
    books.wait(other)
    assert books.startable("q", NOW) == [one.key]


def test_pods_that_are_not_of_gangs_count() -> None:
    books = ledger(team=quota(4))
    one = waiting("one", 3)
    books.wait(one)
    assert books.others_use("team", amounts(cpu="2"))
    assert books.startable("q", NOW) == []
    assert not books.others_use("team", amounts(cpu="2"))
    assert books.others_use("team", {})
    assert books.startable("q", NOW) == [one.key]


def test_a_gang_above_max_never_fits() -> None:
    books = ledger(team=quota(4))
    one = waiting("one", 5)
    books.wait(one)
    message = 'needs cpu 5, ElasticQuota "quota" has max cpu 4'
    assert decision(books, one) == Decision(fits=False, state=GangState.EXCEEDS_ELASTIC_QUOTA, message=message)


@pytest.mark.parametrize("limited", [True, False])
def test_only_gangs_of_a_scheduler_that_heeds_the_quotas_are_limited(limited: bool) -> None:
    """The others count all the same: their pods are in what the scheduler sums up."""
    books = ledger(team=quota(4))
    one, runs = replace(waiting("one", 5), limited=limited), waiting("runs", 3)
    books.wait(one)
    assert decision(books, one).fits is not limited
    hold(books, runs)
    assert books.fits_more(Growth(runs.key.gang, "q", limited=limited), amounts(cpu="5"), NOW) is not limited


@pytest.mark.parametrize(("others", "fits"), [(1, True), (2, False)])
def test_growth_in_the_place_of_what_it_replaces_stays_within_the_quota(others: int, fits: bool) -> None:
    books = ledger(team=quota(4))
    runs = waiting("runs", 2)
    for one in (runs, replace(waiting("", 1), key=GangKey("team", "runs").leaving), waiting("other", others)):
        hold(books, one)
    growth = Growth(GangKey("team", "runs"), "q", limited=True)
    assert books.fits_more(growth, amounts(cpu="3"), NOW) is fits


def test_growth_takes_no_more_of_a_namespace_than_is_free_and_kept_for_nobody() -> None:
    books = ledger(team=quota(4))
    runs, growth = waiting("runs", 2), Growth(GangKey("team", "runs"), "q", limited=True)
    hold(books, runs)
    assert books.fits_more(growth, amounts(cpu="4"), NOW)
    assert not books.fits_more(growth, amounts(cpu="5"), NOW)
    large = waiting("large", 3)
    books.wait(large)
    assert books.fits_more(growth, amounts(cpu="3"), NOW)
    assert books.passed_by(runs.key, NOW, growth=True) == [large.key]
    books.wait(replace(large, passed_since=NOW - 9000))
    assert not books.fits_more(growth, amounts(cpu="3"), NOW)


def test_a_limit_that_comes_counts_what_is_held_already() -> None:
    books = ledger()
    hold(books, waiting("runs", 3))
    one = waiting("one", 2)
    books.wait(one)
    assert books.startable("q", NOW) == [one.key]
    assert books.limit_namespace("team", quota(4))
    assert not books.limit_namespace("team", quota(4))
    assert books.startable("q", NOW) == []
    assert books.holding_in("team") == {GangKey("team", "runs")}
    assert books.limit_namespace("team", None)
    assert books.startable("q", NOW) == [one.key]
