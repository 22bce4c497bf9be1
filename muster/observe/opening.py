"""Which gates of an admitted gang to open now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from muster.observe.units import mark_of_unit, unit_of
from muster.resources.amounts import Resources, largest, times, total

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from muster.gangs.gang import Role
    from muster.observe.view import Member
    from muster.workloads.model import Unit

__all__ = ["Opening", "minimum_of", "plan_opening", "plan_pause", "to_come"]


_OPEN_FIRST = attrgetter("held", "pod.metadata.name")


@dataclass(frozen=True, slots=True)
class Opening:
    """The members to open now in this order, what the gang then holds, and the members that must wait for room.

    `grows` tells that some of them are more than the gang was admitted for, `growth` that they are no wave of it
    either. `lacking` has of roles and units that start together, and of which not all pods are there yet, how many are
    lacking; these wait for them and not for room. `next_claim` is what the gang would hold with the first role that
    starts together and waits for room, empty without one. With `after_minimum` the surplus waits until the minimum has
    nodes. `units` names the units beyond the minimum that are opened now (`mark_of_unit`). `reserved` are those of the
    surplus that wait for a pause to end, and for no room: what they ask for is in the claim.
    """

    members: tuple[Member, ...]
    claim: Resources
    surplus: tuple[Member, ...]
    grows: bool = False
    growth: bool = False
    lacking: Mapping[str, int] = field(default_factory=dict)
    next_claim: Resources = field(default_factory=dict)
    after_minimum: bool = False
    units: frozenset[str] = frozenset()
    reserved: tuple[Member, ...] = ()


def minimum_of(members: Sequence[Member], roles: Sequence[Role]) -> list[Member]:
    """The members that fill the minimum of every role, opened ones first, and then unit by unit."""
    chosen = []
    for role in roles:
        of_role = [member for member in members if member.role == role.name]
        chosen += sorted(of_role, key=_by_units(of_role, role.unit) if role.unit else _OPEN_FIRST)[: role.minimum]
    return chosen


def _by_units(members: Sequence[Member], unit: Unit) -> Callable[[Member], tuple[Any, ...]]:
    """Open members first, then those of units that have begun, then whole units, by name."""
    there = Counter(unit_of(member, unit) for member in members)
    begun = {unit_of(member, unit) for member in members if not member.held}

    def order(member: Member) -> tuple[Any, ...]:
        name = unit_of(member, unit)
        return member.held, name not in begun, there[name] < unit.pods, name, member.pod.metadata.name

    return order


def plan_opening(
    members: Sequence[Member],
    roles: Sequence[Role],
    base: Resources,
    may_hold: Callable[[Resources], bool],
    ended: Collection[str] = (),
    *,
    outgrown: bool = False,
    granted: Sequence[Member] = (),
) -> Opening:
    """What to open of an admitted gang, of which pods of the roles `ended` have finished.

    The minimum of every role is opened whatever it asks for: the gang was admitted for it, and a member that dies is
    replaced at once, so that its room is kept until then, whatever more than the minimum is open. Not where its
    templates have `outgrown` that: more than was granted needs room. Further members are opened while all opened ones
    stay within the claim, `base` at least, or while `may_hold` allows the claim to grow: one by one, unit by unit, or
    all of a role that starts together. They leave alone what the minimum still lacks: the head that died comes again,
    and is opened then. Where pods of a role are made when the first of them have nodes, the room of the others is held
    from the moment in which those are opened, and is theirs when they come. Held members that were `granted` room
    before are opened as the minimum is.
    """
    open_already = [member for member in members if not member.held]
    missing = tuple(_missing(members, roles))
    lost = () if outgrown else missing
    if len(open_already) == len(members):
        # So it is in nearly every look at a gang that runs.
        coming = to_come(members, roles, ended)
        return Opening((), largest(base, total([*[member.requests for member in members], *coming, *lost])), ())
    # A new pod of a role that has begun replaces an earlier pod.
    begun = {*ended, *[member.role for member in open_already]}
    following = [one for role in roles if role.made_first and role.name in begun for one in _next(members, role, ended)]
    wanted = [member for member in (*minimum_of(members, roles), *following) if member.held]
    due = [*([] if outgrown else wanted), *granted]
    first = list({member.pod.metadata.uid: member for member in due}.values())
    coming = tuple(to_come((*open_already, *first), roles, ended))
    entitled = total([*[member.requests for member in (*open_already, *first)], *coming])
    claim = before = largest(base, total((entitled, *lost)))
    opening, surplus = list(first), []
    chosen = {member.pod.metadata.uid for member in first}
    whole = {role.name: role for role in roles if role.together and role.name not in begun}
    units = {role.name: role.unit for role in roles if role.unit}
    parts = {(one.role, unit_of(one, units.get(one.role))) for one in (*open_already, *first)} if units else set()
    batches: dict[str, tuple[int, list[Member]]] = {}
    ordered = {member.pod.metadata.uid: member for member in (*wanted, *members) if member.held}
    for uid, member in ordered.items():
        if uid in chosen:
            continue
        key, least = uid, 1
        if member.role in whole:
            key, least = f"role {member.role}", whole[member.role].awaited
        elif (name := unit_of(member, unit := units.get(member.role))) and unit and (member.role, name) not in parts:
            key, least = f"unit {member.role} {name}", unit.pods
        batches.setdefault(key, (least, []))[1].append(member)
    lacking: dict[str, int] = {}
    started: set[str] = set()
    next_claim: Resources = {}
    growth = False
    for least, batch in batches.values():
        role = batch[0].role
        if len(batch) < least:
            lacking[role] = lacking.get(role, 0) + least - len(batch)
            continue
        later = to_come(batch, [whole[role]], ()) if role in whole else ()
        together = total((entitled, *(member.requests for member in batch), *later))
        grown = largest(claim, total((together, *missing)))
        if grown == claim or may_hold(grown):
            growth = growth or (grown != claim and role not in whole)
            claim, entitled = grown, together
            opening += batch
            started |= {mark_of_unit(batch)} if role in units and least > 1 else set()
        else:
            surplus += batch
            next_claim = next_claim or (grown if role in whole else {})
    grows, waits = claim != before, tuple(surplus)
    return Opening(tuple(opening), claim, waits, grows, growth, lacking, next_claim, units=frozenset(started))


def _next(members: Sequence[Member], role: Role, ended: Collection[str]) -> list[Member]:
    """The held members that the role still lacks."""
    of_role = [member for member in members if member.role == role.name]
    held = sorted((member for member in of_role if member.held), key=lambda member: member.pod.metadata.name)
    running = len(of_role) - len(held) + Counter(ended)[role.name]
    return held[: max(role.replicas - running, 0)]


def _missing(members: Collection[Member], roles: Iterable[Role]) -> Iterable[Resources]:
    """The requests of the pods that the roles' minimums lack, those that have ended among them; held ones are there.

    What is done for good is not lacking: it left its room to the next wave. What is never held is, until it comes. The
    pods that `to_come` counts are left to it.
    """
    there = Counter(member.role for member in members)
    for role in roles:
        if not (role.made_first and role.name in there):
            least = role.minimum - role.done if role.gated else role.reserved
            yield times(role.requests, max(least - there[role.name], 0))


def to_come(members: Iterable[Member], roles: Iterable[Role], ended: Collection[str]) -> Iterable[Resources]:
    """The requests of the pods that the operator makes when these members have nodes."""
    roles = [role for role in roles if role.made_first]
    there = Counter([member.role for member in members]) if roles else {}
    gone = Counter(ended)
    for role in roles:
        if there[role.name]:
            yield times(role.requests, max(role.replicas - there[role.name] - gone[role.name], 0))


def plan_pause(
    members: Sequence[Member],
    roles: Sequence[Role],
    base: Resources,
    may_hold: Callable[[Resources], bool],
    *,
    outgrown: bool = False,
    granted: Sequence[Member] = (),
    coming: Iterable[Resources] = (),
    keeps_lost: bool = False,
) -> Opening:
    """What an admitted gang holds, `base` at least, while only the minimums of its `roles` are opened.

    Those are what the gang was admitted for, and all that runs of it may be of no use without them. Where what is
    beyond the minimums has filled the claim they need room, of which there is what `may_hold` allows; where it
    `keeps_lost`, the claim has room for all of them, as it does when more is opened. Held members that were `granted`
    room before keep it, and the room of pods that the operator will make is kept, too (`coming`).
    """
    kept = {member.pod.metadata.uid for member in granted}
    there = (one.requests for one in members if not one.held or one.pod.metadata.uid in kept)
    running = total((*there, *coming))
    minimum = [] if outgrown else minimum_of(members, roles)
    lost: list[Resources] = []
    if keeps_lost and not outgrown:
        held = (one.requests for one in minimum if one.held and one.pod.metadata.uid not in kept)
        lost = [*held, *_missing(members, roles)]
    claim, first = largest(base, total((running, *lost))), []
    chosen = set()
    for member in minimum:
        together = running if member.pod.metadata.uid in kept else total((running, member.requests))
        grown = largest(claim, together)
        if member.held and (grown == claim or may_hold(grown)):
            first.append(member)
            chosen.add(member.pod.metadata.uid)
            running, claim = together, grown
    surplus = tuple(member for member in members if member.held and member.pod.metadata.uid not in chosen)
    reserved = tuple(member for member in surplus if member.pod.metadata.uid in kept)
    return Opening(tuple(first), claim, surplus, reserved=reserved)
