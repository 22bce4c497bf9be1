"""Decides which of the gangs that compete for the same quota may start now.

A pass visits the gangs in order (`muster.queueing.turns`), and each gang that fits takes its quota as if it had
started. Smaller gangs pass one that does not fit, unless its queue is strict; once it has been passed for longer than
its queue's patience, as far as its reservation lets them (see `muster.queueing.reservations`). The rest of a gang that
has begun ignores reservations: what it holds comes back only when it has run. A gang for which its namespace has no
room holds up no gang in its queue, strict or not (see `muster.queueing.holdings`).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import inf
from typing import Any

from muster.queueing.entries import Candidate, Claim, EndKind, EntryKey, Order
from muster.queueing.holdings import NamespaceRoom
from muster.queueing.queue_state import Holds, QueueState
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT
from muster.queueing.reservations import Reservation, Reservations
from muster.queueing.run_ends import RunEnds, ended_by, first_time
from muster.queueing.shares import Reclaimable, Shares
from muster.queueing.unplaced_claims import CountedUnplaced, is_soft
from muster.queueing.usage import Amounts, Usage, clamp, plus, signed


@dataclass(slots=True)
class AdmissionPass:
    """The gangs that may start, in order, the usage after all of them have started, and the reservations.

    :ivar lasting: The usage of the claims that do not end by themselves.
    :ivar hard: The soft parts of claims that count all the same, by queue.
    :ivar at_once: No more gangs are let start in one pass; `more` is true if others may follow in the next one.
    :ivar until: The pass holds until then (seconds of the wall clock), if nothing happens.
    :ivar consumed: True once the result has been read.
    :ivar reclaimable: The room that can be reclaimed from others, now and after finite work has ended.
    :ivar turns: The share that each competing queue had at the turn of each gang below it that fits.
    :ivar bypassed: Kept by `muster.queueing.bypassed` for as long as the pass holds.
    """

    shares: Shares
    states: Mapping[str, QueueState]
    usage: Usage
    lasting: Usage
    namespaces: NamespaceRoom
    hard: Mapping[str, CountedUnplaced]
    asked: Mapping[str, Sequence[tuple[Holds, Amounts]]]
    ends: Callable[[str], RunEnds]
    now: float
    at_once: int
    fits: OrderedDict[EntryKey, Amounts] = field(default_factory=OrderedDict)
    reservations: Reservations = field(default_factory=Reservations)
    until: float = inf
    consumed: bool = False
    reclaimable: tuple[Reclaimable, Reclaimable] | None = None
    more: bool = False
    turns: dict[str, dict[Order, float]] = field(default_factory=dict)
    bypassed: dict[Hashable, Any] = field(default_factory=dict)

    _least: dict[str, float] = field(default_factory=dict)
    # What `free` and `room` gave since something was last taken: thousands of lines ask of one queue.
    _free: dict[tuple[str, bool], Mapping[str, int]] = field(default_factory=dict)
    _room: dict[tuple[str, bool], Mapping[str, int]] = field(default_factory=dict)
    # The gangs that start in the pass, and those for which it keeps room: what is to end of them, and at which levels.
    _own: list[tuple[tuple[str, ...], Claim]] = field(default_factory=list)
    _own_needs: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def tree(self) -> QueueTree:
        """The queues."""
        return self.shares.tree

    @property
    def changes(self) -> int:
        """Grows with everything that is taken or reserved in the pass."""
        return len(self.fits) + len(self.reservations.made)

    @property
    def depends_on_starts(self) -> bool:
        """True if another pass may decide otherwise when all gangs have started that fit."""
        return bool(self.reservations.made or self.turns or self.namespaces.limits or self.reclaimable)

    def free(self, queue: str, *, lasting: bool = False) -> Mapping[str, int]:
        """The free amounts of a queue now, or when finite work has ended, of the resources that it limits.

        Reservations are not counted.
        """
        known = self._free.get((queue, lasting))
        if known is None:
            usage = self.lasting if lasting else self.usage
            known = self._free[queue, lasting] = usage.free(queue, self.tree.ceiling(queue))
        return known

    def _taken(self) -> None:
        self._free.clear()
        self._room.clear()

    def is_soft(self, claim: Claim) -> bool:
        """True if the claim has a soft part that does not count."""
        return is_soft(self.hard, claim)

    def strict_head_before(self, queue: str, order: Order | None = None) -> Order | None:
        """The gang behind which a gang of that order (None: the last) waits in a strict queue on the path; or None."""
        return self.reservations.strict_head_before(self.tree.path(queue), order) if self.reservations.strict else None

    # --- room ---------------------------------------------------------------------------------------------------------

    def lacking(self, candidate: Candidate, amounts: Amounts, *, lasting: bool = False) -> dict[str, list[str]]:
        """The resources that a candidate lacks next to current claims, by queue: its own and those above it.

        With `lasting`, next to those claims alone that do not end by themselves.
        """
        usage = self.lasting if lasting else self.usage
        left_out = self._left_out(candidate, lasting=lasting)
        lacking = usage.lacking(self.tree.path(candidate.queue), amounts, left_out)
        more = self._reclaimable(candidate, amounts, lacking.get(ROOT, ()), lasting=lasting)
        if more and not usage.lacking((ROOT,), amounts, tuple(plus(dict(left_out), more.items()).items())):
            lacking.pop(ROOT, None)
        return lacking

    def blocking(self, candidate: Candidate, amounts: Amounts) -> Reservation | None:
        """The first reservation of another gang that keeps this one from what it needs."""
        for one in () if candidate.begun else self.reservations.made:
            if one.order == candidate.order:
                continue
            if self.kept_by(one, candidate, amounts) or not self._leaves_in_namespace(one, candidate, amounts):
                return one
        return None

    def kept_by(self, reservation: Reservation, candidate: Candidate, amounts: Amounts) -> dict[str, list[str]]:
        """The resources that a reservation keeps from a candidate, by queue."""
        path = self.tree.path(candidate.queue)
        if reservation.nothing_passes or reservation.passed_in_time(candidate.end(self.now)):
            return {}
        left_out = dict(self._left_out(candidate))
        more = dict.fromkeys(path, left_out) if left_out else {}
        kept = reservation.lacking(path, amounts, more)
        if given := self._reclaimable(candidate, amounts, kept.get(ROOT, ())):
            return reservation.lacking(path, amounts, {**more, ROOT: plus(left_out, given.items())})
        return kept

    def has_in_namespace(self, candidate: Candidate, amounts: Amounts) -> bool:
        """True if the ElasticQuotas of its namespace and the reservations there leave it room."""
        namespace = self._limited_by(candidate)
        if not self.namespaces.has(namespace, amounts):
            return False
        made = self.reservations.made if namespace and not candidate.begun else ()
        return all(self._leaves_in_namespace(one, candidate, amounts) for one in made)

    def _leaves_in_namespace(self, reservation: Reservation, candidate: Candidate, amounts: Amounts) -> bool:
        namespace = self._limited_by(candidate)
        if not namespace or reservation.namespace != namespace:
            return True
        if reservation.passed_in_time(candidate.end(self.now)):
            return True
        return self.namespaces.has(namespace, amounts, reservation.kept)

    def _limited_by(self, candidate: Candidate) -> str:
        """The namespace whose ElasticQuotas limit a gang; "" where none do."""
        namespace = candidate.key.namespace
        return namespace if candidate.limited and namespace in self.namespaces else ""

    def _reclaimable(
        self, candidate: Candidate, amounts: Amounts, names: Sequence[str], *, lasting: bool = False
    ) -> Mapping[str, int]:
        """The amounts to reclaim from other queues for a candidate that lacks these resources of the root."""
        if self.reclaimable is None or not candidate.reclaims or not names:
            return {}
        reclaimable = self.reclaimable[lasting]
        return reclaimable.given if reclaimable.counts_for(candidate.queue, amounts, names) else {}

    def room(self, queue: str, *, lasting: bool = False) -> Mapping[str, int]:
        """The amounts that a queue and all above it have free, of the resources that they limit."""
        known = self._room.get((queue, lasting))
        if known is None:
            room: dict[str, int] = {}
            for one in self.tree.gang_path(queue):
                clamp(room, self.free(one, lasting=lasting))
            known = self._room[queue, lasting] = room
        return known

    def fits_when_finite_work_ends(self, candidate: Candidate, amounts: Amounts) -> bool:
        """True if it would fit once all finite work has ended."""
        in_namespace = self.namespaces.fits_when_drained(self._limited_by(candidate), amounts)
        return in_namespace and not self.lacking(candidate, amounts, lasting=True)

    def patience_is_over(self, candidate: Candidate) -> bool:
        """True if it has been passed for longer than its queue's patience."""
        view, since = self.tree.get(candidate.queue), candidate.passed_since
        return view is not None and since is not None and since + view.patience <= self.now

    def is_starved(self, candidate: Candidate) -> bool:
        """True if its patience is over and it has no reservation, because nothing that ends would make room for it."""
        if not self.patience_is_over(candidate) or self.reservations.of(candidate.order) is not None:
            return False
        return candidate.follows or not self.fits_when_finite_work_ends(candidate, candidate.amounts)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def step(self, candidate: Candidate) -> Callable[[], None] | None:
        """The next step for a gang that the pass comes to: start it, or keep room for it; None for neither.

        If it is None now, then so it is later in the pass. A gang that lacks room in its namespace holds up no gang of
        its queue; nor does it keep room in the namespace while what it lacks in the queue is kept for one before it.
        """
        late = candidate.deadline is not None and candidate.deadline <= self.now
        if late or (not candidate.begun and self.strict_head_before(candidate.queue, candidate.order) is not None):
            return None
        amounts, reservations = candidate.amounts, self.reservations
        lacking, has_room = self.lacking(candidate, amounts), self.has_in_namespace(candidate, amounts)
        if has_room and not lacking and self.blocking(candidate, amounts) is None:
            return partial(self.start, candidate, amounts)
        if candidate.follows:
            return None
        path = self.tree.path(candidate.queue)
        strict = [one for one in path if has_room and self.tree.strict(one) and one not in reservations.strict]
        reserves = (
            (lacking or not has_room)
            and self.patience_is_over(candidate)
            and next((one for one in path if one in lacking), "") not in reservations.by_level
            and (has_room or candidate.key.namespace not in reservations.by_namespace)
            and self.fits_when_finite_work_ends(candidate, amounts)
        )
        if not strict and not reserves:
            return None

        def wait() -> None:
            if strict:
                spare: dict[str, dict[str, int]] = {one: {} for one in strict}
                reservations.add(Reservation(candidate.order, strict[0], spare=spare, nothing_passes=True))
            if reserves:
                self.reserve(candidate, amounts, lacking if has_room else {})

        return wait

    # --- reservations -------------------------------------------------------------------------------------------------

    def start(self, candidate: Candidate, amounts: Amounts) -> None:
        """A gang fits, and starts."""
        queue, namespace, end = candidate.queue, candidate.key.namespace, candidate.end(self.now)
        path = self.tree.path(queue)
        for one in filter(self.shares.competes, path):
            self.turns.setdefault(one, {})[candidate.order] = self.share(one)
        self.fits[candidate.key] = amounts
        self._taken()
        self.usage.take(queue, amounts, running=())
        in_namespace = self.namespaces.levels(namespace)
        self.usage.take_in(in_namespace, amounts)
        for reservation in self.reservations.made:
            if not reservation.passed_in_time(end):
                reservation.take(path, amounts)
            elif end is not None and reservation.namespace == namespace:
                # It is gone by then.
                reservation.kept = plus(reservation.kept, signed(amounts, -1))
        if candidate.lasts:
            self.lasting.take(queue, amounts, running=())
            self.lasting.take_in(in_namespace, amounts)
        elif end is not None:
            self._own.append(((*path, *in_namespace), candidate.claim(self.now)))

    def reserve(self, candidate: Candidate, amounts: Amounts, lacking: Mapping[str, list[str]]) -> None:
        """Keep room for a gang that lacks it: at the levels of its queue, or of its namespace alone."""
        path, namespace = self.tree.path(candidate.queue), self._limited_by(candidate)
        short = next((one for one in path if one in lacking), "")
        levels = [one for one in path if self.tree.ceiling(one)] if short else []
        trust = EndKind.ABOUT if self._trusts_estimates(candidate) else EndKind.SAID
        # Nothing is taken or kept until all of this is known.
        lacks_at, ends_at = cache(partial(self._lacks_at, amounts=amounts)), cache(self._ends_at)
        start, kind = self._first_fit(candidate, amounts, trust, lacks_at, ends_at)
        if start == inf and short:
            levels = levels[: levels.index(short) + 1]
        reservation = Reservation(candidate.order, short, tuple(lacking.get(short, ())), start, kind)
        for level in levels:
            ended = ended_by(ends_at(level), start, kind) if start < inf else {}
            reservation.spare[level] = {name: ended.get(name, 0) - more for name, more in lacks_at(level).items()}
        in_namespace = self.namespaces.levels(namespace)
        for own in in_namespace[:1]:
            reservation.namespace = namespace
            ended = ended_by(ends_at(own), start, kind) if start < inf else {}
            needs = plus(self._own_needs.get(own, {}), amounts)
            reservation.kept = plus(needs, signed(ended.items(), -1))
        self.reservations.add(reservation)
        for level in (*levels, *in_namespace[:1]):
            self._own_needs[level] = plus(self._own_needs.get(level, {}), amounts)
        if candidate.lasts:
            if levels:
                self._taken()
                self.lasting.take(candidate.queue, amounts, running=())
            self.lasting.take_in(in_namespace, amounts)
        elif candidate.run is not None and start < inf:
            kind = max(kind, candidate.run.kind)
            end = candidate.run._replace(kind=kind).from_(start)
            self._own.append(((*levels, *in_namespace), replace(candidate.claim(start), end=end)))

    def _trusts_estimates(self, candidate: Candidate) -> bool:
        return self.now < candidate.drains(self.tree.settings(candidate.queue))

    def _first_fit(
        self,
        candidate: Candidate,
        amounts: Amounts,
        trust: EndKind,
        lacks_at: Callable[[str], Mapping[str, int]],
        ends_at: Callable[[str], list[RunEnds]],
    ) -> tuple[float, EndKind]:
        """The first time at which a gang fits at all levels, and how sure that is."""
        namespace = self._limited_by(candidate)
        in_namespace = self.namespaces.levels(namespace)
        short = [one for one in self.tree.path(candidate.queue) if any(more > 0 for more in lacks_at(one).values())]

        def enough(level: str, kind: EndKind, time: float) -> bool:
            ended = ended_by(ends_at(level), time, kind)
            if level not in in_namespace:
                return all(ended.get(name, 0) >= more for name, more in lacks_at(level).items())
            of_all = ended_by(ends_at(in_namespace[1]), time, kind)
            return self.namespaces.has(namespace, amounts, self._own_needs.get(level, {}), ended, of_all)

        times = [first_time(ends_at(level), partial(enough, level, trust)) for level in short]
        for own in in_namespace[:1]:
            if not enough(own, trust, self.now):
                both = [one for level in in_namespace for one in ends_at(level)]
                times.append(first_time(both, partial(enough, own, trust)))
                short.append(own)
        start = max(times, default=inf)
        sure = (kind for kind in EndKind if kind < trust and all(enough(level, kind, start) for level in short))
        return start, trust if start == inf else next(sure, trust)

    def _lacks_at(self, level: str, amounts: Amounts) -> dict[str, int]:
        """The amounts that must be given back before a gang fits there, by resource; below zero for amounts to spare.

        Gangs before it for which room is kept hold theirs.
        """
        limit, taken, own = self.tree.ceiling(level), self.usage.taken(level), self._own_needs.get(level, {})
        return {
            name: amount + taken.get(name, 0) + own.get(name, 0) - limit[name]
            for name, amount in amounts
            if name in limit
        }

    def _ends_at(self, level: str) -> list[RunEnds]:
        """The ends of all claims at a level, and of the starts of the pass itself."""
        own, ends = RunEnds(claim for levels, claim in self._own if level in levels), self.ends(level)
        # Where the first is overrun another pass will see.
        self.until = min(self.until, ends.advance(self.now))
        return [ends, own]

    # --- shares -------------------------------------------------------------------------------------------------------

    def sibling_below_its_share(self, queue: str, level: str) -> tuple[str, float, float | None] | None:
        """The queue directly below `level` in which gangs of a queue wait, and the part of its share that it has.

        And what of that comes from its past; None where that does not count.

        None unless a sibling that has less goes first, with gangs that wait for `level`.
        """
        if queue == level or self.shares.by_age(level):
            return None
        path = self.tree.path(queue)
        own = path[path.index(level) - 1]
        share = self.share(own)
        if level not in self._least:
            self._least[level] = min(self._waiting_below(level), default=inf)
        if self._least[level] >= share:
            return None
        return own, share, self.shares.by_past(own)

    def share(self, queue: str) -> float:
        """The part of its share that a queue has, with all that starts."""
        return self.shares.of(queue, self.usage.taken(queue))

    def _waiting_below(self, level: str) -> Iterator[float]:
        """The shares of queues directly below in which any gang waits for room of `level`, and not for room below."""
        for queue, state in self.states.items():
            path = self.tree.path(queue)
            if level in path[1:] and self.tree.takes_work(queue) and self.tree.leaf(queue):
                below = path[: path.index(level)]
                free = [self.usage.free(one, self.tree.ceiling(one)) for one in below]
                if any(_within(line.least, free) for line in state.lines.values()):
                    yield self.share(below[-1])

    def _left_out(self, candidate: Candidate, *, lasting: bool = False) -> Amounts:
        """The amounts of claims of lower priority in a queue where Volcano preempts them for the gang."""
        if not (candidate.preempts and self.tree.settings(candidate.queue).preempts):
            return ()
        return tuple(self.less_urgent(candidate.queue, candidate.priority, lasting=lasting).items())

    def less_urgent(self, queue: str, priority: int, *, lasting: bool = False) -> dict[str, int]:
        """The amounts that count of claims of lower priority in a queue, of unbounded claims alone or of all."""
        held = self.states[queue].less_urgent(priority, lasting=lasting)
        for like, counts in self.asked.get(queue, ()):
            if like.urgency > -priority and (like.lasts or not lasting):
                for name, amount in counts:
                    held[name] = held.get(name, 0) + amount
        return held


def _within(needs: Amounts, free: Iterable[Mapping[str, int]]) -> bool:
    return all(amount <= most.get(name, amount) for most in free for name, amount in needs)
