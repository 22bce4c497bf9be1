"""Decides which of the gangs that compete for the same quota may start now.

A pass visits the gangs in order, and each gang that fits takes its quota as if it had started. Smaller gangs pass one
that does not fit, unless its queue is strict, or it has been passed for longer than its queue's patience (see
`muster.queueing.reservations`). The rest of a gang that has begun ignores such reservations: what it holds comes back
only when it has run.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.queueing.queue_state import Full
from muster.queueing.reservations import Bars
from muster.queueing.unplaced_claims import softened, take_hard_parts
from muster.queueing.usage import amounts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.queueing.queue_state import Candidate, ClassKey, EquivalenceClass, GangKey, Order, QueueState
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.usage import Amounts, Usage

__all__ = ["AdmissionPass", "run_admission_pass"]


@dataclass(slots=True)
class AdmissionPass:
    """What may start, the usage after all of it has started, and the gangs that no other gang may pass.

    It holds until the time `until` (seconds of the wall clock), if nothing happens. `barriers` holds, for each
    strict queue, the first gang in order that waits there. `exhausted` are amounts for which a queue has no quota left,
    so that other gangs with the same need there need no visit. `told` tells whether the result has been read. In a
    `humble` queue gangs that have not been passed hold up no other gang. `soft` are the gangs whose soft claims do not
    count.
    """

    tree: QueueTree
    states: Mapping[str, QueueState]
    usage: Usage
    bars: Bars
    now: float
    fits: dict[GangKey, Amounts] = field(default_factory=dict)
    barriers: dict[str, Order] = field(default_factory=dict)
    until: float = float("inf")
    exhausted: set[tuple[str, Amounts]] = field(default_factory=set)
    told: bool = False
    humble: set[str] = field(default_factory=set)
    soft: set[GangKey] = field(default_factory=set)

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
        or counts on room that is still to be made for it.
        """
        view = self.tree.get(candidate.queue)
        preempts = view is not None and view.preempts
        return not preempts and not candidate.begun and self.bars.stay_beside(candidate, amounts)

    def lacking(self, candidate: Candidate, amounts: Amounts) -> dict[str, list[str]]:
        """The resources that a candidate lacks beside current claims, by queue: its own and those above it."""
        return self.usage.lacking(self.tree.path(candidate.queue), amounts, self._left_out(candidate))

    def lacking_behind(self, candidate: Candidate, amounts: Amounts) -> dict[str, list[str]]:
        """The same, beside the reservations as well."""
        kept = {} if candidate.begun else self.bars.kept
        return self.usage.lacking(self.tree.path(candidate.queue), amounts, self._left_out(candidate), kept)

    def could_fit(self, candidate: Candidate, amounts: Amounts) -> bool:
        """Whether it would fit after all gangs that end by themselves had ended."""
        return not self.bars.lasting.short(candidate.queue, amounts, self._left_out(candidate, lasting=True))

    def waits_in_vain(self, candidate: Candidate) -> bool:
        """Whether its patience is over, and it still holds up no other gang."""
        if any(bar.order == candidate.order for bar in self.bars.by_queue.values()):
            return False
        could = not candidate.follows and self.could_fit(candidate, amounts_of(candidate.need))
        return _patience_is_over(self, candidate) and not could

    def _left_out(self, candidate: Candidate, *, lasting: bool = False) -> Amounts:
        """What claims of lower priority hold in a queue where Volcano makes room by preempting them."""
        view = self.tree.get(candidate.queue)
        if view is None or not view.preempts:
            return ()
        left_out: dict[str, int] = {}
        for claim in self.states[candidate.queue].held.values():
            if claim.order.urgency > -candidate.priority and (claim.lasts or not lasting):
                spared = dict(claim.soft_amounts)
                for name, amount in claim.amounts:
                    left_out[name] = left_out.get(name, 0) + amount - spared.get(name, 0)
        return tuple(left_out.items())


