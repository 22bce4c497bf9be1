"""Enters a gang into the ledger as what it is: the one place where a snapshot becomes a claim or a candidate.

Three steps: what others hold under the gang's name, its phase and what follows from that, and one entry. All of it is
synchronous, so that nothing changes between looking and entering. The same code enters a gang that is reconciled, and
all gangs at the beginning of a leader's term.
"""

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from muster.gangs.gang import priority_value
from muster.gangs.roles import Role
from muster.model.modes import GateMode
from muster.model.pods import RUNNING
from muster.model.times import duration_of, seconds_of
from muster.planning.candidate import (
    candidate,
    end_of,
    lasts,
    limited,
    passed_since,
    preempts,
    priority_held,
    queue_counted,
    run_of,
    waiting_since,
)
from muster.planning.claim import (
    Grant,
    asked_by_others,
    claim_of_pods,
    departed,
    grant_of,
    left_over,
    minimum_placed,
    protected_until,
    spare,
    still_leaving,
    unplaced,
    with_running,
)
from muster.planning.expectations import DOUBLINGS, NOTHING_WRITTEN, Expectations
from muster.planning.opening import Opening, plan_opening, plan_pause, rest_of_units
from muster.planning.phase import (
    Phase,
    PhaseInQueue,
    gate_in,
    held_back,
    lost_in,
    on_hold_itself,
    phase_of,
    requeued_members,
)
from muster.planning.pod_group import Wanted, scheduler_of
from muster.planning.record import units_of
from muster.planning.snapshot import GangSnapshot, Member, Pause
from muster.queueing.entries import Candidate, Claim, EntryKey, Growth
from muster.queueing.ledger import Ledger
from muster.queueing.usage import Amounts, amounts_of
from muster.queueing.verdicts import Decision
from muster.resources.amounts import NOTHING, Resources, largest, minus, total

_GATED = attrgetter("gated")
_STAYING = frozenset({Phase.FOREIGN, Phase.RELEASED, Phase.NOT_MANAGED, Phase.INVALID})


