"""Gangs whose queue does not exist, or not for their namespace: they wait in no queue.

When the queue is there, it is there for all of them: the ledger knows them all before it decides which is first. A
queue that was deleted and comes back may have thousands, so that they enter one by one (`controller.sweeps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from controller.sweeps import Sweeps
from muster.kube.workqueue import WorkQueue
from muster.queueing.ledger import GangKey


class LostGangs:
    """The gangs, by the name of the queue for which they wait."""

    def __init__(self, queue: WorkQueue[GangKey], sweeps: Sweeps) -> None:
        self._queue = queue
        self._sweeps = sweeps
        self._queue_of: dict[GangKey, str] = {}
        self._of: dict[str, dict[GangKey, None]] = {}
        # The queues whose gangs enter now, and the gangs whose decision waits for that.
        self._entering: dict[str, set[GangKey]] = {}

    def __contains__(self, key: GangKey) -> bool:
        return key in self._queue_of

    def queues_of(self, namespace: str) -> list[str]:
        """The queues in which gangs of the namespace are lost, by name."""
        return sorted({queue for key, queue in self._queue_of.items() if key.namespace == namespace})

    def note(self, key: GangKey, queue: str | None) -> None:
        """The gang is lost in this queue, or in none (None)."""
        before = self._queue_of.pop(key, None)
        if before is not None:
            gangs = self._of[before]
            del gangs[key]
            if not gangs:
                del self._of[before]
        if queue is not None:
            self._queue_of[key] = queue
            self._of.setdefault(queue, {})[key] = None

    def found(self, queue: str, enter: Callable[[GangKey], object]) -> None:
        """The queue is there for one of its gangs: have all of them enter the ledger before it decides there."""
        if queue in self._of and queue not in self._entering:
            self._entering[queue] = set()
            self._sweeps.add((LostGangs, queue), self._enter(queue, list(self._of[queue]), enter))

    def _enter(self, queue: str, gangs: Iterable[GangKey], enter: Callable[[GangKey], object]) -> Iterator[None]:
        for key in gangs:
            if key in self:
                enter(key)
                self._queue.add(key)
            yield
        for key in self._entering.pop(queue):
            self._queue.add(key)
            yield

    def enter_before(self, key: GangKey, queue: str | None) -> bool:
        """True if gangs of that queue enter now, so that nothing is decided for this one yet; it is looked at then."""
        if queue not in self._entering:
            return False
        self._entering[queue].add(key)
        return True
