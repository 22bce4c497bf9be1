"""What a scheduler's reclaim gives: room that queues hold beyond their shares, for gangs of queues below theirs.

Where the root says so (`muster.dev/reclaim`), a gang that lacks nothing but room of the root may start when it would
fit after that. Volcano chooses the victims: it knows no tree, and compares each queue in which gangs run with what that
deserves. Of a gang it takes running pods beyond the minimum, so that no more is counted on than what the gangs of such
a queue can spare, and no more than what it holds beyond its share (plugins `gang`, `capacity` and `proportion` of
Volcano 1.14.1). Nor does it take a pod that would leave a queue less than its guarantee of any resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import floor

from muster.queueing.queue_state import QueueState
from muster.queueing.shares import Shares
from muster.queueing.usage import Amounts, Usage
from muster.resources.amounts import Resources


class Reclaimable:
    """What queues can be made to give back, at the beginning of a pass; of those claims alone that last, or all."""

    def __init__(
        self, shares: Shares, states: Mapping[str, QueueState], usage: Usage, *, lasting: bool = False
    ) -> None:
        self._shares = shares
        self._usage = usage
        self.given: dict[str, int] = {}
        """By resource, in billionths."""
        for queue, state in states.items():
            view = shares.tree.get(queue)
            if view is None or not view.reclaimable:
                continue
            leaf = shares.tree.gang_path(queue)[0]
            taken = usage.taken(leaf)
            spare = _beside(view.guarantee, state.spare(lasting=lasting), taken)
            beyond = shares.beyond(leaf, taken) if spare else {}
            for name, amount in beyond.items():
                self.given[name] = self.given.get(name, 0) + min(amount, spare.get(name, 0))

    def counts_for(self, queue: str, amounts: Amounts, names: Iterable[str]) -> bool:
        """Whether a queue that takes so much more stays within its share of these resources, and gives none itself.

        A `deserved` must name one of the resources that it takes, and leave room for it, or a guarantee must: to the
        plugin `capacity` it deserves nothing of the others, and that takes nothing back for them alone.
        """
        taken = dict(self._usage.taken(queue))
        for name, amount in amounts:
            taken[name] = taken.get(name, 0) + amount
        beyond = self._shares.beyond(queue, taken)
        view = self._shares.tree.get(queue)
        if view is not None and view.deserved:
            named = [name for name, amount in amounts if amount and (name in view.deserved or name in view.guarantee)]
            if all(name in beyond for name in named):
                return False
        return not any(name in beyond for name in names)


def _beside(guarantee: Resources, spare: Mapping[str, int], taken: Mapping[str, int]) -> Mapping[str, int]:
    """What of spare pods may go: each as a whole, and none that leaves its queue less than the guarantee."""
    part = Fraction(1)
    for name, least in guarantee.items():
        left, whole = taken.get(name, 0) - least.nano, spare.get(name, 0)
        if left < whole:
            part = min(part, Fraction(max(left, 0), whole or 1))
    return {name: floor(amount * part) for name, amount in spare.items()} if part < 1 else spare