@dataclass(frozen=True, slots=True)
class GangPlan:
    """The plan for a gang, after it was entered into the ledger."""

    phase: Phase
    changed: bool = False
    """True if entering it changed anything for the others of its queue."""
    opening: Opening | None = None
    """The gates to open now; None where it is not admitted."""
    softens: float | None = None
    """The time at which more of its claim turns soft (seconds of the wall clock); None where all of it has nodes."""
    ages: float | None = None
    """The time from which its scheduler may evict more of it (seconds of the wall clock); None where none is known."""
    soft: bool = False
    """True if none of its pods has a node, and their time is over; its whole claim is soft where claims ever are."""
    stuck: Resources = field(default_factory=dict)
    """The part of its claim that is soft while some of its pods have nodes."""
    requeues: float | None = None
    """The time to give its claim back (seconds of the wall clock); None where its user does not ask for it."""
    gate: GateMode = GateMode.QUEUE
    """The gate mode, which holds it back while it waits."""
    lost: bool = False
    """True if the queue for which it waits does not exist, or not for its namespace."""
    growth: Growth | None = None
    """The growth for which there is no room; None for none."""
    wanted: Wanted | None = None
    """The PodGroup of an admitted gang, where it was worked out to know what was granted."""
    on_hold: Decision | None = None
    """The reason why nothing more of it may start, whatever is free; None where it, and its queue, may go on."""
    wave: Candidate | None = None
    """The next wave of an admitted gang, where that waits for room."""
    deletes: tuple[Member, ...] = ()
    """The pods to delete of a gang that gave its claim back."""
    awaits_node: bool = False
    """True if the scheduler may place the gang and has placed nothing of it, and others may not pass it yet."""
    yields: bool = False
    """True if it holds what is open of it and nothing more, after the rest could not be opened."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """The inputs of a plan other than the snapshot."""

    expects: Expectations
    """The writes of its leader that the cluster may not show yet."""
    now: float
    """Seconds of the wall clock."""
    may_grow: bool = True
    """True if the gang may claim more than it holds."""

    @property
    def writes_rejected(self) -> bool:
        """True if the apiserver does not take a write for the gang: it waits in no line, and keeps none behind it."""
        return self.expects.rejected.out(self.now)


class _Outlook(NamedTuple):
    """The plan for a gang, and what the ledger is to record; `next_claim` is its claim with its next wave."""

    plan: GangPlan
    entry: Claim | Candidate | None = None
    next_claim: Resources | None = None
    no_room: Collection[Resources] = ()


class _Limit:
    """Gives whether the gang may hold so much of a queue; what its pods that are being deleted hold is its own.

    It may hold nothing more where it is `stopped`: its queue is not there, or one of the two is on hold.
    `no_room` are the claims for which it lacks room.
    """

    def __init__(
        self, snapshot: GangSnapshot, queue: str, gate: GateMode, ledger: Ledger, moment: _Moment, *, stopped: bool
    ) -> None:
        self.no_room: dict[Amounts, Resources] = {}
        self._growth = Growth(snapshot.key, queue, limited=limited(snapshot))
        self._gate = gate
        self._ledger = ledger
        self._moment = moment
        self._stopped = stopped

    def __call__(self, claim: Resources) -> bool:
        if self._stopped:
            return False
        if self._moment.may_grow and self._gate is not GateMode.QUEUE:
            return True
        # Pods are alike: nothing changes while a gang is planned, and a claim without room stays so.
        amounts = amounts_of(claim)
        if amounts in self.no_room:
            return False
        if self._moment.may_grow and self._ledger.fits_more(self._growth, claim, self._moment.now):
            return True
        self.no_room[amounts] = claim
        return False


def plan_gang(
    snapshot: GangSnapshot,
    ledger: Ledger,
    expects: Expectations = NOTHING_WRITTEN,
    *,
    now: float,
    may_grow: bool = True,
) -> GangPlan:
    """Enter the gang as it stands, after what others hold under its name: it may use what those leave.

    `now` is of the wall clock. It claims no more than it holds where it may not grow: not before all gangs are in the
    ledger, for what seems free may be another's.
    """
    moment = _Moment(expects, now, may_grow=may_grow)
    key = snapshot.key
    in_queue, held_in = phase_of(snapshot, ledger.tree, moment.expects.decided), _held_in(snapshot, ledger)
    queue = held_in or queue_counted(snapshot)
    was_in = ledger.queue_of(key.former) or held_in or snapshot.former_queue or queue
    goes_from = ledger.queue_of(key.leaving) or held_in or snapshot.leaving_queue or queue
    # Of an admitted gang it is a part of its claim.
    left = snapshot.left if in_queue.phase is Phase.ADMITTED else {}
    others = snapshot.former if left else total((snapshot.former, snapshot.left))
    former = claim_of_pods(key.former, was_in, others, until=snapshot.former_until)
    # Each entry has as much of what runs, of pods that are no members, as it claims.
    former, running = with_running(former, snapshot.running)
    changed = _put(ledger, key.former, former)
    bound, running = with_running(_by_others(snapshot, ledger, queue), running)
    changed |= _put(ledger, key.bound, bound)
    if not snapshot.leaving:
        # What they held is free by now.
        changed |= ledger.forget(key.leaving)
    plan, entry, next_claim, no_room = _outlook(snapshot, in_queue, ledger, moment)
    held = entry if isinstance(entry, Claim) else None
    elsewhere = held is not None and held.queue != goes_from
    rest = (
        snapshot.leaving if elsewhere else still_leaving(snapshot, plan.opening, left, held.resources if held else {})
    )
    last = claim_of_pods(key.leaving, goes_from, rest, priority_held(snapshot), until=snapshot.leaving_until)
    last, running = with_running(last, running)
    if held:
        members = [one.requests for one in snapshot.members if one.pod.status.phase == RUNNING]
        entry = replace(held, running=total((running, *members)))
    changed |= _put(ledger, key, entry)
    next_wave = None
    if held and next_claim:
        # A soft claim is nothing to begin with.
        soft = plan.soft and ledger.soft(key, moment.now)
        need = next_claim if soft else minus(next_claim, held.resources)
        passed, drain_after = passed_since(snapshot, moment.expects.decided, held.queue)
        next_wave = Candidate(
            key.wave,
            held.queue,
            held.priority,
            held.since,
            need,
            passed_since=seconds_of(passed),
            drain_after=duration_of(drain_after),
            begun=True,
            limited=limited(snapshot),
            preempts=preempts(snapshot),
            run=run_of(snapshot, moment.expects.decided),
        )
    changed |= _put(ledger, key.leaving, last)
    changed |= _put(ledger, key.wave, next_wave)
    growth = None
    if held and no_room:
        has = held.resources if elsewhere else total((held.resources, rest))
        more = tuple((claim, amounts_of(minus(claim, has))) for claim in no_room)
        growth = Growth(key, held.queue, held.priority, held.since, limited(snapshot), more)
    return replace(plan, changed=plan.changed or changed, growth=growth, wave=next_wave)


def _held_in(snapshot: GangSnapshot, ledger: Ledger) -> str:
    """The queue in which the ledger has a claim of the gang; "" where it has none."""
    return "" if ledger.holds(snapshot.key) is None else ledger.queue_of(snapshot.key) or ""


def _queue_counted(snapshot: GangSnapshot, ledger: Ledger) -> str:
    """The queue in which what runs of the gang counts: where it counted before, whatever is said of it by now."""
    return _held_in(snapshot, ledger) or queue_counted(snapshot)


def _by_others(snapshot: GangSnapshot, ledger: Ledger, queue: str) -> Claim | None:
    """What pods hold that others bound to the PodGroup, and what a PodGroup of others reserves in its own queue."""
    if snapshot.pod_group is None or snapshot.ours:
        return claim_of_pods(snapshot.key.bound, queue, snapshot.placed)
    asked = {} if _shut_out(snapshot, ledger) else asked_by_others(snapshot, snapshot.pod_group)
    if not (snapshot.placed or asked):
        return None
    priority = priority_held(snapshot)
    return Claim(
        snapshot.key.bound, snapshot.pod_group.queue, snapshot.placed, priority, lasts=lasts(snapshot), asked=asked
    )


def _shut_out(snapshot: GangSnapshot, ledger: Ledger) -> bool:
    """True if a PodGroup that is not muster's names a queue that is not there for its namespace."""
    if snapshot.pod_group is None or snapshot.ours or ledger.tree.get(snapshot.pod_group.queue) is None:
        return False
    return not ledger.tree.open_to(snapshot.pod_group.queue, snapshot.namespace)


