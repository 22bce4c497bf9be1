"""What a ledger should know and decide, in plain facts: a model that looks at everything anew each time."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import NamedTuple

from muster.queueing.entries import EndKind, EntryKey
from muster.queueing.ledger import Candidate, End
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import DRAINS, ROOT
from muster.resources.amounts import Resources, minus, total
from muster.resources.quantity import ZERO
from tests.support.queueing.facts import Facts, deserved, exactly_minus


class _Kept(NamedTuple):
    """A gang for which room is kept: from when, how sure that is, at which levels, and which starts count with it."""

    candidate: Candidate
    start: float
    kind: EndKind
    levels: tuple[str, ...]
    before: tuple[_Kept, ...]
    beside: list[Candidate]

    def in_time(self, end: End | None) -> bool:
        """Whether a gang with this end is not in its way: it has ended by then, as surely as the start is known.

        Where the start is a guess, or unknown though guesses are trusted, who says nothing of its end is not either.
        """
        if self.kind is EndKind.ABOUT and (end is None or self.start == inf):
            return True
        return end is not None and end.kind <= self.kind and end.start + end.seconds <= self.start < inf


class _Pass:
    """Who starts, one after the other, and what is kept for others."""

    def __init__(self, facts: Facts, tree: QueueTree, now: float) -> None:
        self.facts, self.tree, self.now = facts, tree, now
        self.fitting: dict[EntryKey, Candidate] = {}
        self._first_behind: set[str] = set()
        self._short_at: set[str] = set()
        self._kept: list[_Kept] = []
        self._kept_in: set[str] = set()

    def short(self, candidate: Candidate) -> list[str]:
        """Where there is no room for it now."""
        return self.facts.short(self.tree, candidate, self._victims(candidate), [*self.fitting.values()], {})

    def blocked(self, candidate: Candidate) -> bool:
        """Whether room that it would need is kept for another one."""
        victims = self._victims(candidate)
        kept = [one for one in self._kept if not candidate.begun and not one.in_time(candidate.end(self.now))]
        return any(self._keeps_from(one, level, candidate, victims) for one in kept for level in one.levels)

    def _keeps_from(self, kept: _Kept, level: str, candidate: Candidate, victims: tuple[str, int] | None) -> bool:
        """Whether it needs more of what both need than the gang for which room is kept leaves there in its time."""
        if level not in self.tree.path(candidate.queue):
            return False
        both = [what for what in kept.candidate.need if candidate.need.get(what) and kept.candidate.need[what]]
        left = self._left(kept, level)
        preempted = exactly_minus(
            self.facts.used(self.tree, level), self.facts.used(self.tree, level, but_below=victims)
        )
        spare = total([left, preempted if victims else {}])
        over = [what for what in both if what in left and candidate.need[what] > spare[what]]
        if over and level == ROOT:
            beside = [*self.fitting.values()]
            if self.facts.takes_back(self.tree, candidate, beside, over, lasting=False):
                spare = total([spare, self.facts.given_back(self.tree, but=candidate.queue)])
                over = [what for what in over if candidate.need[what] > spare[what]]
        return bool(over)

    def _left(self, kept: _Kept, level: str) -> Resources:
        """What is free at a level when room is kept for a gang that has come then, and takes its own."""
        limit = self.tree.limit(level)

        def below(queue: str) -> bool:
            return level in self.tree.path(queue)

        ended = [
            minus(one.claim, one.soft)
            for one in self.facts.held.values()
            if below(one.queue) and not one.lasts and self._ended(one.end, kept)
        ]
        here = [
            one for one in kept.beside if below(one.queue) and (one.lasts or not self._ended(one.end(self.now), kept))
        ]
        before = [
            one.candidate for one in kept.before if level in one.levels and not self._ended(self._end_of(one), kept)
        ]
        taken = total([self.facts.used(self.tree, level), *(one.need for one in (*here, *before, kept.candidate))])
        free = exactly_minus(total([limit, *ended]), taken)
        return {what: free.get(what, ZERO) for what in limit}

    def _end_of(self, kept: _Kept) -> End | None:
        run = kept.candidate.run
        if kept.start == inf or run is None or kept.candidate.lasts:
            return None
        return run._replace(kind=max(run.kind, kept.kind)).from_(kept.start)

    def _ended(self, end: End | None, kept: _Kept) -> bool:
        return end is not None and end.kind <= kept.kind and end.after(self.now) <= kept.start < inf

    def in_vain(self, candidate: Candidate) -> bool:
        """Whether there is no room for it even when all has ended that ends by itself."""
        starting = [*self.fitting.values()]
        keeping = [one.candidate for one in self._kept]
        return self.facts.in_vain(self.tree, candidate, self._victims(candidate), starting, keeping)

    def lacks_in_namespace(self, candidate: Candidate) -> bool:
        """Whether ElasticQuotas leave it no room now."""
        return self.facts.lacks_in_namespace(candidate, [*self.fitting.values()])

    def _victims(self, candidate: Candidate) -> tuple[str, int] | None:
        preempts = candidate.preempts and self.facts.queues[candidate.queue].preempts
        return (candidate.queue, candidate.priority) if preempts else None

    def _strict(self, candidate: Candidate) -> set[str]:
        return {one for one in self.tree.path(candidate.queue) if (view := self.tree.get(one)) and view.strict}

    def may_matter(self, candidate: Candidate) -> bool:
        """Whether it may start, or others may have to wait for it; if not now, then not later either."""
        behind = self._first_behind & self._strict(candidate)
        if behind and not candidate.begun:
            return False
        short = self.short(candidate)
        strict = self._strict(candidate) and not behind
        lacks = self.lacks_in_namespace(candidate)
        if not lacks and (not (short or self.blocked(candidate)) or (strict and not candidate.follows)):
            return True
        if not lacks and not short:
            return False
        if candidate.follows or not self.facts.patience_is_over(candidate, self.now) or self.in_vain(candidate):
            return False
        if lacks and candidate.key.namespace in self._kept_in:
            return False
        return lacks or bool(strict) or short[0] not in self._short_at

    def whose_turn(self, left: list[Candidate]) -> Candidate:
        """From the root down that of the queue with least of its share, or of the first in order."""
        depth = 0
        while len({one.queue for one in left}) > 1:
            groups: dict[str, list[Candidate]] = {}
            paths = {one.key: self.tree.path(one.queue)[::-1] for one in left}
            parent = paths[left[0].key][depth]
            depth += 1
            for one in left:
                groups.setdefault(paths[one.key][depth], []).append(one)
            by_age = self._by_age(parent)
            shares = {queue: Fraction(0) if by_age else self._share(queue) for queue in groups}
            first = {queue: min(one.order for one in below) for queue, below in groups.items()}
            left = groups[min(groups, key=lambda queue: (shares[queue], first[queue]))]
        return min(left, key=lambda one: one.order)

    def _by_age(self, parent: str) -> bool:
        views = [self.tree.get(one) for one in self.tree.path(parent)]
        return any(view and view.strict for view in views) or bool(views[0] and views[0].by_age)

    def _share(self, queue: str) -> Fraction | float:
        used = self.facts.used(self.tree, queue, beside=[*self.fitting.values()])
        share: Fraction | float = Fraction(0)
        for what, most in deserved(self.tree, queue).items():
            has = used.get(what, ZERO).nano
            if has > 0:
                share = max(share, has / most if most else inf)
        return share

    def visit(self, candidate: Candidate) -> None:
        """It starts, or others wait for it."""
        waits = self.facts.patience_is_over(candidate, self.now) and not self.in_vain(candidate)
        short = self.short(candidate)
        if self.lacks_in_namespace(candidate):
            if waits and self._short_at.isdisjoint(short[:1]):
                self._kept_in.add(candidate.key.namespace)
                self.facts.waits_in_namespace(candidate, self._trust(candidate))
            return
        if not short and not self.blocked(candidate):
            for kept in self._kept:
                if not kept.in_time(candidate.end(self.now)):
                    kept.beside.append(candidate)
            self.fitting[candidate.key] = candidate
            return
        self._first_behind |= self._strict(candidate)
        if waits and short and short[0] not in self._short_at:
            self._keep(candidate, short[0])

    def _keep(self, candidate: Candidate, lowest: str) -> None:
        """Keep room for it, from the time at which it fits everywhere; where none is known from now on, up to there."""
        self._short_at.add(lowest)
        if candidate.limited:
            self._kept_in.add(candidate.key.namespace)
        trust = self._trust(candidate)
        self.facts.keeps_in_namespace(candidate, trust)
        path = tuple(one for one in self.tree.path(candidate.queue) if self.tree.limit(one))
        before, beside = tuple(self._kept), [*self.fitting.values()]
        ends = [one.end for one in self.facts.held.values()]
        ends += [one.end(self.now) for one in beside] + [self._end_of(one) for one in before]
        for time in sorted({end.after(self.now) for end in ends if end is not None}):
            for kind in EndKind if time < inf else ():
                kept = _Kept(candidate, time, kind, path, before, beside)
                if kind <= trust and self._fits_then(kept):
                    self._kept.append(kept)
                    return
        self._kept.append(_Kept(candidate, inf, trust, path[: path.index(lowest) + 1], before, beside))

    def _trust(self, candidate: Candidate) -> EndKind:
        view, since = self.facts.queues[candidate.queue], candidate.passed_since
        after = next(one for one in (view.drain_after, candidate.drain_after, DRAINS) if one is not None)
        drains = since is not None and self.now >= since + after
        return EndKind.ABOUT if view.trusts_estimates and not drains else EndKind.SAID

    def _fits_then(self, kept: _Kept) -> bool:
        need = kept.candidate.need
        return all(
            left >= ZERO for one in kept.levels for what, left in self._left(kept, one).items() if need.get(what)
        )


class World(Facts):
    """The plain facts, and what follows from them by the words of the design: every gang after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._judged: tuple[tuple[object, ...], dict[EntryKey, Candidate]] | None = None

    def facts(self) -> tuple[object, ...]:
        """All on which it depends who may start, as it is now."""
        return self.nodes, dict(self.queues), dict(self.held), dict(self.waits)

    def fitting(self, now: float) -> dict[EntryKey, Candidate]:
        """Who may start, in order; thought over once for the same facts, of which many ask."""
        facts = (now, *self.facts())
        if self._judged is None or self._judged[0] != facts:
            self._judged = facts, self.judge(now)
        return dict(self._judged[1])

    def judge(self, now: float) -> dict[EntryKey, Candidate]:
        """Who may start, thought over from the beginning."""
        tree = self.tree()
        going = _Pass(self, tree, now)
        left = [one for one in self.waits.values() if tree.place(one.queue) and self.can_start(tree, one, now)]
        while left := [one for one in left if going.may_matter(one)]:
            turn = going.whose_turn(left)
            going.visit(turn)
            left.remove(turn)
        return going.fitting
