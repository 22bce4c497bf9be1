"""Reservations: room that is kept for a gang that others have passed for longer than its queue's patience.

A reservation has a start, the first time at which the gang fits at every level of the tree when claims end as they are
expected to. A gang behind it starts if it has ended by then, or if it takes only what is spare: what is free at that
time and the gang leaves. So no start behind a reservation moves it, and nothing stands idle that could be used till
then.

How sure the start is depends on the ends that it rests on. A gang passes by its end only where that is as sure. Where
estimates are trusted and the start rests on them, or is not known, gangs without a known end pass as well; where
they are not trusted (by the queue's settings, or after its `drain-after`), a start that is not known is never: only
what is spare now may be taken, at the levels up to the lowest one that is short, and the queue drains.

There is one reservation for each level that is short: that of the first gang in order. A strict queue is a reservation
with nothing spare, and no end helps to pass it. An ElasticQuota is one more level.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from muster.queueing.entries import End, EndKind, Order
from muster.queueing.usage import Amounts


@dataclass(slots=True, eq=False)
class Reservation:
    """The reservation of one gang."""

    order: Order
    """Its place in the order of gangs."""
    short: str
    """The lowest level that has no room for it; "" where only its namespace has none."""
    names: tuple[str, ...] = ()
    """The resources that are short there."""
    start: float = inf
    """The time at which it fits (seconds of the wall clock); infinity where that is not known."""
    kind: EndKind = EndKind.SAID
    """How sure the start is; where it is not known, which ends were trusted."""
    spare: dict[str, dict[str, int]] = field(default_factory=dict)
    """By level, what gangs behind it may take of the resources that it needs, in billionths."""
    namespace: str = ""
    """Its namespace, where that is one of its levels; else ""."""
    kept: dict[str, int] = field(default_factory=dict)
    """The amounts used in its namespace for gangs behind it: its need, less the claims that end by its start."""
    nothing_passes: bool = False
    """True if it stands in a strict queue: nothing is spare, and no end is early enough."""

    @property
    def known(self) -> bool:
        """True if it has a start, or a queue drains for it."""
        return self.start < inf or self.kind is not EndKind.ABOUT

    @property
    def basis(self) -> str | None:
        """The basis of its start: `enforced`, `said` or `about`; None where no start is known."""
        return self.kind.name.lower() if self.start < inf else None

    def passed_in_time(self, end: End | None) -> bool:
        """True if a gang with this end may be passed off as ended when the reservation starts."""
        if end is None:
            return self.latest(None) == inf
        return end.start + end.seconds <= self.latest(end.kind)

    def latest(self, kind: EndKind | None) -> float:
        """The time by which a gang with an end of this kind must have ended to pass; -infinity where it may not so."""
        if self.nothing_passes:
            return -inf
        if self.kind is EndKind.ABOUT and (kind is None or self.start == inf):
            return inf
        return self.start if kind is not None and kind <= self.kind and self.start < inf else -inf

    def lacking(
        self, path: Iterable[str], amounts: Amounts, more: Mapping[str, Mapping[str, int]]
    ) -> dict[str, list[str]]:
        """The resources that lack spare room, by level of a path; `more` counts as spare there, by level."""
        lacking = {}
        for level in path:
            spare = self.spare.get(level)
            if spare:
                extra = more.get(level, {})
                names = [
                    name for name, amount in amounts if name in spare and amount > spare[name] + extra.get(name, 0)
                ]
                if names:
                    lacking[level] = names
        return lacking

    def take(self, path: Iterable[str], amounts: Amounts) -> None:
        """A gang behind it has started with what was spare."""
        for spare in (self.spare[level] for level in path if level in self.spare):
            for name, amount in amounts:
                if name in spare:
                    spare[name] -= amount


@dataclass(slots=True)
class Reservations:
    """The reservations of one admission pass, in the order in which they were made."""

    made: list[Reservation] = field(default_factory=list)
    by_level: dict[str, Reservation] = field(default_factory=dict)
    """The reservation of the first gang that is short there."""
    by_namespace: dict[str, Reservation] = field(default_factory=dict)
    strict: dict[str, Reservation] = field(default_factory=dict)
    """By strict queue."""

    def add(self, reservation: Reservation) -> None:
        """Keep room for a gang from all that are visited from now on."""
        self.made.append(reservation)
        if reservation.nothing_passes:
            self.strict.update(dict.fromkeys(reservation.spare, reservation))
            return
        if reservation.short:
            self.by_level[reservation.short] = reservation
        if reservation.namespace:
            self.by_namespace.setdefault(reservation.namespace, reservation)

    def of(self, order: Order) -> Reservation | None:
        """The reservation of a gang, but for that of a strict queue."""
        return next((one for one in self.made if one.order == order and not one.nothing_passes), None)

    def at(self, path: Iterable[str]) -> Iterator[Reservation]:
        """The reservations that have one of these levels."""
        levels = set(path)
        return (one for one in self.made if not one.spare.keys().isdisjoint(levels))

    def strict_head_before(self, path: Iterable[str], order: Order | None = None) -> Order | None:
        """The gang behind which a gang of that order (None: the last) waits in a strict queue on the path; or None."""
        firsts = (self.strict[one].order for one in path if one in self.strict)
        return next((first for first in firsts if order is None or first < order), None)
