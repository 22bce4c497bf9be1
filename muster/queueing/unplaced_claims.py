"""Soft claims: quota that admitted gangs hold and cannot use, because their pods have found no node for too long.

Other gangs may be admitted past a soft claim. When nodes come after all, both are placed, as far as the scheduler
enforces the queue's limit itself. It does so for the gang's own queue; for the queues above that is not known, and
nodes have no limit to enforce: there a soft part counts like any other. A gang without any open pod cannot be placed
behind muster's back, and is soft in all queues but a root that is bound by nodes.

The soft claims of a queue never sum to more than its limit: beside what runs there at most one more queue-full is
opened, however long nodes take to come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.queueing.queue_view import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from muster.queueing.queue_state import Claim, GangKey, QueueState
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.usage import Usage

__all__ = ["soft_in", "soft_where", "softened", "take_hard_parts"]


def soft_in(tree: QueueTree, queue: str, claim: Claim) -> tuple[str, ...]:
    """The queues in which the soft part of a claim need not count."""
    return soft_where(tree, queue, idle=claim.idle) if claim.soft_amounts else ()


def soft_where(tree: QueueTree, queue: str, *, idle: bool) -> tuple[str, ...]:
    """The queues in which soft parts of claims held in a queue need not count; `idle` as the claims are."""
    path = tree.path(queue)
    return tuple(one for one in path if one != ROOT or not tree.counts_nodes) if idle else path[:1]


def softened(tree: QueueTree, states: Mapping[str, QueueState]) -> set[GangKey]:
    """The gangs whose soft part does not count: in order, as long as the queues' limits last."""
    sums: dict[str, dict[str, int]] = {}
    soft: set[GangKey] = set()
    for queue, claim in _in_order(states):
        where = soft_in(tree, queue, claim)
        if all(_stays_within(tree, one, sums.get(one, {}), claim) for one in where):
            soft.add(claim.order.key)
            for one in where:
                so_far = sums.setdefault(one, {})
                for name, amount in claim.soft_amounts:
                    so_far[name] = so_far.get(name, 0) + amount
    return soft


def _in_order(states: Mapping[str, QueueState]) -> Iterable[tuple[str, Claim]]:
    claims = ((queue, claim) for queue, state in states.items() for claim in state.soft.values())
    return sorted(claims, key=lambda one: one[1].order)


def _stays_within(tree: QueueTree, queue: str, so_far: Mapping[str, int], claim: Claim) -> bool:
    limit = tree.ceiling(queue)
    return all(name not in limit or so_far.get(name, 0) + amount <= limit[name] for name, amount in claim.soft_amounts)


def take_hard_parts(
    tree: QueueTree, states: Mapping[str, QueueState], usage: Usage, lasting: Usage, soft: set[GangKey]
) -> None:
    """Add the soft parts that count all the same to the usage, which leaves all soft parts out.

    `lasting` is the usage of the claims that do not end by themselves.
    """
    for queue, claim in _in_order(states):
        if claim.order.key not in soft:
            for taken in (usage, lasting) if claim.lasts else (usage,):
                taken.take_in(soft_in(tree, queue, claim), claim.soft_amounts)
