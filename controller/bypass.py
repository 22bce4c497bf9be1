"""Which gangs were passed by smaller ones, in which queue, and since when: the queue's patience counts from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.memory import Memories, Memory
    from muster.queueing.ledger import GangKey, Ledger

__all__ = ["BypassTracker"]


class BypassTracker:
    """Notes passed gangs in their memories; `look_at` is called for each, so that its PodGroup is updated."""

    def __init__(self, ledger: Ledger, memories: Memories, look_at: Callable[[GangKey], None]) -> None:
        self._ledger = ledger
        self._memories = memories
        self._look_at = look_at

    def by(self, key: GangKey, now: float, *, growth: bool = False) -> dict[GangKey, str | None]:
        """The gangs that this one passes when it starts or grows now, and their queues; a wave is no `growth`."""
        passed = self._ledger.passed_by(key, now, growth=growth)
        return {other: self._ledger.queue_of(other) for other in passed}

    def note(self, passed: Mapping[GangKey, str | None], now: float) -> None:
        """Note that these gangs were passed, `now` of the wall clock."""
        for key, queue in passed.items():
            # Meanwhile the gang may have started, too, or wait in another queue.
            if queue is None or self._ledger.queue_of(key) != queue or self._ledger.holds(key) is not None:
                continue
            gang = key.gang  # of a wave the gang's
            self._memories.note_passed(gang, queue, now)
            self._look_at(gang)

    def patience_has_ended(self, key: GangKey, memory: Memory, now: float, look_again: Callable[[float], None]) -> bool:
        """Whether the patience of a gang that waits has ended since it was last looked at; `look_again` when it will.

        Others may pass it for ever then, or nobody may: its words change, and nothing else happens in its queue.
        """
        ends, expected = self._ledger.patience_ends(key), memory.patient_until
        memory.patient_until = ends if ends is not None and ends > now else None
        if memory.patient_until is not None:
            look_again(memory.patient_until - now)
        return expected is not None and expected <= now
