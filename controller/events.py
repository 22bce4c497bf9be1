"""Events of events.k8s.io/v1, written in the background: an event is a courtesy, and nothing ever waits for one.

What is said is bounded three times: a gang has a budget, all gangs together have one, and what is not yet written is
dropped, the oldest first, when there is too much of it. The PodGroup's annotations have the latest word in any case.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from controller.writer import NotLeaderError
from muster.kube.errors import ApiError
from muster.kube.events import EventSource
from muster.kube.resource import EVENTS

if TYPE_CHECKING:
    from controller.writer import Writer
    from muster.kube.events import Regarding

__all__ = ["REPORTING_CONTROLLER", "Announcer", "Budget"]

logger = logging.getLogger(__name__)

REPORTING_CONTROLLER = "muster.dev/controller"
# All events of a leader: client-go gives a controller the same order of magnitude.
_PER_SECOND, _AT_ONCE = 50.0, 200
_PENDING = 2000


class Budget:
    """Bounds how often something happens: `at_once` times in a row, `per_second` in the long run.

    Times are seconds of one clock that never goes back.
    """

    def __init__(self, per_second: float, at_once: int) -> None:
        self._interval = 1 / per_second
        self._tolerance = (at_once - 1) * self._interval
        self._due = float("-inf")

    def take(self, now: float) -> float:
        """0.0 when it may happen now, and is counted; else the seconds until it may."""
        due = max(self._due, now)
        if due - now > self._tolerance:
            return due - now - self._tolerance
        self._due = due + self._interval
        return 0.0


class Announcer:
    """Events on their way; `instance` names this process in them."""

    def __init__(self, writer: Writer, instance: str) -> None:
        self._writer = writer
        self._source = EventSource(REPORTING_CONTROLLER, instance, "GangScheduling")
        self._pending: deque[dict[str, Any]] = deque()
        self._budget = Budget(_PER_SECOND, _AT_ONCE)
        self._something = asyncio.Event()
        self.written = self.dropped = 0

    def say(self, regarding: Regarding, reason: str, note: str, *, warning: bool) -> None:
        """Have an event written soon."""
        if len(self._pending) >= _PENDING:
            self._pending.popleft()
            self.dropped += 1
        self._pending.append(self._source.event(regarding, reason, note, warning=warning, seconds=time.time()))
        self._something.set()

    async def run(self) -> None:
        """Write what is said, until cancelled."""
        while True:
            await self._something.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all that is pending, no faster than the budget allows; what is refused is given up."""
        loop = asyncio.get_running_loop()
        while self._pending:
            wait = self._budget.take(loop.time())
            if wait:
                await asyncio.sleep(wait)
                continue
            event = self._pending.popleft()
            try:
                await self._writer.create(EVENTS, event)
            except (ApiError, NotLeaderError) as error:
                self.dropped += 1
                about = event["regarding"]
                logger.warning("%s %s/%s: no event: %s", about["kind"], about["namespace"], about["name"], error)
            else:
                self.written += 1
        self._something.clear()
