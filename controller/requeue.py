"""Gangs that give back a place which they cannot use: only where the workload asks for it (`muster.dev/requeue-after`).

Nothing is ever deleted but pods that have no node, or, where the annotation says `not-ready`, all pods of a gang of
which some do not become ready; and each only in the very state in which it was seen: a pod that the scheduler has just
placed stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.fenced_writes import Writer
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.model.resource import PODS
from muster.model.times import seconds_of, text_of
from muster.planning.snapshot import GangSnapshot, Member


def requeued_at(snapshot: GangSnapshot, now: float) -> str:
    """The time at which the gang gives its place back, for its mark: never before one of its pods was made.

    By that time its replacements are known, and the clocks of the operator and of muster may differ.
    """
    made = (seconds_of(member.pod.metadata.creation_timestamp) or 0.0 for member in snapshot.members)
    return text_of(max((now, *made)))


async def delete_unplaced(writer: Writer, members: Sequence[Member]) -> None:
    """Delete these pods as they were seen, many at once; raises the first ApiError after all were tried.

    A pod that has changed since is skipped: the watch will show how it is now.
    """

    async def delete_one(member: Member) -> None:
        meta = member.pod.metadata
        try:
            await writer.delete(PODS, meta.name, meta.namespace, uid=meta.uid, resource_version=meta.resource_version)
        except ApiError as error:
            if not error.conflict:
                raise

    await burst(delete_one, members)
