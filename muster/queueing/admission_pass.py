"""Decides which of the gangs that compete for the same quota may start now.

A pass visits the gangs in order (`muster.queueing.turns`), and each gang that fits takes its quota as if it had
started. Smaller gangs pass one that does not fit, unless its queue is strict, or it has been passed for longer than its
queue's patience (see `muster.queueing.reservations`). The rest of a gang that has begun ignores such reservations: what
it holds comes back only when it has run. A gang for which its namespace has no room holds up nobody in its queue,
strict or not (see `muster.queueing.namespace_room`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from muster.queueing.line_visitor import LineVisitor, lower
from muster.queueing.queue_view import ROOT
from muster.queueing.reclaim import Reclaimable
from muster.queueing.reservations import Bars
from muster.queueing.turns import Turns
from muster.queueing.unplaced_claims import is_soft

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from muster.queueing.bypassed import BypassedBelow
    from muster.queueing.holdings import Room
    from muster.queueing.namespace_room import NamespaceRoom
    from muster.queueing.queue_state import Candidate, Claim, EntryKey, Holds, Order, QueueState
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.shares import Shares
    from muster.queueing.unplaced_claims import HardParts
    from muster.queueing.usage import Amounts, Usage

__all__ = ["AdmissionPass", "run_admission_pass"]


@dataclass(slots=True)
class AdmissionPass:
    """What may start, in order, the usage after all of it has started, and the gangs that no other gang may pass.

    It holds until the time `until` (seconds of the wall clock), if nothing happens. `barriers` holds, for each
    strict queue, the first gang in order that waits there. `told` tells whether the result has been read. `hard` are,
    by queue, the soft parts of claims that count all the same. `by_share` tells whether siblings competed by share.
    `given_back` is what others can be made to give back, now and after all had ended that end by themselves; None where
    nobody is. No more than `at_once` gangs are let start in one pass; `more` tells that others may follow in the next
    one. `turns` holds, for each queue that competes, what it had of its share at the turn of each gang below it that
    fits.
    """

    shares: Shares
    states: Mapping[str, QueueState]
    usage: Usage
    bars: Bars
    namespaces: NamespaceRoom
    hard: Mapping[str, HardParts]
    asked: Mapping[str, Sequence[tuple[Holds, Amounts]]]
    now: float
    at_once: int
    fits: OrderedDict[EntryKey, Amounts] = field(default_factory=OrderedDict)
    barriers: dict[str, Order] = field(default_factory=dict)
    until: float = float("inf")
    told: bool = False
    by_share: bool = False
    given_back: tuple[Reclaimable, Reclaimable] | None = None
    more: bool = False
    turns: dict[str, dict[Order, float]] = field(default_factory=dict)
    bypassed: dict[tuple[str, tuple[str, ...], str], BypassedBelow] = field(default_factory=dict)

    _least: dict[str, float] = field(default_factory=dict)
    # What `free` gave since something was last taken: thousands of lines ask of one queue.
    _free: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _free_at: int = -1

    @property
    def tree(self) -> QueueTree:
        """The queues."""
        return self.shares.tree

    @property
    def changes(self) -> int:
        """Grows with everything that is taken or reserved in the pass."""
        return len(self.fits) + len(self.bars.by_queue) + len(self.barriers) + len(self.namespaces.keepers)

    def free(self, queue: str) -> Mapping[str, int]:
        """What a queue has free now, of the resources that it limits; reservations are not counted."""
        if self._free_at != self.changes:
            self._free_at = self.changes
            self._free.clear()
        known = self._free.get(queue)
        if known is None:
            known = self._free[queue] = self.usage.free(queue, self.tree.ceiling(queue))
        return known

    def is_soft(self, queue: str, claim: Claim) -> bool:
        """Whether a claim of that queue has a soft part that does not count."""
        return is_soft(self.hard, queue, claim)

    def behind(self, queue: str, order: Order | None = None) -> Order | None:
        """The gang behind which a gang of that order (None: the last) waits in a strict queue on the path; or None."""
        if self.barriers:
            for one in self.tree.path(queue):
                barrier = self.barriers.get(one)
                if barrier is not None and (order is None or barrier < order):
                    return barrier
        return None

    def comes_to_pass(self, candidate: Candidate, amounts: Amounts) -> bool:
        """Whether nothing changes for all other gangs when this gang, which may start, has started.

        Not so where its claim changes what somebody holds up whom nobody passes; nor where it passes such a one itself,
        or counts on room that is still to be made for it. Among siblings that compete by share each start changes whose
        turn is next, and one that preempts takes room that is not free: there the first must start first, and nobody
        may hold up others at all. Where room is taken back, each start changes how much that is.
        """
        if self.given_back is not None:
            return False
        preempts = self.tree.preempts(candidate.queue)
        if (self.by_share or preempts) and (self.bars.watched or next(iter(self.fits)) != candidate.key):
            return False
        concerned = self.by_share or candidate.lasts or candidate.key.namespace in self.namespaces
        if self.namespaces.watched and concerned:
            return False
        return not candidate.begun and self.bars.stay_beside(candidate, amounts)

    def lacking(self, candidate: Candidate, amounts: Amounts) -> dict[str, list[str]]:
        """The resources that a candidate lacks beside current claims, by queue: its own and those above it."""
        return self._lacking(candidate, amounts)

    def lacking_behind(self, candidate: Candidate, amounts: Amounts) -> dict[str, list[str]]:
        """The same, beside the reservations as well."""
        kept = {} if candidate.begun else self.bars.kept
        return self._lacking(candidate, amounts, kept)

    def _lacking(
        self,
        candidate: Candidate,
        amounts: Amounts,
        kept: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        *,
        lasting: bool = False,
    ) -> dict[str, list[str]]:
        usage = self.bars.lasting if lasting else self.usage
        left_out = self._left_out(candidate, lasting=lasting)
        lacking = usage.lacking(self.tree.path(candidate.queue), amounts, left_out, kept)
        if ROOT in lacking and self.given_back is not None and candidate.reclaims:
            given_back = self.given_back[lasting]
            if given_back.counts_for(candidate.queue, amounts, lacking[ROOT]):
                more = dict(left_out)
                for name, amount in given_back.given.items():
                    more[name] = more.get(name, 0) + amount
                if not usage.lacking((ROOT,), amounts, tuple(more.items()), kept):
                    del lacking[ROOT]
        return lacking

    def room(self, queue: str) -> dict[str, int]:
        """What a queue and those above it all have, beside the reservations, of the resources that they limit."""
        room: dict[str, int] = {}
        for one in self.tree.gang_path(queue):
            kept = self.bars.kept.get(one, {})
            free = self.usage.free(one, self.tree.ceiling(one))
            lower(room, {name: amount - kept.get(name, 0) for name, amount in free.items()})
        return room

    def could_fit(self, candidate: Candidate, amounts: Amounts) -> bool:
        """Whether it would fit after all gangs that end by themselves had ended."""
        if candidate.limited and not self.namespaces.could_have(candidate.key.namespace, amounts):
            return False
        return not self._lacking(candidate, amounts, lasting=True)

    def patience_is_over(self, candidate: Candidate) -> bool:
        """Whether nobody may pass it any more."""
        view, since = self.tree.get(candidate.queue), candidate.passed_since
        return view is not None and since is not None and since + view.patience <= self.now

    def waits_in_vain(self, candidate: Candidate) -> bool:
        """Whether its patience is over, and it still holds up no other gang."""
        if any(bar.order == candidate.order for bar in self.bars.by_queue.values()):
            return False
        if self.namespaces.keepers.get(candidate.key.namespace) == candidate.order:
            return False
        could = not candidate.follows and self.could_fit(candidate, candidate.amounts)
        return self.patience_is_over(candidate) and not could

    def gives_way(self, queue: str, level: str) -> tuple[str, float] | None:
        """The queue directly below `level` in which gangs of a queue wait, and the part of its share that it has.

        None unless a sibling that has less goes first, with gangs that wait for `level`.
        """
        if queue == level or self.shares.by_age(level):
            return None
        path = self.tree.path(queue)
        own = path[path.index(level) - 1]
        share = self.share(own)
        if level not in self._least:
            self._least[level] = min(self._waiting_below(level), default=float("inf"))
        return (own, share) if self._least[level] < share else None

    def share(self, queue: str) -> float:
        """The part of its share that a queue has, with all that starts."""
        return self.shares.of(queue, self.usage.taken(queue))

    def _waiting_below(self, level: str) -> Iterator[float]:
        """The shares of queues directly below in which anybody waits for room of `level`, and not for room below it."""
        for queue, state in self.states.items():
            path = self.tree.path(queue)
            if level in path[1:] and self.tree.takes_work(queue) and self.tree.leaf(queue):
                below = path[: path.index(level)]
                free = [self.usage.free(one, self.tree.ceiling(one)) for one in below]
                if any(_within(line.least, free) for line in state.lines.values()):
                    yield self.share(below[-1])

    def _left_out(self, candidate: Candidate, *, lasting: bool = False) -> Amounts:
        """What claims of lower priority hold in a queue where Volcano makes room for the gang by preempting them."""
        if not (candidate.preempts and self.tree.preempts(candidate.queue)):
            return ()
        return tuple(self.less_urgent(candidate.queue, candidate.priority, lasting=lasting).items())

    def less_urgent(self, queue: str, priority: int, *, lasting: bool = False) -> dict[str, int]:
        """What counts in a queue of claims of lower priority, of those alone that last or of all."""
        held = self.states[queue].less_urgent(priority, lasting=lasting)
        for like, counts in self.asked.get(queue, ()):
            if like.urgency > -priority and (like.lasts or not lasting):
                for name, amount in counts:
                    held[name] = held.get(name, 0) + amount
        return held


def _within(needs: Amounts, free: Iterable[Mapping[str, int]]) -> bool:
    return all(amount <= most.get(name, amount) for most in free for name, amount in needs)


def run_admission_pass(
    shares: Shares, states: Mapping[str, QueueState], room: Room, *, now: float, at_once: int
) -> AdmissionPass:
    """Decide for all gangs that wait in these queues, the queues of one subtree, until `at_once` may start.

    The pass takes of the room.
    """
    tree = shares.tree
    bars = Bars(tree, room.lasting)
    outcome = AdmissionPass(shares, states, room.usage, bars, room.namespaces, room.hard, room.asked, now, at_once)
    if tree.reclaims:
        of_all = Reclaimable(shares, states, outcome.usage)
        outcome.given_back = of_all, Reclaimable(shares, states, outcome.bars.lasting, lasting=True)
    visitors: dict[str, list[LineVisitor]] = {}
    for queue, state in states.items():
        outcome.until = min(outcome.until, state.advance(now))
        if tree.takes_work(queue) and tree.leaf(queue):
            lines = (LineVisitor(outcome, queue, key, line) for key, line in state.lines.items())
            visitors[queue] = [one for one in lines if not one.is_full()]
    turns = Turns(shares, outcome.usage, visitors)
    outcome.by_share = turns.by_share
    while (turn := turns.next()) is not None:
        if len(outcome.fits) == at_once:
            outcome.more = True
            break
        _visit(outcome, *turn)
        turns.visited()
    return outcome


def _visit(outcome: AdmissionPass, queue: str, order: Order) -> None:
    """Decide one gang."""
    candidate = outcome.states[queue].waits(order.key)
    if outcome.behind(queue, order) is not None and not candidate.begun:
        return
    amounts = candidate.amounts
    namespace = candidate.key.namespace
    if candidate.limited and not outcome.namespaces.has(namespace, amounts, kept=not candidate.begun):
        _wait_in_namespace(outcome, candidate, amounts)
        return
    lacking = outcome.lacking_behind(candidate, amounts)
    if not lacking:
        for one in filter(outcome.shares.competes, outcome.tree.path(queue)):
            outcome.turns.setdefault(one, {})[order] = outcome.share(one)
        outcome.fits[order.key] = amounts
        outcome.usage.take(queue, amounts, running=())
        outcome.namespaces.take(namespace, amounts, lasts=candidate.lasts)
        if candidate.lasts:
            outcome.bars.lasting.take(queue, amounts, running=())
    elif not candidate.follows:
        _wait(outcome, candidate, amounts, lacking)


def _wait_in_namespace(outcome: AdmissionPass, candidate: Candidate, amounts: Amounts) -> None:
    """Keep room in its namespace for a gang that lacks it there, where its patience is over.

    Not while the room that it lacks in its queue is kept for another: that one is first.
    """
    if outcome.patience_is_over(candidate) and not candidate.follows:
        outcome.namespaces.watched = True
        short = next(iter(outcome.lacking_behind(candidate, amounts)), None)
        if candidate.key.namespace in outcome.namespaces.keepers or short in outcome.bars.by_queue:
            return
        if outcome.could_fit(candidate, amounts):
            outcome.namespaces.keep(candidate, amounts)


def _wait(outcome: AdmissionPass, candidate: Candidate, amounts: Amounts, lacking: dict[str, list[str]]) -> None:
    """Reserve quota for a gang that lacks it, where its patience is over."""
    for one in outcome.tree.path(candidate.queue):
        if outcome.tree.strict(one):
            outcome.barriers.setdefault(one, candidate.order)
            outcome.namespaces.watched = outcome.namespaces.watched or candidate.limited
    if outcome.patience_is_over(candidate):
        could_fit = outcome.could_fit(candidate, amounts)
        reserved = outcome.bars.add(candidate, amounts, lacking, outcome.usage, could_fit=could_fit)
        if candidate.limited:
            outcome.namespaces.watched = True
            if reserved:
                outcome.namespaces.keep(candidate, amounts)
