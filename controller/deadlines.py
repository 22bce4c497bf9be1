"""Time limits that run while gangs wait: announced before they end, and obeyed when they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.model.gang_states import GangState
from muster.model.names import STATE
from muster.model.times import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.admission_queue import AdmissionQueue
    from controller.memory import Memory
    from controller.reports import Reporter
    from muster.observe.view import View
    from muster.queueing.ledger import GangKey

__all__ = ["Deadlines"]


class Deadlines:
    """Reconciles a gang when its limit is near and when it ends: `look_again` is called with the gang and seconds."""

    def __init__(
        self, admission_queue: AdmissionQueue, reporter: Reporter, look_again: Callable[[GangKey, float], None]
    ) -> None:
        self._admission_queue = admission_queue
        self._reporter = reporter
        self._look_again = look_again

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
        if memory.warned_of != limit.ends:
            memory.warned_of = limit.ends
            self._admission_queue.give_turn(view.key)
            self._reporter.remark(view, GangState.DEADLINE_NEAR, f"{words}, and the gang still waits")
        return f"; {words}"
