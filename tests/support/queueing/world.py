"""What a ledger should know and decide, in plain facts: a model that looks at everything anew each time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf
from types import MappingProxyType
from typing import NamedTuple

from muster.queueing.entries import EndKind, EntryKey
from muster.queueing.ledger import Candidate, End
from muster.queueing.queue_tree import QueueTree, own_leaf
from muster.queueing.queue_view import DRAINS, ROOT, QueueView
from muster.resources.amounts import Resources, minus, total
from muster.resources.quantity import ZERO, Quantity


def exactly_minus(whole: Resources, part: Resources) -> Resources:
    """What is left, below zero where more is taken out than there is."""
    return {name: whole.get(name, ZERO) - part.get(name, ZERO) for name in {**whole, **part}}


class Holder(NamedTuple):
    """What the model knows of an admitted gang; `soft` is a part of its claim, `spare` what may be taken back of it.

    Of `running` None means all of it.
    """

    queue: str
    claim: Resources
    priority: int
    since: str
    soft: Resources
    idle: bool
    lasts: bool = False
    spare: Resources = MappingProxyType({})
    running: Resources | None = None
    end: End | None = None


def deserved(tree: QueueTree, queue: str) -> dict[str, Fraction]:
    """The share of a queue in billionths, of each resource that is limited for all its siblings."""
    if queue == ROOT:
        return {}
    view, parents = tree.get(queue), tree.path(queue)[1:]
    shares = {}
    for what in {what for one in parents for what in tree.limit(one)}:
        room = min(limit[what].nano for one in parents if what in (limit := tree.limit(one)))
        # A queue's own gangs stand beside the queues below it, as one more of them.
        share = Fraction(room, tree.weights(queue)) if queue == own_leaf(parents[0]) else Fraction(room)
        if view is not None:
            share = Fraction(room * view.weight, tree.weights(queue))
            if what in view.deserved:
                share = Fraction(view.deserved[what].nano)
            if what in view.guarantee:
                share = max(share, Fraction(view.guarantee[what].nano))
        shares[what] = share
    return shares


class World:
    """The plain facts, and what follows from them by the words of the design: every gang after the other."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueView] = {}
        self.held: dict[EntryKey, Holder] = {}
        self.waits: dict[EntryKey, Candidate] = {}
        self.nodes: Resources | None = None
        self._softened: tuple[QueueTree, set[EntryKey]] | None = None
        self._judged: tuple[tuple[object, ...], dict[EntryKey, Candidate]] | None = None
        self._sums: dict[tuple[bool, tuple[EntryKey, ...]], dict[str, Resources]] = {}

    def tree(self) -> QueueTree:
        """The queues as they stand."""
        tree = QueueTree(self.queues.values())
        tree.bound(self.nodes)
        for queue in {*(one.queue for one in self.held.values()), *(one.queue for one in self.waits.values())}:
            tree.occupy(queue, held=True)
        return tree

    def used(
        self,
        tree: QueueTree,
        queue: str,
        *,
        but_below: tuple[str, int] | None = None,
        lasting: bool = False,
        beside: Sequence[Candidate] = (),
    ) -> Resources:
        """What is held of a queue and of all below it, but for what is soft there; without those that are preempted.

        Of all, or what alone does not end by itself, `beside` what starts as well.
        """
        # Nothing happens while one tree is looked at.
        if self._softened is None or self._softened[0] is not tree:
            self._softened, self._sums = (tree, self.softened(tree)), {}
        which = lasting, tuple(one.key for one in beside)
        if which not in self._sums:
            starting = [
                Holder(one.queue, one.need, 0, "", {}, idle=False, lasts=one.lasts, running={}) for one in beside
            ]
            self._sums[which] = self._used(tree, [*self.held.values(), *starting], lasting=lasting)
        used = self._sums[which].get(queue, {})
        if but_below:
            of_queue, priority = but_below
            spared = [
                one
                for one in self.held.values()
                if one.queue == of_queue and one.priority < priority and (one.lasts or not lasting)
            ]
            return exactly_minus(used, total(exactly_minus(one.claim, one.soft) for one in spared))
        return used

    def _used(self, tree: QueueTree, holders: list[Holder], *, lasting: bool) -> dict[str, Resources]:
        """What is held of every queue, from the lowest up: each hands up its limit at most, and what runs of it."""
        used: dict[str, Resources] = {}
        up: dict[str, Resources] = {}
        running: dict[str, Resources] = {}
        _, soft = self._softened or (tree, set())
        softer = [gang for gang, one in self.held.items() if gang in soft]
        for holder in holders:
            path, unplaced = tree.gang_path(holder.queue), holder.soft
            gone = unplaced and any(self.held[gang] is holder for gang in softer)
            firm = minus(holder.claim, holder.soft)
            if lasting and not holder.lasts:
                # What has no node does not end, unless it waits for its next wave; the rest of a Job ends.
                firm, unplaced = {}, {} if holder.idle else unplaced
            here = total([firm, {} if gone else unplaced])
            used[path[0]] = total([used.get(path[0], {}), here])
            above = here if gone and holder.idle else total([firm, unplaced])
            up[path[0]] = total([up.get(path[0], {}), above])
            if gone and holder.idle and self.nodes is not None:
                used[ROOT] = total([used.get(ROOT, {}), unplaced])
            for one in path if holder.lasts or not lasting else ():
                running[one] = total([running.get(one, {}), holder.claim if holder.running is None else holder.running])
        names = {one for holder in holders for one in tree.gang_path(holder.queue)} - {ROOT}

        def in_ring(one: str) -> bool:
            return one in tree.path(tree.path(one)[1])

        for one in sorted((one for one in names if not in_ring(one)), key=lambda one: -len(tree.path(one))):
            most = {
                what: total([{what: limit}, {what: running.get(one, {}).get(what, ZERO)}])[what]
                for what, limit in tree.limit(one).items()
            }
            handed = {
                what: min(amount, most.get(what, amount)) for what, amount in up.get(one, {}).items() if amount.nano
            }
            parent = tree.path(one)[1]
            # In a ring each queue is above the others, and hands up all.
            for other in tree.path(parent) if parent != ROOT and in_ring(parent) else (parent,):
                used[other] = total([used.get(other, {}), handed])
                up[other] = total([up.get(other, {}), handed])
        return used

    def softens_in(self, tree: QueueTree, holder: Holder) -> list[str]:
        """In its own queue; of a gang that has nothing open in all, but where the nodes bound them."""
        path = tree.gang_path(holder.queue)
        return [one for one in path if one == path[0] or (holder.idle and (one != ROOT or self.nodes is None))]

    def softened(self, tree: QueueTree) -> set[EntryKey]:
        """Whose soft part counts for nothing: in order, as long as the sum of those before is within all limits."""
        soft: set[EntryKey] = set()
        for gang, holder in sorted(self.held.items(), key=lambda one: (-one[1].priority, one[1].since, one[0])):
            where = self.softens_in(tree, holder) if holder.soft else []
            sums = {
                one: total(
                    [
                        holder.soft,
                        *(self.held[key].soft for key in soft if one in self.softens_in(tree, self.held[key])),
                    ]
                )
                for one in where
            }
            if where and all(
                sums[one].get(what, ZERO) <= most
                for one in where
                for what, most in tree.limit(one).items()
                if holder.soft.get(what)
            ):
                soft.add(gang)
        return soft

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
        left = [one for one in self.waits.values() if tree.place(one.queue) and self._can_start(tree, one, now)]
        while left := [one for one in left if going.may_matter(one)]:
            turn = going.whose_turn(left)
            going.visit(turn)
            left.remove(turn)
        return going.fitting

    def lacks_in_namespace(self, candidate: Candidate, starting: list[Candidate]) -> bool:
        """Whether ElasticQuotas leave it no room; here are none."""
        del candidate, starting
        return False

    def waits_in_namespace(self, candidate: Candidate, trust: EndKind) -> None:
        """Its patience is over, and its namespace has no room for it."""

    def keeps_in_namespace(self, candidate: Candidate, trust: EndKind) -> None:
        """What it needs is kept in its queue, and so in its namespace."""

    def in_vain(
        self,
        tree: QueueTree,
        candidate: Candidate,
        victims: tuple[str, int] | None,
        starting: list[Candidate],
        barring: list[Candidate],
    ) -> bool:
        """Whether it would not fit after all had ended that end by themselves."""
        staying = [one for one in starting + barring if one.lasts]
        return bool(self.short(tree, candidate, victims, staying, {}, lasting=True))

    def _can_start(self, tree: QueueTree, candidate: Candidate, now: float) -> bool:
        view, need = self.queues[candidate.queue], candidate.need
        limits = [tree.limit(one) for one in tree.path(candidate.queue)]
        fits = all(need.get(what, ZERO) <= most for limit in limits for what, most in limit.items())
        late = candidate.deadline is not None and candidate.deadline <= now
        above = [self.queues[one] for one in tree.path(candidate.queue) if one in self.queues]
        stopped = any(one.on_hold for one in above)
        return view.open and tree.leaf(candidate.queue) and fits and not late and not stopped

    def patience_is_over(self, candidate: Candidate, now: float) -> bool:
        """Whether nobody may pass it any more."""
        since = candidate.passed_since
        return since is not None and since + self.queues[candidate.queue].patience <= now

    def short(
        self,
        tree: QueueTree,
        candidate: Candidate,
        victims: tuple[str, int] | None,
        beside: list[Candidate],
        kept: dict[str, Resources],
        *,
        lasting: bool = False,
    ) -> list[str]:
        """Where there is no room for it, beside what is held, those that start, and what is kept for others."""
        short = []
        for one in tree.path(candidate.queue):
            used = self.used(tree, one, but_below=victims, lasting=lasting, beside=beside)
            together = total([used, candidate.need, kept.get(one, {})])
            missing = [
                what
                for what, most in tree.limit(one).items()
                if candidate.need.get(what, ZERO) > ZERO and together[what] > most
            ]
            if missing and one == ROOT and self._reclaims(tree, candidate, beside, missing, lasting=lasting):
                rest = exactly_minus(together, self.given_back(tree, but=candidate.queue, lasting=lasting))
                missing = [
                    what
                    for what in tree.limit(ROOT)
                    if candidate.need.get(what, ZERO) > ZERO and rest[what] > tree.limit(ROOT)[what]
                ]
            if missing:
                short.append(one)
        return short

    def _reclaims(
        self, tree: QueueTree, candidate: Candidate, beside: list[Candidate], missing: list[str], *, lasting: bool
    ) -> bool:
        """Whether others give back for it: its queue has no more than its share of what is missing, with it."""
        root, queue = tree.get(ROOT), candidate.queue
        if root is None or not root.reclaims or not candidate.reclaims:
            return False
        has = total([self.used(tree, queue, lasting=lasting, beside=beside), candidate.need])
        share = deserved(tree, queue)
        view = self.queues[queue]
        named = [what for what in {**view.deserved, **view.guarantee} if candidate.need.get(what, ZERO) > ZERO]
        if view.deserved and not any(what not in share or has[what].nano <= share[what] for what in named):
            return False
        return all(has[what].nano <= share[what] for what in missing)

    def given_back(self, tree: QueueTree, *, but: str = "", lasting: bool = False) -> Resources:
        """What all queues hold beyond their shares and can spare, but for this one."""
        root = tree.get(ROOT)
        given: list[Resources] = []
        for other in {one.queue for one in self.held.values()} - {but} if root and root.reclaims else ():
            if (view := tree.get(other)) is None or not view.reclaimable:
                continue
            spare = total(one.spare for one in self.held.values() if one.queue == other and (one.lasts or not lasting))
            leaf = tree.gang_path(other)[0]
            used, share = self.used(tree, leaf, lasting=lasting), deserved(tree, leaf)
            # Pods go as a whole, as far as the guarantee of each resource stays.
            above = exactly_minus({what: used.get(what, ZERO) for what in view.guarantee}, view.guarantee)
            parts = [
                Fraction(max(left.nano, 0), spare[what].nano if spare.get(what) else 1)
                for what, left in above.items()
                if left.nano < 0 or spare.get(what)
            ]
            spare = {what: Quantity(floor(amount.nano * min([Fraction(1), *parts]))) for what, amount in spare.items()}
            beyond = {
                what: floor(used[what].nano - most) for what, most in share.items() if used.get(what, ZERO).nano > most
            }
            given.append({what: min(spare[what], Quantity(beyond[what])) for what in beyond if what in spare})
        return total(given)


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

    def __init__(self, world: World, tree: QueueTree, now: float) -> None:
        self.world, self.tree, self.now = world, tree, now
        self.fitting: dict[EntryKey, Candidate] = {}
        self._first_behind: set[str] = set()
        self._short_at: set[str] = set()
        self._kept: list[_Kept] = []
        self._kept_in: set[str] = set()

    def short(self, candidate: Candidate) -> list[str]:
        """Where there is no room for it now."""
        return self.world.short(self.tree, candidate, self._victims(candidate), [*self.fitting.values()], {})

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
            self.world.used(self.tree, level), self.world.used(self.tree, level, but_below=victims)
        )
        spare = total([left, preempted if victims else {}])
        over = [what for what in both if what in left and candidate.need[what] > spare[what]]
        if over and level == ROOT:
            beside = [*self.fitting.values()]
            if self.world._reclaims(self.tree, candidate, beside, over, lasting=False):
                spare = total([spare, self.world.given_back(self.tree, but=candidate.queue)])
                over = [what for what in over if candidate.need[what] > spare[what]]
        return bool(over)

    def _left(self, kept: _Kept, level: str) -> Resources:
        """What is free at a level when room is kept for a gang that has come then, and takes its own."""
        limit = self.tree.limit(level)

        def below(queue: str) -> bool:
            return level in self.tree.path(queue)

        ended = [
            minus(one.claim, one.soft)
            for one in self.world.held.values()
            if below(one.queue) and not one.lasts and self._ended(one.end, kept)
        ]
        here = [
            one for one in kept.beside if below(one.queue) and (one.lasts or not self._ended(one.end(self.now), kept))
        ]
        before = [
            one.candidate for one in kept.before if level in one.levels and not self._ended(self._end_of(one), kept)
        ]
        taken = total([self.world.used(self.tree, level), *(one.need for one in (*here, *before, kept.candidate))])
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
        return self.world.in_vain(self.tree, candidate, self._victims(candidate), starting, keeping)

    def lacks_in_namespace(self, candidate: Candidate) -> bool:
        """Whether ElasticQuotas leave it no room now."""
        return self.world.lacks_in_namespace(candidate, [*self.fitting.values()])

    def _victims(self, candidate: Candidate) -> tuple[str, int] | None:
        preempts = candidate.preempts and self.world.queues[candidate.queue].preempts
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
        if candidate.follows or not self.world.patience_is_over(candidate, self.now) or self.in_vain(candidate):
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
        used = self.world.used(self.tree, queue, beside=[*self.fitting.values()])
        share: Fraction | float = Fraction(0)
        for what, most in deserved(self.tree, queue).items():
            has = used.get(what, ZERO).nano
            if has > 0:
                share = max(share, has / most if most else inf)
        return share

    def visit(self, candidate: Candidate) -> None:
        """It starts, or others wait for it."""
        waits = self.world.patience_is_over(candidate, self.now) and not self.in_vain(candidate)
        short = self.short(candidate)
        if self.lacks_in_namespace(candidate):
            if waits and self._short_at.isdisjoint(short[:1]):
                self._kept_in.add(candidate.key.namespace)
                self.world.waits_in_namespace(candidate, self._trust(candidate))
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
        self.world.keeps_in_namespace(candidate, trust)
        path = tuple(one for one in self.tree.path(candidate.queue) if self.tree.limit(one))
        before, beside = tuple(self._kept), [*self.fitting.values()]
        ends = [one.end for one in self.world.held.values()]
        ends += [one.end(self.now) for one in beside] + [self._end_of(one) for one in before]
        for time in sorted({end.after(self.now) for end in ends if end is not None}):
            for kind in EndKind if time < inf else ():
                kept = _Kept(candidate, time, kind, path, before, beside)
                if kind <= trust and self._fits_then(kept):
                    self._kept.append(kept)
                    return
        self._kept.append(_Kept(candidate, inf, trust, path[: path.index(lowest) + 1], before, beside))

    def _trust(self, candidate: Candidate) -> EndKind:
        view, since = self.world.queues[candidate.queue], candidate.passed_since
        after = next(one for one in (view.drain_after, candidate.drain_after, DRAINS) if one is not None)
        drains = since is not None and self.now >= since + after
        return EndKind.ABOUT if view.trusts_estimates and not drains else EndKind.SAID

    def _fits_then(self, kept: _Kept) -> bool:
        need = kept.candidate.need
        return all(
            left >= ZERO for one in kept.levels for what, left in self._left(kept, one).items() if need.get(what)
        )
