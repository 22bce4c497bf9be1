"""Reservations: quota kept for gangs that were passed for longer than their queue's patience.

What such a gang needs counts as taken for all gangs behind it, in its queue and the queues above, up to the lowest one
that is short. Gangs behind it that need what is short there do not start; others start as long as they leave it what it
needs. Above the lowest short queue it waits for nothing yet. When that queue has room, the room is kept and the next
short queue comes; so no gang waits for ever behind smaller ones.

A reservation lasts only while it helps: while the gang would fit after all gangs that end by themselves had ended. A
gang that waits for services, which do not end, or for its own predecessor, would hold the others up for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.queueing.queue_state import Candidate, Order
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.usage import Amounts, Usage

__all__ = ["Bar", "Bars"]


class Bar(NamedTuple):
    """The reservation of one gang: its place in the order, the queue that is short, and of which resources."""

    order: Order
    queue: str
    names: tuple[str, ...]
    reach: tuple[str, ...]


@dataclass(slots=True)
class _Watched:
    """A gang whose patience is over: what it leaves free, by queue and resource, now and after all others have ended.

    `counts_on_more` tells that it fits beside more than is left, for others are preempted for it.
    """

    order: Order
    counts_on_more: bool
    left: dict[tuple[str, str], int]
    left_in_the_end: dict[tuple[str, str], int]


@dataclass(slots=True)
class Bars:
    """The reservations, at most one for each queue; `kept` is what counts as taken for them, by queue.

    `lasting` is the room of those alone that do not end by themselves.
    """

    tree: QueueTree
    lasting: Usage
    by_queue: dict[str, Bar] = field(default_factory=dict)
    kept: dict[str, dict[str, int]] = field(default_factory=dict)
    _watched: list[_Watched] = field(default_factory=list)

    def add(
        self, candidate: Candidate, amounts: Amounts, lacking: dict[str, list[str]], usage: Usage, *, could_fit: bool
    ) -> bool:
        """Reserve for this gang, which lacks quota, where that helps it; the gangs before it were visited already.

        True when something is reserved.
        """
        path = self.tree.path(candidate.queue)
        self._watch(candidate, path, amounts, usage)
        short = next(one for one in path if one in lacking)
        if not could_fit or short in self.by_queue:
            return False
        reach = path[: path.index(short) + 1]
        self.by_queue[short] = Bar(candidate.order, short, tuple(lacking[short]), reach)
        for one in reach:
            kept = self.kept.setdefault(one, {})
            for name, amount in amounts:
                kept[name] = kept.get(name, 0) + amount
        if candidate.lasts:
            self.lasting.take(candidate.queue, amounts, running=())
        return True

    def holding_up(self, candidate: Candidate, lacking: dict[str, list[str]]) -> Bar | None:
        """The first reservation that keeps what a candidate behind it lacks, or None."""
        others = (bar for bar in self.by_queue.values() if bar.order != candidate.order)
        return next((bar for bar in others if any(queue in bar.reach for queue in lacking)), None)

    @property
    def watched(self) -> bool:
        """Whether the patience of any gang that waits is over."""
        return bool(self._watched)

    def stay_beside(self, candidate: Candidate, amounts: Amounts) -> bool:
        """Whether no reservation changes when this gang, which may start and does not preempt, has started."""
        path = self.tree.path(candidate.queue)
        taken = {(queue, name): amount for queue in path for name, amount in amounts}
        behind = [watched for watched in self._watched if watched.order < candidate.order]
        if any(watched.counts_on_more for watched in behind):
            return False
        sums = [watched.left for watched in behind]
        if candidate.lasts:
            sums += [watched.left_in_the_end for watched in behind]
        if any(0 <= left[place] < taken[place] for left in sums for place in left.keys() & taken.keys()):
            return False
        for left in sums:
            for place in left.keys() & taken.keys():
                left[place] -= taken[place]
        return True

    def _watch(self, candidate: Candidate, path: Sequence[str], amounts: Amounts, usage: Usage) -> None:
        def left(of: Usage, kept: dict[str, dict[str, int]]) -> dict[tuple[str, str], int]:
            return {
                (queue, name): limit[name] - of.taken(queue).get(name, 0) - kept.get(queue, {}).get(name, 0) - amount
                for queue in path
                if (limit := self.tree.ceiling(queue))
                for name, amount in amounts
                if name in limit
            }

        more = candidate.preempts and self.tree.preempts(candidate.queue)
        self._watched.append(_Watched(candidate.order, more, left(usage, self.kept), left(self.lasting, {})))
