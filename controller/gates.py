"""Opens the gates of an admitted gang's pods: the mark first, then the gates in one burst, then the message.

`muster.observe.opening` chooses the pods.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from muster.gangs.pod_patch import opening
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.resource import PODS
from muster.model.gang_states import GangState
from muster.observe import messages
from muster.observe.admitted_terms import units_of
from muster.resources.amounts import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.bypass import BypassTracker
    from controller.evictions import Evictions
    from controller.fenced_writes import Writer
    from controller.memory import Memory
    from controller.metrics import Metrics
    from controller.pod_group_writer import PodGroupWriter
    from muster.observe.ledger_entry import Standing
    from muster.observe.view import Mark, Member, View
    from muster.queueing.ledger import GangKey, Ledger

__all__ = ["Gates", "open_gates"]


class Gates:
    """The gates of admitted gangs; `look_again` is called with a gang and the seconds until it is due.

    `clock` never goes back, `wall` is the time of day; both in seconds. Raises ApiError for a write that was not taken,
    and NotLeaderError.
    """

    def __init__(
        self,
        writer: Writer,
        ledger: Ledger,
        *,
        group_writer: PodGroupWriter,
        bypass: BypassTracker,
        evictions: Evictions,
        metrics: Metrics,
        look_again: Callable[[GangKey, float], None],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._ledger = ledger
        self._group_writer = group_writer
        self._bypass = bypass
        self._evictions = evictions
        self._metrics = metrics
        self._look_again = look_again
        self._clock = clock
        self._wall = wall

    async def open(self, view: View, standing: Standing, memory: Memory) -> None:
        """Open what may be open of an admitted gang, the mark first, and report how the gang stands."""
        now, opening = self._wall(), standing.opening
        holds = describe(self._ledger.holds(view.key) or {})
        holds += ", admitted by Kueue" if view.kueue else f' of queue "{self._ledger.queue_of(view.key)}"'
        before = memory.units
        memory.opens(view, opening.units if opening is not None else frozenset())
        mark = memory.admitted(view, standing.wave, now)
        if opening is not None and opening.members:
            if opening.grows:
                memory.unplaced_since = now
                self._bypass.note(self._bypass.by(view.key, now, growth=opening.growth), now)
            units = (memory.units or frozenset()) - units_of(view.mark, view.uid)
            if view.marked_for != view.uid or units:
                said = GangState.ADMITTED, holds
                if view.marked_for == view.uid:
                    said = messages.admitted(view, standing, holds, memory.aside)
                marked = await self._mark(view, memory, mark, said, before)
                if marked is view and (units or not view.open):
                    # Others take the mark away again and again, so that it is written later. Without it a leader that
                    # dies between two gates would leave a part of the gang, or of a unit, open alone.
                    memory.units = before
                    return
                view = marked
            memory.tried = {member.pod.metadata.uid for member in opening.members}
            memory.opened |= set(opened := await self.take_off(opening.members))
            memory.tried.clear()
            self._evictions.opened(view.key, opened)
            if memory.units:
                seen = (m._replace(held=m.held and m.pod.metadata.uid not in memory.opened) for m in view.members)
                memory.opens(replace(view, members=tuple(seen)), frozenset())
                memory.admitted(view, standing.wave, now)
        for due in (standing.requeues, None if standing.soft else standing.softens):
            if due is not None:
                self._look_again(view.key, due - now)
        state, message = messages.admitted(view, standing, holds, memory.aside)
        await self._group_writer.report(view, memory, memory.mark, state, message)

    async def _mark(
        self,
        view: View,
        memory: Memory,
        mark: Mark,
        said: tuple[GangState, str],
        before: frozenset[str] | None,
    ) -> View:
        """Write the mark; `before` are the units that were being opened so far."""
        try:
            return await self._group_writer.write(view, memory, mark, *said)
        except ApiError as error:
            # Otherwise nobody knows whether it is there: the room stays taken until the next round writes it.
            memory.units = before if error.refused else memory.units
            memory.unanswered = memory.unanswered if error.refused else self._clock()
            if error.refused and not error.conflict and view.marked_for != view.uid and not view.open:
                memory.mark_refused(view.pod_group, now=self._clock(), wall=self._wall())
            raise

    async def take_off(self, members: Sequence[Member]) -> list[str]:
        """Open the gates of these pods, and count them; gives the UIDs of those that are open now."""
        started = self._clock()
        opened = await open_gates(self._writer, members)
        if opened:
            self._metrics.opened(len(opened), self._clock() - started)
        return opened


async def open_gates(writer: Writer, members: Sequence[Member]) -> list[str]:
    """Take muster's gate off these pods, in this order but many at once; gates of others stay.

    Returns the UIDs of the pods that are open now. Pods that are gone or replaced are skipped: the watch tells of them.
    Raises the first ApiError after all were tried.
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
