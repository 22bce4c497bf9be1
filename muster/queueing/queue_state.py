"""The state of one queue in the ledger: its claims, and the gangs that wait, in order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from muster.queueing.entries import Candidate, Claim, EndKind, EntryKey, Order
from muster.queueing.queue_view import QueueView
from muster.queueing.usage import RUN, Amounts, amounts_of
from muster.queueing.waiting_line import WaitingLine

# More urgent than any priority: nothing is preempted of such a claim.
_KEPT = -(1 << 40)
# Moments of candidates that have gone or changed stay in their heap until there are so many.
_STALE = 64


class Stage(IntEnum):
    """How far a gang's patience is."""

    FRESH = 0
    """No gang has passed it."""
    PASSED = 1
    """A smaller gang has passed it."""
    PATIENCE_EXPIRED = 2
    """Its patience may be over: there is a moment at which it was."""


class LineKey(NamedTuple):
    """The key that groups waiting gangs of a queue into one line.

    Those for which gangs of lower priority are preempted have lines of their own for each priority (`urgency` is its
    negative, None for the others); so have the gangs of each `namespace` that its ElasticQuotas limit ("" for the
    others), and gangs whose ends are as sure (`kind`, None where no end is known).
    """

    urgency: int | None
    begun: bool
    stage: Stage
    namespace: str = ""
    kind: EndKind | None = None


class Holds(NamedTuple):
    """The key of claims that are summed up together."""

    urgency: int
    lasts: bool
    idle: bool


@dataclass(slots=True)
class Sum:
    """Of so many claims what they hold, the parts of it that are soft, run or may be taken back, and what is asked for.

    All in billionths.
    """

    claims: int = 0
    amounts: dict[str, int] = field(default_factory=dict)
    soft: dict[str, int] = field(default_factory=dict)
    spare: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Sum:
        """The same sums, to be changed by themselves."""
        parts = self.amounts, self.soft, self.spare, self.running, self.asked
        return Sum(self.claims, *(dict(part) for part in parts))


