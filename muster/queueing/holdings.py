"""What the claims of all gangs take: of their queues and of those above them, and of their namespaces' ElasticQuotas.

Each queue knows the sums of its own claims (`QueueState.sums`). What stands in the tree follows from these sums and the
tree, so that a change of the tree costs by the number of queues that it moves, and not by that of gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.queueing.namespace_room import NamespaceUse
from muster.queueing.queue_tree import own_leaf
from muster.queueing.unplaced_claims import SoftClaims, is_soft, lasting_part, soft_in, soft_where
from muster.queueing.usage import Usage
from muster.resources.amounts import minus, total

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from muster.queueing.namespace_room import NamespaceRoom
    from muster.queueing.queue_state import Claim, QueueState
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.usage import Amounts
    from muster.resources.amounts import Resources

__all__ = ["Holdings"]


class Holdings:
    """The usage of a tree's queues by all claims, and by those alone that do not end by themselves; soft parts apart.

    Valid for all claims that were entered, while the tree stands as it did when the queue of each was planted last.
    """

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._usage = Usage(tree)
        self._lasting = Usage(tree)
        self.namespaces = NamespaceUse(tree)
        self.soft = SoftClaims(tree)

    def enter(self, queue: str, claim: Claim, sign: int = 1) -> None:
        """Count a claim of a queue, or with the sign -1 count it no longer."""
        soft = signed(claim.soft_amounts, sign)
        self._take(queue, signed(claim.amounts, sign), soft, idle=claim.idle, lasts=claim.lasts)
        self.namespaces.enter(claim, sign)
        if soft:
            self.soft.enter(queue, claim, sign)

    def _take(self, queue: str, amounts: Amounts, soft: Amounts, *, idle: bool, lasts: bool) -> None:
        where = soft_where(self._tree, queue, idle=idle) if soft else ()
        for usage, held in (
            (self._usage, amounts),
            (self._lasting, lasting_part(amounts, soft, idle=idle, lasts=lasts)),
        ):
            if held:
                usage.take(queue, held)
                usage.take_in(where, signed(soft, -1))
        if soft:
            self.soft.take(queue, where, soft)

    def replant(self, states: Mapping[str, QueueState]) -> None:
        """The tree has changed: have what these queues hold, which are all, count where they stand now."""
        self._usage, self._lasting = Usage(self._tree), Usage(self._tree)
        self.soft.replant()
        self.plant(states)

    def uproot(self, queues: Collection[str], states: Mapping[str, QueueState]) -> None:
        """Count nowhere what these hold, among them all of a queue and those below it (`queues`): they are to move."""
        self._count(states, -1)
        # Now nothing is taken of them; the numbers of a queue that is gone need not stay for ever.
        for one in (*queues, *map(own_leaf, (*queues, *states))):
            self._usage.empty(one)
            self._lasting.empty(one)

    def plant(self, states: Mapping[str, QueueState]) -> None:
        """Have what these queues hold count where they stand now."""
        self._count(states)

    def _count(self, states: Mapping[str, QueueState], sign: int = 1) -> None:
        for queue, state in states.items():
            for where, held in state.sums.items():
                soft = signed(held.soft.items(), sign)
                self._take(queue, signed(held.amounts.items(), sign), soft, idle=where.idle, lasts=where.lasts)

    def used(self, queue: str, states: Mapping[str, QueueState]) -> Resources:
        """What these, which are all that hold anything, use of a queue; soft claims do not count."""
        hard = self.soft.hard(states)
        below = ((other, state) for other, state in states.items() if queue in self._tree.gang_path(other))
        return total(
            minus(claim.resources, claim.soft)
            if is_soft(hard, other, claim) and queue in soft_in(self._tree, other, claim)
            else claim.resources
            for other, state in below
            for claim in state.held.values()
        )

    def room(self) -> tuple[Usage, Usage, NamespaceRoom]:
        """For one admission pass: the usage, that of claims which last, and the room in namespaces."""
        return self._usage, self._lasting, self.namespaces.room()


def signed(amounts: Iterable[tuple[str, int]], sign: int) -> Amounts:
    """The amounts, or with the sign -1 as much below zero."""
    return tuple((name, sign * amount) for name, amount in amounts)
