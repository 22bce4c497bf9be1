"""Who of those that compete for the same room may start now.

They are looked at first in order first, and each takes its room as if it had started. One that does not fit is passed
by smaller ones behind it, but not where its queue is strict, nor when it has been passed for as long as its queue's
patience: then nobody behind it starts in the queues in which it has no room, or in any queue below them. When these
have room at last, it is the first to take it; so nobody waits for ever behind smaller ones. The rest of a gang that
holds room already is kept back by nobody else's patience: what it holds is given back when it has run.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.books import Full
from muster.softness import softened, take_hard_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.books import Book, Candidate, GangKey, Line, LineKey, Order
    from muster.queues import QueueTree
    from muster.room import Amounts, Room

__all__ = ["Settled", "settle"]


@dataclass(slots=True)
class Settled:
    """What may start, the room when all of it has, and by queue the first in order whom nobody passes there.

    It holds until the time `until` (seconds of the wall clock), if nothing happens. `exhausted` are amounts for which
    there is no room in a queue any more, so that others who need the same there need no look. `told` is whether it was
    asked who may start. In a `humble` queue those who have not been passed stand in nobody's way while they wait.
    `soft` are the gangs whose soft claims count for nothing.
    """

    tree: QueueTree
    books: Mapping[str, Book]
    room: Room
    now: float
    fits: dict[GangKey, Amounts] = field(default_factory=dict)
    barriers: dict[str, Order] = field(default_factory=dict)
    until: float = float("inf")
    exhausted: set[tuple[str, Amounts]] = field(default_factory=set)
    told: bool = False
    humble: set[str] = field(default_factory=set)
    soft: set[GangKey] = field(default_factory=set)

    def behind(self, queue: str, order: Order) -> Order | None:
        """Behind whom one at that place waits whom nobody passes, in this queue or above it; None without such."""
        if self.barriers:
            for one in self.tree.path(queue):
                barrier = self.barriers.get(one)
                if barrier is not None and barrier < order:
                    return barrier
        return None

    def comes_to_pass(self, queue: str, order: Order) -> bool:
        """Whether one that may start there, at that place, leaves everything as it is for all others when it does.

        Not so behind one whom nobody passes, which may be short in further queues beside the new claim; nor where it
        counts on room that is still to be made for it.
        """
        view = self.tree.get(queue)
        preempts = view is not None and view.preempts
        return not preempts and all(order < first for first in self.barriers.values())

    def short(self, candidate: Candidate, amounts: Amounts) -> list[str]:
        """The queues, of the candidate's and those above it, in which there is no room for it."""
        return self.room.short(candidate.queue, amounts, self._left_out(candidate))

    def _left_out(self, candidate: Candidate) -> Amounts:
        """What claims of lower priority hold in a queue where Volcano makes room by preempting them."""
        view = self.tree.get(candidate.queue)
        if view is None or not view.preempts:
            return ()
        left_out: dict[str, int] = {}
        for claim in self.books[candidate.queue].held.values():
            if claim.order.urgency > -candidate.priority:
                spared = dict(claim.soft_amounts)
                for name, amount in claim.amounts:
                    left_out[name] = left_out.get(name, 0) + amount - spared.get(name, 0)
        return tuple(left_out.items())


def settle(tree: QueueTree, books: Mapping[str, Book], room: Room, now: float) -> Settled:
    """Decide for all who wait in these queues, which are all that compete for some room; `room` stays as it is."""
    settled = Settled(tree, books, room.copy(), now, soft=softened(tree, books))
    take_hard_parts(tree, books, settled.room, settled.soft)
    heads: list[tuple[Order, int, str, LineKey]] = []
    lacking: dict[tuple[str, Amounts], bool] = {}
    for queue, book in books.items():
        view = tree.get(queue)
        settled.until = min(settled.until, book.next_moment(now))
        if view is None or not view.open or not tree.leaf(queue):
            continue
        path = tree.path(queue)
        if not view.preempts and not any(_strict(tree, one) for one in path):
            settled.humble.add(queue)
        for key, line in book.lines.items():
            # Of those who can do no more than wait where there is no room.
            full = _humble(settled, queue, key) and _full(path, line, room, lacking)
            if not full and not room.beyond(queue, line.amounts):
                heads.append((line.orders[0], 0, queue, key))
    heapq.heapify(heads)
    while heads:
        _, index, queue, key = heads[0]
        line = books[queue].lines[key]
        following = _visit(settled, queue, line, index, humble=_humble(settled, queue, key))
        if following is None or following == len(line.orders):
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (line.orders[following], following, queue, key))
    return settled


def _full(path: tuple[str, ...], line: Line, room: Room, lacking: dict[tuple[str, Amounts], bool]) -> bool:
    """Whether there is no room for one of the line beside what is held; `lacking` remembers what was looked up."""
    if line.full is not None and line.full.still(room):
        return True
    # From above: there the others have asked for the same.
    for one in reversed(path):
        lacks = lacking.get((one, line.amounts))
        if lacks is None:
            lacks = lacking[one, line.amounts] = room.lacks(one, line.amounts)
        if lacks:
            line.full = Full(room, one, room.times_given_back(one))
            return True
    return False


def _strict(tree: QueueTree, queue: str) -> bool:
    view = tree.get(queue)
    return view is not None and view.strict


def _humble(settled: Settled, queue: str, key: LineKey) -> bool:
    return queue in settled.humble and not key[1]


def _visit(settled: Settled, queue: str, line: Line, index: int, *, humble: bool) -> int | None:
    """Settle one of a line; gives the next of it to look at, None where the others need no look."""
    order = line.orders[index]
    candidate = settled.books[queue].waits(order.key)
    if candidate.deadline is not None and candidate.deadline <= settled.now:
        return index + 1
    path = settled.tree.path(queue)
    if humble and any((one, line.amounts) in settled.exhausted for one in path):
        return None
    if settled.behind(queue, order) is not None and not candidate.begun:
        return None
    short = settled.short(candidate, line.amounts)
    if not short:
        settled.fits[order.key] = line.amounts
        settled.room.take(queue, line.amounts)
        return index + 1
    settled.exhausted.update((one, line.amounts) for one in short)
    closed = [one for one in path if _strict(settled.tree, one)]
    over = _patience_is_over(settled, candidate)
    for one in (*closed, *(short if over else ())):
        settled.barriers.setdefault(one, order)
    if over or candidate.passed_since is None:
        return None
    # Nobody behind it fits either, but one whose patience is over may stand there.
    waiting = (settled.books[queue].waits(other.key) for other in line.orders[index + 1 :])
    return next((index + 1 + i for i, other in enumerate(waiting) if _patience_is_over(settled, other)), None)


def _patience_is_over(settled: Settled, candidate: Candidate) -> bool:
    view = settled.tree.get(candidate.queue)
    since = candidate.passed_since
    return view is not None and since is not None and since + view.patience <= settled.now
