"""Admits a gang that waits, when the ledger and Kueue let it start, or writes down why it waits.

The ledger counts the gang before the mark is written, and goes on counting it where nobody knows whether the mark was
taken: so no other decision takes the same room. No gate is opened here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from controller.admission_queue import AdmissionQueue
from controller.bypass import BypassTracker
from controller.deadlines import Deadlines
from controller.gates import Gates
from controller.kueue import Kueue
from controller.memory import Memory
from controller.metrics import Metrics
from controller.pod_group_writer import PodGroupWriter
from controller.reports import Reporter
from muster.gangs.start_errors import PlannedStart
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.observe.ledger_entry import Standing
from muster.observe.quota_use import QuotaUse
from muster.observe.view import View
from muster.queueing.ledger import Decision, GangKey


class Admission:
    """The admission of gangs that wait; `see` gives a gang as it is there, `stand` enters it into the ledger so.

    `look_again` is called with a gang and the seconds until it is due. `clock` never goes back, `now` is the time of
    day without the leaps of the `wall` clock; all in seconds.
    """

    def __init__(
        self,
        admission_queue: AdmissionQueue,
        reporter: Reporter,
        *,
        gates: Gates,
        group_writer: PodGroupWriter,
        bypass: BypassTracker,
        deadlines: Deadlines,
        kueue: Kueue,
        quota_use: QuotaUse,
        metrics: Metrics,
        see: Callable[[GangKey], View],
        stand: Callable[[View], Standing],
        look_again: Callable[[GangKey, float], None],
        clock: Callable[[], float],
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._admission_queue = admission_queue
        self._reporter = reporter
        self._gates = gates
        self._group_writer = group_writer
        self._bypass = bypass
        self._deadlines = deadlines
        self._kueue = kueue
        self._quota_use = quota_use
        self._metrics = metrics
        self._see = see
        self._stand = stand
        self._look_again = look_again
        self._clock = clock
        self._now = now
        self._wall = wall

    async def decide(self, view: View, standing: Standing, memory: Memory) -> tuple[View, Standing] | None:
        """Admit the gang if it may start, else write down why it waits; gives how it stands once it is admitted.

        Raises ApiError for a write that was not taken, and NotLeaderError.
        """
        now, queue = self._now(), self._admission_queue
        if queue.lost.enter_before(view.key, queue.ledger.queue_of(view.key)):
            return None
        self._quota_use.notice(view.key.namespace)
        decision = queue.decide(view, standing, now)
        if decision is None:
            return None
        if not decision.fits:
            await self._say_why(view, memory, decision, now)
            return None
        if not await self._kueue.still_admits(view):
            return None
        return await self._admit(view, memory, decision.message, now)

    async def _say_why(self, view: View, memory: Memory, decision: Decision, now: float) -> None:
        """Write down why the gang waits."""
        if self._bypass.patience_has_ended(view.key, memory, now, partial(self._look_again, view.key)):
            self._admission_queue.give_turn(view.key)
        self._note_start(view.key, memory, now)
        message = decision.message + memory.aside + self._deadlines.heed(view, decision.state, memory, self._wall())
        # Other numbers wait for their turn: else its own last words, come back by the watch, would bring the next. Who
        # stands in no line has neither numbers nor turns, and says what holds it back by now.
        in_line = self._admission_queue.ledger.candidate(view.key) is not None
        if in_line and memory.said[0] == decision.state and not self._admission_queue.take_turn(view.key):
            message = memory.said[1]
        await self._group_writer.report(view, memory, memory.still_waiting(view), decision.state, message)

    def _note_start(self, key: GangKey, memory: Memory, now: float) -> None:
        """Note when the gang is to start by its reservation, and by how much that has moved."""
        ledger = self._admission_queue.ledger
        waits = ledger.candidate(key)
        reservation = ledger.outcome(waits.queue, now).reservations.of(waits.order) if waits is not None else None
        if reservation is None or reservation.basis is None:
            return
        before = memory.planned or PlannedStart(reservation.start, reservation.basis, reservation.start, now)
        if reservation.start > before.start:
            self._metrics.moved(before.basis, reservation.start - before.start)
        memory.planned = before._replace(start=reservation.start, basis=reservation.basis)

    async def _admit(self, view: View, memory: Memory, message: str, now: float) -> tuple[View, Standing]:
        """Count the gang as admitted, and those that it passes as passed; then write the mark, and try its gates."""
        passed = self._bypass.by(view.key, now)
        # From here on it counts as admitted, so that no other decision takes the same room while this one is written.
        before, view = memory.mark, memory.granted(view, now)
        standing = self._stand(view)
        self._bypass.begin(passed, now)
        # Both at once: where a gate is refused, which is rare, the mark is taken off again.
        tried, marked = await asyncio.gather(
            self._gates.try_out(standing.opening.members if standing.opening is not None else (), memory),
            self._group_writer.mark(view, memory, memory.mark, GangState.ADMITTED, message),
            return_exceptions=True,
        )
        if isinstance(marked, ApiError) and not marked.refused:
            # Nobody knows whether the mark is there: the room stays taken until the next round writes it.
            memory.unanswered = self._clock()
            self._bypass.note(passed, now)
            raise marked
        if failed := marked or tried:
            memory.mark = before
            self._stand(self._see(view.key))
            self._bypass.take_back(passed)
            raise failed
        self._bypass.note(passed, now)
        self._reporter.tell(view, GangState.ADMITTED, message, self._clock())
        if memory.planned is not None:
            self._metrics.started(memory.planned, now)
            memory.planned = None
        ledger = self._admission_queue.ledger
        queue = ledger.queue_of(view.key) or ""
        # Where no queue bounds the gang it may name any: whoever makes workloads must not be able to make series.
        self._metrics.admitted(queue if ledger.tree.get(queue) else "", now - (view.since or now))
        return replace(view, pod_group=memory.written), standing
