"""What a gang is to the ledger: the one place where the stores' picture of it becomes a claim or a candidate.

Synchronous, so that between looking and entering nothing can change; the same for a gang that is reconciled and for all
gangs at the beginning of a leader's term.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from muster.gangs.gang import Gang, priority_value
from muster.model.modes import GateMode
from muster.model.names import QUEUE_LABEL
from muster.model.times import seconds_of
from muster.observe.admitted_terms import carried, granted, terms_of
from muster.observe.ends import lasts
from muster.observe.opening import Pause, minimum_of, plan_opening, plan_pause
from muster.observe.phases import Phase, phase_of
from muster.observe.pod_groups import claim_of, desired, of_what_is_open, outgrown, own_claim
from muster.observe.unplaced import unplaced
from muster.observe.view import Mark
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.resources.amounts import largest, minus, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.gangs.gang import Role
    from muster.gangs.intent import Intent
    from muster.model.objects import PodGroupSpec
    from muster.observe.opening import Opening
    from muster.observe.pod_groups import Wanted
    from muster.observe.view import View
    from muster.resources.amounts import Resources

__all__ = [
    "EntryContext",
    "Standing",
    "auxiliary_keys",
    "candidate",
    "enter_ledger",
    "passed_since",
    "queue_held",
    "waits_for_a_node",
]

# Phases in which Volcano keeps room for a group that is not muster's.
_HOLDING = frozenset({"Inqueue", "Running", "Unknown"})


_STAYING = frozenset({Phase.FOREIGN, Phase.RELEASED, Phase.NOT_MANAGED, Phase.INVALID})


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a gang stands; `changed` tells whether that changed anything for the others of its queue.

    `softens` is when the claim of an admitted gang of which nothing has a node, or a part of it, may cease to stand in
    the way of others, `soft` that all of it may have, `stuck` what of it may where some have one, and `requeues` when
    the gang is to give its place back. `gate` is what holds it back while it waits; `lost` tells that the queue for
    which it waits does not exist, or not for its namespace. `wanted` is the PodGroup of an admitted gang where it was
    worked out to know what was said, `wave` its next wave where that waits for room.
    """

    phase: Phase
    changed: bool
    opening: Opening | None = None
    softens: float | None = None
    soft: bool = False
    stuck: Resources = field(default_factory=dict)
    requeues: float | None = None
    gate: GateMode = GateMode.QUEUE
    lost: bool = False
    wanted: Wanted | None = None
    wave: Candidate | None = None


@dataclass(frozen=True, slots=True)
class EntryContext:
    """One look at a gang: at what time (seconds of the wall clock), by which priorities, and what is known beside.

    `mark` is what this leader itself decided, whether the PodGroup says it already or not; `unplaced_since` is when it
    saw the last node of an admitted gang go, so that one that crashed has its time as a new one has, `waiting` since
    when it has seen single members open without a node, by UID. Without `grow` nothing is claimed that is not held
    already: before all gangs are in the ledger, room that seems free may be somebody's. One whose mark was `refused`
    stands in no line: it would keep room from all behind it that it cannot take.
    """

    now: float
    priorities: Mapping[str, int]
    mark: Mark = field(default_factory=Mark)
    unplaced_since: float = 0.0
    waiting: Mapping[str, float] = field(default_factory=dict)
    grow: bool = True
    refused: bool = False


def enter_ledger(view: View, ledger: Ledger, context: EntryContext) -> Standing:
    """Enter the gang into the ledger as what it is, after what stands beside it: what that leaves it may use."""
    former, bound, wave, _ = auxiliary_keys(view.key)
    by_themselves = view.placed if view.ours else {}
    changed = _hold(ledger, former, view.former_queue or queue_held(view), view.former)
    changed = _hold(ledger, bound, queue_held(view), by_themselves) or changed
    standing = _enter(view, ledger, context)
    changed = _hold_leaving(view, ledger, context, standing.opening) or changed
    changed = (ledger.wait(standing.wave) if standing.wave else ledger.forget(wave)) or changed
    return replace(standing, changed=standing.changed or changed)


