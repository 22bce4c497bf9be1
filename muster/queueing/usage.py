"""How much of every queue is taken, queue by queue up the tree, in plain integers: the arithmetic of the ledger.

Kept apart from quantities because it is done for every gang that waits: comparing integers costs a twentieth of
comparing `Quantity`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from muster.queueing.queue_tree import QueueTree
from muster.resources.amounts import Resources
from muster.resources.quantity import Quantity

RUN = "(run time)"
"""Stands for the seconds of a run among amounts that are compared as one; no resource has such a name."""

_NAMESPACE = "namespace "
Amounts = tuple[tuple[str, int], ...]
"""Resources and billionths of their units, by name; nothing that is zero."""


def amounts_of(resources: Resources) -> Amounts:
    """The amounts as integers."""
    return _shared(tuple(sorted((name, amount.nano) for name, amount in resources.items() if amount.nano)))


@lru_cache(maxsize=1024)
def _shared(amounts: Amounts) -> Amounts:
    """The same, as one object for all gangs that need as much: many do, and there are tens of thousands of them."""
    return amounts


def plus(first: Mapping[str, int], second: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The sum of amounts, by resource."""
    sums = dict(first)
    for name, amount in second:
        sums[name] = sums.get(name, 0) + amount
    return sums


def signed(amounts: Iterable[tuple[str, int]], sign: int) -> Amounts:
    """The amounts, or with the sign -1 as much below zero."""
    return tuple((name, sign * amount) for name, amount in amounts)


def clamp(most: dict[str, int], other: Mapping[str, int]) -> None:
    """Lower each resource to the amount in `other`, if that is less."""
    for name, amount in other.items():
        if name not in most or amount < most[name]:
            most[name] = amount


def namespace_level(namespace: str = "") -> str:
    """The level of one namespace, or of all that have an ElasticQuota (""); no queue has such a name."""
    return f"{_NAMESPACE}{namespace}"


class _Row:
    """The usage of one queue, by resource in billionths.

    :ivar used: What is taken of the queue.
    :ivar above: What counts in the queues above and not in this one: soft parts of claims.
    :ivar running: What really runs of all that.
    :ivar excess: What the queue does not hand up, because it is beyond its limit and does not run.
    """

    __slots__ = ("above", "excess", "running", "used")

    def __init__(self, like: _Row | None = None) -> None:
        self.used: dict[str, int] = dict(like.used) if like else {}
        self.above: dict[str, int] = dict(like.above) if like else {}
        self.running: dict[str, int] = dict(like.running) if like else {}
        self.excess: dict[str, int] = dict(like.excess) if like else {}

    def beyond(self, name: str, limit: Mapping[str, int]) -> int:
        """The amount of a resource above both the limit and the running usage; 0 for a resource without a limit."""
        if name not in limit:
            return 0
        whole = self.used.get(name, 0) + self.above.get(name, 0)
        return max(whole - limit[name] - self.running.get(name, 0), 0)


