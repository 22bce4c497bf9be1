"""Whose turn it is: the order in which an admission pass visits the gangs of several queues.

Within a queue it is the order of gangs: priority, age, name. Among queues with one parent the queue that has least of
its share is first (`muster.queueing.shares`), from the root down; of those that have as much, the one in which the
first gang in order waits. What starts in the pass counts at once, so that a flood in one queue takes no more than its
turns. Before a first gang that was passed for long only what its queue holds counts, and not its past. A parent may set
that only the order of gangs counts among the queues below it.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence

from muster.queueing.entries import EntryKey, Order
from muster.queueing.shares import Shares
from muster.queueing.usage import Usage


class Visitor(ABC):
    """Goes through gangs in order.

    `first` is the first of those that are left, or stands before it; it never moves to the front.
    """

    first: Order

    @abstractmethod
    def peek(self) -> bool:
        """Set `first` to the first of those that are left; False if none is left for good."""

    @abstractmethod
    def next(self) -> Order | None:
        """The place of the gang whose turn it is; None where none is left."""

    @abstractmethod
    def advance(self) -> None:
        """Give the gang its turn that `next` gave, and go on behind it; what is taken changes for its queue alone."""


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
        """Set `first` to the first of those that are left."""
        if not self.found and (found := self.find()) is not None:
            self.first, self.found = found, True
        return self.found

    def next(self) -> Order | None:
        """The place of the gang whose turn it is."""
        return self.first if self.peek() else None

    def advance(self) -> None:
        """Go on behind the gang that `next` gave."""
        self.last, self.found = self.first, False


Passed = Container[tuple[str, EntryKey]]
"""Gangs that were passed for long, each with the queues for which that counts: its own and those above it."""


def in_turn(
    shares: Shares, usage: Usage, visitors: Mapping[str, Sequence[Visitor]], passed: Passed = frozenset()
) -> Visitor:
    """Several visitors as one, which gives them their turns; they are given by queue.

    `usage` is what is taken, and changes as they advance.
    """
    paths = [(shares.tree.gang_path(queue), found) for queue, found in visitors.items() if found]
    return _below(shares, usage, passed, paths, -1)


def _below(
    shares: Shares,
    usage: Usage,
    passed: Passed,
    paths: Sequence[tuple[tuple[str, ...], Sequence[Visitor]]],
    depth: int,
) -> Visitor:
    """The lines below one queue: all paths have it at this place, counted from the root at -1."""
    while len(paths) > 1:
        parent = paths[0][0][depth]
        depth -= 1
        queues: dict[str, list[tuple[tuple[str, ...], Sequence[Visitor]]]] = {}
        for path in paths:
            queues.setdefault(path[0][depth], []).append(path)
        if len(queues) > 1:
            found = [_below(shares, usage, passed, one, depth) for one in queues.values()]
            return _Several(found) if shares.by_age(parent) else _BySharesOf(list(queues), found, shares, usage, passed)
    alone = paths[0][1] if paths else ()
    return alone[0] if len(alone) == 1 else _Several(alone)


class _Several(Visitor):
    """First the visitor whose first gang is first in order."""

    def __init__(self, visitors: Sequence[Visitor]) -> None:
        self._visitors = visitors
        self._heap = [(self._key(number), number) for number in range(len(visitors))]
        heapq.heapify(self._heap)
        if visitors:
            self.first = min(visitor.first for visitor in visitors)

    def _key(self, number: int) -> tuple[float, Order]:
        """The place of a visitor; it never moves to the front."""
        return 0.0, self._visitors[number].first

    def _top(self) -> Visitor | None:
        while self._heap:
            known, number = self._heap[0]
            visitor = self._visitors[number]
            if not visitor.peek():
                heapq.heappop(self._heap)
            elif known != (now := self._key(number)):
                heapq.heapreplace(self._heap, (now, number))
            else:
                return visitor
        return None

    def peek(self) -> bool:
        if (top := self._top()) is not None:
            self.first = top.first
        return top is not None

    def next(self) -> Order | None:
        top = self._top()
        return None if top is None else top.next()

    def advance(self) -> None:
        self._visitors[self._heap[0][1]].advance()


class _BySharesOf(_Several):
    """First the queue with the lowest share; ties go to the queue whose first gang is first in order."""

    def __init__(
        self, queues: Sequence[str], visitors: Sequence[Visitor], shares: Shares, usage: Usage, passed: Passed
    ) -> None:
        self._queues, self._shares, self._usage = queues, shares, usage
        # Of each queue the gang before which its past does not count. Behind that it does: no place moves to the front.
        firsts = [visitor.first for visitor in visitors]
        pairs = zip(queues, firsts, strict=True)
        self._passed = [first if (queue, first.key) in passed else None for queue, first in pairs]
        # The same, whatever queues have; only a queue with siblings of its own is asked for it.
        self._in_order: _Several | None = None
        super().__init__(visitors)

    def _key(self, number: int) -> tuple[float, Order]:
        queue, first = self._queues[number], self._visitors[number].first
        held_only = first == self._passed[number]
        return self._shares.of(queue, self._usage.taken(queue), held_only=held_only), first

    def peek(self) -> bool:
        if self._in_order is None:
            self._in_order = _Several(self._visitors)
        found = self._in_order.peek()
        self.first = self._in_order.first
        return found
