"""Time limits that run while gangs wait: announced before they end, and obeyed when they do; and run times overrun."""

from __future__ import annotations

from controller.term import Term
from controller.work import Work
from muster.model.gang_states import GangState
from muster.model.names import STATE
from muster.model.times import duration_text, text_of
from muster.planning.messages import taken_back
from muster.planning.run_times import said_end
from muster.workloads.model import TimeLimit


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
    """Warn before Kueue takes its quota back from a gang whose pods are not ready."""
    kueue, now, timeout = work.snapshot.kueue, term.clock.wall(), term.defaults.kueues_timeout
    ends = kueue.awaited_until if kueue is not None else None
    near = TimeLimit("", "", ends - timeout, timeout).near if ends is not None else None
    if ends is None or near is None or ends <= now:
        return
    if now < near:
        work.again(near - now)
        return
    _warn(term, work, ends, taken_back(ends))


def check_run(term: Term, work: Work) -> None:
    """Report once that an admitted gang runs longer than its user said; nothing ends it."""
    end, now = said_end(work.snapshot, work.expects.record), term.clock.wall()
    if end is None:
        return
    # A program that is told to stop then has a moment for that.
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
