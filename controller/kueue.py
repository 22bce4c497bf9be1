"""Asks Kueue at the moment in which gates are to open: a watch may be behind, and unadmitted pods do exist.

A job that somebody resumes by hand has all of its pods for some 100 ms, and an evicted RayCluster's outlive their quota
by seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from controller.reports import Reporter
from muster.admitters import KueueWorkload
from muster.kube.burst import burst
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.objects import decode
from muster.model.times import seconds_of
from muster.observe.kueue_objects import KUEUE_WORKLOADS
from muster.observe.view import View
from muster.queueing.ledger import GangKey

_SECONDS = 5.0
# Seconds in which Kueue may not have looked at a new workload yet.
_SILENCE = 5.0


class Kueue:
    """What a leader asks of Kueue, and says of it; `look_again` is called with a gang and the seconds until it is due.

    `admitted` is asked whether a Workload is admitted now. `clock` never goes back, `wall` is the time of day.
    """

    def __init__(
        self,
        reporter: Reporter,
        look_again: Callable[[GangKey, float], None],
        *,
        admitted: Callable[[KueueWorkload], Awaitable[bool]],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._reporter = reporter
        self._look_again = look_again
        self._admitted = admitted
        self._clock = clock
        self._wall = wall

    async def still_admits(self, view: View) -> bool:
        """Whether Kueue's yes, where one is needed, holds now; the watch tells of the next one. Raises ApiError.

        Of plain pods of several Jobs each Job has a Workload, and each of these is asked about.
        """
        workloads = view.kueue.workloads if view.kueue is not None else ()
        # Without a Workload nothing is awaited: between the ledger's yes and its mark nobody else may take the room.
        return not workloads or all(await burst(self._admitted, workloads))

    def tell(self, view: View, state: GangState, message: str) -> None:
        """Say why a gang without pods waits, but not before Kueue has looked at it, or has had the time.

        It has no PodGroup to read: words that come too soon after others of the same state are said later.
        """
        created = seconds_of(view.decoded.metadata.creation_timestamp) if view.decoded else None
        left = (created or 0.0) + _SILENCE - self._wall()
        if left > 0 and view.kueue is not None and not view.kueue.settled:
            self._look_again(view.key, left)
            return
        later = self._reporter.tell(view, state, message, self._clock())
        if later is not None:
            self._look_again(view.key, later)


async def still_admitted(client: Client, workload: KueueWorkload) -> bool:
    """Whether the Workload is admitted by what the apiserver says now; raises ApiError where it does not say."""
    meta = workload.metadata
    try:
        body = await client.get(KUEUE_WORKLOADS, meta.name, meta.namespace, deadline=_SECONDS)
    except ApiError as error:
        if error.not_found:
            return False
        raise
    now = decode(body, KueueWorkload)
    return now.metadata.uid == meta.uid and now.admitted
