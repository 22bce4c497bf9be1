"""Time limits that run while gangs wait: announced before they end, and obeyed when they do; and run times overrun."""

from __future__ import annotations

from collections.abc import Callable

from controller.admission_queue import AdmissionQueue
from controller.memory import Memory
from controller.reports import Reporter
from muster.model.gang_states import GangState
from muster.model.names import STATE
from muster.model.times import duration_text, text_of
from muster.observe.messages import taken_back
from muster.observe.run_times import said_end
from muster.observe.view import View
from muster.queueing.ledger import GangKey
from muster.workloads.model import TimeLimit


class Deadlines:
    """Reconciles a gang when its limit is near and when it ends: `look_again` is called with the gang and seconds."""

    def __init__(
        self,
        admission_queue: AdmissionQueue,
        reporter: Reporter,
        look_again: Callable[[GangKey, float], None],
        kueues_timeout: float,
    ) -> None:
        self._admission_queue = admission_queue
        self._reporter = reporter
        self._look_again = look_again
        self._kueues_timeout = kueues_timeout

    def heed(self, view: View, state: GangState, memory: Memory, now: float) -> str:
        """The message for a limit that is near, else ""; `state` is the state in which the gang waits."""
        limit = view.workload.deadline if view.workload else None
        if limit is None or limit.ends is None or limit.near is None:
            return ""
        if limit.ends <= now:
            if view.pod_group and view.pod_group.metadata.annotations.get(STATE) != state:
                # No gang waits behind it any more.
                self._admission_queue.wake(self._admission_queue.ledger.queue_of(view.key) or "", but=view.key)
            return ""
        if now < limit.near:
            self._look_again(view.key, limit.near - now)
            return ""
        self._look_again(view.key, limit.ends - now)
        words = f"{limit.path} ends at {text_of(limit.ends)[:19]}Z"
        self._warn(view, memory, limit.ends, f"{words}, and the gang still waits")
        return f"; {words}"

    def heed_kueue(self, view: View, memory: Memory, now: float) -> None:
        """Warn before Kueue takes its quota back from a gang whose pods are not ready."""
        ends = view.kueue.awaited_until if view.kueue is not None else None
        near = TimeLimit("", "", ends - self._kueues_timeout, self._kueues_timeout).near if ends is not None else None
        if ends is None or near is None or ends <= now:
            return
        if now < near:
            self._look_again(view.key, near - now)
            return
        self._warn(view, memory, ends, taken_back(ends))

    def check_run(self, view: View, memory: Memory, now: float) -> None:
        """Report once that an admitted gang runs longer than its user said; nothing ends it."""
        end = said_end(view, memory.mark)
        if end is None:
            return
        # A program that is told to stop then has a moment for that.
        late = end.start + end.seconds * 1.05
        if now < late:
            self._look_again(view.key, late - now)
            return
        words = f"said {duration_text(end.seconds)}, runs {duration_text(now - end.start)}"
        self._warn(view, memory, late, f"{words}; gangs behind count on it", GangState.RUNS_LONGER)

    def _warn(
        self, view: View, memory: Memory, ends: float, words: str, state: GangState = GangState.DEADLINE_NEAR
    ) -> None:
        """Say it once for each end, as an event."""
        if memory.warned_of != ends:
            memory.warned_of = ends
            self._admission_queue.give_turn(view.key)
            self._reporter.remark(view, state, words)
