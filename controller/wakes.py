"""Has a scheduler look again at open pods that it turned away, by touching their PodGroup.

scheduler-plugins' coscheduling registers for added pods and changed PodGroups alone (v0.34.7). A replacement that opens
a moment before the next one exists is turned away for too few pods; the next waits for it until its time is over; and
then nothing looks at either for five minutes, however much room there is. A touch costs one write, and comes the less
often the longer no node is found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from controller.fenced_writes import Writer
from controller.nudges import Touch, Turns
from muster.kube.errors import ApiError
from muster.model.names import NUDGE
from muster.model.times import text_of
from muster.observe.resources import resource_of_group
from muster.observe.view import View
from muster.queueing.ledger import GangKey

logger = logging.getLogger(__name__)


class Wakes:
    """Touches PodGroups for schedulers that hear of nothing else; `clock` is monotonic, `wall` the time written."""

    def __init__(self, writer: Writer, *, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._writer = writer
        self._clock = clock
        self._wall = wall
        self._turns = Turns()

    @property
    def gangs(self) -> int:
        """How many gangs have pods that their scheduler is asked about again."""
        return self._turns.gangs

    def forget(self, key: GangKey) -> None:
        """The gang is gone."""
        self._turns.forget(key)

    async def wake(self, view: View, *, admitted: bool) -> Touch:
        """Touch the PodGroup if it is time; `again` is None when no open pod lacks a node.

        Raises NotLeaderError.
        """
        group = view.pod_group
        hears = view.intent is not None and view.intent.gang_scheduler.hears_groups_alone
        if group is None or not (admitted and hears and view.ours and view.unplaced):
            self._turns.forget(view.key)
            return Touch()
        wait = self._turns.wait(view.key, self._clock())
        if wait > 0:
            return Touch(wait)
        logger.info("%s has pods without a node; asking its scheduler again", view.key, extra={"event": "wake.sent"})
        try:
            await self._writer.annotate(resource_of_group(group), group.metadata, {NUDGE: text_of(self._wall())})
        except ApiError as error:
            logger.warning("%s: cannot ask its scheduler: %s", view.key, error, extra={"event": "wake.failed"})
        return Touch(self._turns.wait(view.key, self._clock()), sent=True)
