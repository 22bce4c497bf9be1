"""The gangs of a term: observed as the cluster shows them, and entered into the ledger as planned."""

from __future__ import annotations

import logging

from controller.term import Term
from muster.cluster.observe import observe
from muster.planning.candidate import queue_held
from muster.planning.phase import Phase
from muster.planning.plan import GangPlan
from muster.planning.pod_group import newer
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey

logger = logging.getLogger(__name__)


def observe_gang(term: Term, key: GangKey) -> GangSnapshot:
    """Return the gang as the stores show it, with the writes that the watches may not show yet."""
    expects = term.expectations.seen(key)
    # A leader that takes over believes the marks. Later one counts that it wrote, or for which the gang holds room.
    believed = term.taking_over or bool(expects.record.admitted) or term.ledger.holds(key) is not None
    return observe(
        key,
        term.cluster,
        term.defaults,
        expects,
        now=term.clock.wall(),
        believed=believed,
        pause=term.evictions.pause(key),
    )


def plan_and_enter(term: Term, snapshot: GangSnapshot) -> GangPlan:
    """Plan the gang as it stands, enter it into the ledger so, and wake the gangs for which that changes anything."""
    was_lost = snapshot.key in term.admission.lost
    expects = term.expectations.seen(snapshot.key)
    plan = term.admission.enter_and_wake(snapshot, expects)
    expects.yielded = expects.yielded and (plan.yields or plan.phase is not Phase.ADMITTED)
    if was_lost and not plan.lost:
        found(term, queue_held(snapshot))
    return plan


def enter(term: Term, key: GangKey) -> None:
    """Enter the gang into the ledger as the stores show it, without growth, and without waking other gangs.

    No object is known on which this fails. Where a defect makes it fail on one, that gang holds what its PodGroup asks
    for, for it may be running, until a reconcile of it succeeds: no leader could take over otherwise.
    """
    try:
        term.admission.enter(observe_gang(term, key), term.expectations.seen(key), may_grow=False)
    except Exception:
        logger.exception(
            "internal error: %s cannot be read; it keeps what its PodGroup asks for, and no more of it starts",
            key,
            extra={"event": "gang.unread"},
        )
        term.admission.record_unreadable(key, newer(term.cluster.pod_group(key), term.expectations.seen(key).written))


def found(term: Term, queue: str) -> None:
    """Enter the gangs that waited for a queue which is there now, before a new gang there is decided for."""
    term.admission.lost.found(queue, lambda key: enter(term, key))
