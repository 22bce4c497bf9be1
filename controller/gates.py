"""Which gates of an admitted gang are to be opened now, and opening them in one burst."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.injection import opening
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.resource import PODS
from muster.resources import Resources, largest, total

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from controller.view import Member
    from controller.writer import Writer
    from muster.gang import Role

__all__ = ["Opening", "minimum_of", "open_gates", "plan_opening", "plan_pause"]


@dataclass(frozen=True, slots=True)
class Opening:
    """The members to open now in this order, what the gang then holds, and the members that must wait for room.

    `grows` tells that some of them are more than the gang was admitted for. `lacking` has of roles that start together,
    and of which not all pods are there yet, how many are lacking; these wait for them and not for room. `next_claim` is
    what the gang would hold with the first role that starts together and waits for room, empty without one.
    """

    members: tuple[Member, ...]
    claim: Resources
    surplus: tuple[Member, ...]
    grows: bool = False
    lacking: Mapping[str, int] = field(default_factory=dict)
    next_claim: Resources = field(default_factory=dict)


def minimum_of(members: Sequence[Member], roles: Sequence[Role]) -> list[Member]:
    """The members that fill the minimum of every role, opened ones first."""
    chosen = []
    for role in roles:
        of_role = sorted((m for m in members if m.role == role.name), key=lambda m: (m.held, m.pod.metadata.name))
        chosen += of_role[: role.minimum]
    return chosen


def plan_opening(
    members: Sequence[Member],
    roles: Sequence[Role],
    base: Resources,
    may_hold: Callable[[Resources], bool],
    ended: Collection[str] = (),
    *,
    outgrown: bool = False,
) -> Opening:
    """What to open of an admitted gang, of which pods of the roles `ended` have finished.

    The minimum of every role is opened whatever it asks for: the gang was admitted for it, and a member that dies is
    replaced at once. Not where its templates have `outgrown` that: more than was granted needs room. Further members
    are opened while all opened ones stay within the claim, `base` at least, or while `may_hold` allows the claim to
    grow: one by one, or all of a role that starts together.
    """
    open_already = [member for member in members if not member.held]
    wanted = [member for member in minimum_of(members, roles) if member.held]
    first = [] if outgrown else wanted
    entitled = total(member.requests for member in (*open_already, *first))
    claim = before = largest(base, entitled)
    opening, surplus = list(first), []
    chosen = {member.pod.metadata.uid for member in first}
    # Of a role that has begun a pod that comes now is a successor.
    begun = {*ended, *(member.role for member in open_already)}
    whole = {role.name: role.replicas for role in roles if role.together and role.name not in begun}
    batches: dict[str, list[Member]] = {}
    ordered = {member.pod.metadata.uid: member for member in (*wanted, *members) if member.held}
    for uid, member in ordered.items():
        if uid not in chosen:
            batches.setdefault(f"role {member.role}" if member.role in whole else uid, []).append(member)
    lacking = {}
    next_claim: Resources = {}
    for batch in batches.values():
        role = batch[0].role
        if len(batch) < whole.get(role, 0):
            lacking[role] = whole[role] - len(batch)
            continue
        together = total((entitled, *(member.requests for member in batch)))
        grown = largest(claim, together)
        if grown == claim or may_hold(grown):
            claim, entitled = grown, together
            opening += batch
        else:
            surplus += batch
            next_claim = next_claim or (grown if role in whole else {})
    return Opening(tuple(opening), claim, tuple(surplus), claim != before, lacking, next_claim)


def plan_pause(members: Sequence[Member], base: Resources) -> Opening:
    """What an admitted gang holds, `base` at least, while no more of its gates are opened."""
    running = total(member.requests for member in members if not member.held)
    return Opening((), largest(base, running), tuple(member for member in members if member.held))


async def open_gates(writer: Writer, members: Sequence[Member]) -> list[str]:
    """Take muster's gate off these pods, in this order but many at once; gates of others stay.

    Gives the UIDs of those that are open now. A pod that is gone, or is another one by now, is passed over: the watch
    will tell of it. Raises the first ApiError after all were tried.
    """

    async def open_one(member: Member) -> str:
        meta = member.pod.metadata
        try:
            await writer.patch(PODS, meta.name, meta.namespace, opening(meta))
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise
            return ""
        return meta.uid

    return [uid for uid in await burst(open_one, members) if uid]
