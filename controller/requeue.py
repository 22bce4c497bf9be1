"""Gangs that give back a place which they cannot use: only where the workload asks for it (`muster.dev/requeue-after`).

Nothing is ever deleted but pods that have no node, and each only in the very state in which it was seen: a pod that the
scheduler has just placed stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.resource import PODS
from muster.model.times import seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.fenced_writes import Writer
    from muster.observe.view import Member, View

__all__ = ["delete_unplaced", "leaving"]


def leaving(view: View, requeued_at: str) -> tuple[Member, ...]:
    """The open members of a gang that gave its place back at that time (RFC 3339); none as soon as one has a node.

    Members made since are not among them: whoever opened those wants them open.
    """
    since = seconds_of(requeued_at)
    if since is None or not view.placed_nowhere:
        return ()
    return tuple(
        member
        for member in view.members
        if not member.held and (seconds_of(member.pod.metadata.creation_timestamp) or 0.0) <= since
    )


async def delete_unplaced(writer: Writer, members: Sequence[Member]) -> None:
    """Delete these pods as they were seen, many at once; raises the first ApiError after all were tried.

    One that has changed meanwhile is passed over: the watch will show how it is now.
    """

    async def delete_one(member: Member) -> None:
        meta = member.pod.metadata
        try:
            await writer.delete(PODS, meta.name, meta.namespace, uid=meta.uid, resource_version=meta.resource_version)
        except ApiError as error:
            if not error.conflict:
                raise

    await burst(delete_one, members)
