"""The claim of a gang on its queue: by what was granted to it at admission, and by its existing pods.

Pure functions of a snapshot; `muster.planning.plan` enters what they give into the ledger. A part of the claim may be
unused because its pods find no node: while no member has a node, the whole claim; where some have one, what the others
hold beyond the minimums for which the gang was admitted, for an elastic gang runs without them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from muster.gangs.roles import Role
from muster.model.names import COOLDOWN, PREEMPTABLE
from muster.model.objects import PodGroup, PodGroupSpec
from muster.model.pods import Pod
from muster.model.times import duration_of, seconds_of
from muster.planning.candidate import gang_and_intent
from muster.planning.expectations import Expectations, nowhere_since
from muster.planning.opening import Opening
from muster.planning.phase import Phase
from muster.planning.pod_group import Wanted, claim_of, desired, of_what_is_open, own_claim
from muster.planning.record import as_admitted, carried, granted, recorded_terms, written_spec_of
from muster.planning.snapshot import GangSnapshot, Member
from muster.queueing.entries import Claim, End, EndKind, EntryKey
from muster.resources.amounts import Resources, largest, minus, positive, smallest, times, total

# Phases in which Volcano keeps room for a group that is not muster's.
_HOLDING = frozenset({"Inqueue", "Running", "Unknown"})


@dataclass(frozen=True, slots=True)
class Grant:
    """The terms for which a gang was admitted."""

    queue: str
    claim: Resources
    priority_class: str
    roles: tuple[Role, ...]
    """Its roles with the minimums for which it was admitted; more is growth, and growth needs free quota."""


def grant_of(snapshot: GangSnapshot, *, unmarked: bool, queue: str) -> tuple[Grant, Wanted | None]:
    """The terms for which the gang was admitted, and its PodGroup where that had to be worked out to know them.

    Any user may write the PodGroup: only what muster wrote on it counts, and else what the workload says. Of a
    gang that is `unmarked` nothing tells that it was admitted: it was, in `queue`, for the pods that are open.
    """
    if unmarked:
        snapshot = replace(snapshot, written_spec=of_what_is_open(snapshot, queue))
    if not unmarked and (snapshot.written_spec is not None or snapshot.pod_group is None):
        return _until_recorded(snapshot, _granted_by(snapshot, snapshot.written_spec)), None
    wanted = desired(snapshot, admitted=True)
    return _until_recorded(
        snapshot, _granted_by(snapshot, carried(wanted.group.spec, written_spec_of(snapshot)))
    ), wanted


def _until_recorded(snapshot: GangSnapshot, grant: Grant) -> Grant:
    """Of a gang that becomes smaller the room is free when its PodGroup says so, and no moment before.

    It may become larger again, and the next leader has nothing but the PodGroup to know for what it was admitted.
    """
    recorded = recorded_terms(snapshot)
    return grant if recorded is None else replace(grant, claim=largest(grant.claim, granted(recorded)))


def _granted_by(snapshot: GangSnapshot, terms: PodGroupSpec | None) -> Grant:
    """The grant that muster wrote into the PodGroup (`terms`), or the workload's own where muster wrote none yet."""
    gang, intent = gang_and_intent(snapshot)
    if terms is None:
        return Grant(intent.queue, gang.min_resources, intent.priority_class, gang.roles)
    roles = tuple(as_admitted(role, terms) for role in gang.roles)
    return Grant(terms.queue, granted(terms), terms.priority_class_name, roles)


def left_over(snapshot: GangSnapshot, phase: Phase, marked: str) -> Resources:
    """What is held by the pods of a gang that neither waits nor is admitted, and kept for others of it."""
    group, terms = snapshot.pod_group, written_spec_of(snapshot)
    running = total(member.requests for member in snapshot.open)
    # Pods outlive a workload that is gone, suspended or ended until they are deleted, and use their requests.
    if not _keeps_its_place(snapshot, phase, marked):
        return running
    if terms is not None:
        return largest(granted(terms), running)
    return largest(own_claim(group), running) if group is not None and snapshot.ours else running