def run_admission_pass(
    tree: QueueTree, states: Mapping[str, QueueState], usage: Usage, lasting: Usage, now: float
) -> AdmissionPass:
    """Decide for all gangs that wait in these queues, the queues of one subtree; `usage` is not changed.

    `lasting` is the usage of the claims that do not end by themselves.
    """
    outcome = AdmissionPass(tree, states, usage.copy(), Bars(tree, lasting.copy()), now, soft=softened(tree, states))
    take_hard_parts(tree, states, outcome.usage, outcome.bars.lasting, outcome.soft)
    heads: list[tuple[Order, int, str, ClassKey]] = []
    lacking: dict[tuple[str, Amounts], bool] = {}
    for queue, state in states.items():
        view = tree.get(queue)
        outcome.until = min(outcome.until, state.next_moment(now))
        if view is None or not view.open or not tree.leaf(queue):
            continue
        path = tree.path(queue)
        if not view.preempts and not any(_strict(tree, one) for one in path):
            outcome.humble.add(queue)
        for key, peers in state.classes.items():
            # Without preemption or strict order, the gangs of a class can only wait where quota is lacking.
            full = _humble(outcome, queue, key) and _full(path, peers, usage, lacking)
            if not full and not usage.beyond(queue, peers.amounts):
                heads.append((peers.orders[0], 0, queue, key))
    heapq.heapify(heads)
    while heads:
        _, index, queue, key = heads[0]
        peers = states[queue].classes[key]
        following = _visit(outcome, queue, peers, index, humble=_humble(outcome, queue, key))
        if following is None or following == len(peers.orders):
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, (peers.orders[following], following, queue, key))
    return outcome


def _full(
    path: tuple[str, ...], peers: EquivalenceClass, usage: Usage, lacking: dict[tuple[str, Amounts], bool]
) -> bool:
    """Whether no gang of this class fits beside current claims; `lacking` is a cache of lookups."""
    if peers.full is not None and peers.full.still(usage):
        return True
    # From the root down: other queues have looked up the same queues above.
    for one in reversed(path):
        lacks = lacking.get((one, peers.amounts))
        if lacks is None:
            lacks = lacking[one, peers.amounts] = usage.lacks(one, peers.amounts)
        if lacks:
            peers.full = Full(usage, one, usage.times_given_back(one))
            return True
    return False


def _strict(tree: QueueTree, queue: str) -> bool:
    view = tree.get(queue)
    return view is not None and view.strict


def _humble(outcome: AdmissionPass, queue: str, key: ClassKey) -> bool:
    _, passed, begun = key
    return queue in outcome.humble and not passed and not begun


def _visit(outcome: AdmissionPass, queue: str, peers: EquivalenceClass, index: int, *, humble: bool) -> int | None:
    """Decide one gang of a class; returns the index of the next one to visit, None where the others need no visit."""
    order, amounts = peers.orders[index], peers.amounts
    candidate = outcome.states[queue].waits(order.key)
    if candidate.deadline is not None and candidate.deadline <= outcome.now:
        return index + 1
    path = outcome.tree.path(queue)
    if humble and any((one, amounts) in outcome.exhausted for one in path):
        return None
    if outcome.behind(queue, order) is not None and not candidate.begun:
        return None
    lacking = outcome.lacking_behind(candidate, amounts)
    if not lacking:
        outcome.fits[order.key] = amounts
        outcome.usage.take(queue, amounts)
        if candidate.lasts:
            outcome.bars.lasting.take(queue, amounts)
        return index + 1
    if not candidate.begun:
        outcome.exhausted.update((one, amounts) for one in lacking)
    if candidate.follows:
        # Other gangs of this class may hold up the gangs behind them.
        return index + 1
    return _wait(outcome, candidate, peers, index, lacking)


def _wait(
    outcome: AdmissionPass, candidate: Candidate, peers: EquivalenceClass, index: int, lacking: dict[str, list[str]]
) -> int | None:
    """Reserve quota for a gang that lacks it, where its patience is over; returns the next index as `_visit` does."""
    for one in outcome.tree.path(candidate.queue):
        if _strict(outcome.tree, one):
            outcome.barriers.setdefault(one, candidate.order)
    over = _patience_is_over(outcome, candidate)
    if over:
        could_fit = outcome.could_fit(candidate, peers.amounts)
        outcome.bars.add(candidate, peers.amounts, lacking, outcome.usage, could_fit=could_fit)
    if over or candidate.passed_since is None:
        return None
    # No gang behind it fits either, but the patience of another one may be over.
    waiting = (outcome.states[candidate.queue].waits(other.key) for other in peers.orders[index + 1 :])
    return next((index + 1 + i for i, other in enumerate(waiting) if _patience_is_over(outcome, other)), None)


def _patience_is_over(outcome: AdmissionPass, candidate: Candidate) -> bool:
    view = outcome.tree.get(candidate.queue)
    since = candidate.passed_since
    return view is not None and since is not None and since + view.patience <= outcome.now
