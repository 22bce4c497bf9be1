"""Gangs that run and want more than they hold: what room they were refused, and who of them may grow now.

Whatever happens in a queue may let one of them grow, and thousands may want to. Each stands in line with the growth
that was refused, so that a change leads to the first who may have it, and to nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.queueing.waiting_line import WaitingLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.queueing.ledger import Ledger
    from muster.queueing.queue_state import GangKey, Order
    from muster.queueing.usage import Amounts
    from muster.resources.amounts import Resources

__all__ = ["Growing", "Growth"]


@dataclass(frozen=True, slots=True)
class Growth:
    """What a gang was refused; `waits_as`, `replaces` and `limited` are as in `Ledger.fits_more`."""

    queue: str
    """The queue of its claim."""
    order: Order
    """Its place among gangs."""
    refused: tuple[tuple[Resources, Amounts], ...]
    """The claims to which it may not grow, and what each is more than it holds, in billionths."""
    waits_as: GangKey
    replaces: GangKey
    limited: bool = False


class Growing:
    """The gangs of a ledger that were refused growth, in order."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lines: dict[str, WaitingLine] = {}
        self._known: dict[GangKey, Growth] = {}

    def enter(self, key: GangKey, growth: Growth | None) -> None:
        """Write down what the gang was refused, None for nothing, in the place of what was known of it."""
        known = self._known.get(key)
        if known == growth:
            return
        if known is not None:
            line = self._lines[known.queue]
            for order, _ in _entries(known):
                line.remove(order)
            if not line:
                del self._lines[known.queue]
            del self._known[key]
        if growth is not None:
            line = self._lines.setdefault(growth.queue, WaitingLine())
            for order, more in _entries(growth):
                line.add(order, more)
            self._known[key] = growth

    def first(
        self, queues: set[str], now: float, *, behind: Order | None = None, but: GangKey | None = None
    ) -> Order | None:
        """The first entry, of those in these queues and behind that place, whose gang may grow now; not gang `but`.

        The key of an entry has the gang as its `gang`.
        """
        found = (self._first_in(queue, now, behind, but) for queue in self._lines.keys() & queues)
        return min((one for one in found if one is not None), default=None)

    def _first_in(self, queue: str, now: float, behind: Order | None, but: GangKey | None) -> Order | None:
        most = self._ledger.room_to_grow(queue, now)
        if most is None:
            return None
        line = self._lines[queue]
        while (found := line.next_within(behind, most)) is not None:
            behind, gang = found[0], found[0].key.gang
            if gang != but and self._may_grow(gang, now):
                return behind
        return None

    def _may_grow(self, key: GangKey, now: float) -> bool:
        growth = self._known[key]
        return any(
            self._ledger.fits_more(
                *(key, growth.queue, claim, now),
                waits_as=growth.waits_as,
                replaces=growth.replaces,
                limited=growth.limited,
            )
            for claim, _ in growth.refused
        )


def _entries(growth: Growth) -> Iterator[tuple[Order, Amounts]]:
    """Its places in line, one for each claim, and what it needs there."""
    for number, (_, more) in enumerate(growth.refused):
        yield growth.order._replace(key=growth.order.key.auxiliary(f"growth {number}")), more