def _put(ledger: Ledger, key: EntryKey, entry: Claim | Candidate | None) -> bool:
    """Let the ledger keep this under the key, and nothing else; True when that changed anything for others."""
    if entry is None:
        return ledger.forget(key)
    return ledger.wait(entry) if isinstance(entry, Candidate) else ledger.hold(entry)


def _outlook(snapshot: GangSnapshot, in_queue: PhaseInQueue, ledger: Ledger, moment: _Moment) -> _Outlook:
    """What the gang is, and what the ledger is to keep of it."""
    match in_queue.phase:
        case Phase.ADMITTED:
            return _admitted(snapshot, ledger, moment)
        case Phase.WAITING:
            # Only gangs that wait for quota, and could get some now, become candidates.
            queue = snapshot.intent.queue if snapshot.intent else ""
            hold = held_back(snapshot, ledger.tree, queue, in_queue.gate, lost=in_queue.lost)
            stopped = in_queue.lost or moment.writes_rejected or on_hold_itself(snapshot, hold)
            queues = in_queue.gate is GateMode.QUEUE and not stopped
            waits = candidate(snapshot, moment.expects.decided) if queues else None
            return _Outlook(GangPlan(in_queue.phase, gate=in_queue.gate, lost=in_queue.lost, on_hold=hold), waits)
        case Phase.NOT_MANAGED if snapshot.has_gated_members:
            return _left_alone(snapshot, in_queue, ledger, moment)
        case Phase.ASSEMBLING if in_queue.lost:
            return _Outlook(GangPlan(in_queue.phase, lost=True))
    claim = left_over(snapshot, in_queue.phase, moment.expects.decided.admitted)
    # The last pods of a workload that is gone, or has ended, are on their way out.
    stays = in_queue.phase in _STAYING and lasts(snapshot)
    queue, priority = _queue_counted(snapshot, ledger), priority_held(snapshot)
    entry = Claim(snapshot.key, queue, claim, priority, lasts=stays, running=NOTHING) if claim else None
    lost = in_queue.phase is Phase.FOREIGN and _shut_out(snapshot, ledger)
    deletes: tuple[Member, ...] = ()
    if in_queue.phase is Phase.REQUEUED:
        deletes = requeued_members(snapshot, snapshot.record.requeued_at or moment.expects.record.requeued_at)
    return _Outlook(GangPlan(in_queue.phase, lost=lost, deletes=deletes), entry)


