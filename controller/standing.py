"""What a gang is to the ledger: the one place where the stores' picture of it becomes a claim or a candidate.

Synchronous, so that between looking and entering nothing can change; the same for a gang that is reconciled and for all
gangs at the beginning of a leader's term.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from controller.gates import minimum_of, plan_opening
from controller.podgroups import claim_of
from muster.gang import Gang, priority_value
from muster.ledger import Candidate, GangKey, Ledger
from muster.names import QUEUE_LABEL
from muster.resources import largest, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.gates import Opening
    from controller.view import View
    from muster.resources import Resources

__all__ = ["Phase", "Standing", "candidate", "enter", "former_of"]

# Phases in which Volcano keeps room for a group that is not muster's.
_HOLDING = frozenset({"Inqueue", "Running", "Unknown"})


class Phase(Enum):
    """Where a gang stands between nothing and running."""

    GONE = auto()  # no living workload: nothing to do but to count the pods that it leaves behind
    FOREIGN = auto()  # somebody else's PodGroup
    STALE = auto()  # the PodGroup is of a former workload of the same name
    INVALID = auto()  # the numbers make no gang
    RELEASED = auto()  # the user took the workload out of muster's hands: held pods are let go
    INACTIVE = auto()  # finished or suspended
    ASSEMBLING = auto()
    WAITING = auto()
    ADMITTED = auto()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a gang stands; `changed` tells whether that changed anything for the others of its queue."""

    phase: Phase
    changed: bool
    opening: Opening | None = None


def enter(view: View, ledger: Ledger, priorities: Mapping[str, int], marked: str) -> Standing:
    """Enter the gang into the ledger as what it is; `marked` is the UID that this leader itself marked, or ""."""
    standing = _enter(view, ledger, priorities, marked)
    # Beside the gang stand pods of a former workload of its name, until they are gone.
    former = former_of(view.key)
    changed = ledger.hold(former, view.former_queue, view.former) if view.former else ledger.forget(former)
    return replace(standing, changed=standing.changed or changed)


def former_of(key: GangKey) -> GangKey:
    """Under which key the ledger keeps what pods of a former workload of the name hold; no PodGroup is called so."""
    return GangKey(key.namespace, f"{key.name} (former)")


def _enter(view: View, ledger: Ledger, priorities: Mapping[str, int], marked: str) -> Standing:
    phase = _phase(view, marked)
    if phase is Phase.ADMITTED:
        return _enter_admitted(view, ledger)
    if phase is Phase.WAITING:
        return Standing(phase, ledger.wait(candidate(view, priorities)))
    claim = _left_over(view, phase, marked)
    if claim:
        return Standing(phase, ledger.hold(view.key, _queue_held(view), claim))
    return Standing(phase, ledger.forget(view.key))


def _left_over(view: View, phase: Phase, marked: str) -> Resources:
    """What is held by a gang that neither waits nor is admitted."""
    group = view.pod_group
    if phase is Phase.FOREIGN:
        # Volcano keeps room for its minResources; what runs may be more.
        kept = claim_of(group) if group is not None and group.status.phase in _HOLDING else {}
        return largest(kept, view.placed)
    if phase is Phase.RELEASED:
        # Its gates are being opened, whatever the queue says: that is what the user asked for.
        return total(member.requests for member in view.members)
    running = total(member.requests for member in view.members if not member.held)
    if phase is Phase.INVALID and group is not None and _uid(view) in (view.marked_for, marked):
        # Numbers that were broken by an edit end nothing: what runs goes on, and its place is kept.
        return largest(claim_of(group), running)
    # Pods outlive a workload that is gone, suspended or ended until somebody has deleted them; they use what they use.
    return running


def _queue_held(view: View) -> str:
    if view.pod_group is not None:
        return view.pod_group.spec.queue or "default"
    return next((member.pod.metadata.labels.get(QUEUE_LABEL, "") for member in view.members), "")


def _uid(view: View) -> str:
    return view.decoded.metadata.uid if view.decoded else ""


def candidate(view: View, priorities: Mapping[str, int]) -> Candidate:
    """The gang as one that waits.

    It needs its minResources, or what its pods really ask for where operators or the cluster's defaults added to them.
    """
    gang, intent, workload = _known(view), view.intent, view.workload
    if intent is None or workload is None:
        raise ValueError(f"{view.key} has no workload that could wait")
    actual = total(member.requests for member in minimum_of(view.members, gang.roles))
    return Candidate(
        key=view.key,
        queue=intent.queue,
        priority=priority_value(intent.priority_class, priorities),
        since=workload.metadata.creation_timestamp,
        need=largest(gang.min_resources, actual),
    )


def _phase(view: View, marked: str) -> Phase:
    if view.decoded is None or view.decoded.metadata.deletion_timestamp:
        return Phase.FOREIGN if view.pod_group is not None and not view.ours else Phase.GONE
    uid = view.decoded.metadata.uid
    if view.pod_group is not None:
        if not view.ours:
            return Phase.FOREIGN
        if view.group_owner is None or view.group_owner.uid != uid:
            return Phase.STALE
    if view.error:
        return Phase.INVALID
    if view.gang is None or view.workload is None:
        return Phase.RELEASED
    if not view.workload.active:
        return Phase.INACTIVE
    # A member that runs, or may, says more than a mark: a lost mark is written again.
    if uid in (view.marked_for, marked) or any(not member.held for member in view.members):
        return Phase.ADMITTED
    return Phase.WAITING if view.assembled and view.members else Phase.ASSEMBLING


def _enter_admitted(view: View, ledger: Ledger) -> Standing:
    gang, group = _known(view), view.pod_group
    roles = gang.roles
    if group is not None:
        queue, base = group.spec.queue, claim_of(group)
        # It was admitted for these minimums; what the workload has come to want since is growth, and growth needs room.
        owed = group.spec.min_task_member
        roles = tuple(replace(role, minimum=min(role.minimum, owed.get(role.name, 0))) for role in roles)
    else:
        queue, base = (view.intent.queue if view.intent else ""), gang.min_resources
    plan = plan_opening(view.members, roles, base, lambda claim: ledger.fits_more(view.key, queue, claim))
    return Standing(Phase.ADMITTED, ledger.hold(view.key, queue, plan.claim), plan)


def _known(view: View) -> Gang:
    if view.gang is None:
        raise ValueError(f"{view.key} has no gang")
    return view.gang
