"""Gangs that wait, in order, and a way to the next of them that needs no more than there is.

Thousands may wait, each for a little more or less than the others. They stand in blocks, and a block knows the least
that any of its gangs needs of each resource, and the most: where no gang of a block fits, it is passed over as one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.queueing.entries import Order
from muster.queueing.usage import Amounts

# Gangs of a block at most: to look at them one by one costs as much as to look at so many blocks, with 16,000 waiting.
_MOST = 128


class _Block:
    """Gangs that stand next to each other, and their needs; of an empty one nothing may be asked."""

    __slots__ = ("_least", "_most", "needs", "orders")

    def __init__(self, orders: list[Order], needs: list[Amounts]) -> None:
        self.orders = orders
        self.needs = needs
        self._least: Amounts | None = None
        self._most: Mapping[str, int] | None = None

    def copy(self) -> _Block:
        other = _Block(list(self.orders), list(self.needs))
        other._least, other._most = self._least, self._most
        return other

    def changed(self) -> None:
        self._least = self._most = None

    @property
    def least(self) -> Amounts:
        """The least that any of them needs of each resource that all of them need."""
        if self._least is None:
            self._least = _least_of(self.needs)
        return self._least

    @property
    def most(self) -> Mapping[str, int]:
        """The most that any of them needs of each resource."""
        if self._most is None:
            most: dict[str, int] = {}
            for need in self.needs:
                for name, amount in need:
                    if amount > most.get(name, 0):
                        most[name] = amount
            self._most = most
        return self._most


class WaitingLine:
    """The gangs, by their order, each with what it needs."""

    def __init__(self, entries: Iterable[tuple[Order, Amounts]] = ()) -> None:
        """With all of these in it, whatever their order."""
        there, half = sorted(entries), _MOST // 2
        parts = (there[at : at + half] for at in range(0, len(there), half))
        self._blocks = [_Block([order for order, _ in part], [need for _, need in part]) for part in parts]
        self._least: Amounts | None = None

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def copy(self) -> WaitingLine:
        """The same gangs, in a line of their own."""
        other = WaitingLine()
        other._blocks = [block.copy() for block in self._blocks]
        return other

    def __iter__(self) -> Iterator[Order]:
        for block in self._blocks:
            yield from block.orders

    def entries(self) -> Iterator[tuple[Order, Amounts]]:
        """All gangs in order, and what each needs."""
        for block in self._blocks:
            yield from zip(block.orders, block.needs, strict=True)

    @property
    def first(self) -> Order:
        """The first of them; there must be one."""
        return self._blocks[0].orders[0]

    @property
    def least(self) -> Amounts:
        """The least that any of them needs of each resource that all of them need; there must be one."""
        if self._least is None:
            self._least = _least_of([block.least for block in self._blocks])
        return self._least

    def before(self, order: Order) -> int:
        """How many stand before that place."""
        where = self._block_of(order)
        ahead = sum(len(block.orders) for block in self._blocks[:where])
        return ahead + (bisect_left(self._blocks[where].orders, order) if where < len(self._blocks) else 0)

    def add(self, order: Order, need: Amounts) -> None:
        """Put a gang at its place."""
        self._least = _least_of([self._least, need]) if self._least is not None and self._blocks else None
        if not self._blocks:
            self._blocks.append(_Block([order], [need]))
            return
        where = min(self._block_of(order), len(self._blocks) - 1)
        block = self._blocks[where]
        at = bisect_left(block.orders, order)
        block.orders.insert(at, order)
        block.needs.insert(at, need)
        block.changed()
        if len(block.orders) > _MOST:
            half = _MOST // 2
            self._blocks.insert(where + 1, _Block(block.orders[half:], block.needs[half:]))
            del block.orders[half:], block.needs[half:]

    def remove(self, order: Order) -> None:
        """Take out a gang that stands here."""
        self._least = None
        where = self._block_of(order)
        block = self._blocks[where]
        at = bisect_left(block.orders, order)
        del block.orders[at], block.needs[at]
        block.changed()
        if not block.orders:
            del self._blocks[where]

    def next_behind(self, place: Order | None) -> Order | None:
        """The first gang behind that place (None: at all), whatever it needs."""
        for block, begin in self._from(place):
            if begin < len(block.orders):
                return block.orders[begin]
        return None

    def next_within(
        self, after: Order | None, *options: Mapping[str, int], beyond: Sequence[Mapping[str, int]] | None = None
    ) -> tuple[Order, Amounts] | None:
        """The first gang behind that place which needs no more than one of these says of any resource that it names.

        With `beyond` it also needs more than one of those has of one of its resources.
        """
        for block, begin in self._from(after):
            open_ = [most for most in options if _within(block.least, most)]
            if not open_ or (beyond is not None and not _exceeds(block.most.items(), beyond)):
                continue
            for at in range(begin, len(block.orders)):
                need = block.needs[at]
                if any(_within(need, most) for most in open_) and (beyond is None or _exceeds(need, beyond)):
                    return block.orders[at], need
        return None

    def next_beyond(self, after: Order | None, free: Mapping[str, int]) -> Order | None:
        """The first gang behind that place which needs more than this of one of the resources that are named here."""
        for block, begin in self._from(after):
            if any(block.most.get(name, 0) > amount for name, amount in free.items()):
                for at in range(begin, len(block.orders)):
                    if any(name in free and amount > free[name] for name, amount in block.needs[at]):
                        return block.orders[at]
        return None

    def _from(self, after: Order | None) -> Iterator[tuple[_Block, int]]:
        """The blocks behind a place, and where in each they begin."""
        if after is None:
            where, begin = 0, 0
        else:
            where = self._block_of(after)
            begin = bisect_right(self._blocks[where].orders, after) if where < len(self._blocks) else 0
        for at in range(where, len(self._blocks)):
            yield self._blocks[at], begin
            begin = 0

    def _block_of(self, order: Order) -> int:
        """The first block that ends with this place or behind it."""
        return bisect_left(self._blocks, order, key=lambda block: block.orders[-1])


def _within(need: Amounts, most: Mapping[str, int]) -> bool:
    for name, amount in need:  # noqa: SIM110 - asked thousands of times, and a generator takes twice as long
        if amount > most.get(name, amount):
            return False
    return True


def _exceeds(needs: Iterable[tuple[str, int]], free: Sequence[Mapping[str, int]]) -> bool:
    """True if these need more of a resource than one of those has."""
    needs = tuple(needs)
    return any(amount > one.get(name, amount) for one in free for name, amount in needs)


def _least_of(needs: Sequence[Amounts]) -> Amounts:
    least = dict(needs[0])
    for need in needs:
        amounts = dict(need)
        least = {name: min(amount, amounts[name]) for name, amount in least.items() if name in amounts}
    return tuple(least.items())