def _left_alone(snapshot: GangSnapshot, in_queue: PhaseInQueue, ledger: Ledger, moment: _Moment) -> _Outlook:
    """A workload that ran before it was muster's, and has held pods all the same.

    They were made before the webhook had seen the others. They are no gang any more and do not wait for each other; but
    they go into the queue for which they are bound, and take no more of it than there is.
    """
    if in_queue.lost and not snapshot.open:
        return _Outlook(GangPlan(in_queue.phase, lost=True))
    running = total(member.requests for member in snapshot.open)
    base = largest(left_over(snapshot, in_queue.phase, moment.expects.decided.admitted), running)
    queue, end = _queue_counted(snapshot, ledger), end_of(snapshot, moment.expects.decided, moment.now)
    entry = Claim(
        snapshot.key,
        queue,
        base,
        priority_held(snapshot),
        waiting_since(snapshot),
        lasts=lasts(snapshot),
        running=NOTHING,
        end=end,
    )
    # First what it has: as one that waits it would be in its own way.
    changed = _put(ledger, snapshot.key, entry)
    hold = held_back(snapshot, ledger.tree, entry.queue, in_queue.gate, lost=in_queue.lost)
    stopped = in_queue.lost or moment.writes_rejected or hold is not None
    limit = _Limit(snapshot, entry.queue, in_queue.gate, ledger, moment, stopped=stopped)
    opening = plan_opening(snapshot.members, (), base, limit)
    plan = GangPlan(in_queue.phase, changed, opening, gate=in_queue.gate, on_hold=hold)
    return _Outlook(plan, replace(entry, resources=opening.claim), no_room=limit.no_room.values())


