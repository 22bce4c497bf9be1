"""Gangs that run and want more than they hold: what room they were refused, and which of them may grow now.

Whatever happens in a queue may let one of them grow, and thousands may want to. Each stands in line with the growth
that was refused, so that a change leads to the first that may have it, and to no other. Queues have their turns as
among gangs that wait (`muster.queueing.turns`): the one that has least of its share is first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from muster.queueing.entries import GangKey, Growth, Order
from muster.queueing.ledger import Ledger
from muster.queueing.turns import QueueVisitor
from muster.queueing.waiting_line import WaitingLine

_MayGrow: TypeAlias = "Callable[[GangKey], bool]"


class Turn(NamedTuple):
    """The gang that may grow, and by queue the place up to which no other may."""

    gang: GangKey
    passed: Mapping[str, Order]


class _GrowthVisitor(QueueVisitor):
    """Goes along the gangs of a queue that want to grow, from one that may to the next."""

    def __init__(
        self, queue: str, line: WaitingLine, last: Order | None, most: Mapping[str, int], may_grow: _MayGrow
    ) -> None:
        super().__init__(queue, line.first, last)
        self._line = line
        self._most = most
        self._may_grow = may_grow

    def find(self) -> Order | None:
        while (found := self._line.next_within(self.last, self._most)) is not None:
            if self._may_grow(found[0].key.gang):
                return found[0]
            self.last = found[0]
        return None


class Growing:
    """The gangs of a ledger that were refused growth, in order."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lines: dict[str, WaitingLine] = {}
        self._known: dict[GangKey, Growth] = {}

    def enter(self, key: GangKey, growth: Growth | None) -> None:
        """Record the growth that the gang was refused, None for nothing, in the place of what was known of it."""
        known = self._known.get(key)
        if known == growth:
            return
        if known is not None:
            line = self._lines[known.queue]
            for order, _ in known.places():
                line.remove(order)
            if not line:
                del self._lines[known.queue]
            del self._known[key]
        if growth is not None:
            line = self._lines.setdefault(growth.queue, WaitingLine())
            for order, more in growth.places():
                line.add(order, more)
            self._known[key] = growth

    def first(
        self, queues: set[str], now: float, *, passed: Mapping[str, Order] | None = None, but: GangKey | None = None
    ) -> Turn | None:
        """The first gang, of those in these queues of one subtree, that may grow now; not gang `but`.

        Only places behind those `passed` count, by queue.
        """

        def may_grow(gang: GangKey) -> bool:
            return gang != but and self._may_grow(gang, now)

        passed = passed or {}
        visitors = {}
        for queue in self._lines.keys() & queues:
            most = self._ledger.room_to_grow(queue, now)
            if most is not None:
                visitors[queue] = _GrowthVisitor(queue, self._lines[queue], passed.get(queue), most, may_grow)
        if not visitors:
            return None
        turns = self._ledger.turns({queue: [one] for queue, one in visitors.items()}, now)
        found = turns.next()
        if found is None:
            return None
        turns.visited()
        last_now = {queue: one.last for queue, one in visitors.items() if one.last is not None}
        return Turn(found[1].key.gang, {**passed, **last_now})

    def _may_grow(self, key: GangKey, now: float) -> bool:
        growth = self._known[key]
        return any(self._ledger.fits_more(growth, claim, now) for claim, _ in growth.refused)
