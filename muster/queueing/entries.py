"""The entries of the ledger, values only: gangs that wait, the claims of gangs that hold, and how long each runs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import inf
from typing import NamedTuple, TypeAlias

from muster.queueing.queue_view import DRAINS, QueueView
from muster.queueing.usage import Amounts, amounts_of
from muster.resources.amounts import Resources, total


class GangKey(NamedTuple):
    """A gang, by the namespace and name of its PodGroup."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def part(self, name: str) -> PartKey:
        """The key of a second ledger entry of the gang."""
        return PartKey(self.namespace, self.name, name)

    @property
    def former(self) -> PartKey:
        """Pods of a former workload of the name, until they are gone."""
        return self.part("former")

    @property
    def bound(self) -> PartKey:
        """Pods that were bound to its PodGroup without muster."""
        return self.part("bound")

    @property
    def wave(self) -> PartKey:
        """Its next wave, which waits."""
        return self.part("wave")

    @property
    def leaving(self) -> PartKey:
        """Its terminating pods, as far as they hold more than its claim."""
        return self.part("leaving")

    @property
    def all(self) -> tuple[EntryKey, ...]:
        """The gang and its parts."""
        return self, self.former, self.bound, self.wave, self.leaving

    @property
    def gang(self) -> GangKey:
        """The gang itself."""
        return self


class PartKey(NamedTuple):
    """The key of a second ledger entry of a gang; no name of an object can spell it."""

    namespace: str
    name: str
    part: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.part})"

    @property
    def gang(self) -> GangKey:
        """The gang whose entry it is."""
        return GangKey(self.namespace, self.name)


EntryKey: TypeAlias = GangKey | PartKey
"""The key of a ledger entry; the two kinds are never equal, and sort together."""


class Order(NamedTuple):
    """The order of gangs: by priority (`urgency` is the negative of the PriorityClass's value), age, then name.

    `since` is the creation time of the gang's workload (RFC 3339, UTC).
    """

    urgency: int
    since: str
    key: EntryKey


class EndKind(IntEnum):
    """How sure the end of a gang is, the surest first."""

    ENFORCED = 0
    """Its operator ends it at its time limit."""
    SAID = 1
    """Its user says so, and nothing enforces it."""
    ABOUT = 2
    """An estimate, from former runs of its lineage."""


class Run(NamedTuple):
    """The run time of a gang: at most so many seconds from its start, or about so many."""

    seconds: float
    kind: EndKind
    former: tuple[float, ...] = ()
    """Of an estimate: the run times that it rests on, in order. It is their median."""

    @classmethod
    def about(cls, former: tuple[float, ...]) -> Run | None:
        """The estimate by run times in order; None without any."""
        return cls(_median(former), EndKind.ABOUT, former) if former else None

    def from_(self, start: float) -> End:
        """The end of a gang that starts then (seconds of the wall clock)."""
        return End(start, *self)


class End(NamedTuple):
    """The expected end of a gang that holds: its start (seconds of the wall clock), and its run time."""

    start: float
    seconds: float
    kind: EndKind
    former: tuple[float, ...] = ()

    def after(self, now: float) -> float:
        """The time at which it ends as far as is known at `now`; infinity for a limit that it has overrun.

        An estimate is the median of those former runs that took longer than this one has run. Beyond all of them it
        counts twice as long, as often as needed.
        """
        if longer := self._longer(now):
            return self.start + _median(longer)
        seconds = max((self.seconds, *self.former[-1:]))
        if self.start + seconds <= now and (self.kind is not EndKind.ABOUT or seconds <= 0):
            return inf
        # Compared as above: a quotient may round the other way, and the end would never be after `now`.
        while self.start + seconds <= now:
            seconds *= 2
        return self.start + seconds

    def holds_until(self, now: float) -> float:
        """The first time after `now` at which `after` gives another time; infinity for never."""
        longer = self._longer(now)
        return self.start + longer[0] if longer else self.after(now)

    def _longer(self, now: float) -> tuple[float, ...]:
        return self.former[bisect_right(self.former, now, key=lambda seconds: self.start + seconds) :]


