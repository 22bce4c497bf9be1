"""The phase of a gang between nothing and running, by what is observed and what was decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from muster.admitters import Admitter, gate_by
from muster.model.gang_states import GangState
from muster.model.modes import GateMode
from muster.model.objects import PodGroupSpec
from muster.model.times import seconds_of
from muster.planning.candidate import queue_held
from muster.planning.pod_group import desired, outgrown, scheduler_of
from muster.planning.snapshot import Mark, Member, View
from muster.queueing.queue_tree import QueueTree
from muster.queueing.verdicts import Decision, queue_on_hold


class Phase(Enum):
    """The phase of a gang."""

    GONE = auto()  # no living workload: nothing to do but to count the pods that it leaves behind
    FOREIGN = auto()  # the PodGroup of its name is not muster's
    STALE = auto()  # the PodGroup is of a former workload of the same name
    INVALID = auto()  # the numbers make no gang
    RELEASED = auto()  # the user took the workload out of muster's hands, and nothing of it is held
    NOT_MANAGED = auto()  # pods of it came without muster: it is left alone, and held pods go as there is room
    INACTIVE = auto()  # finished or suspended
    ASSEMBLING = auto()
    WAITING = auto()
    ADMITTED = auto()
    OUTGROWN = auto()  # all its pods were replaced, and ask for more than it was admitted for: it queues again
    REQUEUED = auto()  # it gave its place back, and its unplaced pods are to be replaced


@dataclass(frozen=True, slots=True)
class Place:
    """A gang's phase, and what its queue says to it."""

    phase: Phase
    gate: GateMode
    """What holds the gang back while it waits."""
    lost: bool
    """True if its queue does not exist, or not for its namespace."""


def place_of(view: View, tree: QueueTree, mark: Mark) -> Place:
    """The phase of the gang; `mark` is this leader's own decision."""
    queue = view.intent.queue if view.intent else queue_held(view)
    lost = bool(queue) and lost_in(view, tree, queue)
    # A queue that is not there is waited for, whatever else is said.
    gate = GateMode.QUEUE if lost else gate_in(view, tree, queue)
    return Place(_aside(view) or _phase_of_active(view, mark, gate), gate, lost)


def gate_in(view: View, tree: QueueTree, queue: str) -> GateMode:
    """The gate mode of the gang in that queue."""
    known = tree.get(queue)
    return gate_by(view.admitter, known.gate if known else None, view.gate)


def lost_in(view: View, tree: QueueTree, queue: str) -> bool:
    """True if the gang needs the queue, for its admitter or its scheduler, and it is not there for the gang."""
    needed = view.admitter is Admitter.LEDGER or scheduler_of(view).enforces_limits
    return needed and not tree.open_to(queue, view.namespace)


def _phase_of_active(view: View, mark: Mark, gate: GateMode) -> Phase:
    if view.uid and view.uid in (view.marked_for, mark.admitted):
        return Phase.OUTGROWN if _comes_back_larger(view) else Phase.ADMITTED
    if given_back(view, view.mark.requeued_at or mark.requeued_at):
        return Phase.REQUEUED
    # A member that runs, or may run, proves admission better than a mark: muster writes a lost mark again. A member
    # that is never held, like a launcher that comes when the others run, proves nothing.
    if any(_was_held(view, member) for member in view.open):
        return Phase.ADMITTED
    if gate is GateMode.OFF and view.members:
        # Held before the gate was turned off: nothing is left to wait for.
        return Phase.ADMITTED
    return Phase.WAITING if view.assembled and view.members else Phase.ASSEMBLING


def _was_held(view: View, member: Member) -> bool:
    role = view.gang.role(member.role) if view.gang else None
    return role is None or role.gated


def _comes_back_larger(view: View) -> bool:
    """True if nothing is left of what was admitted, and what is there instead asks for more.

    So it is with a RayCluster whose upgrade strategy is Recreate, and with a JobSet that was admitted for a later wave
    and restarts from its first one. It starts as a whole or not at all, as any gang does.
    """
    if view.pod_group is None or not view.members or not all(member.held for member in view.members):
        return False
    said = view.terms or desired(view, admitted=True).group.spec
    return outgrown(view, said) or _from_another_wave(view, said)


def _from_another_wave(view: View, said: PodGroupSpec) -> bool:
    """True if the wave that starts now has roles for which the gang was not admitted."""
    if view.gang is None or view.kind is None or not view.kind.in_waves:
        return False
    return not view.gang.min_task_member.keys() <= said.min_task_member.keys()


def _aside(view: View) -> Phase | None:
    """Why the gang is neither waiting nor admitted, or None where it is one of them."""
    if view.decoded is None or view.decoded.metadata.deletion_timestamp:
        return Phase.FOREIGN if view.pod_group is not None and not view.ours else Phase.GONE
    if view.pod_group is not None:
        if not view.ours:
            return Phase.FOREIGN
        if view.stale:
            return Phase.STALE
    if view.error:
        return Phase.INVALID
    if view.gang is None or view.workload is None:
        return Phase.RELEASED
    if not view.workload.active:
        return Phase.INACTIVE
    return Phase.NOT_MANAGED if view.left_alone else None


def given_back(view: View, requeued_at: str) -> tuple[Member, ...]:
    """The open members of a gang that gave its place back at that time (RFC 3339); none as soon as one has a node.

    Unless it may give its place back for pods that have nodes and are not ready: then all of them. Members made since
    are not among them: they were opened on purpose.
    """
    since = seconds_of(requeued_at)
    if since is None or not (view.placed_nowhere or view.requeues_unready):
        return ()
    return tuple(
        member
        for member in view.members
        if not member.held and (seconds_of(member.pod.metadata.creation_timestamp) or 0.0) <= since
    )


def held_back(view: View, tree: QueueTree, queue: str, gate: GateMode, *, lost: bool) -> Decision | None:
    """Why nothing more of the gang may start: it, or its queue, is on hold; None where neither is.

    Where another one than the ledger admits, that one is to be told; where no gate is, nothing can be held. Of a queue
    that is `lost`, not there for the gang's namespace, no user there is told anything.
    """
    if view.admitter is not Admitter.LEDGER or gate is GateMode.OFF:
        return None
    if view.on_hold_by is not None:
        return Decision(fits=False, state=GangState.ON_HOLD, message=view.on_hold_by.sentence)
    by = "" if lost else tree.on_hold_by(queue)
    return queue_on_hold(queue, by) if by else None


def on_hold_itself(view: View, hold: Decision | None) -> bool:
    """True if `hold`, as `held_back` gives it, is the workload's own: it stands in no line then, nor does its wave."""
    return hold is not None and view.on_hold_by is not None
