"""Admits a gang that waits, when the ledger and Kueue let it start, and opens the gates of an admitted one.

The ledger counts the gang before the mark is written, and goes on counting it where it is not known whether the mark
was taken: so no other decision takes the same room. The mark comes first, then the gates in one burst, then the
message. `muster.planning.opening` chooses the pods. What cannot be opened is noted in what is expected of the gang
(`muster.planning.expectations`). Bypassed gangs are recorded in the ledger before the next decision, and on their
PodGroups when they are reconciled.

Everything here raises ApiError for a write that was not taken, and NotLeaderError.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from controller import pod_groups
from controller.apiserver import Writer
from controller.pod_groups import deadline_words
from controller.term import Term, Work, observe_gang, plan_and_enter
from muster.gangs.pod_patch import opening
from muster.gangs.start_errors import PlannedStart
from muster.kube.concurrency import burst
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.resource import PODS
from muster.model.times import duration_of, seconds_of, text_of
from muster.planning import messages
from muster.planning.expectations import Expectations
from muster.planning.record import units_of
from muster.planning.snapshot import AdmissionRecord, GangSnapshot, Member
from muster.planning.writes import WrittenPart
from muster.queueing.entries import EntryKey
from muster.queueing.ledger import Decision, GangKey
from muster.resources.amounts import describe

# Seconds within which Kueue decides on a new workload.
_SILENCE = 5.0


async def still_admits(term: Term, snapshot: GangSnapshot) -> bool:
    """Return whether Kueue's yes, where one is needed, holds now; the watch shows the next one. Raises ApiError.

    Of plain pods of several Jobs each Job has a Workload, and each of these is asked about.
    """
    workloads = snapshot.kueue.workloads if snapshot.kueue is not None else ()
    # Without a Workload nothing is awaited: between the ledger's yes and its mark no other gang may take the room.
    return not workloads or all(await burst(term.reads.still_admitted, workloads))


def report_kueue_wait(term: Term, work: Work, state: GangState, message: str) -> None:
    """Report why a gang without pods waits, once Kueue has decided on it or had the time to.

    It has no PodGroup to read: words that come too soon after others of the same state are reported later.
    """
    snapshot = work.snapshot
    created = seconds_of(snapshot.decoded.metadata.creation_timestamp) if snapshot.decoded else None
    left = (created or 0.0) + _SILENCE - term.clock.wall()
    if left > 0 and snapshot.kueue is not None and not snapshot.kueue.settled:
        work.again(left)
        return
    work.again(term.reporter.report(snapshot, state, message, term.clock.now()))


def bypassed_by(term: Term, key: GangKey, now: float, *, growth: bool = False) -> dict[EntryKey, str | None]:
    """The gangs that this one bypasses when it starts or grows now, and their queues; a wave is no `growth`."""
    return {other: term.ledger.queue_of(other) for other in term.ledger.passed_by(key, now, growth=growth)}


def count_bypass(term: Term, bypassed: Mapping[EntryKey, str | None], now: float) -> None:
    """Record these gangs as bypassed in the ledger before any other gang passes them; `now` of the wall clock."""
    since = seconds_of(text_of(now))  # as their PodGroups will say it
    for key, queue in _still_waiting(term, bypassed):
        waits = term.ledger.candidate(key)
        if waits is not None and waits.passed_since is None:
            after = duration_of(_drains(term, queue))
            term.ledger.wait(replace(waits, passed_since=since, drain_after=after))
            term.admission.wake(queue, key.gang)


def record_bypass(term: Term, bypassed: Mapping[EntryKey, str | None], now: float) -> None:
    """Record that these gangs were bypassed, in the ledger and for their PodGroups; `now` of the wall clock."""
    count_bypass(term, bypassed, now)
    for key, queue in _still_waiting(term, bypassed):
        gang = key.gang  # of a wave the gang's
        term.expectations.record_bypass(gang, queue, now, _drains(term, queue))
        term.workqueue.add(gang)


def patience_has_ended(term: Term, work: Work, now: float) -> bool:
    """Return whether the patience of a waiting gang has ended since its last reconcile.

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


