"""What the ledger keeps for one queue: the claims that it holds, and the gangs that wait, in order."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from muster.queueing.usage import Amounts, amounts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.queueing.usage import Usage
    from muster.resources.amounts import Resources

__all__ = ["Candidate", "Claim", "ClassKey", "EquivalenceClass", "Full", "GangKey", "Order", "QueueState"]

# Moments of candidates that have gone or changed stay in their heap until there are so many.
_STALE = 64


class GangKey(NamedTuple):
    """A gang, by the namespace and name of its PodGroup."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def auxiliary(self, what: str) -> GangKey:
        """The key under which the ledger keeps a second entry of the gang; no PodGroup has such a name."""
        return self._replace(name=f"{self.name} ({what})")

    @property
    def gang(self) -> GangKey:
        """The gang itself, of the key of a second entry."""
        return self._replace(name=self.name.partition(" ")[0])


class Order(NamedTuple):
    """The order of gangs: by priority (`urgency` is the negative of the PriorityClass's value), age, then name.

    `since` is the creation time of the gang's workload (RFC 3339, UTC).
    """

    urgency: int
    since: str
    key: GangKey


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assembled gang that wants to start."""

    key: GangKey
    """The gang."""
    queue: str
    """The queue in which it waits."""
    priority: int
    """The value of its PriorityClass."""
    since: str
    """The creation time of its workload (RFC 3339, UTC)."""
    need: Resources
    """What it will hold of its queue."""
    passed_since: float | None = None
    """When a smaller gang first passed it (seconds of the wall clock)."""
    deadline: float | None = None
    """When its workload gives up (seconds of the wall clock)."""
    begun: bool = False
    """Whether it is the rest of a gang that holds quota: it ignores reservations, for it gives back when it has run."""
    lasts: bool = False
    """Whether it does not end by itself."""
    follows: bool = False
    """Whether it waits for the end of its own predecessor; it holds up no other gang."""

    @property
    def order(self) -> Order:
        """Its place among waiting gangs."""
        return Order(-self.priority, self.since, self.key)


@dataclass(frozen=True, slots=True)
class Claim:
    """What an admitted gang holds (see `muster.queueing.unplaced_claims` for soft claims)."""

    resources: Resources
    """What it holds."""
    amounts: Amounts
    """The same in billionths."""
    order: Order
    """Its place in the order of gangs."""
    soft: Resources = field(default_factory=dict)
    """The part for which its pods have found no node."""
    soft_amounts: Amounts = ()
    """The same in billionths."""
    idle: bool = False
    """Whether none of its pods is open."""
    lasts: bool = False
    """Whether it does not end by itself."""


ClassKey = tuple[Amounts, bool, bool]
"""The class of a candidate: what it needs, whether it has been passed, and whether its gang has begun."""


class Full(NamedTuple):
    """A queue that lacked quota beside current claims, and how often quota had been given back there by then."""

    usage: Usage
    queue: str
    times: int

    def still(self, usage: Usage) -> bool:
        """Whether nothing has been given back since."""
        return self.usage is usage and usage.times_given_back(self.queue) == self.times


@dataclass(slots=True)
class EquivalenceClass:
    """The gangs that wait in one queue for the same amounts, in order: where one does not fit, none behind it does.

    Gangs that have been passed are a class of their own, for their patience may end. `full` is the queue that lacked
    quota for one of them at the last look.
    """

    amounts: Amounts
    orders: list[Order] = field(default_factory=list)
    full: Full | None = None

    def before(self, order: Order) -> int:
        """How many stand before that place."""
        return bisect_left(self.orders, order)


class QueueState:
    """The claims and the waiting gangs of one queue; `soft` are the claims that have a soft part.

    `moments` are times at which what holds for a candidate may change without anybody's doing, the soonest first; among
    them are some of candidates that have changed since.
    """

    def __init__(self) -> None:
        self.held: dict[GangKey, Claim] = {}
        self.soft: dict[GangKey, Claim] = {}
        self.classes: dict[ClassKey, EquivalenceClass] = {}
        self.moments: list[float] = []
        self._candidates: dict[GangKey, Candidate] = {}

    def __bool__(self) -> bool:
        return bool(self.held or self.classes)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._candidates)

    def hold(self, key: GangKey, claim: Claim) -> None:
        """Write down a claim, in the place of another one of the gang."""
        self.held[key] = claim
        if claim.soft_amounts:
            self.soft[key] = claim
        else:
            self.soft.pop(key, None)

    def let_go(self, key: GangKey) -> Claim | None:
        """Take a claim out, where there is one."""
        self.soft.pop(key, None)
        return self.held.pop(key, None)

    def candidate(self, key: GangKey) -> Candidate | None:
        """The gang as one that waits here."""
        return self._candidates.get(key)

    def waits(self, key: GangKey) -> Candidate:
        """The candidate of a gang that waits here."""
        return self._candidates[key]

    def in_order(self) -> Iterator[Order]:
        """All who wait, first in order first."""
        return heapq.merge(*(peers.orders for peers in self.classes.values()))

    def before(self, order: Order) -> int:
        """How many wait before that place."""
        return sum(peers.before(order) for peers in self.classes.values())

    def line_up(self, candidate: Candidate, patience: float) -> None:
        """Put a gang that is not here at its place in its line; `patience` is the queue's, in seconds."""
        where = _line_of(candidate)
        peers = self.classes.setdefault(where, EquivalenceClass(where[0]))
        insort(peers.orders, candidate.order)
        self._candidates[candidate.key] = candidate
        for moment in _moments(candidate, patience):
            heapq.heappush(self.moments, moment)
        if len(self.moments) > _STALE + 2 * self.waiting:
            self.set_moments(patience)

    def leave(self, key: GangKey) -> None:
        """Take a gang that waits here out of its line."""
        candidate = self._candidates.pop(key)
        where = _line_of(candidate)
        peers = self.classes[where]
        del peers.orders[peers.before(candidate.order)]
        if not peers.orders:
            del self.classes[where]

    def forget_what_is_full(self) -> None:
        """Forget which classes found no room: the limits have changed."""
        for peers in self.classes.values():
            peers.full = None

    def set_moments(self, patience: float) -> None:
        """Recompute the moments, for a queue of this patience."""
        self.moments = sorted(
            moment for candidate in self._candidates.values() for moment in _moments(candidate, patience)
        )

    def next_moment(self, now: float) -> float:
        """The first moment after `now`, infinity where none is known; those that have come are dropped."""
        while self.moments and self.moments[0] <= now:
            heapq.heappop(self.moments)
        return self.moments[0] if self.moments else float("inf")


def _line_of(candidate: Candidate) -> ClassKey:
    return amounts_of(candidate.need), candidate.passed_since is not None, candidate.begun


def _moments(candidate: Candidate, patience: float) -> Iterator[float]:
    if candidate.passed_since is not None:
        yield candidate.passed_since + patience
    if candidate.deadline is not None:
        yield candidate.deadline
