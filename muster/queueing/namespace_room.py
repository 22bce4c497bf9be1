"""What the namespaces with ElasticQuotas use and have free, as `muster.queueing.usage` has it for queues.

A claim counts for its namespace in whatever queue it is held. A gang that lacks room there holds up nobody in its
queue: others share that, and cannot give what it waits for. Within the namespace a smaller gang may start before it
until the patience of its queue is over; what it needs is then kept from those behind it in the namespace, in all
queues. It is not kept from other namespaces, of what all have together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.queueing.namespace_limits import NamespaceLimits
from muster.queueing.unplaced_claims import lasting_part
from muster.queueing.usage import Usage, amounts_of
from muster.resources.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.queueing.namespace_limits import Ceiling, NamespaceLimit
    from muster.queueing.queue_state import Candidate, Claim, EntryKey, Order
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.usage import Amounts
    from muster.resources.amounts import Resources

__all__ = ["NamespaceRoom", "NamespaceUse"]

# What all namespaces with a quota use together is counted under a name that no namespace has.
_TOGETHER = ""


class _Bounds:
    """The limits of one namespace in billionths, by resource."""

    __slots__ = ("least", "most", "together")

    def __init__(self, ceiling: Ceiling) -> None:
        # What is 0 is a limit, too.
        self.most = {name: amount.nano for name, amount in ceiling.own.most.items()}
        self.least = dict(amounts_of(ceiling.own.least))
        # Of a sum of which parts are unknown nothing follows.
        self.together = dict(amounts_of(ceiling.together)) if ceiling.whole else None


class NamespaceUse:
    """Who holds what in which namespace, and what all that have an ElasticQuota hold together."""

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._limits = NamespaceLimits()
        self._bounds: dict[str, _Bounds] = {}
        self._used = Usage(tree)
        # As far as it does not end by itself.
        self._lasting = Usage(tree)
        self._holders: dict[str, set[EntryKey]] = {}
        self._others: dict[str, Amounts] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._limits

    def limit(self, namespace: str, limit: NamespaceLimit | None, *, whole: bool = True) -> bool:
        """Limit a namespace, or no longer (None); True when that changed anything; `whole` as in `NamespaceLimits`."""
        self._limits.whole = whole
        before = namespace in self._limits
        if limit is None:
            self._take_lasting(namespace, _less(self._others.pop(namespace, ())))
        changed = self._limits.take(namespace) if limit is None else self._limits.set(namespace, limit)
        if changed:
            self._bounds.clear()
            for usage in (self._used, self._lasting) if (limit is not None) is not before else ():
                held = tuple(usage.taken(namespace).items())
                usage.take_in((_TOGETHER,), held if limit is not None else _less(held))
        return changed

    def others(self, namespace: str, use: Resources) -> bool:
        """Note what pods use there that are not of gangs; True when that changed anything.

        Nobody knows when they end: they count as what does not end by itself.
        """
        now, before = amounts_of(use), self._others.get(namespace, ())
        if now == before or namespace not in self._limits:
            return False
        self._others[namespace] = now
        self._take_lasting(namespace, _less(before))
        self._take_lasting(namespace, now)
        return True

    def enter(self, claim: Claim, sign: int = 1) -> None:
        """Count a claim, or with the sign -1 count it no longer; its soft part counts like the rest."""
        key = claim.order.key
        holders = self._holders.setdefault(key.namespace, set())
        (holders.add if sign > 0 else holders.discard)(key)
        lasting = lasting_part(claim.amounts, claim.soft_amounts, idle=claim.idle, lasts=claim.lasts)
        for usage, amounts in ((self._used, claim.amounts), (self._lasting, lasting)):
            usage.take_in(self._where(key.namespace), amounts if sign > 0 else _less(amounts))
        if not holders:
            # Namespaces come and go; what nobody holds is nothing.
            del self._holders[key.namespace]
            if key.namespace not in self._limits:
                self._used.empty(key.namespace)
                self._lasting.empty(key.namespace)

    def _take_lasting(self, namespace: str, amounts: Amounts) -> None:
        for usage in (self._used, self._lasting):
            usage.take_in(self._where(namespace), amounts)

    def _where(self, namespace: str) -> tuple[str, ...]:
        return (namespace, _TOGETHER) if namespace in self._limits else (namespace,)

    def holders(self, namespace: str) -> set[EntryKey]:
        """Who holds anything in a namespace."""
        return set(self._holders.get(namespace, ()))

    def ceiling(self, candidate: Candidate) -> Ceiling | None:
        """What bounds this gang beside its queue; None where nothing does."""
        return self._limits.ceiling(candidate.key.namespace) if candidate.limited else None

    def room(self) -> NamespaceRoom:
        """The room for one admission pass, to be taken without taking it here; valid until something changes here."""
        return NamespaceRoom(self._limits, self._bounds, self._used.copy(), self._lasting.copy())


@dataclass(slots=True)
class NamespaceRoom:
    """What the namespaces have left in one admission pass.

    `keepers` are, by namespace, the first gangs for which something is kept there. `watched` tells whether a start may
    change what the others may do: where a gang keeps something from others, or not, depending on what its namespace has
    left; and where a gang that its quota guarantees room, or that is not limited, takes what another could start with.
    """

    limits: NamespaceLimits
    _bounds: dict[str, _Bounds]
    _used: Usage
    _lasting: Usage
    keepers: dict[str, Order] = field(default_factory=dict)
    watched: bool = False
    _kept: dict[str, dict[str, int]] = field(default_factory=dict)
    # What `largest` gave since something was last taken or kept: gangs of a namespace stand in many lines.
    _known: dict[tuple[str, bool, bool], dict[str, int]] = field(default_factory=dict)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.limits

    def take(self, namespace: str, amounts: Amounts, *, lasts: bool) -> None:
        """Take room of the namespace, where it has a limit."""
        if namespace in self.limits:
            for usage in (self._used, self._lasting) if lasts else (self._used,):
                usage.take_in((namespace, _TOGETHER), amounts)
            self._known.clear()
            self.watched = self.watched or self._exceeded(namespace, amounts)

    def _exceeded(self, namespace: str, amounts: Amounts) -> bool:
        bounds, used, together = self._bounds_of(namespace), self._used.taken(namespace), self._used.taken(_TOGETHER)
        return any(
            used[name] > bounds.most.get(name, used[name])
            or (bounds.together is not None and together[name] > bounds.together.get(name, 0))
            for name, _ in amounts
        )

    def keep(self, candidate: Candidate, amounts: Amounts) -> None:
        """Keep what this gang needs from those behind it in its namespace."""
        namespace = candidate.key.namespace
        self._known.clear()
        self.keepers.setdefault(namespace, candidate.order)
        kept = self._kept.setdefault(namespace, {})
        for name, amount in amounts:
            kept[name] = kept.get(name, 0) + amount
        if candidate.lasts and namespace in self.limits:
            self._lasting.take_in((namespace, _TOGETHER), amounts)

    def has(self, namespace: str, amounts: Amounts, *, kept: bool) -> bool:
        """Whether so much is free there now; what is `kept` for gangs before counts as used, or does not."""
        return self._fits(namespace, amounts, self._used, self._kept.get(namespace, {}) if kept else {})

    def could_have(self, namespace: str, amounts: Amounts) -> bool:
        """Whether so much would be free after all gangs that end by themselves had ended."""
        return self._fits(namespace, amounts, self._lasting, {})

    def _fits(self, namespace: str, amounts: Amounts, usage: Usage, kept: Mapping[str, int]) -> bool:
        if namespace not in self.limits:
            return True
        bounds, used, together = self._bounds_of(namespace), usage.taken(namespace), usage.taken(_TOGETHER)
        guaranteed = shared = True
        for name, amount in amounts:
            more = amount + kept.get(name, 0)
            if name in bounds.most and used.get(name, 0) + more > bounds.most[name]:
                return False
            guaranteed = guaranteed and used.get(name, 0) + more <= bounds.least.get(name, 0)
            if bounds.together is not None:
                shared = shared and together.get(name, 0) + more <= bounds.together.get(name, 0)
        return guaranteed or shared

    def largest(self, namespace: str, *, kept: bool, in_the_end: bool = False) -> dict[str, int]:
        """No gang has room there that needs more of one of these resources: now, or whenever others have ended.

        One that needs no more may have room: what it may need of one resource depends on what it needs of the others.
        """
        known = self._known.get((namespace, kept, in_the_end))
        if known is None:
            known = self._largest(namespace, self._used, self._kept.get(namespace, {}) if kept else {})
            if in_the_end:
                for name, amount in self._largest(namespace, self._lasting, {}).items():
                    known[name] = max(known[name], amount)
            self._known[namespace, kept, in_the_end] = known
        return dict(known)

    def _largest(self, namespace: str, usage: Usage, kept: Mapping[str, int]) -> dict[str, int]:
        bounds, used, together = self._bounds_of(namespace), usage.taken(namespace), usage.taken(_TOGETHER)
        most = {name: limit - used.get(name, 0) - kept.get(name, 0) for name, limit in bounds.most.items()}
        if bounds.together is not None:
            for name in {*bounds.most, *bounds.together}:
                own = bounds.least.get(name, 0) - used.get(name, 0)
                free = max(own, bounds.together.get(name, 0) - together.get(name, 0)) - kept.get(name, 0)
                most[name] = min(free, most.get(name, free))
        return most

    def shortage(self, candidate: Candidate) -> str | None:
        """What the gang lacks in its namespace, in words with numbers; None where it lacks nothing."""
        ceiling = self.limits.ceiling(candidate.key.namespace)
        if ceiling is None or not candidate.limited:
            return None
        need = candidate.need
        return ceiling.shortage(need, self._in(candidate.key.namespace, need), self._in(_TOGETHER, need))

    def keeper(self, candidate: Candidate) -> Order | None:
        """The gang for which the room is kept that this one would need in its namespace."""
        namespace = candidate.key.namespace
        first = self.keepers.get(namespace) if candidate.limited and not candidate.begun else None
        if first is None or first == candidate.order or self.has(namespace, candidate.amounts, kept=True):
            return None
        return first

    def _in(self, namespace: str, like: Resources) -> dict[str, Quantity]:
        used = self._used.taken(namespace)
        return {name: Quantity(used.get(name, 0), amount.format) for name, amount in like.items()}

    def _bounds_of(self, namespace: str) -> _Bounds:
        known = self._bounds.get(namespace)
        if known is None:
            ceiling = self.limits.ceiling(namespace)
            if ceiling is None:
                raise KeyError(namespace)
            known = self._bounds[namespace] = _Bounds(ceiling)
        return known


def _less(amounts: Amounts) -> Amounts:
    return tuple((name, -amount) for name, amount in amounts)
