"""Queues, claims and waiting gangs in plain facts: what is used, who is soft, and where there is room."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from types import MappingProxyType
from typing import NamedTuple

from muster.queueing.entries import EndKind, EntryKey
from muster.queueing.ledger import Candidate, End
from muster.queueing.queue_tree import QueueTree, own_leaf
from muster.queueing.queue_view import ROOT, QueueView
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
    # In a ring a queue is above itself, too.
    view, parents = tree.get(queue), tree.path(tree.path(queue)[1])
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


class Facts:
    """Queues, claims and waiting gangs, and what follows from them for one of these gangs."""

    def __init__(self) -> None:
        self.queues: dict[str, QueueView] = {}
        self.held: dict[EntryKey, Holder] = {}
        self.waits: dict[EntryKey, Candidate] = {}
        self.nodes: Resources | None = None
        self._softened: tuple[QueueTree, set[EntryKey]] | None = None
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

    def can_start(self, tree: QueueTree, candidate: Candidate, now: float) -> bool:
        """True if its queue takes it, could ever hold it, and its time is not over."""
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
            if missing and one == ROOT and self.takes_back(tree, candidate, beside, missing, lasting=lasting):
                rest = exactly_minus(together, self.given_back(tree, but=candidate.queue, lasting=lasting))
                missing = [
                    what
                    for what in tree.limit(ROOT)
                    if candidate.need.get(what, ZERO) > ZERO and rest[what] > tree.limit(ROOT)[what]
                ]
            if missing:
                short.append(one)
        return short

    def takes_back(
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
