"""Which gangs were passed by smaller ones, in which queue, and since when: the queue's patience counts from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from controller.memory import Memories, Memory
from muster.model.times import duration_of, seconds_of, text_of
from muster.queueing.entries import EntryKey
from muster.queueing.ledger import GangKey, Ledger


class BypassTracker:
    """Notes passed gangs in their memories and in the ledger, before anybody else may pass them.

    `look_at` is called for each, so that its PodGroup is updated, and `wake` for its queue, where others may wait now.
    `drain_after` gives for a queue when it drains for a gang by what the history knows of its runs, "" for unknown.
    """

    def __init__(
        self,
        ledger: Ledger,
        memories: Memories,
        look_at: Callable[[GangKey], None],
        wake: Callable[[str, GangKey], None],
        drain_after: Callable[[str], str],
    ) -> None:
        self._ledger = ledger
        self._memories = memories
        self._look_at = look_at
        self._wake = wake
        self._drain_after = drain_after

    def by(self, key: GangKey, now: float, *, growth: bool = False) -> dict[EntryKey, str | None]:
        """The gangs that this one passes when it starts or grows now, and their queues; a wave is no `growth`."""
        passed = self._ledger.passed_by(key, now, growth=growth)
        return {other: self._ledger.queue_of(other) for other in passed}

    def begin(self, passed: Mapping[EntryKey, str | None], now: float) -> None:
        """Have the ledger count these gangs as passed, before anybody else passes them; `now` of the wall clock."""
        since = seconds_of(text_of(now))  # as their PodGroups will say it
        for key, queue in self._still(passed):
            waits = self._ledger.candidate(key)
            if waits is not None and waits.passed_since is None:
                after = duration_of(self._drains(queue))
                self._ledger.wait(replace(waits, passed_since=since, drain_after=after))
                self._wake(queue, key.gang)

    def note(self, passed: Mapping[EntryKey, str | None], now: float) -> None:
        """Note that these gangs were passed, `now` of the wall clock."""
        self.begin(passed, now)
        for key, queue in self._still(passed):
            gang = key.gang  # of a wave the gang's
            self._memories.note_passed(gang, queue, now, self._drains(queue))
            self._look_at(gang)

    def _drains(self, queue: str) -> str:
        """When the queue drains for a gang that is passed, where it does not say so itself."""
        return "" if self._ledger.tree.settings(queue).drain_after is not None else self._drain_after(queue)

    def take_back(self, passed: Mapping[EntryKey, str | None]) -> None:
        """Nobody has passed these gangs: they are entered as they were."""
        for key in passed:
            self._look_at(key.gang)

    def _still(self, passed: Mapping[EntryKey, str | None]) -> Iterator[tuple[EntryKey, str]]:
        """Those that wait where they waited: meanwhile a gang may have started, too, or wait in another queue."""
        for key, queue in passed.items():
            if queue is not None and self._ledger.queue_of(key) == queue and self._ledger.holds(key) is None:
                yield key, queue

    def patience_has_ended(self, key: GangKey, memory: Memory, now: float, look_again: Callable[[float], None]) -> bool:
        """Whether the patience of a gang that waits has ended since it was last looked at; `look_again` when it will.

        Others may pass it for ever then, or nobody may: its words change, and nothing else happens in its queue.
        """
        ends, expected = self._ledger.patience_ends(key), memory.patient_until
        memory.patient_until = ends if ends is not None and ends > now else None
        if memory.patient_until is not None:
            look_again(memory.patient_until - now)
        return expected is not None and expected <= now
