"""Whose patience begins when a smaller gang goes first."""

from collections.abc import Callable

from controller.admission import bypassed_by, record_bypass
from muster.model.times import text_of
from muster.planning.expectations import Expectations
from muster.queueing.entries import Claim, EntryKey
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import amounts

KEY = GangKey("team", "large")


def waits(ledger: Ledger, queue: str = "q") -> None:
    ledger.wait(Candidate(KEY, queue, 0, "10:00", amounts(cpu="3")))


@cases(
    "meanwhile, noted",
    ("it still waits", waits, True),
    ("it has started", lambda ledger: ledger.hold(Claim(KEY, "q", amounts(cpu="3"))), False),
    ("it waits in another queue", lambda ledger: waits(ledger, "other"), False),
    ("it is gone", lambda ledger: ledger.forget(KEY), False),
)
async def test_a_gang_was_passed_if_it_still_waits_where_it_waited(
    meanwhile: Callable[[Ledger], None], noted: bool
) -> None:
    """Between a decision and its mark others go on."""
    term = Harness().term
    ledger = term.ledger
    for name in ("q", "other"):
        ledger.set_queue(QueueView(name, "Open", amounts(cpu="4")))
    waits(ledger)
    passed: dict[EntryKey, str | None] = {KEY: ledger.queue_of(KEY)}
    meanwhile(ledger)
    record_bypass(term, passed, 60.0)
    mark = term.expectations.seen(KEY).record
    assert (mark.passed_since, mark.passed_in) == ((text_of(60.0), "q") if noted else ("", ""))
    assert bool(term.workqueue.statistics().ready) is noted


async def test_a_gang_that_waited_nowhere_was_not_passed() -> None:
    term = Harness().term
    record_bypass(term, {KEY: None}, 60.0)
    assert term.expectations.seen(KEY) == Expectations()


async def test_who_stands_before_all_others_passes_nobody() -> None:
    """It starts in its turn; patience begins when one goes first that came later."""
    term = Harness().term
    ledger = term.ledger
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="4")))
    ledger.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="2")))
    waits(ledger)
    for name, since in (("elder", "09:00"), ("younger", "11:00")):
        ledger.wait(Candidate(GangKey("team", name), "q", 0, since, amounts(cpu="1")))
    assert bypassed_by(term, GangKey("team", "elder"), 0.0) == {}
    assert bypassed_by(term, GangKey("team", "younger"), 0.0) == {KEY: "q"}