# A gang may have thousands of members.
_ROLE = attrgetter("role")
# The words of the apiserver for a webhook that has side effects (apiserver/pkg/admission/plugin/webhook/errors).
_NO_DRY_RUN = "does not support dry run"


async def open_gates(term: Term, work: Work, *, tried: bool = False) -> None:
    """Open what may be open of an admitted gang, the mark first, and report how the gang stands.

    Where more than one pod is to be opened that was not `tried`, that is tried first.
    """
    now, opens, expects, snapshot = term.clock.now(), work.plan.opening, work.expects, work.snapshot
    holds = describe(term.ledger.holds(work.key) or {})
    holds += ", admitted by Kueue" if snapshot.kueue else f' of queue "{term.ledger.queue_of(work.key)}"'
    before = expects.units
    expects.record_open_units(snapshot, opens.units if opens is not None else frozenset())
    record = expects.record_running(snapshot, work.plan.wave, now)
    if opens is not None and opens.members:
        if opens.grows:
            expects.unplaced_since = now
            record_bypass(term, bypassed_by(term, work.key, now, growth=opens.growth), now)
        if not await _mark_first(term, work, record, holds, before):
            return
        if len(opens.members) > 1 and not tried:
            await try_gates(term, opens.members, expects)
        opened = await take_off(term, opens.members, expects)
        term.evictions.opened(work.key, opened, term.clock.now())
        if expects.units:
            snapshot = work.snapshot
            seen = (
                one._replace(gated=one.gated and one.pod.metadata.uid not in expects.opened) for one in snapshot.members
            )
            expects.record_open_units(replace(snapshot, members=tuple(seen)), frozenset())
            expects.record_running(snapshot, work.plan.wave, now)
    for due in (work.plan.requeues, work.plan.ages, None if work.plan.soft else work.plan.softens):
        work.again(None if due is None else due - now)
    state, message = messages.admitted(work.snapshot, work.plan, holds, expects.notes)
    await pod_groups.report(term, work, expects.record, state, message)


async def _mark_first(
    term: Term, work: Work, record: AdmissionRecord, holds: str, before: frozenset[str] | None
) -> bool:
    """Write the mark where it is new; False where it is to be written later, and nothing may be opened until then.

    `before` are the units that were being opened so far.
    """
    expects, snapshot = work.expects, work.snapshot
    units = (expects.units or frozenset()) - units_of(snapshot.record, snapshot.uid)
    if snapshot.marked_for == snapshot.uid and not units:
        return True
    outcome = GangState.ADMITTED, holds
    if snapshot.marked_for == snapshot.uid:
        outcome = messages.admitted(snapshot, work.plan, holds, expects.notes)
    try:
        written = await pod_groups.write(term, work, record, *outcome)
    except ApiError as error:
        # Otherwise it is not known whether the mark is there: the room stays taken until the next round writes it.
        expects.units = before if error.refused else expects.units
        expects.unanswered = expects.unanswered if error.refused else term.clock.now()
        raise
    if written or (snapshot.open and not units):
        return True
    # Others take the mark away again and again, so that it is written later. Without it a leader that dies between two
    # gates would leave a part of the gang, or of a unit, open alone.
    expects.units = before
    return False


async def try_gates(term: Term, members: Sequence[Member], expects: Expectations) -> None:
    """Try by dry run to open one pod of each role: a policy of others is met before the first one is open.

    If a pod of a role was refused before, that pod is tried.
    """
    refused = expects.rejected.about
    again = [one for one in members if one.pod.metadata.uid == refused] if refused else []
    ordered = [*reversed(members), *again]
    first = dict(zip(map(_ROLE, ordered), ordered, strict=True))
    _, failures = await patch_gates(term.writer, [*first.values()], dry_run=True)
    _note(failures, expects, term.clock.now())


