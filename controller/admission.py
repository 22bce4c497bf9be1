"""Admits a gang that waits, when the ledger and Kueue let it start, or reports why it waits.

The ledger counts the gang before the mark is written, and goes on counting it where it is not known whether the mark
was taken: so no other decision takes the same room. No gate is opened here.
"""

from __future__ import annotations

import asyncio

from controller import bypass, pod_groups
from controller.deadlines import deadline_words
from controller.gangs import observe_gang, plan_and_enter
from controller.gates import try_gates
from controller.kueue import still_admits
from controller.term import Term
from controller.work import Work
from muster.gangs.start_errors import PlannedStart
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.queueing.ledger import Decision


async def decide(term: Term, work: Work) -> bool:
    """Admit the gang if it may start, else report why it waits; True when it is admitted now.

    Raises ApiError for a write that was not taken, and NotLeaderError.
    """
    now, admission = term.clock.now(), term.admission
    if admission.lost.enter_before(work.key, term.ledger.queue_of(work.key)):
        return False
    term.quota_use.notice(work.key.namespace)
    decision = admission.decide(work.snapshot, work.plan, now)
    if decision is None:
        return False
    if not decision.fits:
        await _report_wait(term, work, decision, now)
        return False
    if not await still_admits(term, work.snapshot):
        return False
    await _admit(term, work, decision.message, now)
    return True


async def _report_wait(term: Term, work: Work, decision: Decision, now: float) -> None:
    """Report why the gang waits."""
    expects, admission = work.expects, term.admission
    if bypass.patience_has_ended(term, work, now):
        admission.request_refresh(work.key)
    _note_start(term, work, now)
    message = decision.message + expects.notes + deadline_words(term, work, decision.state)
    # Other numbers wait for their turn: else its own last words, come back by the watch, would bring the next. A gang
    # that waits in no line has neither numbers nor turns, and reports what holds it back by now.
    in_line = term.ledger.candidate(work.key) is not None
    if in_line and expects.reported[0] == decision.state and not admission.consume_refresh(work.key):
        message = expects.reported[1]
    await pod_groups.report(term, work, expects.record_waiting(work.snapshot), decision.state, message)


def _note_start(term: Term, work: Work, now: float) -> None:
    """Note when the gang is to start by its reservation, and by how much that has moved."""
    waits, expects = term.ledger.candidate(work.key), work.expects
    reservation = term.ledger.outcome(waits.queue, now).reservations.of(waits.order) if waits is not None else None
    if reservation is None or reservation.basis is None:
        return
    before = expects.planned or PlannedStart(reservation.start, reservation.basis, reservation.start, now)
    if reservation.start > before.start:
        term.metrics.moved(before.basis, reservation.start - before.start)
    expects.planned = before._replace(start=reservation.start, basis=reservation.basis)


async def _admit(term: Term, work: Work, message: str, now: float) -> None:
    """Count the gang as admitted, and those that it bypasses as bypassed; then write the mark, and try its gates."""
    expects, metrics = work.expects, term.metrics
    passed = bypass.bypassed_by(term, work.key, now)
    # From here on it counts as admitted, so that no other decision takes the same room while this one is written.
    before, work.snapshot = expects.record, expects.record_admission(work.snapshot, now)
    work.plan = plan_and_enter(term, work.snapshot)
    bypass.record_in_ledger(term, passed, now)
    # Both at once: where a gate is refused, which is rare, the mark is taken off again.
    tried, marked = await asyncio.gather(
        try_gates(term, work.plan.opening.members if work.plan.opening is not None else (), expects),
        pod_groups.write_record(term, work, expects.record, GangState.ADMITTED, message),
        return_exceptions=True,
    )
    if isinstance(marked, ApiError) and not marked.refused:
        # It is not known whether the mark is there: the room stays taken until the next round writes it.
        expects.unanswered = term.clock.now()
        bypass.record(term, passed, now)
        raise marked
    if failed := marked or tried:
        expects.record = before
        plan_and_enter(term, observe_gang(term, work.key))
        bypass.take_back(term, passed)
        raise failed
    bypass.record(term, passed, now)
    term.reporter.report(work.snapshot, GangState.ADMITTED, message, term.clock.now())
    if expects.planned is not None:
        metrics.started(expects.planned, now)
        expects.planned = None
    queue = term.ledger.queue_of(work.key) or ""
    # Where no queue bounds the gang it may name any: users who make workloads must not be able to make series.
    metrics.admitted(queue if term.ledger.tree.get(queue) else "", now - (work.snapshot.since or now))
    work.has_written()
