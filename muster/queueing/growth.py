"""Gangs that run and want more than they hold: what room they were refused, and which of them may grow now.

Whatever happens in a queue may let one of them grow, and thousands may want to. Each stands in line with the growth
that was refused, so that a change leads to the first that may have it, and to no other. Queues have their turns as
among gangs that wait (`muster.queueing.turns`): the one that has least of its share is first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.entries import GangKey, Growth, Order
from muster.queueing.turns import QueueVisitor, in_turn
from muster.queueing.unplaced_claims import soft_in
from muster.queueing.usage import amounts_of, plus, signed
from muster.queueing.waiting_line import WaitingLine
from muster.resources.amounts import Resources

_MayGrow: TypeAlias = "Callable[[GangKey], bool]"


class Turn(NamedTuple):
    """The gang that may grow, and by queue the place up to which no other may."""

    gang: GangKey
    passed: Mapping[str, Order]


class _GrowthVisitor(QueueVisitor):
    """Goes along the gangs of a queue that want to grow, from one that may to the next."""

    def __init__(
        self, queue: str, line: WaitingLine, last: Order | None, most: Mapping[str, int], may_grow: _MayGrow
    ) -> None:
        super().__init__(queue, line.first, last)
        self._line = line
        self._most = most
        self._may_grow = may_grow

    def find(self) -> Order | None:
        while (found := self._line.next_within(self.last, self._most)) is not None:
            if self._may_grow(found[0].key.gang):
                return found[0]
            self.last = found[0]
        return None


class GrowthQueue:
    """The gangs that were refused growth, in order."""

    def __init__(self) -> None:
        self._lines: dict[str, WaitingLine] = {}
        self._known: dict[GangKey, Growth] = {}

    def enter(self, key: GangKey, growth: Growth | None) -> None:
        """Record the growth that the gang was refused, None for nothing, in the place of what was known of it."""
        known = self._known.get(key)
        if known == growth:
            return
        if known is not None:
            line = self._lines[known.queue]
            for order, _ in known.places():
                line.remove(order)
            if not line:
                del self._lines[known.queue]
            del self._known[key]
        if growth is not None:
            line = self._lines.setdefault(growth.queue, WaitingLine())
            for order, more in growth.places():
                line.add(order, more)
            self._known[key] = growth

    def first(
        self, outcome: AdmissionPass, *, passed: Mapping[str, Order] | None = None, but: GangKey | None = None
    ) -> Turn | None:
        """The first gang that may grow now, of those that compete in this pass; not gang `but`.

        Only places behind those `on_passed` count, by queue.
        """

        def may_grow(gang: GangKey) -> bool:
            growth = self._known[gang]
            return gang != but and any(fits_more(outcome, growth, claim) for claim, _ in growth.refused)

        passed = passed or {}
        visitors = {}
        for queue in self._lines.keys() & outcome.states.keys():
            most = room_to_grow(outcome, queue)
            if most is not None:
                visitors[queue] = _GrowthVisitor(queue, self._lines[queue], passed.get(queue), most, may_grow)
        turns = in_turn(outcome.shares, outcome.usage, {queue: [one] for queue, one in visitors.items()})
        found = turns.next()
        if found is None:
            return None
        turns.advance()
        last_now = {queue: one.last for queue, one in visitors.items() if one.last is not None}
        return Turn(found.key.gang, {**passed, **last_now})


def room_to_grow(outcome: AdmissionPass, queue: str) -> Mapping[str, int] | None:
    """The most that growth may take in a queue, of the resources that are limited; None where it may take nothing.

    Only growth of a gang whose next wave may start finds more. Growth stands behind all gangs that wait: it may pass
    them as a small gang may, unless one stands in a strict queue, or is still to be decided of.
    """
    may_pass = outcome.tree.takes_work(queue) and not outcome.more and outcome.strict_head_before(queue) is None
    return outcome.room(queue) if may_pass else None


def fits_more(outcome: AdmissionPass, growth: Growth, resources: Resources) -> bool:
    """True if the claim of an admitted gang may grow to this, with all that is held or may start now.

    What its next wave may take is its own; so is what its terminating pods hold in the same queue, where that is not
    above its limits already.
    """
    tree, queue, in_line = outcome.tree, growth.queue, outcome.fits.get(growth.key.wave)
    if not tree.takes_work(queue) or (in_line is None and room_to_grow(outcome, queue) is None):
        return False
    claims = outcome.states[queue].held if queue in outcome.states else {}
    held, leaving = claims.get(growth.key), claims.get(growth.key.leaving)
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