async def take_off(term: Term, members: Sequence[Member], expects: Expectations) -> list[str]:
    """Open the gates of these pods, and count them; gives the UIDs of those that are open now."""
    started = term.clock.now()
    expects.tried = {member.pod.metadata.uid for member in members}
    opened, failures = await patch_gates(term.writer, members)
    expects.opened |= set(opened)
    expects.tried = {one.member.pod.metadata.uid for one in failures if not one.error.refused}
    now = term.clock.now()
    if expects.tried:
        expects.unanswered = now
    if opened:
        term.metrics.opened(len(opened), now - started)
    _note(failures, expects, now)
    expects.rejected.taken(WrittenPart.GATE)
    return opened


class Failure(NamedTuple):
    """A gate that could not be opened."""

    member: Member
    error: ApiError


def _note(failures: Sequence[Failure], expects: Expectations, now: float) -> None:
    """Raise the first of these, if any, of refusals the first."""
    if not failures:
        return
    first = next((one for one in failures if one.error.refused), failures[0])
    words = messages.shut([one.member.pod for one in failures], first.error)
    expects.rejected.note(WrittenPart.GATE, first.member.pod.metadata.uid, words, first.error, now)
    raise first.error


async def patch_gates(
    writer: Writer, members: Sequence[Member], *, dry_run: bool = False
) -> tuple[list[str], list[Failure]]:
    """Take muster's gate off these pods, in this order but many at once; gates of others stay.

    Returns the UIDs of the pods that are open now, and the failures. Pods that are gone or replaced are skipped: the
    watch shows them. In a dry run nothing is opened; a webhook that takes no part in one is not asked.
    """

    async def open_one(member: Member) -> str | Failure:
        meta = member.pod.metadata
        try:
            await writer.patch(PODS, meta.name, meta.namespace, opening(meta), dry_run=dry_run)
        except ApiError as error:
            if error.not_found or error.conflict or (dry_run and _NO_DRY_RUN in error.message):
                return ""
            return Failure(member, error)
        return meta.uid

    done = await burst(open_one, members)
    opened = [one for one in done if isinstance(one, str) and one]
    return opened, [one for one in done if isinstance(one, Failure)]


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
    if patience_has_ended(term, work, now):
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
    bypassed = bypassed_by(term, work.key, now)
    # From here on it counts as admitted, so that no other decision takes the same room while this one is written.
    before, work.snapshot = expects.record, expects.record_admission(work.snapshot, now)
    work.plan = plan_and_enter(term, work.snapshot)
    count_bypass(term, bypassed, now)
    # Both at once: where a gate is refused, which is rare, the mark is taken off again.
    tried, marked = await asyncio.gather(
        try_gates(term, work.plan.opening.members if work.plan.opening is not None else (), expects),
        pod_groups.write_record(term, work, expects.record, GangState.ADMITTED, message),
        return_exceptions=True,
    )
    if isinstance(marked, ApiError) and not marked.refused:
        # It is not known whether the mark is there: the room stays taken until the next round writes it.
        expects.unanswered = term.clock.now()
        record_bypass(term, bypassed, now)
        raise marked
    if failed := marked or tried:
        expects.record = before
        plan_and_enter(term, observe_gang(term, work.key))
        for key in bypassed:
            # They are entered as they were: this gang has not passed them.
            term.workqueue.add(key.gang)
        raise failed
    record_bypass(term, bypassed, now)
    term.reporter.report(work.snapshot, GangState.ADMITTED, message, term.clock.now())
    queue = term.ledger.queue_of(work.key) or ""
    # Where no queue bounds the gang it may name any: users who make workloads must not be able to make series.
    queue = queue if term.ledger.tree.get(queue) else ""
    if expects.planned is not None:
        metrics.started(queue, expects.planned, now)
        expects.planned = None
    metrics.admitted(queue, now - (work.snapshot.since or now))
    work.has_written()