class Usage:
    """The usage of each level: of the queues of a tree, as it stands, and of namespaces.

    A queue hands up to its parent at most its limit and what really runs of it: claims that are never placed
    take nothing from others. Where only limits have changed, `settle` has that count.
    """

    def __init__(self, tree: QueueTree, base: Usage | None = None) -> None:
        self._tree = tree
        self._rows: dict[str, _Row] = {}
        # A copy shares what it has not changed.
        self._base = base

    def copy(self) -> Usage:
        """The same room, to be taken without taking it here; valid until something is taken or given back here."""
        return Usage(self._tree, self)

    def apart(self, tree: QueueTree) -> Usage:
        """The same usage of a copy of the tree, whatever is taken or given back here later."""
        other = Usage(tree)
        other._rows = {queue: _Row(row) for queue, row in self._rows.items()}
        return other

    def take(self, queue: str, amounts: Amounts, *, above: Amounts = (), running: Amounts | None = None) -> bool:
        """Take room for gangs of a queue: of that, and of those above as much more as is handed up by that.

        `above` counts above alone, `running` of all of it runs (None: all that is taken). True where a queue hands up
        less than there is of it, or did before.
        """
        return self._take(self._tree.gang_path(queue), amounts, above, amounts if running is None else running)

    def holds_back(self, queue: str) -> bool:
        """True if the queue, or one above it, hands up less than there is of it."""
        rows = map(self._row, self._tree.gang_path(queue))
        return any(row is not None and row.excess for row in rows)

    def settle(self) -> None:
        """Hand up the usage of each queue again, by the current limits."""
        for one, row in list(self._rows.items()):
            limit = {} if one.startswith(_NAMESPACE) else self._tree.hands_up(one)
            now = {name: beyond for name in limit if (beyond := row.beyond(name, limit))}
            if now != row.excess:
                self._take(self._tree.path(one), tuple((name, 0) for name in {*now, *row.excess}))

    def _take(self, path: Iterable[str], amounts: Amounts, above: Amounts = (), running: Amounts = ()) -> bool:
        more, held_back = amounts, False
        for one in path:
            row, limit = self._own(one), self._tree.hands_up(one)
            for sums, changes in ((row.used, more), (row.above, above), (row.running, running)):
                for name, amount in changes:
                    sums[name] = sums.get(name, 0) + amount
            more = (*more, *above) if above else more
            for name in {name for name, _ in (*more, *running)} if limit or row.excess else ():
                before, now = row.excess.get(name, 0), row.beyond(name, limit)
                if before or now:
                    held_back = True
                    row.excess[name] = now
                    more = (*more, (name, before - now))
                    if not now:
                        del row.excess[name]
            above = ()
        return held_back

    def take_in(self, queues: Iterable[str], amounts: Collection[tuple[str, int]]) -> None:
        """Take room of these queues alone; they do not hand it up."""
        for one in queues:
            used = self._own(one).used
            for name, amount in amounts:
                used[name] = used.get(name, 0) + amount

    def empty(self, queue: str) -> None:
        """Nothing is taken of this queue; of those above it as much as before."""
        self._rows.pop(queue, None)

    def lacking(self, queues: Iterable[str], amounts: Amounts, left_out: Amounts = ()) -> dict[str, list[str]]:
        """The resources of these amounts for which there is no room, by queue; `left_out` counts as free."""
        lacking = {}
        spared = dict(left_out)
        for one in queues:
            limit = self._tree.ceiling(one)
            if limit:
                used = self.taken(one)
                names = [
                    name
                    for name, amount in amounts
                    if name in limit and used.get(name, 0) + amount - spared.get(name, 0) > limit[name]
                ]
                if names:
                    lacking[one] = names
        return lacking

    def free(self, queue: str, names: Iterable[str]) -> dict[str, int]:
        """The free amounts of a queue, of those of these resources that it limits."""
        limit, used = self._tree.ceiling(queue), self.taken(queue)
        return {name: limit[name] - used.get(name, 0) for name in names if name in limit}

    def taken(self, queue: str) -> Mapping[str, int]:
        """The usage of a queue, in billionths."""
        row = self._row(queue)
        return {} if row is None else row.used

    def used(self, queue: str, like: Resources) -> dict[str, Quantity]:
        """The usage of a queue, of the resources of `like` and in its formats."""
        used = self.taken(queue)
        return {name: Quantity(used.get(name, 0), amount.format) for name, amount in like.items()}

    def _row(self, queue: str) -> _Row | None:
        row = self._rows.get(queue)
        return self._base._row(queue) if row is None and self._base else row  # noqa: SLF001 - one of its kind

    def _own(self, queue: str) -> _Row:
        row = self._rows.get(queue)
        if row is None:
            row = self._rows[queue] = _Row(self._row(queue))
        return row
