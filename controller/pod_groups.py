"""The PodGroup of a gang: whether there is to be one, what it asks for, and what is written on it.

Where others keep changing what muster writes, it is written again less and less often. A gang whose writes the
apiserver does not take waits in no line (`SetAside`). Everything here raises ApiError for a write that the apiserver
does not take, and NotLeaderError without the lease.
"""

import logging
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from controller.reports import annotations_match, annotations_of
from controller.term import Term, Work, enter, observe_gang, plan_and_enter
from muster.kube.errors import ApiError
from muster.model.gang_states import BEFORE_ADMISSION, GangState
from muster.model.names import STATE
from muster.model.objects import PodGroup, decode
from muster.model.pods import Pod
from muster.model.times import duration_text, text_of
from muster.planning import messages
from muster.planning.candidate import requested_end
from muster.planning.phase import Phase
from muster.planning.pod_group import (
    WORKLOAD_MANAGER,
    Wanted,
    applicable,
    desired,
    unreserved,
    up_to_date,
    while_assembling,
)
from muster.planning.record import carried, written_spec_of
from muster.planning.snapshot import AdmissionRecord
from muster.planning.writes import WrittenPart, manifest_of, version_of
from muster.queueing.ledger import GangKey
from muster.schedulers import scheduler_of_group
from muster.workloads.model import nearly_over

logger = logging.getLogger(__name__)


def deadline_words(term: Term, work: Work, state: GangState) -> str:
    """Return the message for a limit that is near, else ""; `state` is the state in which the gang waits."""
    snapshot, now = work.snapshot, term.clock.wall()
    limit = snapshot.workload.deadline if snapshot.workload else None
    if limit is None or limit.ends is None or limit.near is None:
        return ""
    if limit.ends <= now:
        if snapshot.pod_group and snapshot.pod_group.metadata.annotations.get(STATE) != state:
            # No gang waits behind it any more.
            term.admission.wake(term.ledger.queue_of(snapshot.key) or "", but=snapshot.key)
        return ""
    if now < limit.near:
        work.again(limit.near - now)
        return ""
    work.again(limit.ends - now)
    words = f"{limit.path} ends at {text_of(limit.ends)[:19]}Z"
    _warn(term, work, limit.ends, f"{words}, and the gang still waits")
    return f"; {words}"


def check_kueue(term: Term, work: Work) -> None:
    """Warn before Kueue takes its quota back from a gang whose pods it awaits."""
    kueue, now = work.snapshot.kueue, term.clock.wall()
    awaited = kueue.awaited if kueue is not None else None
    if awaited is None or awaited.until <= now:
        return
    near = nearly_over(awaited.until, awaited.seconds)
    if now < near:
        work.again(near - now)
        return
    _warn(term, work, awaited.until, messages.taken_back(awaited))


def check_run(term: Term, work: Work) -> None:
    """Report once that an admitted gang runs longer than its user expected; nothing ends it."""
    end, now = requested_end(work.snapshot, work.expects.record), term.clock.wall()
    if end is None:
        return
    # A program that stops at that time has a moment for it.
    late = end.start + end.seconds * 1.05
    if now < late:
        work.again(late - now)
        return
    words = f"said {duration_text(end.seconds)}, runs {duration_text(now - end.start)}"
    _warn(term, work, late, f"{words}; gangs behind count on it", GangState.RUNS_LONGER)


def _warn(term: Term, work: Work, ends: float, words: str, state: GangState = GangState.DEADLINE_NEAR) -> None:
    """Report it once for each end, as an event."""
    if work.expects.warned_of != ends:
        work.expects.warned_of = ends
        term.admission.request_refresh(work.key)
        term.reporter.emit(work.snapshot, state, words)


# Seconds after which a PodGroup that seemed to have no owner, and has one, is read again.
_BEHIND = 5.0


