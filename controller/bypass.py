"""Who was passed by smaller gangs, where, and since when: their patience ends by it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.memory import Memory
from muster.model.times import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from muster.queueing.ledger import GangKey, Ledger

__all__ = ["BypassTracker"]


class BypassTracker:
    """Remembers in the gangs' memories who was passed; `look_at` is called for each, so that its PodGroup says it."""

    def __init__(self, ledger: Ledger, memory: dict[GangKey, Memory], look_at: Callable[[GangKey], None]) -> None:
        self._ledger = ledger
        self._memory = memory
        self._look_at = look_at

    def by(self, key: GangKey, now: float, *, growth: bool = False) -> dict[GangKey, str | None]:
        """Whom the gang passes when it starts or has grown now, and where they wait; a wave is no `growth`."""
        passed = self._ledger.passed_by(key, now, growth=growth)
        return {other: self._ledger.queue_of(other) for other in passed}

    def note(self, passed: Mapping[GangKey, str | None], now: float) -> None:
        """Remember that these were passed, and for those who were not before, that it began now (wall clock)."""
        for key, queue in passed.items():
            # Meanwhile it may have started, too, or have gone elsewhere.
            if queue is None or self._ledger.queue_of(key) != queue or self._ledger.holds(key) is not None:
                continue
            gang = key.gang  # of a wave the gang's
            memory = self._memory.setdefault(gang, Memory())
            if memory.mark.passed_in != queue:
                memory.mark = replace(memory.mark, passed_since=text_of(now), passed_in=queue)
            self._look_at(gang)
