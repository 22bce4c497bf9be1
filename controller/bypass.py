"""Records of bypassed gangs: in which queue, and since when, for the queue's patience counts from then on.

Bypassed gangs are recorded in the ledger before the next decision, and on their PodGroups when they are reconciled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from controller.term import Term
from controller.work import Work
from muster.model.times import duration_of, seconds_of, text_of
from muster.queueing.entries import EntryKey
from muster.queueing.ledger import GangKey


def bypassed_by(term: Term, key: GangKey, now: float, *, growth: bool = False) -> dict[EntryKey, str | None]:
    """The gangs that this one bypasses when it starts or grows now, and their queues; a wave is no `growth`."""
    return {other: term.ledger.queue_of(other) for other in term.ledger.passed_by(key, now, growth=growth)}


def record_in_ledger(term: Term, bypassed: Mapping[EntryKey, str | None], now: float) -> None:
    """Record these gangs as bypassed in the ledger before any other gang passes them; `now` of the wall clock."""
    since = seconds_of(text_of(now))  # as their PodGroups will say it
    for key, queue in _still_waiting(term, bypassed):
        waits = term.ledger.candidate(key)
        if waits is not None and waits.passed_since is None:
            after = duration_of(_drains(term, queue))
            term.ledger.wait(replace(waits, passed_since=since, drain_after=after))
            term.admission.wake(queue, key.gang)


def record(term: Term, bypassed: Mapping[EntryKey, str | None], now: float) -> None:
    """Record that these gangs were bypassed, in the ledger and for their PodGroups; `now` of the wall clock."""
    record_in_ledger(term, bypassed, now)
    for key, queue in _still_waiting(term, bypassed):
        gang = key.gang  # of a wave the gang's
        term.expectations.record_bypass(gang, queue, now, _drains(term, queue))
        term.workqueue.add(gang)


def take_back(term: Term, bypassed: Mapping[EntryKey, str | None]) -> None:
    """Enter these gangs as they were: the gang that was to pass them has not started."""
    for key in bypassed:
        term.workqueue.add(key.gang)


def patience_has_ended(term: Term, work: Work, now: float) -> bool:
    """Return whether the patience of a waiting gang has ended since it was last looked at.

    From then on other gangs may pass it for ever, or none may: its words change, and nothing else happens in its queue.
    """
    ends, expected = term.ledger.patience_ends(work.key), work.expects.patient_until
    work.expects.patient_until = ends if ends is not None and ends > now else None
    if work.expects.patient_until is not None:
        work.again(work.expects.patient_until - now)
    return expected is not None and expected <= now


def _drains(term: Term, queue: str) -> str:
    """The time after which the queue drains for a bypassed gang, where it sets none itself."""
    return "" if term.ledger.tree.settings(queue).drain_after is not None else term.run_times.drain_after(queue)


def _still_waiting(term: Term, bypassed: Mapping[EntryKey, str | None]) -> Iterator[tuple[EntryKey, str]]:
    """The gangs that still wait where they waited: one may have started since, or wait in another queue."""
    for key, queue in bypassed.items():
        if queue is not None and term.ledger.queue_of(key) == queue and term.ledger.holds(key) is None:
            yield key, queue