def auxiliary_keys(key: GangKey) -> tuple[GangKey, GangKey, GangKey, GangKey]:
    """Under which keys the ledger keeps what stands beside the gang.

    What is held by pods of a former workload of the name until they are gone, and by pods that bound themselves to the
    PodGroup; its next wave, which waits; and what pods that are being deleted hold beyond its claim.
    """
    return key.auxiliary("former"), key.auxiliary("bound"), key.auxiliary("wave"), key.auxiliary("leaving")


def _hold_leaving(view: View, ledger: Ledger, context: EntryContext, opening: Opening | None) -> bool:
    """Enter what pods that are being deleted take beyond the gang's own claim: what comes in their place is its own."""
    key = auxiliary_keys(view.key)[3]
    if not view.leaving:
        return ledger.forget(key)
    opened = (member.requests for member in view.members if not member.held)
    joining = (member.requests for member in (opening.members if opening else ()))
    together = total((view.leaving, *opened, *joining))
    rest = minus(together, ledger.holds(view.key) or {})
    claim = {name: amount for name, amount in rest.items() if amount.nano}
    return _hold(ledger, key, queue_held(view), claim, _urgency(view, context))


def _hold(ledger: Ledger, key: GangKey, queue: str, claim: Resources, priority: int = 0) -> bool:
    return ledger.hold(key, queue, claim, priority=priority) if claim else ledger.forget(key)


def _urgency(view: View, context: EntryContext) -> int:
    """The priority of what is there of a gang: whom Volcano may preempt for another it knows by the PodGroup."""
    return priority_value(view.pod_group.spec.priority_class_name if view.pod_group else "", context.priorities)


def _enter(view: View, ledger: Ledger, context: EntryContext) -> Standing:
    mark, priorities = context.mark, context.priorities
    queue = view.intent.queue if view.intent else queue_held(view)
    lost = bool(queue) and not ledger.tree.open_to(queue, view.namespace)
    gate = _gate(view, ledger, queue, lost=lost)
    phase = phase_of(view, mark, gate)
    if phase is Phase.ADMITTED:
        return _enter_admitted(view, ledger, context)
    if phase is Phase.WAITING:
        # One that waits for nobody's room stands in no line, nor does one that is to have none.
        queues = gate is GateMode.QUEUE and not lost and not context.refused
        changed = ledger.wait(candidate(view, priorities, mark)) if queues else ledger.forget(view.key)
        return Standing(phase, changed, gate=gate, lost=lost)
    if phase is Phase.NOT_MANAGED and view.holds:
        return _enter_left_alone(view, ledger, context, gate, lost=lost)
    if lost and phase is Phase.ASSEMBLING:
        return Standing(phase, ledger.forget(view.key), lost=True)
    held_in = queue_held(view)
    closed = ledger.tree.get(held_in) is not None and not ledger.tree.open_to(held_in, view.namespace)
    shut_out = phase is Phase.FOREIGN and closed
    # Of a group that slipped into a queue of others no more counts than what runs there.
    claim = view.placed if shut_out else _left_over(view, phase, mark.admitted)
    if claim:
        urgency = _urgency(view, context)
        # Of one that is gone, or has ended, the last pods are on their way out.
        stays = phase in _STAYING and lasts(view)
        changed = ledger.hold(view.key, held_in, claim, priority=urgency, lasts=stays)
        return Standing(phase, changed, lost=shut_out)
    return Standing(phase, ledger.forget(view.key), lost=shut_out)


def _gate(view: View, ledger: Ledger, queue: str, *, lost: bool) -> GateMode:
    """What holds the gang back in that queue; one that is not there is waited for, whatever else is said."""
    known = ledger.tree.get(queue)
    gate = (known.gate if known else None) or view.gate
    return GateMode.QUEUE if lost else gate


def _left_over(view: View, phase: Phase, marked: str) -> Resources:
    """What is held by a gang that neither waits nor is admitted."""
    group = view.pod_group
    if phase is Phase.FOREIGN:
        # Volcano keeps room for its minResources; what runs may be more.
        kept = claim_of(group.spec) if group is not None and group.status.phase in _HOLDING else {}
        return largest(kept, view.placed)
    running = total(member.requests for member in view.open)
    if group is not None and _keeps_its_place(view, phase, marked):
        said = terms_of(view)
        return largest(own_claim(group) if said is None else granted(said), running)
    # Pods outlive a workload that is gone, suspended or ended until somebody has deleted them; they use what they use.
    return running


