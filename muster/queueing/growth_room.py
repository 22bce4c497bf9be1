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
    from collections.abc import Mapping

    from muster.queueing.admission_pass import AdmissionPass
    from muster.queueing.queue_state import Claim, GangKey
    from muster.queueing.usage import Amounts
    from muster.resources.amounts import Resources

__all__ = ["Own", "growth_may_pass", "may_grow"]


@dataclass(frozen=True, slots=True)
class Own:
    """What is a gang's own when it grows."""

    key: GangKey
    held: Claim | None
    """What it holds in the queue."""
    waits_as: GangKey | None = None
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
    for name, amount in (*(in_line or ()), *own.replaced):
        has[name] = has.get(name, 0) + amount
    more = _more(claim, has)
    spared = soft_in(tree, queue, held) if held is not None and outcome.is_soft(queue, held) else ()
    counts = [one for one in tree.path(queue) if one not in spared]
    if own.limited and not outcome.namespaces.has(own.key.namespace, more, kept=in_line is None):
        return False
    kept = {} if in_line is not None else outcome.bars.kept
    if outcome.usage.lacking(counts, more, kept=kept):
        return False
    for name, amount in held.soft_amounts if held is not None and spared else ():
        has[name] -= amount
    return not spared or not outcome.usage.lacking(spared, _more(claim, has), kept=kept)


def _more(claim: Resources, has: Mapping[str, int]) -> Amounts:
    """By how much a claim would grow beyond what is held."""
    return tuple((name, grown) for name, amount in amounts_of(claim) if (grown := amount - has.get(name, 0)) > 0)
