"""Gangs that lack pods: says which pods are missing, and why where muster knows, and lets a gang give back its own.

Pods are deleted only where the workload asks for that (`muster.dev/requeue-after`), and only of a gang without which
another gang, before it in the queue, would be complete. Its operator makes them again, some of them before the other
gang's: so the deletion is repeated, less and less often, and the other gang keeps what it has.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from controller.fenced_writes import Writer
from controller.memory import Memory
from controller.nudges import Nudges
from controller.pod_group_writer import PodGroupWriter
from controller.quota_shares import Shares, Shortage
from controller.reports import Reporter
from controller.requeue import delete_unplaced, requeued_at
from muster.model.gang_states import GangState
from muster.observe.candidates import candidate
from muster.observe.cluster import Cluster
from muster.observe.context import EntryContext
from muster.observe.messages import lacking
from muster.observe.view import Mark, View
from muster.queueing.ledger import GangKey
from muster.workloads import PLAIN_POD

SILENCE = 5.0
"""Seconds for which a gang may lack pods before it is said."""

# What a quota has left changes with every pod, of which gangs are not told: they look again after so many seconds.
_LOOK_AGAIN = 15.0
# Pods that were given back and came again before the other gang had its own are deleted again after so many seconds,
# then after twice as many, and so on, but no later than at first.
_AGAIN = 15.0
# No wait is doubled more often: after a thousand times it would be more seconds than a float holds.
_DOUBLINGS = 30


@dataclass(slots=True)
class _Given:
    """How often a gang has given its pods back, and when it may do so again."""

    times: int = 0
    next: float = 0.0


class Assembling:
    """Says what gangs lack, and has them give back what they cannot use.

    `look_again` is called with a gang and the seconds until it is due, `see` gives a gang as it stands now. `clock`
    never goes back, `wall` is the time of day.
    """

    def __init__(
        self,
        writer: Writer,
        cluster: Cluster,
        reporter: Reporter,
        group_writer: PodGroupWriter,
        nudges: Nudges,
        *,
        look_again: Callable[[GangKey, float], None],
        see: Callable[[GangKey], View],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._cluster = cluster
        self._reporter = reporter
        self._group_writer = group_writer
        self._nudges = nudges
        self._look_again = look_again
        self._see = see
        self._clock = clock
        self._wall = wall
        self._shares = Shares()
        self._given: dict[GangKey, _Given] = {}

    def over(self, key: GangKey, memory: Memory) -> None:
        """The gang has its pods, or wants none."""
        memory.assembling_since = None
        self._shares.forget(key)
        self._given.pop(key, None)

    async def wait(self, view: View, memory: Memory, context: EntryContext) -> None:
        """Say which pods are missing, but not in the moment in which an operator makes them one by one.

        Raises ApiError, and NotLeaderError.
        """
        now = self._clock()
        if memory.assembling_since is None:
            memory.assembling_since = now
        wait = SILENCE - memory.assembling_for(now)
        if wait > 0:
            self._look_again(view.key, wait)
            return
        pod_defaults, gives = self._cluster.added.of(view.key.namespace), _gives(view)
        shortage = None
        if pod_defaults.quotas and view.gang is not None and view.intent is not None:
            order = candidate(view, context.priorities, context.mark).order
            if view.on_hold_by is not None:
                # It would not start with the pods that others give up for it.
                order = order._replace(urgency=sys.maxsize)
            shortage = self._shares.look(view, pod_defaults, order, gives=gives)
        words = lacking(view)
        if shortage is not None:
            words = f"{words}; {shortage.words}"
            self._look_again(view.key, _LOOK_AGAIN)
        await self._group_writer.report(
            view, memory, memory.still_waiting(view), GangState.ASSEMBLING, words + memory.aside
        )
        if shortage is not None and shortage.yields is not None and view.members:
            await self._give_back(view, memory, shortage)

    async def _give_back(self, view: View, memory: Memory, shortage: Shortage) -> None:
        """Delete the gang's pods when it is time, and have those made that the other gang lacks."""
        now, after = self._clock(), view.requeue_after or 0.0
        given = self._given.setdefault(view.key, _Given(next=now + after - memory.assembling_for(now)))
        if given.next > now:
            self._look_again(view.key, given.next - now)
            return
        given.times += 1
        given.next = now + min(_AGAIN * 2 ** min(given.times - 1, _DOUBLINGS), max(after, _AGAIN))
        first = shortage.yields
        if given.times == 1:
            message = (
                f"it has lacked pods for {int(memory.assembling_for(now))} s; what it holds of ResourceQuota "
                f'"{shortage.quota}" is given back to gang "{first.name if first else ""}"'
            )
            mark = Mark(requeued_at=requeued_at(view, self._wall()))
            await self._group_writer.mark(view, memory, mark, GangState.REQUEUED, message)
            memory.mark = mark
            self._reporter.tell(replace(view, pod_group=memory.written), GangState.REQUEUED, message, now)
        # At once: an operator that works on one gang after another would have made these again first each time.
        touched = [self._nudges.touch(self._see(first))] if first is not None else []
        await asyncio.gather(delete_unplaced(self._writer, view.members), *touched)
        self._look_again(view.key, given.next - now)


def _gives(view: View) -> bool:
    """Whether its workload asks to give back what the gang cannot use, and its operator makes deleted pods again.

    To a Job a pod that is deleted is one that failed.
    """
    again = view.kind is not None and view.kind is not PLAIN_POD and not view.kind.pods_of_jobs
    return again and view.requeue_after is not None
