"""The schedule by which messages of waiting gangs are refreshed where only numbers have changed.

Each event in a queue changes the message of all gangs that wait there: positions, and what is free. Each may be a
write, and a write of words takes from the apiserver what the starting of gangs needs: so many a second, and no more.
Queues take turns. In each, those at the head of the line have most of its turns, for they look; the thousands behind
them are told one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.queueing.entries import EntryKey, Order

Line = Callable[[str, Order | None], Order | None]


_PER_SECOND = 5  # gangs of all queues together
_HEAD = 10  # gangs of a queue
_TURNS = 5  # of a queue's turns, one is for those behind its head


@dataclass(slots=True)
class _Round:
    """A way along a line, past so many of its head and on to so many; later changes are left to the next."""

    passes_over: int
    most: float
    behind: Order | None = None
    left: float = 0
    touched: bool = False

    def next(self, queue: str, line: Line) -> EntryKey | None:
        """The next gang, or None where all have been told of all."""
        found = self._step(queue, line)
        if found is None and self.touched:
            self.touched = False
            self.behind, self.left = None, self.passes_over
            while self._step(queue, line) is not None:
                pass
            self.left = self.most
            found = self._step(queue, line)
        return None if found is None else found.key

    def _step(self, queue: str, line: Line) -> Order | None:
        found = line(queue, self.behind) if self.left > 0 else None
        if found is None:
            self.left = 0
        else:
            self.behind = found
            self.left -= 1
        return found


@dataclass(slots=True)
class _Queue:
    head: _Round = field(default_factory=lambda: _Round(0, _HEAD))
    rest: _Round = field(default_factory=lambda: _Round(_HEAD, float("inf")))
    turns: int = 0

    def next(self, queue: str, line: Line) -> EntryKey | None:
        self.turns += 1
        first, second = (self.head, self.rest) if self.turns % _TURNS else (self.rest, self.head)
        return first.next(queue, line) or second.next(queue, line)


class StatusUpdateSchedule:
    """The queues that changed since the messages of all their gangs were refreshed."""

    def __init__(self) -> None:
        # The one whose turn is next is first.
        self._queues: dict[str, _Queue] = {}

    def touch(self, queues: Iterable[str]) -> None:
        """Something happened in these queues."""
        for name in queues:
            one = self._queues.get(name)
            if one is None:
                one = self._queues[name] = _Queue()
            one.head.touched = one.rest.touched = True

    def due(self, line: Line) -> list[EntryKey]:
        """The gangs whose message is to be refreshed now; to be called about every second.

        `line` gives the first gang that waits in a queue behind a place in its order, None for the head of the line.
        """
        due: list[EntryKey] = []
        while self._queues and len(due) < _PER_SECOND:
            name = next(iter(self._queues))
            queue = self._queues.pop(name)
            gang = queue.next(name, line)
            if gang is not None:
                due.append(gang)
                self._queues[name] = queue
        return due
