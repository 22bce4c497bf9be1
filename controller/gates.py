"""Opens the gates of an admitted gang's pods: the mark first, then the gates in one burst, then the message.

`muster.observe.opening` chooses the pods. What cannot be opened is noted in the gang's memory (`controller.refused`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from controller.bypass import BypassTracker
from controller.evictions import Evictions
from controller.fenced_writes import Writer
from controller.memory import Memory
from controller.metrics import Metrics
from controller.pod_group_writer import PodGroupWriter
from controller.refused import Part
from muster.gangs.pod_patch import opening
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.resource import PODS
from muster.model.gang_states import GangState
from muster.observe import messages
from muster.observe.admitted_terms import units_of
from muster.observe.ledger_entry import Standing
from muster.observe.view import Mark, Member, View
from muster.queueing.ledger import GangKey, Ledger
from muster.resources.amounts import describe

# A gang may have thousands of members.
_ROLE = attrgetter("role")
# The words of the apiserver for a webhook that has side effects (apiserver/pkg/admission/plugin/webhook/errors).
_NO_DRY_RUN = "does not support dry run"


class Gates:
    """The gates of admitted gangs; `look_again` is called with a gang and the seconds until it is due.

    `clock` never goes back, `now` is the time of day without leaps; both in seconds. Raises ApiError for a write that
    was not taken, and NotLeaderError.
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
        now: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._ledger = ledger
        self._group_writer = group_writer
        self._bypass = bypass
        self._evictions = evictions
        self._metrics = metrics
        self._look_again = look_again
        self._clock = clock
        self._now = now

    async def open(self, view: View, standing: Standing, memory: Memory, *, tried: bool = False) -> None:
        """Open what may be open of an admitted gang, the mark first, and report how the gang stands.

        Where more than one is to be opened that was not `tried`, that is tried first.
        """
        now, opening = self._now(), standing.opening
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
            if len(opening.members) > 1 and not tried:
                await self.try_out(opening.members, memory)
            opened = await self.take_off(opening.members, memory)
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
            raise

    async def try_out(self, members: Sequence[Member], memory: Memory) -> None:
        """Try by dry run to open one pod of each role: a policy of others is met before the first one is open.

        Of a role of which a pod was refused before it is that one.
        """
        again = [one for one in members if one.pod.metadata.uid == memory.refused.about] if memory.refused.about else []
        ordered = [*reversed(members), *again]
        first = dict(zip(map(_ROLE, ordered), ordered, strict=True))
        _, failures = await open_gates(self._writer, [*first.values()], dry_run=True)
        self._note(failures, memory)

    async def take_off(self, members: Sequence[Member], memory: Memory) -> list[str]:
        """Open the gates of these pods, and count them; gives the UIDs of those that are open now."""
        started = self._clock()
        memory.tried = {member.pod.metadata.uid for member in members}
        opened, failures = await open_gates(self._writer, members)
        memory.opened |= set(opened)
        memory.tried = {one.member.pod.metadata.uid for one in failures if not one.error.refused}
        if memory.tried:
            memory.unanswered = self._clock()
        if opened:
            self._metrics.opened(len(opened), self._clock() - started)
        self._note(failures, memory)
        memory.refused.taken(Part.GATE)
        return opened

    def _note(self, failures: Sequence[Failure], memory: Memory) -> None:
        """Raises the first of these, if any, of refusals the first."""
        if not failures:
            return
        first = next((one for one in failures if one.error.refused), failures[0])
        words = messages.shut([one.member.pod for one in failures], first.error)
        memory.refused.note(Part.GATE, first.member.pod.metadata.uid, words, first.error, self._clock())
        raise first.error


class Failure(NamedTuple):
    """A gate that could not be opened."""

    member: Member
    error: ApiError


async def open_gates(
    writer: Writer, members: Sequence[Member], *, dry_run: bool = False
) -> tuple[list[str], list[Failure]]:
    """Take muster's gate off these pods, in this order but many at once; gates of others stay.

    Returns the UIDs of the pods that are open now, and the failures. Pods that are gone or replaced are skipped: the
    watch tells of them. In a dry run nothing is opened; a webhook that takes no part in one says nothing.
    """

    async def open_one(member: Member) -> str | Failure:
        meta = member.pod.metadata
        try:
            await writer.patch(PODS, meta.name, meta.namespace, opening(meta), dry_run=dry_run)
        except ApiError as error:
            if error.not_found or error.conflict or (dry_run and _NO_DRY_RUN in error.message):
                return ""
            return Failure(member, error)
        return meta.uid

    done = await burst(open_one, members)
    opened = [one for one in done if isinstance(one, str) and one]
    return opened, [one for one in done if isinstance(one, Failure)]
