"""Asks Kueue at the moment in which gates are to open, and reports gangs that wait for Kueue without pods."""

from __future__ import annotations

from controller.term import Term
from controller.work import Work
from muster.kube.burst import burst
from muster.model.gang_states import GangState
from muster.model.times import seconds_of
from muster.planning.snapshot import GangSnapshot

# Seconds in which Kueue may not have looked at a new workload yet.
_SILENCE = 5.0


async def still_admits(term: Term, snapshot: GangSnapshot) -> bool:
    """Return whether Kueue's yes, where one is needed, holds now; the watch shows the next one. Raises ApiError.

    Of plain pods of several Jobs each Job has a Workload, and each of these is asked about.
    """
    workloads = snapshot.kueue.workloads if snapshot.kueue is not None else ()
    # Without a Workload nothing is awaited: between the ledger's yes and its mark no other gang may take the room.
    return not workloads or all(await burst(term.reads.still_admitted, workloads))


def report_wait(term: Term, work: Work, state: GangState, message: str) -> None:
    """Report why a gang without pods waits, but not before Kueue has looked at it, or has had the time.

    It has no PodGroup to read: words that come too soon after others of the same state are reported later.
    """
    snapshot = work.snapshot
    created = seconds_of(snapshot.decoded.metadata.creation_timestamp) if snapshot.decoded else None
    left = (created or 0.0) + _SILENCE - term.clock.wall()
    if left > 0 and snapshot.kueue is not None and not snapshot.kueue.settled:
        work.again(left)
        return
    work.again(term.reporter.report(snapshot, state, message, term.clock.now()))
