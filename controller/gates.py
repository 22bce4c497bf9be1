"""Opens the gates of an admitted gang's pods: the mark first, then the gates in one burst, then the message.

`muster.planning.opening` chooses the pods. What cannot be opened is noted in what is expected of the gang
(`muster.planning.expectations`). Everything here raises ApiError for a write that was not taken, and NotLeaderError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from controller import bypass, pod_groups
from controller.fenced_writes import Writer
from controller.term import Term
from controller.work import Work
from muster.gangs.pod_patch import opening
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.resource import PODS
from muster.planning import messages
from muster.planning.expectations import Expectations, WrittenPart
from muster.planning.record import units_of
from muster.planning.snapshot import AdmissionRecord, Member
from muster.resources.amounts import describe

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
            bypass.record(term, bypass.bypassed_by(term, work.key, now, growth=opens.growth), now)
        if not await _write_record(term, work, record, holds, before):
            return
        if len(opens.members) > 1 and not tried:
            await try_gates(term, opens.members, expects)
        term.evictions.opened(work.key, await take_off(term, opens.members, expects))
        if expects.units:
            snapshot = work.snapshot
            seen = (
                one._replace(held=one.held and one.pod.metadata.uid not in expects.opened) for one in snapshot.members
            )
            expects.record_open_units(replace(snapshot, members=tuple(seen)), frozenset())
            expects.record_running(snapshot, work.plan.wave, now)
    for due in (work.plan.requeues, None if work.plan.soft else work.plan.softens):
        work.again(None if due is None else due - now)
    state, message = messages.admitted(work.snapshot, work.plan, holds, expects.notes)
    await pod_groups.report(term, work, expects.record, state, message)


async def _write_record(
    term: Term, work: Work, record: AdmissionRecord, holds: str, before: frozenset[str] | None
) -> bool:
    """Write the mark where it is new; False where it is to be written later, and nothing may be opened until then.

    `before` are the units that were being opened so far.
    """
    expects, snapshot = work.expects, work.snapshot
    units = (expects.units or frozenset()) - units_of(snapshot.record, snapshot.uid)
    if snapshot.marked_for == snapshot.uid and not units:
        return True
    said = GangState.ADMITTED, holds
    if snapshot.marked_for == snapshot.uid:
        said = messages.admitted(snapshot, work.plan, holds, expects.notes)
    try:
        written = await pod_groups.write(term, work, record, *said)
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
    refused = expects.refused.about
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
    expects.refused.taken(WrittenPart.GATE)
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
    expects.refused.note(WrittenPart.GATE, first.member.pod.metadata.uid, words, first.error, now)
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
