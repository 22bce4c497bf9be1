"""The gangs that are passed when one starts or grows: those before it, not passed yet, that wait for what it takes.

Of those that lack it in the same queue the first in order is passed, for only the first can have a reservation there.
The next one is passed by the next start: to note thousands at one would be thousands of writes. Among siblings that
compete by share a start passes the gangs whose turn came before its own: their queue had less of its share, or as much
and they are older.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from muster.queueing.entries import EntryKey, Order
from muster.queueing.queue_state import Stage
from muster.queueing.queue_view import ROOT
from muster.queueing.waiting_line import WaitingLine

if TYPE_CHECKING:
    from muster.queueing.admission_pass import AdmissionPass


class Bypassed:
    """The gangs that lack, at one queue, what others take there; as long as one admission pass holds."""

    def __init__(self, lines: Iterable[WaitingLine], free: Mapping[str, int]) -> None:
        """`lines` are of gangs below the queue that were not passed yet, `free` is what it has of what is taken."""
        # The pass holds on when the last of a line starts or is passed.
        self._lines = [line for line in lines if line]
        self._free = free
        # The first of a line may lack nothing; of the others that was found out.
        self._heads = [(line.first, number, False) for number, line in enumerate(self._lines)]
        heapq.heapify(self._heads)

    def first(self, own: Order | None, may_be_passed: Callable[[EntryKey], bool]) -> Order | None:
        """The first of them, if it stands before this place (None: any)."""
        while self._heads:
            order, _, lacks = self._heads[0]
            if own is not None and order >= own:
                return None
            if lacks and may_be_passed(order.key):
                return order
            self._advance()
        return None

    def _advance(self) -> None:
        order, number, lacks = self._heads[0]
        following = self._lines[number].next_beyond(order if lacks else None, self._free)
        if following is None:
            heapq.heappop(self._heads)
        else:
            heapq.heapreplace(self._heads, (following, number, True))


class _Turn(NamedTuple):
    """The turn of a gang that starts: what its queue had of its share, and its place among queues that had as much."""

    share: float
    place: Order | None
    """None: behind all."""

    def before(self, share: float, place: Order) -> bool:
        """Whether it comes before the turn of a sibling's gang."""
        return self.share < share or (self.share == share and self.place is not None and self.place < place)


class BypassedBelow:
    """The gangs that lack, at the queue `level`, what others take there, by the queue directly below where they wait.

    The pass keeps them, so that they do not keep the pass: a circle of objects would stay for ever.
    """

    def __init__(
        self,
        outcome: AdmissionPass,
        level: str,
        free: Mapping[str, int],
        *,
        leaf_of: str = "",
        namespace: str = "",
    ) -> None:
        """Of the resources of `free`, where the pass leaves so much; of the gangs that one namespace limits, or all.

        `leaf_of` is the queue whose gangs stand in this very level, and no others; "" where queues are below it.
        """
        self._level = level
        self._free = free
        self._by_age = outcome.shares.by_age(level)
        fresh: dict[str, list[WaitingLine]] = {}
        for queue in (leaf_of,) if leaf_of else outcome.states:
            path = outcome.tree.gang_path(queue)
            if level in path:
                lines = [
                    line
                    for where, line in outcome.states[queue].lines.items()
                    if where.stage is Stage.FRESH and namespace in ("", where.namespace)
                ]
                if lines:
                    fresh.setdefault(self._below(path), []).extend(lines)
        self._lines = fresh
        self._queues = sorted((self._share(outcome, queue), queue) for queue in fresh)
        # Most queues are not asked for.
        self._bypassed: dict[str, Bypassed] = {}

    def _share(self, outcome: AdmissionPass, queue: str) -> float:
        return 0.0 if queue == self._level else outcome.share(queue)

    def _below(self, path: tuple[str, ...]) -> str:
        """The queue directly below, on the way to the first of the path; the queue itself where none competes."""
        at = path.index(self._level)
        return self._level if at == 0 or self._by_age else path[at - 1]

    def first(
        self,
        outcome: AdmissionPass,
        path: tuple[str, ...],
        own: Order | None,
        may_be_passed: Callable[[EntryKey], bool],
    ) -> Order | None:
        """The first that is passed by a gang of the first queue of this path, at that place (None: behind all)."""
        below = self._below(path)
        turn = self._turn_of(outcome, below, own)
        for queue in self._before(outcome, below, turn):
            bypassed = self._bypassed.get(queue)
            if bypassed is None:
                bypassed = self._bypassed[queue] = Bypassed(self._lines[queue], self._free)
            first = bypassed.first(own if queue == below else None, may_be_passed)
            if first is not None and (queue == below or not turn.before(self._share_at(outcome, queue, first), first)):
                return first
        return None

    def _before(self, outcome: AdmissionPass, below: str, turn: _Turn) -> Iterator[str]:
        """The queues in which a gang may have had an earlier turn; its own is one."""
        grown = dict.fromkeys((below, *outcome.turns))
        for share, queue in self._queues:
            if share > turn.share:
                break
            firsts = (line.first for line in self._lines[queue] if line)
            if queue in grown or any(not turn.before(share, first) for first in firsts):
                yield queue
        # These had less.
        for queue in grown:
            if queue in self._lines and self._share(outcome, queue) > turn.share:
                yield queue

    def _share_at(self, outcome: AdmissionPass, queue: str, order: Order) -> float:
        """What a queue had of its share at the turn of a gang that stands there and lacks something."""
        # Those behind it have started since.
        behind = (share for other, share in outcome.turns.get(queue, {}).items() if other > order)
        return next(behind, self._share(outcome, queue))

    def _turn_of(self, outcome: AdmissionPass, below: str, own: Order | None) -> _Turn:
        if own is None:
            return _Turn(inf, None)
        share = outcome.turns.get(below, {}).get(own)
        # A wave has no turn under the name of its gang: what it took counts, too.
        return _Turn(self._share(outcome, below), None) if share is None else _Turn(share, own)


def first_bypassed(
    outcome: AdmissionPass,
    queue: str,
    *,
    takes: tuple[str, ...],
    behind: Order | None,
    namespace: str,
    may_be_passed: Callable[[EntryKey], bool],
) -> Iterator[Order]:
    """The gangs that a start in a queue passes that takes these resources, at this place (None: behind all).

    One for each queue on the way to the root, and one of its `namespace` where that is limited ("": where not).
    """

    def below(level: str, of: str = "") -> BypassedBelow:
        known = outcome.bypassed.get((level, takes, of))
        if known is None:
            free = outcome.usage.free(level, takes)
            if of:
                most = outcome.namespaces.largest(of)
                free = {name: most[name] for name in takes if name in most}
            leaf_of = queue if level == path[0] else ""
            known = BypassedBelow(outcome, level, free, leaf_of=leaf_of, namespace=of)
            outcome.bypassed[level, takes, of] = known
        return known

    path = outcome.tree.gang_path(queue)
    levels = [below(level) for level in path]
    if namespace:
        levels.append(below(ROOT, namespace))
    for level in levels:
        first = level.first(outcome, path, behind, may_be_passed)
        if first is not None:
            yield first