def asked_by_others(snapshot: GangSnapshot, group: PodGroup) -> Resources:
    """What a PodGroup of others asks for in addition to its placed pods: Volcano keeps room for its minResources.

    Its owner writes these, and the phase, as they like: they count only as far as there is room.
    """
    if group.status.phase not in _HOLDING:
        return {}
    return positive(
        minus(claim_of(group.spec), total((snapshot.placed, *(member.requests for member in snapshot.open))))
    )


def _keeps_its_place(snapshot: GangSnapshot, phase: Phase, marked: str) -> bool:
    """True if the gang keeps its grant; where its admission is to end, it keeps the grant until the mark is gone."""
    if phase is Phase.INVALID:
        # An edit that makes the numbers invalid ends no admission.
        return bool(snapshot.uid) and snapshot.uid in (snapshot.marked_for, marked)
    if phase in (Phase.RELEASED, Phase.NOT_MANAGED, Phase.FOREIGN, Phase.STALE):
        # It may become managed again, or have its own PodGroup again, with the same grant.
        return bool(snapshot.open) and snapshot.uid in (snapshot.marked_for, marked)
    # Otherwise the mark would admit a suspended gang as soon as it is resumed.
    finished = snapshot.workload is not None and snapshot.workload.finished
    return phase is Phase.OUTGROWN or (phase is Phase.INACTIVE and snapshot.marked_for == snapshot.uid and not finished)


def departed(snapshot: GangSnapshot, base: Resources) -> Resources:
    """What pods that have left an admitted gang hold of its claim; `base` is what it was admitted for.

    Of its terminating pods these are as many as are more than the gang: no pod is replaced twice while it terminates.
    """
    if not snapshot.leaving:
        return snapshot.left
    running = total(member.requests for member in snapshot.open)
    return total((snapshot.left, positive(minus(snapshot.leaving, largest(base, running)))))


def still_leaving(snapshot: GangSnapshot, opening: Opening | None, left: Resources, held: Resources) -> Resources:
    """What terminating pods use beyond what the gang has `held`; `held` already covers their replacements.

    It covers the pods that have `left` the gang, too.
    """
    if not snapshot.leaving:
        return {}
    joining = (member.requests for member in ((*opening.members, *opening.reserved) if opening else ()))
    together = total((snapshot.leaving, left, *(member.requests for member in snapshot.open), *joining))
    return positive(minus(together, held))


def kept_until(pod: Pod) -> float:
    """The time until which Volcano's plugin cdp lets a pod run; infinity where it has not started, 0 for no such time.

    The plugin counts from the moment at which the pod was bound, which is before its start.
    """
    text = pod.metadata.labels.get(COOLDOWN) or pod.metadata.annotations.get(COOLDOWN)
    if not text:
        return 0.0
    started, seconds = seconds_of(pod.status.start_time), duration_of(text)
    return inf if started is None or seconds is None else started + seconds


def protected_until(snapshot: GangSnapshot, now: float) -> list[float]:
    """The times, later than now, until which Volcano's plugin cdp lets pods of the gang run."""
    # A gang may have thousands of pods, and few have such a time.
    timed = [
        one.pod
        for one in snapshot.members
        if one.pod.spec.node_name and (COOLDOWN in one.pod.metadata.annotations or COOLDOWN in one.pod.metadata.labels)
    ]
    return [until for until in map(kept_until, timed) if until > now]


def spare(snapshot: GangSnapshot, roles: Iterable[Role], now: float) -> Resources:
    """The least of it: whichever pods the scheduler chooses, it gets as much. Nothing of a gang that lacks any.

    `roles` have the minimums for which the gang was admitted. On a node that takes no pods no other gang would get the
    room, and the scheduler leaves pods there.
    """
    if not any(role.elastic for role in roles):
        return {}
    found = []
    for role in roles:
        running = [one for one in snapshot.members if one.role == role.name and one.pod.running]
        beyond = len(running) + [*snapshot.ended].count(role.name) - role.minimum
        if beyond < 0:
            return {}
        may_go = [one for one in running if _may_go(one, now) and one.pod.spec.node_name not in snapshot.away]
        if role.elastic and may_go:
            found.append(times(_least(may_go), min(beyond, len(may_go))))
    return total(found)