def _keeps_its_place(view: View, phase: Phase, marked: str) -> bool:
    """Whether what it was admitted for is still the gang's; where it is to end, until the mark is gone."""
    if phase is Phase.INVALID:
        # Numbers that were broken by an edit end nothing.
        return view.uid in (view.marked_for, marked)
    if phase in (Phase.RELEASED, Phase.NOT_MANAGED):
        # It may come back into muster's hands, as what it was.
        return bool(view.open) and view.uid in (view.marked_for, marked)
    # A suspended one that is resumed would be admitted by the mark.
    return phase is Phase.OUTGROWN or (phase is Phase.INACTIVE and view.marked_for == view.uid and not _finished(view))


def _finished(view: View) -> bool:
    return view.workload is not None and view.workload.finished


def queue_held(view: View) -> str:
    """Where what is there of the gang is, or would be, whatever its workload says by now; "" where nothing is."""
    if view.pod_group is not None:
        return view.pod_group.spec.queue or "default"
    return next((member.pod.metadata.labels.get(QUEUE_LABEL, "") for member in view.members), "")


def _since(view: View, requeued_at: str = "") -> str:
    """From when on the gang counts as waiting: who gave a place back stands behind those who waited meanwhile."""
    created = view.decoded.metadata.creation_timestamp if view.decoded else ""
    return max(view.above.since or created, requeued_at)


def waits_for_a_node(view: View, standing: Standing) -> bool:
    """Whether the scheduler may place the gang and has placed nothing of it, not for so long that others may pass."""
    opened = any(not member.held for member in view.members)
    return standing.phase is Phase.ADMITTED and not standing.soft and opened and view.placed_nowhere


def passed_since(view: View, mark: Mark, queue: str) -> str:
    """Since when smaller gangs pass this one in the queue in which it waits now (RFC 3339); "" where they do not."""
    return next((one.passed_since for one in (view.mark, mark) if one.passed_in == queue), "")


def candidate(view: View, priorities: Mapping[str, int], mark: Mark) -> Candidate:
    """The gang as one that waits.

    It needs its minResources, or what its pods really ask for where operators or the cluster's defaults added to them.
    """
    gang, intent = _known(view)
    actual = total(member.requests for member in minimum_of(view.members, gang.roles))
    return Candidate(
        key=view.key,
        queue=intent.queue,
        priority=priority_value(intent.priority_class, priorities),
        since=_since(view, view.mark.requeued_at or mark.requeued_at),
        need=largest(gang.min_resources, actual),
        passed_since=seconds_of(passed_since(view, mark, intent.queue)),
        deadline=view.workload.deadline.ends if view.workload and view.workload.deadline else None,
        lasts=lasts(view),
        follows=view.follows,
    )


def _enter_left_alone(view: View, ledger: Ledger, context: EntryContext, gate: GateMode, *, lost: bool) -> Standing:
    """A workload that ran before it was muster's, of which pods are held all the same.

    They were made before the webhook had seen the others. They are no gang any more and wait for nobody of it; but they
    go into the queue for which they are bound, and take no more of it than there is.
    """
    queue, running = queue_held(view), total(member.requests for member in view.open)
    if lost and not view.open:
        return Standing(Phase.NOT_MANAGED, ledger.forget(view.key), lost=True)
    base = largest(_left_over(view, Phase.NOT_MANAGED, context.mark.admitted), running)
    priority, stays = _urgency(view, context), lasts(view)

    def may_hold(claim: Resources) -> bool:
        if lost or not context.grow:
            return False
        return gate is not GateMode.QUEUE or ledger.fits_more(
            view.key, queue, claim, context.now, replaces=auxiliary_keys(view.key)[3]
        )

    # First what it has, so that it stands in its own way no longer as one that waits.
    changed = ledger.hold(view.key, queue, base, priority=priority, since=_since(view), lasts=stays)
    plan = plan_opening(view.members, (), base, may_hold)
    grown = ledger.hold(view.key, queue, plan.claim, priority=priority, since=_since(view), lasts=stays)
    changed = grown or changed
    return Standing(Phase.NOT_MANAGED, changed, plan, gate=gate)


