"""Soft claims: quota that admitted gangs hold and cannot use, because their pods have found no node for too long.

Other gangs may be admitted past a soft claim. When nodes come after all, both are placed, as far as the scheduler
enforces the queue's limit itself. It does so for the gang's own queue; for the queues above that is not known, and
nodes have no limit to enforce: there a soft part counts like any other. A gang between two waves has no open pod that
could be placed behind muster's back, and is soft in all queues but a root that is bound by nodes. One that has lost all
its pods is not: they come again, and are opened at once.

The soft claims of a queue never sum to more than its limit: next to what runs there at most one more queue-full is
opened, however long nodes take to come. In the order of gangs each claim is soft that stays within what is left of the
limits; the others are hard, and their soft parts count like the rest of them.

Where a soft part counts, it counts as what does not end by itself, also that of a Job: pods without a node never end.
So no gang is held up for one that waits for them to end.

`SoftClaims` keeps which are hard. Where the sum of all soft parts exceeds no limit none is, and none needs to be
looked at. Below a queue whose limit is exceeded an answer holds until a claim with a
soft part enters, leaves or changes below that queue, until other limits are exceeded, or until the tree changes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from muster.queueing.entries import Claim, EntryKey
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT
from muster.queueing.usage import Amounts, Usage, signed

_ORDER = attrgetter("order")
_Sums = dict[str, dict[str, int]]
"""By queue and resource, in billionths."""


def soft_in(tree: QueueTree, claim: Claim) -> tuple[str, ...]:
    """The queues in which the soft part of a claim need not count."""
    return soft_where(tree, claim.queue, idle=claim.idle) if claim.soft_amounts else ()


def soft_where(tree: QueueTree, queue: str, *, idle: bool) -> tuple[str, ...]:
    """The queues in which soft parts of claims held in a queue need not count; `idle` as the claims are."""
    path = tree.gang_path(queue)
    return tuple(one for one in path if one != ROOT or not tree.nodes is not None) if idle else path[:1]


def lasting_part(amounts: Amounts, soft: Amounts, *, idle: bool, lasts: bool) -> Amounts:
    """The part of a claim that does not end by itself: of a Job its soft part, unless it is between two waves."""
    if lasts:
        return amounts
    return () if idle else soft


@dataclass(slots=True, eq=False)
class CountedUnplaced:
    """The `gangs` below one queue whose soft parts count all the same, and the sums of these parts.

    `taken` is by the queue in which claims are held, whether they are idle, and whether they last.
    """

    gangs: set[EntryKey] = field(default_factory=set)
    taken: dict[tuple[str, bool, bool], dict[str, int]] = field(default_factory=dict)


def is_soft(hard: Mapping[str, CountedUnplaced], claim: Claim) -> bool:
    """True if a claim has a soft part that does not count; `hard` are the hard parts by queue."""
    parts = hard.get(claim.queue)
    return bool(claim.soft_amounts) and (parts is None or claim.key not in parts.gangs)


def count_unplaced(tree: QueueTree, hard: Mapping[str, CountedUnplaced], usage: Usage, lasting: Usage) -> None:
    """Add the soft parts that count all the same to the usage, which leaves all soft parts out.

    `lasting` is the usage of the claims that do not end by themselves.
    """
    for parts in dict.fromkeys(hard.values()):
        for (queue, idle, lasts), amounts in parts.taken.items():
            soft = tuple(amounts.items())
            for taking, more in ((usage, soft), (lasting, lasting_part(soft, soft, idle=idle, lasts=lasts))):
                # Where a soft part counts already it counts once.
                less = signed(more, -1)
                taking.take(queue, more, above=() if idle else less, running=())
                if idle and tree.nodes is not None:
                    taking.take_in((ROOT,), less)


class SoftClaims:
    """All claims that have a soft part, in order; the sums of these parts; and which of the claims are hard."""

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._claims: list[Claim] = []
        self._sums: _Sums = {}
        # Queues whose own claims have changed since the last question.
        self._changed: set[str] = set()
        # What follows from the rest: the limits that are exceeded, by queue and resource, and what is hard below these
        # queues; by the highest of them, which `_tops` has for each queue that was asked for.
        self._exceeded: _Sums = {}
        self._tops: dict[str, str | None] = {}
        self._hard: dict[str, CountedUnplaced] = {}
        self._revision = tree.revision

    def copy(self, tree: QueueTree) -> SoftClaims:
        """The same claims, to be changed by themselves."""
        other = SoftClaims(tree)
        other._claims, other._changed = list(self._claims), {claim.queue for claim in self._claims}
        other._sums = {queue: dict(sums) for queue, sums in self._sums.items()}
        return other

    # --- what is soft -------------------------------------------------------------------------------------------------

    def enter(self, claim: Claim, sign: int = 1) -> None:
        """Line up a claim that has a soft part, or with the sign -1 take it out; its sums are `take`n."""
        if sign > 0:
            insort(self._claims, claim, key=_ORDER)
        else:
            del self._claims[bisect_left(self._claims, claim.order, key=_ORDER)]

    def take(self, queue: str, where: Iterable[str], amounts: Amounts) -> None:
        """Add to the sums what is soft in these queues of claims that a queue has, or below zero take it out."""
        for one in where:
            sums = self._sums.setdefault(one, {})
            for name, amount in amounts:
                sums[name] = sums.get(name, 0) + amount
                if not sums[name]:
                    del sums[name]
            if not sums:
                # Queues come and go.
                del self._sums[one]
        self._changed.add(queue)

    # --- what is hard -------------------------------------------------------------------------------------------------

    def hard(self, queues: Collection[str]) -> dict[str, CountedUnplaced]:
        """The hard parts of claims in these queues, by queue; of one that is not named all soft parts are soft.

        Those that compete for the same limit have the same object, which is as it is until something changes.
        """
        self._invalidate()
        if not self._exceeded:
            return {}
        tops = {queue: top for queue in queues if (top := self._top(queue)) is not None}
        if not self._hard.keys() >= set(tops.values()):
            self._classify()
        return {queue: self._hard[top] for queue, top in tops.items()}

    @property
    def exceed(self) -> bool:
        """True if anywhere more is soft than a limit allows, so that some of it counts all the same."""
        self._invalidate()
        return bool(self._exceeded)

    def _invalidate(self) -> None:
        """Forget what does not hold any more."""
        same_tree = self._revision == self._tree.revision
        if same_tree and not self._changed:
            return
        if same_tree:
            exceeded = dict(self._exceeded)
            for one in {one for queue in self._changed for one in self._tree.gang_path(queue)}:
                exceeded.pop(one, None)
                exceeded.update(self._exceeded_of(one))
        else:
            exceeded = {name: over for one in self._sums for name, over in self._exceeded_of(one).items()}
        if not same_tree or exceeded != self._exceeded:
            self._revision, self._exceeded = self._tree.revision, exceeded
            self._tops, self._hard = {}, {}
        for queue in self._changed:
            self._hard.pop(self._top(queue) or "", None)
        self._changed.clear()

    def _exceeded_of(self, queue: str) -> _Sums:
        sums = self._sums.get(queue)
        limit = self._tree.ceiling(queue) if sums else {}
        over = {name: limit[name] for name, amount in (sums or {}).items() if name in limit and amount > limit[name]}
        return {queue: over} if over else {}

    def _top(self, queue: str) -> str | None:
        """The highest queue on the path whose limit is exceeded; None where none is."""
        if queue not in self._tops:
            path = self._tree.gang_path(queue)
            top = next((one for one in reversed(path) if one in self._exceeded), None)
            if top is not None:
                # In a ring each is above the others: one stands for all.
                top = min(one for one in self._tree.path(top) if one in self._exceeded)
            self._tops[queue] = top
        return self._tops[queue]

    def _classify(self) -> None:
        """Find which claims are hard wherever that is not known, in one walk.

        Limits that all soft parts together do not exceed need no look: no amount is below zero.
        """
        tops = (self._top(one) for one in self._exceeded)
        new = {top: CountedUnplaced() for top in tops if top is not None and top not in self._hard}
        left = {one: dict(limit) for one, limit in self._exceeded.items()}
        # By queue and `idle`: thousands of claims have the same.
        places: dict[tuple[str, bool], tuple[CountedUnplaced | None, list[dict[str, int]]]] = {}
        for claim in self._claims:
            place = claim.queue, claim.idle
            if place not in places:
                parts = new.get(self._top(claim.queue) or "")
                where = soft_in(self._tree, claim) if parts is not None else ()
                places[place] = parts, [left[one] for one in where if one in left]
            parts, rooms = places[place]
            if parts is not None and not _taken(rooms, claim.soft_amounts):
                parts.gangs.add(claim.key)
                sums = parts.taken.setdefault((*place, claim.lasts), {})
                for name, amount in claim.soft_amounts:
                    sums[name] = sums.get(name, 0) + amount
        self._hard.update(new)


def _taken(rooms: Iterable[dict[str, int]], amounts: Amounts) -> bool:
    """True if each of these has so much left; then it is taken."""
    for room in rooms:
        for name, amount in amounts:
            if name in room and amount > room[name]:
                return False
    for room in rooms:
        for name, amount in amounts:
            if name in room:
                room[name] -= amount
    return True
