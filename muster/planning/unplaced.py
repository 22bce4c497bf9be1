"""The part of an admitted gang's claim that it cannot use because its pods find no node.

While no member has a node it is the whole claim. Where some have one, it is what the others hold beyond the minimums
for which the gang was admitted: an elastic gang runs without them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.model.times import seconds_of
from muster.planning.expectations import Expectations, nowhere_since
from muster.planning.opening import Opening
from muster.planning.snapshot import GangSnapshot
from muster.resources.amounts import Resources, largest, minus, total


@dataclass(frozen=True, slots=True)
class Unplaced:
    """`softens` is when more of the claim turns soft (seconds of the wall clock), `soft` what of it is soft now.

    `wholly` tells that this is all of it, `since` from when on that was unused; None where a member has a node.
    """

    since: float | None = None
    softens: float | None = None
    soft: Resources = field(default_factory=dict)
    wholly: bool = False


def unplaced(
    snapshot: GangSnapshot, plan: Opening, base: Resources, expects: Expectations, *, grace: float, now: float
) -> Unplaced:
    """What of the claim is unused after `grace` seconds; `base` is what the gang was admitted for."""
    waiting, unused_since = expects.waiting, _since(snapshot, expects, now)
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
        if not member.held and not member.pod.spec.node_name and member.pod.metadata.uid in waiting
    }
    late = {uid for uid, moment in due.items() if moment <= now}
    used = (member for member in snapshot.members if not member.held and member.pod.metadata.uid not in late)
    kept = total((snapshot.left, *(member.requests for member in (*used, *plan.members, *plan.reserved))))
    unused = minus(plan.claim, largest(base, kept))
    soft_part = {name: amount for name, amount in unused.items() if amount.nano}
    return Unplaced(None, min((moment for moment in due.values() if moment > now), default=None), soft_part)


def _since(snapshot: GangSnapshot, expects: Expectations, now: float) -> float | None:
    """Since when no member of an admitted gang has had a node (wall clock); None where one has, or it is unknown."""
    known = (seconds_of(snapshot.record.admitted_at), seconds_of(expects.record.admitted_at))
    admitted_at = next((moment for moment in known if moment is not None), None)
    if admitted_at is None or not snapshot.placed_nowhere:
        return None
    seen = nowhere_since(snapshot, now) if expects.units is None else expects.unplaced_since
    return max(admitted_at, seen)
