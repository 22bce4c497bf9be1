"""The gates of an admitted gang that are to open now."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from muster.gangs.roles import Role
from muster.planning.snapshot import Member
from muster.resources.amounts import NOTHING, Resources, largest, minus, part_of, smallest, times, total
from muster.resources.quantity import ZERO
from muster.workloads.model import Unit

_HASH_LENGTH = 16


def unit_of(member: Member, unit: Unit | None) -> str:
    """The unit to which the member belongs; "" for one that belongs to none."""
    return member.pod.metadata.labels.get(unit.label, "") if unit else ""


def mark_of_unit(hosts: Iterable[Member]) -> str:
    """A short word for these very pods."""
    uids = "\n".join(sorted(host.pod.metadata.uid for host in hosts))
    return hashlib.sha256(uids.encode()).hexdigest()[:_HASH_LENGTH]


def being_opened(members: Sequence[Member], roles: Iterable[Role], granted: Collection[str]) -> dict[str, list[Member]]:
    """The units of the roles that were `granted` room and have held hosts; all hosts of each, by `mark_of_unit`."""
    units = {role.name: role.unit for role in roles if role.unit} if granted else {}
    hosts: dict[tuple[str, str], list[Member]] = {}
    for member in members if units else ():
        if name := unit_of(member, units.get(member.role)):
            hosts.setdefault((member.role, name), []).append(member)
    begun = ((mark_of_unit(one), one) for one in hosts.values() if any(host.gated for host in one))
    return {record: one for record, one in begun if record in granted}


def rest_of_units(members: Sequence[Member], roles: Iterable[Role], granted: Collection[str]) -> list[Member]:
    """The held hosts of units that were `granted` room."""
    units = being_opened(members, roles, granted)
    return [host for record in sorted(units) for host in units[record] if host.gated]


_OPEN_FIRST = attrgetter("gated", "pod.metadata.name")


@dataclass(frozen=True, slots=True)
class Opening:
    """The members to open now in this order, what the gang then holds, and the members that must wait for room.

    `grows` tells that some of them are more than the gang was admitted for, `growth` that they are no wave of it
    either. `lacking` counts the missing pods of roles and units that start together; the others wait for
    these, and not for room. `next_claim` is what the gang would hold with the first role that
    starts together and waits for room, empty without one. With `after_minimum` they wait until the minimum has
    nodes. `units` names the units beyond the minimum that are opened now (`mark_of_unit`). `reserved` are those of the
    `waiting` members that wait for a pause to end, and for no room: what they ask for is in the claim.
    """

    members: tuple[Member, ...]
    claim: Resources
    waiting: tuple[Member, ...]
    grows: bool = False
    growth: bool = False
    lacking: Mapping[str, int] = field(default_factory=dict)
    next_claim: Resources = field(default_factory=dict)
    after_minimum: bool = False
    units: frozenset[str] = frozenset()
    reserved: tuple[Member, ...] = ()


def minimum_of(members: Sequence[Member], roles: Iterable[Role]) -> list[Member]:
    """The members with which the roles start, and those that come with them; opened ones first, then by units."""
    return [one for role in roles for one in _in_order(members, role)[: _due(role)]]


def _due(role: Role) -> int:
    """The number of members of the role that start it, or come with it."""
    return role.minimum + (0 if role.made_first else role.reserved)


def _in_order(members: Sequence[Member], role: Role) -> list[Member]:
    """The members of the role in the order in which they are opened."""
    of_role = [member for member in members if member.role == role.name]
    return sorted(of_role, key=_by_units(of_role, role.unit) if role.unit else _OPEN_FIRST)


def _by_units(members: Sequence[Member], unit: Unit) -> Callable[[Member], tuple[Any, ...]]:
    """Open members first, then those of units that have begun, then whole units, by name."""
    there = Counter(unit_of(member, unit) for member in members)
    begun = {unit_of(member, unit) for member in members if not member.gated}

    def order(member: Member) -> tuple[Any, ...]:
        name = unit_of(member, unit)
        return member.gated, name not in begun, there[name] < unit.pods, name, member.pod.metadata.name

    return order


class KeptRoom:
    """The room that an admitted gang keeps for pods that it lacks: those that were lost, and those still to come.

    Of each role no more than its pods were admitted with (`Role.granted`), less what its open pods request; where
    nothing is recorded of a role, what its template requests. Together no more than the gang was admitted for (`base`),
    less what its open pods and the pods that have `left` it hold: a replacement of a pod that still runs needs room.
    """

    def __init__(
        self, members: Sequence[Member], roles: Sequence[Role], base: Resources, ended: Collection[str], left: Resources
    ) -> None:
        self._roles: dict[str, Resources] = {}
        self._lacking: dict[str, int] = {}
        self.rest: Resources = {}
        """The room that is kept for all of them together."""
        there, gone = Counter([member.role for member in members]), Counter(ended)
        begun = _begun(roles, there, gone)
        expected = {role.name: _expected(role, there, gone, begun) for role in roles}
        self._lacking = {name: count - there[name] for name, count in expected.items() if count > there[name]}
        if not self._lacking:
            # So it is in nearly every look.
            return
        taken, limit = [left], [base]
        for role in roles:
            count, whole = expected[role.name], role.minimum + role.reserved
            used = total([member.requests for member in members if member.role == role.name]) if count else {}
            pool = times(role.requests, count) if role.granted is None else part_of(role.granted, count, whole)
            # What open pods request beyond it was given room.
            taken.append(smallest(used, pool) if role.granted is not None or there[role.name] > count else used)
            if count and not whole:
                # A later wave, which was given room of its own.
                limit.append(pool)
            if role.name in self._lacking:
                self._roles[role.name] = minus(pool, used)
        self.rest = smallest(total(self._roles.values()), minus(total(limit), total(taken)))

    def covers(self, member: Member) -> bool:
        """True if the role of the pod lacks one, and the pod requests no more than is kept for it."""
        rooms = self._roles.get(member.role, {}), self.rest
        fits = all(amount <= room.get(name, ZERO) for room in rooms for name, amount in member.requests.items())
        return fits and self._lacking.get(member.role, 0) > 0

    def without(self, member: Member) -> Resources:
        """What is left of the rest when the pod takes a place of its role; what it requests beyond needs room."""
        lacks = self._lacking.get(member.role, 0) > 0
        return minus(self.rest, smallest(self._roles[member.role], member.requests)) if lacks else self.rest

    def hand_out(self, members: Sequence[Member], roles: Iterable[Role], but: Collection[str]) -> list[Member]:
        """The members whose gates open because room is kept for them, without the pods with these UIDs."""
        given = []
        for role in roles if self._lacking else ():
            for member in _in_order(members, role) if role.name in self._lacking else ():
                if member.gated and member.pod.metadata.uid not in but and self.covers(member):
                    self.give(member)
                    given.append(member)
        return given

    def give(self, member: Member) -> None:
        """Keep no room for the pod any more: it is open."""
        if self._lacking.get(member.role, 0) > 0:
            self.rest = self.without(member)
            self._roles[member.role] = minus(self._roles[member.role], member.requests)
            self._lacking[member.role] -= 1


def _expected(role: Role, there: Counter[str], gone: Counter[str], begun: Collection[int]) -> int:
    """The number of pods of the role that are there, or come; `gone` have ended, `begun` are the groups that run."""
    if role.made_first and there[role.name]:
        return max(role.replicas - gone[role.name], 0)
    if role.together:
        return max(role.replicas - role.done, 0) if role.group in begun else 0
    return max(role.minimum + role.reserved - role.done, 0)


def _begun(roles: Iterable[Role], there: Collection[str], gone: Collection[str]) -> set[int]:
    """The groups of later waves that have begun."""
    names = {*there, *gone}
    return {role.group for role in roles if role.together and role.group and (role.done or role.name in names)}


def plan_opening(
    members: Sequence[Member],
    roles: Sequence[Role],
    base: Resources,
    may_hold: Callable[[Resources], bool],
    ended: Collection[str] = (),
    *,
    granted: Collection[Member] = (),
    left: Resources = NOTHING,
) -> Opening:
    """Plan the pods to open of an admitted gang; pods of the roles `ended` have finished, others have `left` it.

    A member of a role that lacks pods is opened at once where the gang keeps a place for it (`KeptRoom`), whatever more
    is open. Further members, and those that request more than is kept for them, are opened while all opened ones stay
    within the claim, `base` at least, or while `may_hold` allows the claim to grow: one by one, unit by unit, or all of
    a role that starts together. They leave alone what is kept for others. Held members that were `granted` room before
    are opened at once.
    """
    open_already = [member for member in members if not member.gated]
    if len(open_already) == len(members):
        # So it is in nearly every look at a gang that runs.
        running = total(member.requests for member in members)
        kept_room = KeptRoom(members, roles, base, ended, left)
        return Opening((), largest(base, total((running, left, kept_room.rest))), ())
    due = {member.pod.metadata.uid: member for member in granted}
    kept_room = KeptRoom((*open_already, *granted), roles, base, ended, left)
    due |= {one.pod.metadata.uid: one for one in kept_room.hand_out(members, roles, due)}
    first = list(due.values())
    entitled = total([left, *[member.requests for member in (*open_already, *first)]])
    claim = before = largest(base, total((entitled, kept_room.rest)))
    opening, surplus = list(first), []
    begun = {*ended, *[member.role for member in open_already]}
    groups = _begun(roles, begun, ())
    whole = {one.name: one for one in roles if one.together and one.name not in begun and one.group not in groups}
    units = {role.name: role.unit for role in roles if role.unit}
    wanted = (one for one in (*minimum_of(members, roles), *members) if one.gated and one.pod.metadata.uid not in due)
    batches = _batches(wanted, whole, units, [*open_already, *first])
    lacking: dict[str, int] = {}
    started: set[str] = set()
    next_claim: Resources = {}
    growth = False
    expected: dict[str, Resources] = {}
    for least, batch in batches:
        role = batch[0].role
        if len(batch) < least:
            lacking[role] = lacking.get(role, 0) + least - len(batch)
            continue
        later = _coming(batch, whole)
        asked = minus(entitled, expected.get(role, {}))
        together = total((asked, *(member.requests for member in batch), *later.values()))
        rest = kept_room.without(batch[0]) if len(batch) == 1 else kept_room.rest
        grown = largest(claim, total((together, rest)))
        if grown == claim or may_hold(grown):
            growth = growth or (grown != claim and role not in whole)
            claim, entitled = grown, together
            opening += batch
            if len(batch) == 1:
                kept_room.give(batch[0])
            expected |= {name: one for name, one in later.items() if name != role}
            whole = {name: one for name, one in whole.items() if name not in later}
            started |= {mark_of_unit(batch)} if role in units and least > 1 else set()
        else:
            surplus += batch
            next_claim = next_claim or (grown if role in whole else {})
    grows, waits = claim != before, tuple(surplus)
    return Opening(tuple(opening), claim, waits, grows, growth, lacking, next_claim, units=frozenset(started))


def _batches(
    held: Iterable[Member], whole: Mapping[str, Role], units: Mapping[str, Unit], started: Collection[Member]
) -> list[tuple[int, list[Member]]]:
    """The held members that start together, each with the least number of them that does.

    Members of roles that start as a `whole`, and of units that have not `started`; others start one by one.
    """
    parts = {(one.role, unit_of(one, units.get(one.role))) for one in started} if units else set()
    batches: dict[str, list[Member]] = {}
    least: dict[str, int] = {}
    for member in {one.pod.metadata.uid: one for one in held}.values():
        key, count = member.pod.metadata.uid, 1
        if member.role in whole:
            key, count = f"role {member.role}", whole[member.role].awaited
        elif (name := unit_of(member, unit := units.get(member.role))) and unit and (member.role, name) not in parts:
            key, count = f"unit {member.role} {name}", unit.pods
        batches.setdefault(key, []).append(member)
        least[key] = count
    return [(least[key], batch) for key, batch in batches.items()]


def _coming(batch: Sequence[Member], whole: Mapping[str, Role]) -> dict[str, Resources]:
    """What is still to come when these pods start the wave of their role, by role."""
    first = whole.get(batch[0].role)
    if first is None:
        return {}
    roles = [role for role in whole.values() if role is first or (role.group and role.group == first.group)]
    there = Counter([member.role for member in batch])
    return {role.name: times(role.requests, max(role.replicas - there[role.name], 0)) for role in roles}


def plan_pause(
    members: Sequence[Member],
    roles: Sequence[Role],
    base: Resources,
    may_hold: Callable[[Resources], bool],
    ended: Collection[str] = (),
    *,
    granted: Collection[Member] = (),
    keeps: Sequence[Role] = (),
    left: Resources = NOTHING,
) -> Opening:
    """What an admitted gang holds, `base` at least, while only the minimums of its `roles` are opened.

    Those are what the gang was admitted for, and all that runs of it may be of no use without them. Where what is
    beyond the minimums has filled the claim they need room, as much as `may_hold` allows; for roles that it
    `keeps`, the claim has room for what they lack, as it does when more is opened. Held members that were `granted`
    room before keep it.
    """
    kept = {member.pod.metadata.uid for member in granted}
    there = [one for one in members if not one.gated or one.pod.metadata.uid in kept]
    kept_room = KeptRoom(there, keeps, base, ended, left)
    running = total((left, *(one.requests for one in there)))
    claim, first = largest(base, total((running, kept_room.rest))), []
    chosen = set()
    for role in roles:
        due = _due(role)
        for member in _in_order(members, role):
            if due > 0 and member.gated and member.pod.metadata.uid not in kept:
                together, rest = total((running, member.requests)), kept_room.without(member)
                grown = largest(claim, total((together, rest)))
                if not (kept_room.covers(member) or grown == claim or may_hold(grown)):
                    continue
                kept_room.give(member)
                running, claim = together, largest(claim, total((together, rest)))
            if due > 0 and member.gated:
                first.append(member)
                chosen.add(member.pod.metadata.uid)
            due -= 1
    surplus = tuple(member for member in members if member.gated and member.pod.metadata.uid not in chosen)
    reserved = tuple(member for member in surplus if member.pod.metadata.uid in kept)
    return Opening(tuple(first), claim, surplus, reserved=reserved)
