"""What a scheduler may take back of an admitted gang, and the gang runs on: running pods beyond its minimums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muster.gangs.gang import Role
from muster.model.names import PREEMPTABLE
from muster.observe.view import Member, View
from muster.resources.amounts import Resources, times, total


def spare(view: View, roles: Iterable[Role]) -> Resources:
    """The least of it: whichever pods the scheduler chooses, it gets as much. Nothing of a gang that lacks any.

    `roles` have the minimums for which the gang was admitted. On a node that takes no pods no other gang would get the
    room, and the scheduler leaves pods there.
    """
    if not any(role.elastic for role in roles):
        return {}
    found = []
    for role in roles:
        running = [one for one in view.members if one.role == role.name and one.pod.running]
        beyond = len(running) + [*view.ended].count(role.name) - role.minimum
        if beyond < 0:
            return {}
        may_go = [one for one in running if _may_go(one) and one.pod.spec.node_name not in view.away]
        if role.elastic and may_go:
            found.append(times(_least(may_go), min(beyond, len(may_go))))
    return total(found)


def _may_go(member: Member) -> bool:
    metadata = member.pod.metadata
    return "false" not in (metadata.annotations.get(PREEMPTABLE), metadata.labels.get(PREEMPTABLE))


def _least(members: Sequence[Member]) -> Resources:
    first, *others = (one.requests for one in members)
    return {
        name: min(amount, *(one[name] for one in others)) if others else amount
        for name, amount in first.items()
        if all(name in one for one in others)
    }