def _may_go(member: Member, now: float) -> bool:
    metadata = member.pod.metadata
    return kept_until(member.pod) <= now and "false" not in (
        metadata.annotations.get(PREEMPTABLE),
        metadata.labels.get(PREEMPTABLE),
    )


def _least(members: Sequence[Member]) -> Resources:
    first, *others = (one.requests for one in members)
    return {
        name: min(amount, *(one[name] for one in others)) if others else amount
        for name, amount in first.items()
        if all(name in one for one in others)
    }


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The part of a claim that is unused because its pods find no node.

    :ivar since: when the whole claim became unused (seconds of the wall clock); None where a member has a node
    :ivar softens: when more of the claim turns soft, or all of it did; None if no more does
    :ivar soft: the part that is soft now
    :ivar wholly: True if the whole claim is soft
    """

    since: float | None = None
    softens: float | None = None
    soft: Resources = field(default_factory=dict)
    wholly: bool = False


def unplaced(
    snapshot: GangSnapshot, plan: Opening, base: Resources, expects: Expectations, *, grace: float, now: float
) -> Unplaced:
    """What of the claim is unused after `grace` seconds; `base` is what the gang was admitted for."""
    waiting, unused_since = expects.waiting, _placed_nowhere_since(snapshot, expects, now)
    if unused_since is not None:
        # What it is given now it could not have used before.
        begun = now if plan.grows else unused_since
        soft = begun + grace <= now
        # What has left the gang may run.
        return Unplaced(begun, begun + grace, minus(plan.claim, snapshot.left) if soft else {}, wholly=soft)
    if not waiting or plan.claim == base:
        return Unplaced()
    due = {
        member.pod.metadata.uid: waiting[member.pod.metadata.uid] + grace
        for member in snapshot.members
        if not member.gated and not member.pod.spec.node_name and member.pod.metadata.uid in waiting
    }
    late = {uid for uid, moment in due.items() if moment <= now}
    used = (member for member in snapshot.members if not member.gated and member.pod.metadata.uid not in late)
    kept = total((snapshot.left, *(member.requests for member in (*used, *plan.members, *plan.reserved))))
    unused = minus(plan.claim, largest(base, kept))
    soft_part = {name: amount for name, amount in unused.items() if amount.nano}
    return Unplaced(None, min((moment for moment in due.values() if moment > now), default=None), soft_part)


def _placed_nowhere_since(snapshot: GangSnapshot, expects: Expectations, now: float) -> float | None:
    """Since when no member of an admitted gang has had a node (wall clock); None where one has, or it is unknown."""
    known = (seconds_of(snapshot.record.admitted_at), seconds_of(expects.record.admitted_at))
    admitted_at = next((moment for moment in known if moment is not None), None)
    if admitted_at is None or not snapshot.placed_nowhere:
        return None
    seen = nowhere_since(snapshot, now) if expects.units is None else expects.unplaced_since
    return max(admitted_at, seen)


def claim_of_pods(
    key: EntryKey, queue: str, resources: Resources, priority: int = 0, until: float | None = None
) -> Claim | None:
    """The claim of pods under a key of their own; None where they request nothing. `until` is when all are gone."""
    end = End(until, 0.0, EndKind.ENFORCED) if until is not None else None
    return Claim(key, queue, resources, priority, end=end) if resources else None


def with_running(claim: Claim | None, running: Resources) -> tuple[Claim | None, Resources]:
    """The claim with as much of what runs as it has resources, and the rest of that."""
    if claim is None:
        return None, running
    part = smallest(running, claim.resources)
    return replace(claim, running=part), minus(running, part)


def minimum_placed(snapshot: GangSnapshot, roles: tuple[Role, ...]) -> bool:
    """True if as many pods of each role as the gang needs have nodes, or have finished.

    What has succeeded is known from its workload, too: the pods of a former wave need not be kept.
    """
    placed, ended = (
        Counter(member.role for member in snapshot.members if member.pod.spec.node_name),
        Counter(snapshot.ended),
    )
    return all(placed[role.name] + max(ended[role.name], role.done) >= role.minimum for role in roles)
