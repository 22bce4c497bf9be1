"""Goes along a line of waiting gangs in a pass, from one whom a visit can change to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.queueing.queue_state import Stage
from muster.queueing.queue_view import ROOT
from muster.queueing.turns import Visitor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.queueing.admission_pass import AdmissionPass
    from muster.queueing.queue_state import LineKey, Order
    from muster.queueing.usage import Amounts
    from muster.queueing.waiting_line import WaitingLine

__all__ = ["LineVisitor", "lower"]


class LineVisitor(Visitor):
    """Finds those of a line who can change anything when they are visited; what they may need only shrinks in a pass.

    That are those who may fit, and those whose patience is over where a reservation may help them. In a strict queue
    it is everybody, until one has to wait.
    """

    def __init__(self, outcome: AdmissionPass, queue: str, key: LineKey, line: WaitingLine) -> None:
        self.outcome = outcome
        self.queue = queue
        self.key = key
        self.line = line
        self.first = line.first
        # Where gangs are visited only if they fit what is free: the limits, from the root down. Many a queue has no
        # gang that fits what is free for all.
        self._limits: tuple[str, ...] = ()
        if key.stage is not Stage.OVER and not outcome.tree.in_strict_line(queue) and not self._spared(lasting=False):
            self._limits = outcome.tree.limiting(queue)
            if outcome.given_back is not None and self._limits[:1] == (ROOT,):
                self._limits = self._limits[1:]
        # Who was visited last, or can change nothing any more; and how much had changed when the next one was found.
        self._last: Order | None = None
        self._found_at = -1

    def settle(self) -> bool:
        """Find the next; False where there is none."""
        if self.is_full():
            return False
        if self._found_at != self.outcome.changes:
            found = self._next()
            if found is None:
                return False
            self.first = found
            self._found_at = self.outcome.changes
        return True

    def next(self) -> tuple[str, Order] | None:
        """The queue, and who is to be visited there; None for nobody."""
        return (self.queue, self.first) if self.settle() else None

    def visited(self) -> None:
        """Go on behind the one who was visited."""
        self._last = self.first
        self._found_at = -1

    def _next(self) -> Order | None:
        most = self._most()
        if most is None:
            return None
        found = self.line.next_within(self._last, most)
        while found is not None and self._changes_nothing(*found):
            self._last = found[0]
            found = self.line.next_within(self._last, most)
        return None if found is None else found[0]

    def _changes_nothing(self, order: Order, amounts: Amounts) -> bool:
        """Whether it cannot start in this pass, and has nothing reserved either."""
        outcome = self.outcome
        candidate = outcome.states[self.queue].waits(order.key)
        if candidate.deadline is not None and candidate.deadline <= outcome.now:
            return True
        if candidate.limited and not outcome.namespaces.has(order.key.namespace, amounts, kept=not candidate.begun):
            return candidate.follows or not outcome.patience_is_over(candidate)
        if not (candidate.follows or self._begun_long_ago) or not outcome.lacking_behind(candidate, amounts):
            return False
        return candidate.follows or not outcome.could_fit(candidate, amounts)

    @property
    def _begun_long_ago(self) -> bool:
        """Whether no reservation keeps them from what is free, also where in the end nothing would be.

        In a strict queue the first that has to wait matters to others.
        """
        if not self.key.begun or self.key.stage is not Stage.OVER:
            return False
        strict = self.outcome.tree.in_strict_line(self.queue)
        return not strict or self.outcome.behind(self.queue) is not None

    def _most(self) -> dict[str, int] | None:
        """What the next one may need at most, of the resources that are limited; None where nobody here can be next."""
        outcome, tree = self.outcome, self.outcome.tree
        path = tree.path(self.queue)
        strict = tree.in_strict_line(self.queue)
        behind = strict and outcome.behind(self.queue) is not None
        if behind and not self.key.begun:
            return None
        spared = self._spared(lasting=False)
        by_what_is_free = self.key.stage is not Stage.OVER and (behind or not strict)
        # Who can never start is never visited.
        most = self._most_of_namespace()
        # From the root down: many a queue has nobody who fits what is free for all.
        for one in reversed(path):
            limit = tree.ceiling(one)
            if not limit:
                continue
            lower(most, limit)
            if by_what_is_free:
                lower(most, self._free(one, spared))
            if any(name in most and amount > most[name] for name, amount in self.line.least):
                return None
        if self.key.stage is Stage.OVER and not self.key.begun and (behind or not strict):
            # Who fits now need not fit in the end: what the first of others waits for is kept for that.
            now = dict(most)
            for one in path:
                lower(now, self._free(one, spared))
            self._lower_to_what_helps(most, spared)
            most = {name: max(amount, now[name]) for name, amount in most.items()}
        return most

    def is_full(self) -> bool:
        """Whether a level has less free than any of the line needs, and nothing else can be done for them in this pass.

        So it is for most lines of a busy cluster, and what is free only shrinks in a pass.
        """
        for one in self._limits:
            free = self.outcome.free(one)
            for name, amount in self.line.least:
                if name in free and amount > free[name]:
                    return True
        return False

    def _most_of_namespace(self) -> dict[str, int]:
        """The same, beside the ElasticQuotas of its namespace."""
        room, namespace, begun = self.outcome.namespaces, self.key.namespace, self.key.begun
        if namespace not in room:
            return {}
        helps = self.key.stage is Stage.OVER and namespace not in room.keepers
        return room.largest(namespace, kept=not begun, in_the_end=helps)

    def _lower_to_what_helps(self, most: dict[str, int], spared: Mapping[str, int]) -> None:
        """What would be free after all had ended that end by themselves; and where others have a reservation, now.

        For one reservation stands in a queue at most: that of the first who lacks quota there, and not in those below.
        """
        tree, bars = self.outcome.tree, self.outcome.bars
        in_the_end = self._spared(lasting=True)
        reserved = True
        for one in tree.path(self.queue):
            limit = tree.ceiling(one)
            if limit:
                taken = bars.lasting.taken(one)
                more = self._given_back(one, lasting=True)
                free = {
                    name: up - taken.get(name, 0) + in_the_end.get(name, 0) + more.get(name, 0)
                    for name, up in limit.items()
                }
                lower(most, free)
                reserved = reserved and one in bars.by_queue
                if reserved:
                    lower(most, self._free(one, spared))

    def _free(self, queue: str, spared: Mapping[str, int]) -> dict[str, int]:
        taken = self.outcome.usage.taken(queue)
        kept = {} if self.key.begun else self.outcome.bars.kept.get(queue, {})
        more = self._given_back(queue)
        return {
            name: limit - taken.get(name, 0) - kept.get(name, 0) + spared.get(name, 0) + more.get(name, 0)
            for name, limit in self.outcome.tree.ceiling(queue).items()
        }

    def _given_back(self, level: str, *, lasting: bool = False) -> Mapping[str, int]:
        """What others can be made to give back there, at most, for gangs of this line."""
        if level != ROOT or self.outcome.given_back is None:
            return {}
        return self.outcome.given_back[lasting].given

    def _spared(self, *, lasting: bool) -> Mapping[str, int]:
        """What those hold whom Volcano preempts for this line; a line has one priority then."""
        urgency = self.key.urgency
        return {} if urgency is None else self.outcome.less_urgent(self.queue, -urgency, lasting=lasting)


def lower(most: dict[str, int], other: Mapping[str, int]) -> None:
    """Have at most as much of each resource as `other` says."""
    for name, amount in other.items():
        if name not in most or amount < most[name]:
            most[name] = amount
