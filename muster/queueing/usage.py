"""How much of every queue is taken, queue by queue up the tree, in plain integers: the arithmetic of the ledger.

Kept apart from quantities because it is done for every gang that waits: comparing integers costs a twentieth of
comparing `Quantity` (hack/bench/ledger.py).
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from muster.resources.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from muster.queueing.queue_tree import QueueTree
    from muster.resources.amounts import Resources

__all__ = ["Amounts", "Usage", "amounts_of"]

Amounts = tuple[tuple[str, int], ...]
"""Resources and billionths of their units, by name; nothing that is zero."""


def amounts_of(resources: Resources) -> Amounts:
    """The amounts as integers."""
    return _shared(tuple(sorted((name, amount.nano) for name, amount in resources.items() if amount.nano)))


@lru_cache(maxsize=1024)
def _shared(amounts: Amounts) -> Amounts:
    """The same, as one object for all gangs that need as much: many do, and there are tens of thousands of them."""
    return amounts


class Usage:
    """What is taken of the queues of a tree, as it stands; whoever changes the tree makes a new one."""

    def __init__(self, tree: QueueTree, base: Usage | None = None) -> None:
        self._tree = tree
        self._used: dict[str, dict[str, int]] = {}
        # A copy shares what it has not changed.
        self._base = base

    def copy(self) -> Usage:
        """The same room, to be taken without taking it here; valid until something is taken or given back here."""
        return Usage(self._tree, self)

    def take(self, queue: str, amounts: Amounts) -> None:
        """Take room for gangs of a queue: of that and of all above it."""
        self.take_in(self._tree.gang_path(queue), amounts)

    def take_in(self, queues: Iterable[str], amounts: Collection[tuple[str, int]]) -> None:
        """Take room of these queues alone."""
        for one in queues:
            used = self._own(one)
            for name, amount in amounts:
                used[name] = used.get(name, 0) + amount

    def empty(self, queue: str) -> None:
        """Nothing is taken of this queue; of those above it as much as before."""
        self._used.pop(queue, None)

    def lacking(
        self,
        queues: Iterable[str],
        amounts: Amounts,
        left_out: Amounts = (),
        kept: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    ) -> dict[str, list[str]]:
        """The resources of these amounts for which there is no room, by queue.

        `left_out` counts as free, and `kept` of each queue as taken. What is not asked for is not looked at.
        """
        lacking = {}
        spared = dict(left_out)
        for one in queues:
            limit = self._tree.ceiling(one)
            if limit:
                used, more = self.taken(one), kept.get(one, {})
                names = [
                    name
                    for name, amount in amounts
                    if name in limit
                    and used.get(name, 0) + more.get(name, 0) + amount - spared.get(name, 0) > limit[name]
                ]
                if names:
                    lacking[one] = names
        return lacking

    def free(self, queue: str, names: Iterable[str]) -> dict[str, int]:
        """What a queue has free of these resources, as far as it limits them."""
        limit, used = self._tree.ceiling(queue), self.taken(queue)
        return {name: limit[name] - used.get(name, 0) for name in names if name in limit}

    def taken(self, queue: str) -> Mapping[str, int]:
        """What is taken of a queue, in billionths."""
        used = self._used.get(queue)
        if used is None:
            return self._base.taken(queue) if self._base else {}
        return used

    def used(self, queue: str, like: Resources) -> dict[str, Quantity]:
        """What is taken of a queue, of the resources of `like` and in its formats."""
        used = self.taken(queue)
        return {name: Quantity(used.get(name, 0), amount.format) for name, amount in like.items()}

    def _own(self, queue: str) -> dict[str, int]:
        if queue not in self._used:
            self._used[queue] = dict(self.taken(queue))
        return self._used[queue]
