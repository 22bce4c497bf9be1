"""Whether a gang that runs may hold more, by the pass that decided of the gangs that wait.

Growth stands behind all gangs that wait: it may pass them as a small gang may, unless one stands in a strict queue, or
is still to be decided of.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.entries import Claim, Growth
from muster.queueing.unplaced_claims import soft_in
from muster.queueing.usage import amounts_of, plus, signed
from muster.resources.amounts import Resources


def growth_may_pass(outcome: AdmissionPass, queue: str) -> bool:
    """Whether growth in a queue may pass the gangs that wait there."""
    return outcome.tree.takes_work(queue) and not outcome.more and outcome.behind(queue) is None


def may_grow(
    outcome: AdmissionPass, growth: Growth, resources: Resources, held: Claim | None, leaving: Claim | None
) -> bool:
    """True if the claim that a gang has `held` may grow to this, with all that is held or may start now.

    What its next wave may take is its own, and no gang is before it there; so is what its terminating pods hold, which
    are `leaving`. Claims in other queues do not count.
    """
    tree, queue, in_line = outcome.tree, growth.queue, outcome.fits.get(growth.key.wave)
    if not tree.takes_work(queue) or (in_line is None and not growth_may_pass(outcome, queue)):
        return False
    held, leaving = (claim if claim is not None and claim.queue == queue else None for claim in (held, leaving))
    has = plus(dict(held.amounts) if held is not None else {}, in_line or ())
    spared = soft_in(tree, held) if held is not None and outcome.is_soft(held) else ()
    end = held.end if held is not None else None
    kept = [one for one in outcome.reservations.made if in_line is None and not one.passed_in_time(end)]

    def have(queues: Sequence[str], namespace: str = "") -> bool:
        more = tuple(
            (name, above) for name, amount in amounts_of(resources) if (above := amount - has.get(name, 0)) > 0
        )
        net = tuple((name, amount - going.get(name, 0)) for name, amount in more)
        grown = tuple((name, amount) for name, amount in net if amount > 0)
        # A replacement ignores reservations, unless its queue is over the limit: a pod that dies is replaced at once
        # where the gang was admitted for as many, and what it holds until it is gone is taken by then.
        for amounts in (net, grown) if going else (grown,):
            if outcome.usage.lacking(queues, amounts) or not outcome.namespaces.has(namespace, amounts):
                return False
        return not any(
            one.lacking(queues, grown, {})
            or (one.namespace == namespace and not outcome.namespaces.has(namespace, grown, one.kept))
            for one in kept
        )

    going = dict(leaving.amounts) if leaving is not None else {}
    if not have(
        [one for one in tree.gang_path(queue) if one not in spared], growth.key.namespace if growth.limited else ""
    ):
        return False
    if held is None or not spared:
        return True
    has = plus(has, signed(held.soft_amounts, -1))
    return have(spared)
