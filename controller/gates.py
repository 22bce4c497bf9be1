"""Opens the gates of an admitted gang's pods in one burst; which ones, `muster.observe.opening` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.gangs.pod_patch import opening
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.fenced_writes import Writer
    from muster.observe.view import Member

__all__ = ["open_gates"]


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