class QueueState:
    """The claims and the waiting gangs of one queue; `sums` are what the claims hold together.

    `_moments` are times at which what holds for a candidate may change by time alone, the soonest first;
    among them are some of candidates that have changed since.
    """

    def __init__(self, view: QueueView) -> None:
        self.held: dict[EntryKey, Claim] = {}
        self.lines: dict[LineKey, WaitingLine] = {}
        self._view = view
        self._moments: list[tuple[float, EntryKey]] = []
        self._candidates: dict[EntryKey, Candidate] = {}
        self._over: set[EntryKey] = set()
        self.sums: dict[Holds, Sum] = {}
        self.needs: dict[str, int] = {}
        """What the gangs that wait need together, in billionths."""

    def __bool__(self) -> bool:
        return bool(self.held or self._candidates)

    def copy(self) -> QueueState:
        """The same claims and gangs, to be changed by themselves."""
        other = QueueState(self._view)
        other.held, other._candidates, other._over = dict(self.held), dict(self._candidates), set(self._over)
        other.lines = {key: line.copy() for key, line in self.lines.items()}
        other._moments = list(self._moments)
        other.sums = {like: held.copy() for like, held in self.sums.items()}
        other.needs = dict(self.needs)
        return other

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._candidates)

    def hold(self, claim: Claim) -> None:
        """Write down a claim, in the place of another one of the gang."""
        self.let_go(claim.key)
        self.held[claim.key] = claim
        self._sum(claim)

    def let_go(self, key: EntryKey) -> Claim | None:
        """Take a claim out, where there is one."""
        claim = self.held.pop(key, None)
        if claim is not None:
            self._sum(claim, -1)
        return claim

    def _sum(self, claim: Claim, sign: int = 1) -> None:
        like = Holds(_KEPT if claim.kept else -claim.priority, claim.lasts, claim.idle)
        held = self.sums.setdefault(like, Sum())
        held.claims += sign
        if not held.claims:
            del self.sums[like]
            return
        asked, spare = amounts_of(claim.asked), amounts_of(claim.spare)
        parts = (held.amounts, claim.amounts), (held.soft, claim.soft_amounts), (held.running, claim.running_amounts)
        for sums, amounts in (*parts, (held.asked, asked), (held.spare, spare)):
            for name, amount in amounts:
                sums[name] = sums.get(name, 0) + sign * amount

    def less_urgent(self, priority: int, *, lasting: bool = False) -> dict[str, int]:
        """The amounts of claims of lower priority, of unbounded claims alone or of all, without their soft parts."""
        held: dict[str, int] = {}
        for like, sums in self.sums.items():
            if like.urgency > -priority and (like.lasts or not lasting):
                for name, amount in sums.amounts.items():
                    held[name] = held.get(name, 0) + amount - sums.soft.get(name, 0)
        return held

    def spare(self, *, lasting: bool = False) -> dict[str, int]:
        """The amounts that may be reclaimed while the gangs run on, of unbounded claims alone or of all."""
        found: dict[str, int] = {}
        for like, sums in self.sums.items():
            if like.lasts or not lasting:
                for name, amount in sums.spare.items():
                    found[name] = found.get(name, 0) + amount
        return {name: amount for name, amount in found.items() if amount}

    def candidate(self, key: EntryKey) -> Candidate | None:
        """The gang as one that waits here."""
        return self._candidates.get(key)

    def waits(self, key: EntryKey) -> Candidate:
        """The candidate of a gang that waits here."""
        return self._candidates[key]

    def in_order(self) -> Iterator[Order]:
        """All gangs that wait, first in order first."""
        return heapq.merge(*self.lines.values())

    def next_behind(self, place: Order | None) -> Order | None:
        """The first gang that waits behind that place, or at all; None where there is none."""
        found = (line.next_behind(place) for line in self.lines.values())
        return min((order for order in found if order is not None), default=None)

    def before(self, order: Order) -> int:
        """How many wait before that place."""
        return sum(line.before(order) for line in self.lines.values())

    def line_up(self, candidate: Candidate) -> None:
        """Put a gang that is not here at its place in its line."""
        self._candidates[candidate.key] = candidate
        self._stand(candidate)
        self._need(candidate)
        for moment in self._moments_of(candidate):
            heapq.heappush(self._moments, (moment, candidate.key))
        if len(self._moments) > _STALE + 2 * self.waiting:
            self._moments = self._all_moments()

    def has_been_passed(self, candidate: Candidate) -> float:
        """Note when a gang that waits here was passed, or that it was not; gives the moment when its patience is over.

        Until then that makes no difference to others.
        """
        self.leave(candidate.key)
        self.line_up(candidate)
        since = candidate.passed_since
        return float("-inf") if since is None else since + self._view.patience

    def leave(self, key: EntryKey) -> None:
        """Take a gang that waits here out of its line."""
        candidate = self._candidates.pop(key)
        self._step_out(candidate)
        self._need(candidate, -1)

    def _need(self, candidate: Candidate, sign: int = 1) -> None:
        for name, amount in candidate.amounts:
            self.needs[name] = self.needs.get(name, 0) + sign * amount
            if not self.needs[name]:
                del self.needs[name]

    def oldest(self) -> str:
        """Since when the oldest gang waits (RFC 3339); "" where none waits."""
        return min((one.since for one in self._candidates.values() if one.since), default="")

    def passed_since(self) -> Iterator[tuple[EntryKey, float]]:
        """The first gangs of lines whose patience is over, and since when each has been passed."""
        for key, line in self.lines.items():
            if key.stage is Stage.PATIENCE_EXPIRED:
                yield line.first.key, self._candidates[line.first.key].passed_since or 0.0

    def set_view(self, view: QueueView) -> None:
        """Use these settings of the queue from now on."""
        if _terms(view) == _terms(self._view):
            self._view = view
            return
        over = [self._candidates[key] for key in self._over]
        for candidate in over:
            self._step_out(candidate)
        preempts, self._view = self._view.preempts, view
        if view.preempts != preempts:
            self._regroup()
        for candidate in over:
            self._stand(candidate)
        self._moments = self._all_moments()

    def _regroup(self) -> None:
        """Make lines for each priority of the gangs that preempt, or for all together."""
        standing: dict[LineKey, list[tuple[Order, Amounts]]] = {}
        for key, line in self.lines.items():
            by_urgency: dict[int | None, list[tuple[Order, Amounts]]] = {}
            for entry in line.entries():
                by_urgency.setdefault(self._urgency_of(self._candidates[entry[0].key]), []).append(entry)
            for urgency, entries in by_urgency.items():
                standing.setdefault(key._replace(urgency=urgency), []).extend(entries)
        self.lines = {key: WaitingLine(entries) for key, entries in standing.items()}

    def advance(self, now: float) -> float:
        """Note whose patience is over now; gives the first moment after `now`, infinity where none is known."""
        while self._moments and self._moments[0][0] <= now:
            _, key = heapq.heappop(self._moments)
            candidate = self._candidates.get(key)
            if candidate is not None and key not in self._over and self._is_over(candidate, now):
                self._step_out(candidate)
                self._over.add(key)
                self._stand(candidate)
        return self._moments[0][0] if self._moments else float("inf")

    def _is_over(self, candidate: Candidate, now: float) -> bool:
        return candidate.passed_since is not None and candidate.passed_since + self._view.patience <= now

    def _line_of(self, candidate: Candidate) -> LineKey:
        stage = Stage.FRESH if candidate.passed_since is None else Stage.PASSED
        if candidate.key in self._over:
            stage = Stage.PATIENCE_EXPIRED
        namespace = candidate.key.namespace if candidate.limited else ""
        kind = candidate.run.kind if candidate.run is not None else None
        return LineKey(self._urgency_of(candidate), candidate.begun, stage, namespace, kind)

    def _urgency_of(self, candidate: Candidate) -> int | None:
        return -candidate.priority if self._view.preempts and candidate.preempts else None

    def _stand(self, candidate: Candidate) -> None:
        needs = candidate.amounts
        if candidate.run is not None:
            needs = (*needs, (RUN, int(candidate.run.seconds)))
        self.lines.setdefault(self._line_of(candidate), WaitingLine()).add(candidate.order, needs)

    def _step_out(self, candidate: Candidate) -> None:
        where = self._line_of(candidate)
        self.lines[where].remove(candidate.order)
        if not self.lines[where]:
            del self.lines[where]
        self._over.discard(candidate.key)

    def _all_moments(self) -> list[tuple[float, EntryKey]]:
        return sorted((moment, one.key) for one in self._candidates.values() for moment in self._moments_of(one))

    def _moments_of(self, candidate: Candidate) -> Iterator[float]:
        if candidate.passed_since is not None:
            yield candidate.passed_since + self._view.patience
            if (drains := candidate.drains(self._view)) > candidate.passed_since:
                yield drains
        if candidate.deadline is not None:
            yield candidate.deadline


def _terms(view: QueueView) -> tuple[float, bool, bool, float | None]:
    """The settings that matter for gangs that wait there."""
    return view.patience, view.preempts, view.trusts_estimates, view.drain_after