def _median(ordered: Sequence[float]) -> float:
    """The median of numbers in order."""
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assembled gang that waits to start."""

    key: EntryKey
    """The gang."""
    queue: str
    """The queue in which it waits."""
    priority: int
    """The value of its PriorityClass."""
    since: str
    """The creation time of its workload (RFC 3339, UTC)."""
    need: Resources
    """The claim that it will have on its queue."""
    passed_since: float | None = None
    """The time of its first bypass by a smaller gang (seconds of the wall clock)."""
    drain_after: float | None = None
    """Seconds after that until its queue drains for it, if the queue sets no time; None for the default."""
    deadline: float | None = None
    """The time at which its workload gives up (seconds of the wall clock)."""
    begun: bool = False
    """True for the next wave of a gang that holds quota: it ignores reservations, because the gang ends after it."""
    lasts: bool = False
    """True if it does not end by itself."""
    follows: bool = False
    """True if it waits for the end of its own predecessor; it holds up no other gang."""
    limited: bool = False
    """True if its scheduler enforces the ElasticQuotas of its namespace."""
    preempts: bool = False
    """True if its scheduler evicts gangs of lower priority in its queue for it, if the queue allows that."""
    reclaims: bool = False
    """True if its scheduler takes room back for it from queues beyond their shares, if the root allows that."""
    run: Run | None = None
    """Its run time, once it has started; None where nothing is known."""

    @property
    def order(self) -> Order:
        """Its place among waiting gangs."""
        return Order(-self.priority, self.since, self.key)

    @property
    def amounts(self) -> Amounts:
        """Its need in billionths."""
        return amounts_of(self.need)

    def drains(self, queue: QueueView) -> float:
        """The time from which its queue drains for it once it was passed; 0 where estimates are never trusted there."""
        if not queue.trusts_estimates:
            return 0.0
        after = self.drain_after if queue.drain_after is None else queue.drain_after
        return (self.passed_since or 0.0) + (DRAINS if after is None else after)

    def end(self, now: float) -> End | None:
        """Its end if it starts now."""
        return self.run.from_(now) if self.run is not None else None

    def claim(self, now: float) -> Claim:
        """Its claim if it starts now."""
        return Claim(self.key, self.queue, self.need, self.priority, self.since, lasts=self.lasts, end=self.end(now))


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of an admitted gang (see `muster.queueing.unplaced_claims` for soft claims)."""

    key: EntryKey
    """The gang."""
    queue: str
    """The queue in which it holds."""
    resources: Resources
    """The resources that it holds."""
    priority: int = 0
    """The value of its PriorityClass."""
    since: str = ""
    """The creation time of its workload (RFC 3339, UTC)."""
    soft: Resources = field(default_factory=dict)
    """The part for which its pods have found no node."""
    idle: bool = False
    """True if none of its pods is open, and its next wave waits for room."""
    lasts: bool = False
    """True if it does not end by itself."""
    spare: Resources = field(default_factory=dict)
    """The part that its scheduler may take back while it runs on."""
    kept: bool = False
    """True if its scheduler evicts none of it for a gang of higher priority yet, because some of it is too young."""
    running: Resources | None = None
    """The part that really runs, on nodes that exist; None for all of it."""
    asked: Resources = field(default_factory=dict)
    """Further resources that it asks for: they count only as far as its queue has them free."""
    end: End | None = None
    """Its expected end; None where nothing is known."""
    amounts: Amounts = field(init=False, compare=False)
    """`resources` in billionths."""
    soft_amounts: Amounts = field(init=False, compare=False)
    """`soft` in billionths."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "amounts", amounts_of(self.resources))
        object.__setattr__(self, "soft_amounts", amounts_of(self.soft))

    @property
    def order(self) -> Order:
        """Its place among gangs."""
        return Order(-self.priority, self.since, self.key)

    @property
    def whole(self) -> Resources:
        """The resources that it holds, and those that it asks for."""
        return total((self.resources, self.asked)) if self.asked else self.resources

    @property
    def running_amounts(self) -> Amounts:
        """The part that really runs, in billionths."""
        return self.amounts if self.running is None else amounts_of(self.running)


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth that a gang wants and was refused, as an entry of its own in the order of gangs."""

    key: GangKey
    """The gang."""
    queue: str
    """The queue of its claim."""
    priority: int = 0
    """The value of its PriorityClass."""
    since: str = ""
    """The creation time of its workload (RFC 3339, UTC)."""
    limited: bool = False
    """True if its scheduler enforces the ElasticQuotas of its namespace."""
    refused: tuple[tuple[Resources, Amounts], ...] = ()
    """The claims to which it may not grow, and what each is more than it holds, in billionths."""

    def places(self) -> Iterator[tuple[Order, Amounts]]:
        """Its places in line, one for each claim, and what it needs there."""
        for number, (_, more) in enumerate(self.refused):
            yield Order(-self.priority, self.since, self.key.part(f"growth {number}")), more
