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
    from collections.abc import Iterable, Mapping

    from muster.queueing.admission_pass import AdmissionPass
    from muster.queueing.queue_state import Claim, EntryKey
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
    if own.limited and not _namespace_has(outcome, own, more, replaced, kept=in_line is None):
        return False
    kept = {} if in_line is not None else outcome.bars.kept
    if not _have(outcome, counts, more, replaced, kept):
        return False
    for name, amount in held.soft_amounts if held is not None and spared else ():
        has[name] -= amount
    return not spared or _have(outcome, spared, _more(claim, has), replaced, kept)


def _have(
    outcome: AdmissionPass,
    queues: Iterable[str],
    more: Amounts,
    replaced: Mapping[str, int],
    kept: Mapping[str, Mapping[str, int]],
) -> bool:
    """Whether the queues have room for more in the place of what is replaced.

    For that no room is kept from the gang. But it is none where the queue is over its limit: a pod that dies is
    replaced at once where the gang was admitted for as many, and what it holds until it is gone is taken by then.
    """
    usage = outcome.usage
    if replaced and usage.lacking(queues, _beyond(more, replaced)):
        return False
    return not usage.lacking(queues, _positive(_beyond(more, replaced)), kept=kept)


def _namespace_has(outcome: AdmissionPass, own: Own, more: Amounts, replaced: Mapping[str, int], *, kept: bool) -> bool:
    """The same of the ElasticQuotas of the gang's namespace."""
    namespaces, net = outcome.namespaces, _beyond(more, replaced)
    if replaced and not namespaces.has(own.key.namespace, net, kept=False):
        return False
    return namespaces.has(own.key.namespace, _positive(net), kept=kept)


def _beyond(more: Amounts, replaced: Mapping[str, int]) -> Amounts:
    return tuple((name, amount - replaced.get(name, 0)) for name, amount in more)


def _positive(amounts: Amounts) -> Amounts:
    return tuple((name, amount) for name, amount in amounts if amount > 0)


def _more(claim: Resources, has: Mapping[str, int]) -> Amounts:
    """By how much a claim would grow beyond what is held."""
    return tuple((name, grown) for name, amount in amounts_of(claim) if (grown := amount - has.get(name, 0)) > 0)
