"""Which gates of an admitted gang are to be opened now, and opening them in one burst."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.kube.errors import ApiError
from muster.kube.resource import PODS
from muster.names import GATE
from muster.resources import Resources, largest, total

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.view import Member
    from controller.writer import Writer
    from muster.gang import Role

__all__ = ["Opening", "minimum_of", "open_gates", "plan_opening"]

# The apiserver's own limits (429) are obeyed by the client; this only bounds what is under way at once.
_CONCURRENT = 32


@dataclass(frozen=True, slots=True)
class Opening:
    """The members to open now in this order, what the gang then holds, and the members that must wait for room."""

    members: tuple[Member, ...]
    claim: Resources
    surplus: tuple[Member, ...]


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
) -> Opening:
    """What to open of an admitted gang.

    The minimum of every role is opened whatever it asks for: the gang was admitted for it, and a member that dies is
    replaced at once. Further members are opened while all opened ones stay within the claim, `base` at least, or while
    `may_hold` allows the claim to grow.
    """
    open_already = [member for member in members if not member.held]
    first = [member for member in minimum_of(members, roles) if member.held]
    entitled = total(member.requests for member in (*open_already, *first))
    claim = largest(base, entitled)
    opening, surplus = list(first), []
    chosen = {member.pod.metadata.uid for member in first}
    for member in members:
        if not member.held or member.pod.metadata.uid in chosen:
            continue
        wanted = total((entitled, member.requests))
        grown = largest(claim, wanted)
        if grown == claim or may_hold(grown):
            claim, entitled = grown, wanted
            opening.append(member)
        else:
            surplus.append(member)
    return Opening(tuple(opening), claim, tuple(surplus))


async def open_gates(writer: Writer, members: Sequence[Member]) -> list[str]:
    """Take muster's gate off these pods, in this order but many at once; gates of others stay.

    Gives the UIDs of those that are open now. A pod that is gone, or is another one by now, is passed over: the watch
    will tell of it. Raises the first ApiError after all were tried.
    """
    limit = asyncio.Semaphore(_CONCURRENT)

    async def open_one(member: Member) -> str:
        meta = member.pod.metadata
        # A strategic merge needs no index and does no harm when the gate is gone; the UID keeps it to this very pod.
        patch = {
            "metadata": {"uid": meta.uid},
            "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
        }
        async with limit:
            try:
                await writer.patch(PODS, meta.name, meta.namespace, patch)
            except ApiError as error:
                if not (error.not_found or error.conflict):
                    raise
                return ""
        return meta.uid

    results = await asyncio.gather(*(open_one(member) for member in members), return_exceptions=True)
    opened = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        if result:
            opened.append(result)
    return opened