def _admitted(snapshot: GangSnapshot, ledger: Ledger, moment: _Moment) -> _Outlook:
    """A gang that was admitted: what of it may open now, and what it holds with that."""
    expects = moment.expects
    queue = _queue_counted(snapshot, ledger)
    grant, wanted = grant_of(snapshot, unmarked=_unmarked(snapshot, ledger, moment, queue), queue=queue)
    lost = lost_in(snapshot, ledger.tree, grant.queue)
    gate = gate_in(snapshot, ledger.tree, grant.queue)
    hold = held_back(snapshot, ledger.tree, grant.queue, gate, lost=lost)
    limit = _Limit(snapshot, grant.queue, gate, ledger, moment, stopped=lost or hold is not None)
    units = units_of(snapshot.record, snapshot.uid) if expects.units is None else expects.units
    opening = _opening(snapshot, grant, gate, limit, units=units, tried=expects.tried)
    yields = expects.yielded and (moment.writes_rejected or not limit(opening.claim))
    if yields:
        running = total((departed(snapshot, grant.claim), *(member.requests for member in snapshot.open)))
        opening = Opening((), running, tuple(filter(_GATED, snapshot.members)))
    base = opening.claim if yields else grant.claim
    grace = ledger.tree.settings(grant.queue).unplaced_after
    unused = unplaced(snapshot, opening, base, expects, grace=grace, now=moment.now)
    enforced = scheduler_of(snapshot).enforces_limits
    kept = protected_until(snapshot, moment.now)
    entry = Claim(
        snapshot.key,
        grant.queue,
        opening.claim,
        priority=priority_value(grant.priority_class, snapshot.priorities),
        since=waiting_since(snapshot),
        # Where the scheduler bounds no queue, gangs that pass this one would overfill it as soon as it finds its nodes.
        soft=unused.soft if enforced else NOTHING,
        # What it has lost comes again, and is opened without being asked for room.
        idle=not opening.members and not snapshot.open and bool(opening.next_claim),
        lasts=lasts(snapshot),
        kept=bool(kept),
        spare=spare(snapshot, grant.roles, moment.now) if scheduler_of(snapshot).reclaims else NOTHING,
        end=end_of(snapshot, expects.decided, moment.now),
    )
    # A gang that finds no node again and again would otherwise have its pods deleted and made without end.
    after = None if snapshot.requeue_delay is None else snapshot.requeue_delay * 2 ** min(expects.requeues, DOUBLINGS)
    useless = unused.since if expects.unready_since is None or not snapshot.requeues_unready else expects.unready_since
    plan = GangPlan(
        Phase.ADMITTED,
        opening=opening,
        softens=unused.softens,
        ages=min(kept, default=None),
        soft=unused.wholly,
        stuck={} if unused.wholly or not enforced else unused.soft,
        requeues=None if useless is None or after is None else useless + after,
        wanted=wanted,
        on_hold=hold,
        awaits_node=not unused.wholly and bool(snapshot.open) and snapshot.placed_nowhere,
        yields=yields,
    )
    waits = gate is GateMode.QUEUE and not lost and not moment.writes_rejected and not on_hold_itself(snapshot, hold)
    next_claim = opening.next_claim if waits else None
    return _Outlook(plan, entry, next_claim, limit.no_room.values())


def _opening(
    snapshot: GangSnapshot,
    grant: Grant,
    gate: GateMode,
    may_hold: Callable[[Resources], bool],
    *,
    units: AbstractSet[str],
    tried: AbstractSet[str],
) -> Opening:
    """What to open of an admitted gang: nothing while Kueue takes it back, and its minimums first after evictions.

    `units` beyond the minimum keep the room that they were given, and so do the pods that a write has `tried` to open:
    any of them may be open.
    """
    again = [member for member in snapshot.members if member.gated and member.pod.metadata.uid in tried]
    rest, left = [*rest_of_units(snapshot.members, grant.roles, units), *again], departed(snapshot, grant.claim)

    def paused(roles: Sequence[Role], keeps: Sequence[Role]) -> Opening:
        return plan_pause(
            snapshot.members, roles, grant.claim, may_hold, snapshot.ended, granted=rest, keeps=keeps, left=left
        )

    if snapshot.kueue is not None and not snapshot.kueue.admitted:
        return paused((), ())
    if snapshot.pause is not Pause.NONE:
        # What the gang was admitted for has room for the followers of its first wave.
        later = [role for role in grant.roles if role.together]
        return paused(grant.roles if snapshot.pause is Pause.SURPLUS else (), later)
    if not scheduler_of(snapshot).role_minimums and not minimum_placed(snapshot, grant.roles):
        # With more pods than its minimum before it, the scheduler would take any of them: workers without their head.
        return replace(paused(grant.roles, grant.roles), after_minimum=True)
    roles = grant.roles
    if gate is GateMode.OFF:
        roles, rest = tuple(replace(role, together=False, unit=None) for role in roles), again
    return plan_opening(snapshot.members, roles, grant.claim, may_hold, snapshot.ended, granted=rest, left=left)


def _unmarked(snapshot: GangSnapshot, ledger: Ledger, moment: _Moment, queue: str) -> bool:
    """True if members are open, and no record shows that muster gave the gang room for more than these.

    Its PodGroup was deleted while no replica led, or pods were bound past muster: all the others have to find room.
    """
    if not snapshot.open or snapshot.uid in (snapshot.marked_for, moment.expects.decided.admitted):
        return False
    return gate_in(snapshot, ledger.tree, queue) is GateMode.QUEUE