async def keep(term: Term, work: Work) -> bool:
    """Make the gang's PodGroup what its phase requires; False where there is none, and is to be none yet."""
    snapshot, expects = work.snapshot, work.expects
    if snapshot.pod_group is None and not _may_be_made(term, work):
        return False
    try:
        wanted = work.plan.wanted or desired(snapshot, admitted=work.admitted)
        if work.plan.phase is Phase.ASSEMBLING:
            wanted = while_assembling(snapshot, wanted)
        expects.written_spec = carried(wanted.group.spec, written_spec_of(snapshot) if work.admitted else None)
        if work.plan.soft or work.plan.lost or expects.lacks_pods(term.clock.now()):
            wanted = unreserved(snapshot, wanted)
        work.snapshot = replace(snapshot, written_spec=expects.written_spec)
        await ensure(term, work, wanted)
    except ApiError as error:
        if error.conflict:
            # Another PodGroup of that name, or none any more: the watch will show it.
            expects.written = None
        if error.refused and _is_for_its_queue(term, work):
            if work.plan.phase is Phase.WAITING:
                return False
        else:
            words = messages.without_pod_group(snapshot, error)
            expects.rejected.note(WrittenPart.POD_GROUP, manifest_of(snapshot), words, error, term.clock.now())
        raise
    expects.rejected.taken(WrittenPart.POD_GROUP)
    return work.snapshot.pod_group is not None


async def ensure(term: Term, work: Work, wanted: Wanted) -> None:
    """Apply the PodGroup unless it is up to date."""
    before, expects = work.snapshot.pod_group, work.expects
    if before is not None and up_to_date(before, wanted):
        return
    manifest, now = wanted.manifest, term.clock.now()
    wait = expects.repairs.wait(manifest, now)
    if wait > 0:
        work.again(wait)
        return
    group = await _apply(term, wanted, before)
    if before is None and not up_to_date(group, wanted):
        # Volcano's own webhook sends new ones from queue "default" to the namespace's; what is changed it lets be.
        group = await _apply(term, wanted, group)
    expects.repairs.note(manifest, now)
    expects.written = group
    work.has_written()


async def _apply(term: Term, wanted: Wanted, group: PodGroup | None) -> PodGroup:
    body = applicable(wanted.manifest, group)
    resource = scheduler_of_group(wanted.group).resource
    return decode(await term.writer.apply(resource, body, field_manager=WORKLOAD_MANAGER), type(wanted.group))


async def report(term: Term, work: Work, record: AdmissionRecord, state: GangState, message: str) -> None:
    """Bring annotations and events up to date; nothing is written when nothing changed."""
    snapshot = work.snapshot
    if snapshot.pod_group is not None and snapshot.ours and not annotations_match(snapshot, record, state, message):
        await write(term, work, record, state, message)
    term.reporter.report(snapshot, state, message, term.clock.now())


async def write(term: Term, work: Work, record: AdmissionRecord, state: GangState, message: str) -> bool:
    """Write the decision and its reason on the PodGroup; False where it is to be written later."""
    words, now, expects = annotations_of(record, state, message), term.clock.now(), work.expects
    # Whatever becomes of the write: a gang has its turn for other numbers once, and they are written until they are
    # there.
    expects.reported = str(state), message
    wait = expects.words.wait(words, now)
    if wait > 0:
        work.again(wait)
        return False
    await write_record(term, work, record, state, message)
    expects.words.note(words, now)
    work.has_written()
    return True


async def write_record(term: Term, work: Work, record: AdmissionRecord, state: GangState, message: str) -> None:
    """Write it at once, with the gang's estimated run time, and remember where that is not taken."""
    snapshot, expects = work.snapshot, work.expects
    term.run_times.expect(snapshot, expects, renew=state in BEFORE_ADMISSION)
    record = replace(record, runs_about=expects.runs_about if record.admitted or state in BEFORE_ADMISSION else "")
    try:
        expects.written = await term.reporter.record(snapshot, record, state, message)
    except ApiError as error:
        about, words = version_of(snapshot.pod_group), messages.unmarked(snapshot, error)
        expects.rejected.note(WrittenPart.MARK, about, words, error, term.clock.now())
        raise
    expects.rejected.taken(WrittenPart.MARK)


async def delete(term: Term, work: Work, *, gone: bool = False) -> None:
    """Delete a PodGroup whose workload is gone, as the apiserver confirms; its deletion reconciles the gang.

    Of plain pods that this leader has seen, and whose watch says that they are `gone`, it need not: the apiserver
    would look through all pods of the namespace for each gang that ends.
    """
    group = work.snapshot.pod_group
    if group is None or group.metadata.deletion_timestamp:
        return
    if not gone and await term.reads.has_living_owner(group.metadata):
        # A watch is behind, or another workload has the name as well: whichever it is that runs goes on.
        work.again(_BEHIND)
        return
    logger.info("%s: deleting the PodGroup", work.key, extra={"event": "podgroup.deleted"})
    await term.writer.delete(scheduler_of_group(group).resource, group.metadata)