def _enter_admitted(view: View, ledger: Ledger, context: EntryContext) -> Standing:
    unmarked = _unmarked(view, ledger, context)
    if unmarked:
        view = replace(view, terms=of_what_is_open(view))
    # What stands in the PodGroup may be anybody's: of that only what muster wrote counts, and what the workload says.
    asked = unmarked or (view.terms is None and view.pod_group is not None)
    wanted = desired(view, admitted=True) if asked else None
    grant = _grant(view, carried(wanted.group.spec, terms_of(view)) if wanted is not None else view.terms)
    queue, now = grant.queue, context.now
    lost = not ledger.tree.open_to(queue, view.namespace)
    gate = _gate(view, ledger, queue, lost=False)
    _, _, wave_key, leaving = auxiliary_keys(view.key)

    def may_hold(claim: Resources) -> bool:
        if lost or not context.grow:
            return False
        return gate is not GateMode.QUEUE or ledger.fits_more(
            view.key, queue, claim, now, waits_as=wave_key, replaces=leaving
        )

    if view.pause is not Pause.NONE:
        roles = grant.roles if view.pause is Pause.SURPLUS else ()
        plan = plan_pause(view.members, roles, grant.claim, may_hold, outgrown=grant.outgrown)
    else:
        roles = tuple(replace(role, together=False) for role in grant.roles) if gate is GateMode.OFF else grant.roles
        plan = plan_opening(view.members, roles, grant.claim, may_hold, view.ended, outgrown=grant.outgrown)
    unused = unplaced(view, plan, grant.claim, ledger.tree.unplaced_after(queue), context)
    after = view.requeue_after
    requeues = None if unused.since is None or after is None else unused.since + after
    priority = priority_value(grant.priority_class, context.priorities)
    idle = not plan.members and all(member.held for member in view.members)
    changed = ledger.hold(
        view.key,
        queue,
        plan.claim,
        priority=priority,
        since=_since(view),
        soft=unused.soft,
        idle=idle,
        lasts=lasts(view),
    )
    wave = None
    if plan.next_claim and gate is GateMode.QUEUE and not lost:
        # It is as much of the work as the first one, and has its place in line; a soft claim is nothing to begin with.
        soft = unused.wholly and ledger.soft(view.key, now)
        need = plan.next_claim if soft else minus(plan.next_claim, plan.claim)
        passed = seconds_of(passed_since(view, context.mark, queue))
        wave = Candidate(wave_key, queue, priority, _since(view), need, passed_since=passed, begun=True)
    return Standing(
        Phase.ADMITTED,
        changed,
        plan,
        softens=unused.softens,
        soft=unused.wholly,
        stuck={} if unused.wholly else unused.soft,
        requeues=requeues,
        wanted=wanted,
        wave=wave,
    )


def _unmarked(view: View, ledger: Ledger, context: EntryContext) -> bool:
    """Whether members are open, and nothing tells that muster gave the gang room for more than these.

    Its PodGroup was deleted while nobody led, or pods were bound past muster: all the others have to find room.
    """
    if not view.open or view.uid in (view.marked_for, context.mark.admitted):
        return False
    return _gate(view, ledger, queue_held(view), lost=False) is GateMode.QUEUE


@dataclass(frozen=True, slots=True)
class _Grant:
    """What a gang was admitted for: where, with which claim and urgency, and with which minimums of its roles.

    `outgrown` tells that its templates ask for more by now.
    """

    queue: str
    claim: Resources
    priority_class: str
    roles: tuple[Role, ...]
    outgrown: bool = False


def _grant(view: View, said: PodGroupSpec | None) -> _Grant:
    """The grant by what muster `said` in the PodGroup, or by the workload where it has said nothing yet."""
    gang, intent = _known(view)
    if said is None:
        return _Grant(intent.queue, gang.min_resources, intent.priority_class, gang.roles)
    # It was admitted for these minimums; what the workload has come to want since is growth, and growth needs room.
    owed = said.min_task_member
    roles = tuple(replace(role, minimum=min(role.minimum, owed.get(role.name, 0))) for role in gang.roles)
    return _Grant(said.queue, granted(said), said.priority_class_name, roles, outgrown(view, said))


def _known(view: View) -> tuple[Gang, Intent]:
    if view.gang is None or view.intent is None:
        raise ValueError(f"{view.key} has no gang")
    return view.gang, view.intent
