"""Whom nobody passes any more, where, and of what: gangs that were passed for as long as their queue's patience.

What such a gang needs counts as taken for all behind it, in its queue and those above up to the lowest one that is
short: so nobody starts there who asks for what is short, and others do as long as they leave it what it needs. Above
that it waits for nothing yet. When the lowest one has room it is kept, and the next one that is short comes; so nobody
waits for ever behind smaller ones.

It holds up others only while that helps: while it would fit when all had ended that ends by itself. One that waits for
room of services, which do not, or for its own predecessor, would hold them up for ever.
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
    """One whom nobody passes: its place in the order, the queue that is short, and of which resources."""

    order: Order
    queue: str
    names: tuple[str, ...]
    reach: tuple[str, ...]


@dataclass(slots=True)
class _Watched:
    """One whose patience is over: by queue and resource what is left beside it, and beside what does not end alone.

    `counts_on_more` tells that it fits beside more than is left, for others are preempted for it.
    """

    order: Order
    counts_on_more: bool
    left: dict[tuple[str, str], int]
    left_in_the_end: dict[tuple[str, str], int]


@dataclass(slots=True)
class Bars:
    """Those whom nobody passes, at most one for each queue; `kept` is by queue what counts as taken for them.

    `lasting` is the room of those alone that do not end by themselves.
    """

    tree: QueueTree
    lasting: Usage
    by_queue: dict[str, Bar] = field(default_factory=dict)
    kept: dict[str, dict[str, int]] = field(default_factory=dict)
    _watched: list[_Watched] = field(default_factory=list)

    def add(
        self, candidate: Candidate, amounts: Amounts, lacking: dict[str, list[str]], usage: Usage, *, could_fit: bool
    ) -> None:
        """Let nobody pass this gang, which lacks room, where that helps it; those before it have been looked at."""
        path = self.tree.path(candidate.queue)
        self._watch(candidate, path, amounts, usage)
        short = next(one for one in path if one in lacking)
        if not could_fit or short in self.by_queue:
            return
        reach = path[: path.index(short) + 1]
        self.by_queue[short] = Bar(candidate.order, short, tuple(lacking[short]), reach)
        for one in reach:
            kept = self.kept.setdefault(one, {})
            for name, amount in amounts:
                kept[name] = kept.get(name, 0) + amount
        if candidate.lasts:
            self.lasting.take(candidate.queue, amounts)

    def holding_up(self, candidate: Candidate, lacking: dict[str, list[str]]) -> Bar | None:
        """Which of them keeps the room that a candidate lacks behind them; the lowest, None where nobody does."""
        names = {(queue, name) for queue, of_queue in lacking.items() for name in of_queue}
        for bar in sorted(self.by_queue.values(), key=lambda bar: bar.order):
            if bar.order < candidate.order and any(queue in bar.reach for queue, _ in names):
                return bar
        return None

    def stay_beside(self, candidate: Candidate, amounts: Amounts) -> bool:
        """Whether all of this stays as it is when one that may start, and does not preempt, has started."""
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

        view = self.tree.get(candidate.queue)
        more = view is not None and view.preempts
        self._watched.append(_Watched(candidate.order, more, left(usage, self.kept), left(self.lasting, {})))