async def leave(term: Term, work: Work, pods: Collection[Pod]) -> None:
    """Let go of the PodGroup of a gang that is gone; these of its pods are still being deleted.

    The PodGroup of a workload is deleted with its owner. The PodGroup of plain pods has no owner: it is deleted
    with the last pod that has a node, and waits for no others, for they hold nothing.
    """
    snapshot = work.snapshot
    if not snapshot.ours or snapshot.pod_group is None or snapshot.group_owner is not None:
        return
    goes = all(pod.metadata.deletion_timestamp and not pod.spec.node_name for pod in pods)
    # Kubernetes keeps its own PodGroups while pods name them, those of the next gang of the name among them.
    at_once = goes and not snapshot.pod_group.metadata.finalizers
    if snapshot.record.admitted and not at_once and not snapshot.members:
        # Its room is given away, and pods that come while the last of these end are to wait as any others do.
        await write(term, work, AdmissionRecord(), GangState.FINISHED, "its pods are being deleted")
    if at_once or not pods:
        await delete(term, work, gone=work.expects.plain_pods)


def _may_be_made(term: Term, work: Work) -> bool:
    """Return whether a PodGroup may be made: when the first held pod is there, never on sight of the workload.

    And not in a queue with others below it (one there stops the whole cluster under Volcano's capacity plugin), nor
    where there is none for it: Volcano would keep room for it in a queue that is not its own.
    """
    snapshot = work.snapshot
    refusal = term.admission.refusal(snapshot) if snapshot.members and not work.admitted else None
    if refusal is None or refusal.state not in (GangState.QUEUE_NOT_LEAF, GangState.QUEUE_NOT_FOUND):
        return bool(snapshot.members)
    # Its time runs, too.
    message = refusal.message + deadline_words(term, work, refusal.state)
    term.reporter.report(snapshot, refusal.state, message, term.clock.now())
    return False


def _is_for_its_queue(term: Term, work: Work) -> bool:
    """Return whether the PodGroup was refused for its queue alone (by Volcano's own webhook), and report that.

    A gang that waits stays in line for it, and comes again when the queue has changed.
    """
    decision = term.admission.refusal(work.snapshot)
    if decision is None or decision.state not in (GangState.QUEUE_NOT_FOUND, GangState.QUEUE_CLOSED):
        return False
    message = decision.message
    if work.plan.phase is Phase.WAITING:
        message += deadline_words(term, work, decision.state)
    term.reporter.report(work.snapshot, decision.state, message, term.clock.now())
    return True


class SetAside:
    """Gives the room of such gangs to others, reports why, and brings them back."""

    def __init__(self, term: Term) -> None:
        self._term = term
        # Those for which writes fail: the apiserver may fail for all.
        self._failing: set[GangKey] = set()

    async def keep(self, work: Work, *, write: bool) -> None:
        """Give back the gang's room, and report why: to `write` also on its PodGroup, where that is taken."""
        term, snapshot, expects = self._term, work.snapshot, work.expects
        if (doubt := expects.yield_room(snapshot, term.clock.now())) > 0:
            work.again(doubt)
            return
        if expects.rejected.fails:
            self._failing.add(snapshot.key)
        state, message = GangState.INVALID, messages.set_aside(snapshot, expects.rejected.words)
        record = snapshot.record if snapshot.open else expects.record
        plan_and_enter(term, snapshot)
        if (
            write
            and snapshot.pod_group is not None
            and snapshot.ours
            and not annotations_match(snapshot, record, state, message)
        ):
            # It may be the very write that is not taken.
            with suppress(ApiError):
                expects.written = await term.reporter.record(snapshot, record, state, message)
                if expects.rejected.part is WrittenPart.MARK:
                    expects.rejected.about = version_of(expects.written)
                plan_and_enter(term, observe_gang(term, snapshot.key))
        term.reporter.report(snapshot, state, message, term.clock.now())

    def come_back(self, key: GangKey) -> None:
        """Put the gang back in line, and with it all for which the apiserver has failed: their order holds."""
        self._failing.discard(key)
        back = (key, *self._failing)
        self._failing.clear()
        for one in back:
            self._term.expectations.of(one).rejected.come_back()
            enter(self._term, one)
        for one in back:
            self._term.workqueue.add(one)

    def forget(self, key: GangKey) -> None:
        """Drop what is known of a gang that is gone."""
        self._failing.discard(key)
