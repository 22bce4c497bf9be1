"""Who is passed when a gang starts or grows: those before it, whom nobody has passed yet, that wait for what it takes.

Of those who lack it in the same queue the first in order is passed, for only the first can have a reservation there.
The next one is passed by the next start: to note thousands at one would be thousands of writes.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from muster.queueing.queue_state import GangKey, Order
    from muster.queueing.waiting_line import WaitingLine

__all__ = ["Bypassed"]


class Bypassed:
    """Those who lack, at one queue, what gangs take there; as long as one admission pass holds."""

    def __init__(
        self, lines: Iterable[WaitingLine], free: Mapping[str, int], may_be_passed: Callable[[GangKey], bool]
    ) -> None:
        """`lines` are of those below the queue whom nobody has passed, `free` is what it has of what is taken."""
        self._lines = list(lines)
        self._free = free
        self._may_be_passed = may_be_passed
        # The first of a line may lack nothing; of the others that was found out.
        self._heads = [(line.first, number, False) for number, line in enumerate(self._lines)]
        heapq.heapify(self._heads)

    def first(self, own: Order | None) -> Order | None:
        """The first of them, if it stands before this place (None: any)."""
        while self._heads:
            order, _, lacks = self._heads[0]
            if own is not None and order >= own:
                return None
            if lacks and self._may_be_passed(order.key):
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
