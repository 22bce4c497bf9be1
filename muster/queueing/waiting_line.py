"""Gangs that wait, in order, and a way to the next of them that needs no more than there is.

Thousands may wait, each for a little more or less than the others. They stand in blocks, and a block knows the least
that any of its gangs needs of each resource, and the most: where no gang of a block fits, it is passed over as one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muster.queueing.blocks import Block, Blocks
from muster.queueing.entries import Order
from muster.queueing.usage import Amounts


class _Needs(NamedTuple):
    """The needs of several gangs.

    :ivar least: The least that any of them needs of each resource that all of them need.
    :ivar most: The most that any of them needs of each resource.
    """

    least: Amounts
    most: Mapping[str, int]


class WaitingLine(Blocks[Order, Amounts, _Needs]):
    """The gangs, by their order, each with what it needs."""

    _least: Amounts | None = None

    def copy(self) -> WaitingLine:
        """The same gangs, in a line of their own."""
        other = WaitingLine()
        for block in self.blocks:
            other.blocks.append(Block(list(block.keys), list(block.values)))
            other.blocks[-1].summary = block.summary
        return other

    def summarize(self, values: Sequence[Amounts]) -> _Needs:
        """The least and the most of these needs."""
        by_name: dict[str, list[int]] = {}
        for need in values:
            for name, amount in need:
                by_name.setdefault(name, []).append(amount)
        least = tuple((name, min(all_)) for name, all_ in by_name.items() if len(all_) == len(values))
        return _Needs(least, {name: max(all_) for name, all_ in by_name.items()})

    def changed(self, where: int) -> None:
        """A block has changed."""
        super().changed(where)
        self._least = None

    @property
    def first(self) -> Order:
        """The first of them; there must be one."""
        return self.blocks[0].keys[0]

    @property
    def least(self) -> Amounts:
        """The least that any of them needs of each resource that all of them need; there must be one."""
        if self._least is None:
            self._least = self.summarize([self.summary(block).least for block in self.blocks]).least
        return self._least

    def before(self, order: Order) -> int:
        """How many stand before that place."""
        where = self.find(order)
        ahead = sum(len(block.keys) for block in self.blocks[:where])
        return ahead + (bisect_left(self.blocks[where].keys, order) if where < len(self.blocks) else 0)

    def next_behind(self, place: Order | None) -> Order | None:
        """The first gang behind that place (None: at all), whatever it needs."""
        return next((block.keys[begin] for block, begin in self.behind(place) if begin < len(block.keys)), None)

    def next_within(
        self, after: Order | None, *options: Mapping[str, int], beyond: Sequence[Mapping[str, int]] | None = None
    ) -> tuple[Order, Amounts] | None:
        """The first gang behind that place that needs no more than one of these allows of any resource that it names.

        With `beyond` it also needs more than one of those has of one of its resources.
        """
        for block, begin in self.behind(after):
            needs = self.summary(block)
            open_ = [most for most in options if _within(needs.least, most)]
            if not open_ or (beyond is not None and not _exceeds(needs.most.items(), beyond)):
                continue
            for at in range(begin, len(block.keys)):
                need = block.values[at]
                if any(_within(need, most) for most in open_) and (beyond is None or _exceeds(need, beyond)):
                    return block.keys[at], need
        return None


def _within(need: Amounts, most: Mapping[str, int]) -> bool:
    for name, amount in need:  # noqa: SIM110 - asked thousands of times, and a generator takes twice as long
        if amount > most.get(name, amount):
            return False
    return True


def _exceeds(needs: Iterable[tuple[str, int]], free: Sequence[Mapping[str, int]]) -> bool:
    """True if these need more of a resource than one of those has."""
    for name, amount in needs:
        for one in free:
            if amount > one.get(name, amount):
                return True
    return False
