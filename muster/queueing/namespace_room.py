"""What the namespaces with ElasticQuotas use and have free, as `muster.queueing.usage` has it for queues.

A claim counts for its namespace in whatever queue it is held. A gang that lacks room there holds up no gang in its
queue: others share that, and cannot give what it waits for. Within the namespace it has a reservation like any other
gang (`muster.queueing.reservations`), which does not keep room from other namespaces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from muster.queueing.namespace_limits import NamespaceLimits
from muster.queueing.run_ends import EndsByPlace, RunEnds
from muster.queueing.unplaced_claims import lasting_part
from muster.queueing.usage import Usage, amounts_of
from muster.resources.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from muster.queueing.entries import Candidate, Claim, EntryKey
    from muster.queueing.namespace_limits import Ceiling, NamespaceLimit
    from muster.queueing.queue_state import QueueState
    from muster.queueing.queue_tree import QueueTree
    from muster.queueing.usage import Amounts
    from muster.resources.amounts import Resources

__all__ = ["NamespaceRoom", "NamespaceUse"]

_NOTHING: Mapping[str, int] = MappingProxyType({})
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
        self._ends = EndsByPlace()
        self._holders: dict[str, set[EntryKey]] = {}
        self._others: dict[str, Amounts] = {}

    def copy(self, tree: QueueTree) -> NamespaceUse:
        """The same use, to be changed by itself."""
        other = NamespaceUse(tree)
        other._limits, other._others = self._limits.copy(), dict(self._others)
        other._used, other._lasting = self._used.apart(tree), self._lasting.apart(tree)
        other._holders = {namespace: set(keys) for namespace, keys in self._holders.items()}
        return other

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
            self._ends.forget()
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
        self._ends.enter(self._where(key.namespace), claim, sign)
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

    def room(self, states: Mapping[str, QueueState]) -> NamespaceRoom:
        """The room for one admission pass, to be taken without taking it here; valid until something changes here.

        The claims of limited namespaces are all in these queues.
        """
        ends = partial(self._ends_in, states)
        return NamespaceRoom(self._limits, self._bounds, self._used.copy(), self._lasting.copy(), ends)

    def _ends_in(self, states: Mapping[str, QueueState], namespace: str) -> RunEnds:
        def claims() -> Iterator[Claim]:
            for state in states.values():
                for key, claim in state.held.items():
                    if namespace in self._where(key.namespace):
                        yield claim

        return self._ends.at(namespace, claims)


@dataclass(slots=True)
class NamespaceRoom:
    """What the namespaces have left in one admission pass."""

    limits: NamespaceLimits
    _bounds: dict[str, _Bounds]
    _used: Usage
    _lasting: Usage
    ends: Callable[[str], RunEnds]
    """Gives the expected ends of the claims in a namespace, or in all that have a quota ("")."""
    # What `largest` gave since something was last taken or kept: gangs of a namespace stand in many lines.
    _known: dict[tuple[str, bool], dict[str, int]] = field(default_factory=dict)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.limits

    def take(self, namespace: str, amounts: Amounts, *, lasts: bool) -> None:
        """Take room of the namespace, where it has a limit."""
        if namespace in self.limits:
            self._used.take_in((namespace, _TOGETHER), amounts)
            self._known.clear()
            if lasts:
                self.take_lasting(namespace, amounts)

    def take_lasting(self, namespace: str, amounts: Amounts) -> None:
        """Count this as held, where the namespace has a limit, after all gangs that end by themselves have ended."""
        if namespace in self.limits:
            self._lasting.take_in((namespace, _TOGETHER), amounts)
            self._known.clear()

    def has(
        self,
        namespace: str,
        amounts: Amounts,
        kept: Mapping[str, int] = _NOTHING,
        ended: Mapping[str, int] = _NOTHING,
        ended_together: Mapping[str, int] = _NOTHING,
    ) -> bool:
        """Whether so much is free there; what is `kept` counts as used, what has `ended` by then as free."""
        return self._fits(namespace, amounts, self._used, kept=kept, ended=ended, ended_together=ended_together)

    def could_have(self, namespace: str, amounts: Amounts) -> bool:
        """Whether so much would be free after all gangs that end by themselves had ended."""
        return self._fits(namespace, amounts, self._lasting)

    def _fits(
        self,
        namespace: str,
        amounts: Amounts,
        usage: Usage,
        *,
        kept: Mapping[str, int] = _NOTHING,
        ended: Mapping[str, int] = _NOTHING,
        ended_together: Mapping[str, int] = _NOTHING,
    ) -> bool:
        if namespace not in self.limits:
            return True
        bounds, used, together = self._bounds_of(namespace), usage.taken(namespace), usage.taken(_TOGETHER)
        guaranteed = shared = True
        for name, amount in amounts:
            more = amount + kept.get(name, 0)
            own = used.get(name, 0) - ended.get(name, 0) + more
            if name in bounds.most and own > bounds.most[name]:
                return False
            guaranteed = guaranteed and own <= bounds.least.get(name, 0)
            if bounds.together is not None:
                of_all = together.get(name, 0) - ended_together.get(name, 0) + more
                shared = shared and of_all <= bounds.together.get(name, 0)
        return guaranteed or shared

    def largest(self, namespace: str, *, in_the_end: bool = False) -> dict[str, int]:
        """No gang has room there that needs more of one of these resources: now, or whenever others have ended.

        One that needs no more may have room: what it may need of one resource depends on what it needs of the others.
        """
        known = self._known.get((namespace, in_the_end))
        if known is None:
            known = self._largest(namespace, self._used)
            if in_the_end:
                for name, amount in self._largest(namespace, self._lasting).items():
                    known[name] = max(known[name], amount)
            self._known[namespace, in_the_end] = known
        return dict(known)

    def _largest(self, namespace: str, usage: Usage) -> dict[str, int]:
        bounds, used, together = self._bounds_of(namespace), usage.taken(namespace), usage.taken(_TOGETHER)
        most = {name: limit - used.get(name, 0) for name, limit in bounds.most.items()}
        if bounds.together is not None:
            for name in {*bounds.most, *bounds.together}:
                own = bounds.least.get(name, 0) - used.get(name, 0)
                free = max(own, bounds.together.get(name, 0) - together.get(name, 0))
                most[name] = min(free, most.get(name, free))
        return most

    def shortage(self, candidate: Candidate) -> str | None:
        """What the gang lacks in its namespace, in words with numbers; None where it lacks nothing."""
        ceiling = self.limits.ceiling(candidate.key.namespace)
        if ceiling is None or not candidate.limited:
            return None
        need = candidate.need
        return ceiling.shortage(need, self._in(candidate.key.namespace, need), self._in(_TOGETHER, need))

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
