"""Whose turn it is: the order in which an admission pass visits the gangs of several queues.

Within a queue it is the order of gangs: priority, age, name. Among queues with one parent the queue that has least of
its share is first (`muster.queueing.shares`), from the root down; of those that have as much, the one in which the
first gang in order waits. What starts in the pass counts at once, so that a flood in one queue takes no more than its
turns. A parent may say that among the queues below it the order of gangs alone counts.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from muster.queueing.entries import Order
from muster.queueing.shares import Shares
from muster.queueing.usage import Usage


class Visitor(ABC):
    """Goes through gangs in order.

    `first` is the first of those that are left, or stands before it; it never moves to the front.
    """

    first: Order

    @abstractmethod
    def peek(self) -> bool:
        """Have `first` be the first of those that are left; False where none is, nor will be."""

    @abstractmethod
    def next(self) -> tuple[str, Order] | None:
        """The queue and the place of the gang whose turn it is; None where none is left."""

    @abstractmethod
    def advance(self) -> None:
        """Have the gang that `next` gave its turn, and go on behind it; what is taken changes for its queue alone."""


class QueueVisitor(Visitor):
    """Goes along gangs of one queue, from one that a visit can change to the next."""

    def __init__(self, queue: str, first: Order, last: Order | None = None) -> None:
        """`first` stands before all of them, `last` is the place behind which they are looked for; None: at all."""
        self.queue = queue
        self.first = first
        self.last = last
        self.found = False

    @abstractmethod
    def find(self) -> Order | None:
        """The first of them behind `last`; what is found to be of no use on the way may be left behind that."""

    def peek(self) -> bool:
        """Have `first` be the first of those that are left."""
        if not self.found and (found := self.find()) is not None:
            self.first, self.found = found, True
        return self.found

    def next(self) -> tuple[str, Order] | None:
        """The queue and the place of the gang whose turn it is."""
        return (self.queue, self.first) if self.peek() else None

    def advance(self) -> None:
        """Go on behind the gang that `next` gave."""
        self.last, self.found = self.first, False


class Turns:
    """The turns of visitors, given by queue.

    `usage` is what is taken, and changes as they are advance.
    """

    def __init__(self, shares: Shares, usage: Usage, visitors: Mapping[str, Sequence[Visitor]]) -> None:
        self._shares = shares
        self._usage = usage
        paths = [(shares.tree.gang_path(queue), found) for queue, found in visitors.items() if found]
        self._all = self._below(paths, -1) if paths else None

    def next(self) -> tuple[str, Order] | None:
        """The queue and the place of the gang whose turn it is; None where none is left."""
        return None if self._all is None else self._all.next()

    def advance(self) -> None:
        """Have the gang that `next` gave its turn, and go on."""
        if self._all is not None:
            self._all.advance()

    def _below(self, paths: Sequence[tuple[tuple[str, ...], Sequence[Visitor]]], depth: int) -> Visitor:
        """Those below one queue: all paths have it at this place, counted from the root at -1."""
        while len(paths) > 1:
            parent = paths[0][0][depth]
            depth -= 1
            queues: dict[str, list[tuple[tuple[str, ...], Sequence[Visitor]]]] = {}
            for path in paths:
                queues.setdefault(path[0][depth], []).append(path)
            if len(queues) > 1:
                below = {queue: self._below(found, depth) for queue, found in queues.items()}
                if self._shares.by_age(parent):
                    return _ByAge(list(below.values()))
                return _ByShare(self._shares, self._usage, below)
        visitors = paths[0][1]
        return visitors[0] if len(visitors) == 1 else _ByAge(visitors)


class _ByAge(Visitor):
    """First whose first gang is first in order."""

    def __init__(self, visitors: Sequence[Visitor]) -> None:
        self._heap = [(visitor.first, number, visitor) for number, visitor in enumerate(visitors)]
        heapq.heapify(self._heap)
        self.first = self._heap[0][0]

    def peek(self) -> bool:
        while self._heap:
            first, number, visitor = self._heap[0]
            if not visitor.peek():
                heapq.heappop(self._heap)
            elif visitor.first != first:
                heapq.heapreplace(self._heap, (visitor.first, number, visitor))
            else:
                self.first = first
                return True
        return False

    def next(self) -> tuple[str, Order] | None:
        return self._heap[0][2].next() if self.peek() else None

    def advance(self) -> None:
        self._heap[0][2].advance()


class _ByShare(Visitor):
    """First whose queue has least of its share, of those with as much whose first gang is first in order."""

    def __init__(self, shares: Shares, usage: Usage, queues: Mapping[str, Visitor]) -> None:
        self._shares = shares
        self._usage = usage
        self._heap = [
            (self._share(queue), visitor.first, number, queue, visitor)
            for number, (queue, visitor) in enumerate(queues.items())
        ]
        heapq.heapify(self._heap)
        # The same, whatever queues have; only a queue with siblings of its own is asked for it.
        self._in_order: _ByAge | None = None
        self.first = min(entry[1] for entry in self._heap)

    def peek(self) -> bool:
        if self._in_order is None:
            self._in_order = _ByAge([entry[-1] for entry in self._heap])
        found = self._in_order.peek()
        self.first = self._in_order.first
        return found

    def next(self) -> tuple[str, Order] | None:
        while self._heap:
            *known, number, queue, visitor = self._heap[0]
            if not visitor.peek():
                heapq.heappop(self._heap)
            elif known != [share := self._share(queue), visitor.first]:
                # Neither ever becomes less.
                heapq.heapreplace(self._heap, (share, visitor.first, number, queue, visitor))
            else:
                return visitor.next()
        return None

    def advance(self) -> None:
        self._heap[0][-1].advance()

    def _share(self, queue: str) -> float:
        return self._shares.of(queue, self._usage.taken(queue))
