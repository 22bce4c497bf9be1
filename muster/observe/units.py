"""Units that were given room beyond a gang's minimum, while some of their hosts are held.

All hosts of a unit start or none. Between the first gate and the last a write may fail, or the leader may die; so the
PodGroup says first which units are being opened. It names them by their very pods: what comes later in the place of a
host, which the scheduler may have taken back for others, was given nothing, and needs room as any replacement does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence

from muster.gangs.gang import Role
from muster.observe.view import Member
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
    begun = ((mark_of_unit(one), one) for one in hosts.values() if any(host.held for host in one))
    return {mark: one for mark, one in begun if mark in granted}


def rest_of_units(members: Sequence[Member], roles: Iterable[Role], granted: Collection[str]) -> list[Member]:
    """The held hosts of units that were `granted` room."""
    units = being_opened(members, roles, granted)
    return [host for mark in sorted(units) for host in units[mark] if host.held]
