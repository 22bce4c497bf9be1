"""The phase of a gang: which step the controller takes for it.

A phase is derived at each reconcile, from the snapshot and the record; there are no transitions. A gang on hold
keeps its phase, and `held_back` gives the reason why nothing more of it starts. What users see is the state
(`muster.model.gang_states`).
"""

from dataclasses import dataclass
from enum import Enum, auto

from muster.admitters import Admitter, gate_by
from muster.model.gang_states import GangState
from muster.model.modes import GateMode
from muster.model.objects import PodGroupSpec
from muster.model.times import seconds_of
from muster.planning.candidate import queue_held
from muster.planning.pod_group import desired, outgrown, scheduler_of
from muster.planning.snapshot import AdmissionRecord, GangSnapshot, Member
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
    ASSEMBLING = auto()  # pods that it needs to start are missing
    WAITING = auto()  # they are there, and it waits to be admitted
    ADMITTED = auto()  # it holds a claim, and its gates open as the claim allows
    OUTGROWN = auto()  # all its pods were replaced, and ask for more than it was admitted for: it queues again
    REQUEUED = auto()  # it gave its claim back, and its unplaced pods are to be replaced


@dataclass(frozen=True, slots=True)
class PhaseInQueue:
    """A gang's phase, and what its queue says to it."""

    phase: Phase
    gate: GateMode
    """The gate mode, which holds the gang back while it waits."""
    lost: bool
    """True if its queue does not exist, or not for its namespace."""


def phase_of(snapshot: GangSnapshot, tree: QueueTree, record: AdmissionRecord) -> PhaseInQueue:
    """The phase of the gang; `record` is this leader's own decision."""
    queue = snapshot.intent.queue if snapshot.intent else queue_held(snapshot)
    lost = bool(queue) and lost_in(snapshot, tree, queue)
    # A queue that is not there is waited for, whatever else is said.
    gate = GateMode.QUEUE if lost else gate_in(snapshot, tree, queue)
    return PhaseInQueue(_phase_outside_queue(snapshot) or _phase_of_active(snapshot, record, gate), gate, lost)


def gate_in(snapshot: GangSnapshot, tree: QueueTree, queue: str) -> GateMode:
    """The gate mode of the gang in that queue."""
    known = tree.get(queue)
    return gate_by(snapshot.admitter, known.gate if known else None, snapshot.gate)


def lost_in(snapshot: GangSnapshot, tree: QueueTree, queue: str) -> bool:
    """True if the gang needs the queue, for its admitter or its scheduler, and it is not there for the gang."""
    needed = snapshot.admitter is Admitter.LEDGER or scheduler_of(snapshot).enforces_limits
    return needed and not tree.open_to(queue, snapshot.namespace)


def _phase_of_active(snapshot: GangSnapshot, record: AdmissionRecord, gate: GateMode) -> Phase:
    if snapshot.uid and snapshot.uid in (snapshot.marked_for, record.admitted):
        return Phase.OUTGROWN if _comes_back_larger(snapshot) else Phase.ADMITTED
    if requeued_members(snapshot, snapshot.record.requeued_at or record.requeued_at):
        return Phase.REQUEUED
    # A member that runs, or may run, proves admission better than a mark: muster writes a lost mark again. A member
    # that is never held, like a launcher that comes when the others run, proves nothing.
    if any(_was_held(snapshot, member) for member in snapshot.open):
        return Phase.ADMITTED
    if gate is GateMode.OFF and snapshot.members:
        # Held before the gate was turned off: nothing is left to wait for.
        return Phase.ADMITTED
    return Phase.WAITING if snapshot.assembled and snapshot.members else Phase.ASSEMBLING


def _was_held(snapshot: GangSnapshot, member: Member) -> bool:
    role = snapshot.gang.role(member.role) if snapshot.gang else None
    return role is None or role.gated


def _comes_back_larger(snapshot: GangSnapshot) -> bool:
    """True if nothing is left of what was admitted, and what is there instead asks for more.

    So it is with a RayCluster whose upgrade strategy is Recreate, and with a JobSet that was admitted for a later wave
    and restarts from its first one. It starts as a whole or not at all, as any gang does.
    """
    if snapshot.pod_group is None or not snapshot.members or not all(member.gated for member in snapshot.members):
        return False
    spec = snapshot.written_spec or desired(snapshot, admitted=True).group.spec
    return outgrown(snapshot, spec) or _from_another_wave(snapshot, spec)


def _from_another_wave(snapshot: GangSnapshot, spec: PodGroupSpec) -> bool:
    """True if the wave that starts now has roles for which the gang was not admitted."""
    if snapshot.gang is None or snapshot.kind is None or not snapshot.kind.in_waves:
        return False
    return not snapshot.gang.min_task_member.keys() <= spec.min_task_member.keys()


def _phase_outside_queue(snapshot: GangSnapshot) -> Phase | None:
    """The phase of a gang that is not decided as a gang; None for any other."""
    if snapshot.decoded is None or snapshot.decoded.metadata.deletion_timestamp:
        return Phase.FOREIGN if snapshot.pod_group is not None and not snapshot.ours else Phase.GONE
    if snapshot.pod_group is not None:
        if not snapshot.ours:
            return Phase.FOREIGN
        if snapshot.stale:
            return Phase.STALE
    if snapshot.error:
        return Phase.INVALID
    if snapshot.gang is None or snapshot.workload is None:
        return Phase.RELEASED
    if not snapshot.workload.active:
        return Phase.INACTIVE
    return Phase.NOT_MANAGED if snapshot.left_alone else None


def requeued_members(snapshot: GangSnapshot, requeued_at: str) -> tuple[Member, ...]:
    """The open members of a gang that gave its claim back at that time (RFC 3339); none as soon as one has a node.

    Unless it may give its claim back for pods that have nodes and are not ready: then all of them. Members made since
    are not among them: they were opened on purpose.
    """
    since = seconds_of(requeued_at)
    if since is None or not (snapshot.placed_nowhere or snapshot.requeues_unready):
        return ()
    return tuple(
        member
        for member in snapshot.members
        if not member.gated and (seconds_of(member.pod.metadata.creation_timestamp) or 0.0) <= since
    )


def held_back(snapshot: GangSnapshot, tree: QueueTree, queue: str, gate: GateMode, *, lost: bool) -> Decision | None:
    """The reason why nothing more of the gang may start: it, or its queue, is on hold; None where neither is.

    Where another one than the ledger admits, a hold has to be set there; without a gate nothing can be held. A hold
    of a `lost` queue, which is not there for the gang's namespace, is not reported to users there. A reason that the
    ledger does not know has to take the gang out of the line as well (`on_hold_itself`), or the ledger admits it.
    """
    if snapshot.admitter is not Admitter.LEDGER or gate is GateMode.OFF:
        return None
    if snapshot.on_hold_by is not None:
        return Decision(fits=False, state=GangState.ON_HOLD, message=snapshot.on_hold_by.sentence)
    by = "" if lost else tree.on_hold_by(queue)
    return queue_on_hold(queue, by) if by else None


def on_hold_itself(snapshot: GangSnapshot, hold: Decision | None) -> bool:
    """True if `hold`, as `held_back` gives it, is the workload's own: it stands in no line then, nor does its wave."""
    return hold is not None and snapshot.on_hold_by is not None
