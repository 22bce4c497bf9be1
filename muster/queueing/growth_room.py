"""Whether a gang that runs may hold more, by the pass that decided of those who wait.

Growth stands behind all who wait: it may pass them as a small gang may, but nobody whom nobody passes, and nobody of
whom is still to be decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.queueing.unplaced_claims import soft_in
from muster.queueing.usage import amounts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muster.queueing.admission_pass import AdmissionPass
    from muster.queueing.entries import Claim, EntryKey
    from muster.queueing.reservations import Reservation
    from muster.queueing.usage import Amounts
    from muster.resources.amounts import Resources

__all__ = ["Own", "growth_may_pass", "may_grow"]


@dataclass(frozen=True, slots=True)
class Own:
    """What is a gang's own when it grows."""

    key: EntryKey
    held: Claim | None
    """What it holds in the queue."""
    waits_as: EntryKey | None = None
    """Under which key it stands in line itself."""
    replaced: Amounts = ()
    """What those hold that it replaces."""
    limited: bool = False
    """Whether the ElasticQuotas of its namespace limit it."""


def growth_may_pass(outcome: AdmissionPass, queue: str) -> bool:
    """Whether growth in a queue may pass those who wait there."""
    return outcome.tree.takes_work(queue) and not outcome.more and outcome.behind(queue) is None


def may_grow(outcome: AdmissionPass, queue: str, claim: Resources, own: Own) -> bool:
    """Whether a gang's claim in a queue may grow to this, beside everything that is held or may start now.

    What it may take where it stands in line itself is its own, and nobody is before it there.
    """
    tree, held = outcome.tree, own.held
    if not tree.takes_work(queue):
        return False
    in_line = outcome.fits.get(own.waits_as) if own.waits_as else None
    if in_line is None and not growth_may_pass(outcome, queue):
        return False
    has = dict(held.amounts) if held is not None else {}
    for name, amount in in_line or ():
        has[name] = has.get(name, 0) + amount
    more, replaced = _more(claim, has), dict(own.replaced)
    spared = soft_in(tree, queue, held) if held is not None and outcome.is_soft(queue, held) else ()
    counts = [one for one in tree.gang_path(queue) if one not in spared]
    end = held.end if held is not None else None
    kept = [one for one in outcome.reservations.made if in_line is None and not one.passed_in_time(end)]
    if own.limited and not _namespace_has(outcome, own.key.namespace, more, replaced, kept):
        return False
    if not _have(outcome, counts, more, replaced, kept):
        return False
    for name, amount in held.soft_amounts if held is not None and spared else ():
        has[name] -= amount
    return not spared or _have(outcome, spared, _more(claim, has), replaced, kept)


def _have(
    outcome: AdmissionPass,
    queues: Sequence[str],
    more: Amounts,
    replaced: Mapping[str, int],
    kept: Sequence[Reservation],
) -> bool:
    """True if the queues have room for more in the place of what is replaced, beside these reservations.

    A replacement ignores reservations, unless the queue is over its limit: a pod that dies is replaced at once where
    the gang was admitted for as many, and what it holds until it is gone is taken by then.
    """
    net = _beyond(more, replaced)
    if replaced and outcome.usage.lacking(queues, net):
        return False
    grown = _positive(net)
    if outcome.usage.lacking(queues, grown):
        return False
    return not any(one.lacking(queues, grown, {}) for one in kept)


def _namespace_has(
    outcome: AdmissionPass, namespace: str, more: Amounts, replaced: Mapping[str, int], kept: Sequence[Reservation]
) -> bool:
    """The same of the ElasticQuotas of the gang's namespace."""
    net = _beyond(more, replaced)
    grown = _positive(net)
    if not outcome.namespaces.has(namespace, net if replaced else grown) or not outcome.namespaces.has(
        namespace, grown
    ):
        return False
    of_namespace = (one for one in kept if one.namespace == namespace)
    return all(outcome.namespaces.has(namespace, grown, one.kept) for one in of_namespace)


def _beyond(more: Amounts, replaced: Mapping[str, int]) -> Amounts:
    return tuple((name, amount - replaced.get(name, 0)) for name, amount in more)


def _positive(amounts: Amounts) -> Amounts:
    return tuple((name, amount) for name, amount in amounts if amount > 0)


def _more(claim: Resources, has: Mapping[str, int]) -> Amounts:
    """By how much a claim would grow beyond what is held."""
    return tuple((name, grown) for name, amount in amounts_of(claim) if (grown := amount - has.get(name, 0)) > 0)
