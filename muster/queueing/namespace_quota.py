"""What ElasticQuotas let the gangs of a namespace hold, next to the limits of their queues, and what these have free.

As CapacityScheduling of scheduler-plugins (v0.34.7) refuses pods: for good where the namespace would use more than its
`max`, and where all namespaces with a quota would use more than the sum of all `min`. A namespace within its own `min`
gets back by preemption what others borrowed, so that the sum never keeps it from that.

A namespace without a quota is not limited, and what it uses does not count. The scheduler follows one quota of each
namespace; of several, muster takes the strictest amounts.

A claim counts for its namespace in whatever queue it is held. A gang that lacks room there holds up no gang in its
queue: others share that, and cannot give what it waits for. Within the namespace it has a reservation like any other
gang (`muster.queueing.reservations`), which does not keep room from other namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from muster.queueing.entries import Candidate, Claim, EntryKey
from muster.queueing.queue_tree import QueueTree
from muster.queueing.unplaced_claims import lasting_part
from muster.queueing.usage import Amounts, Usage, amounts_of, signed
from muster.resources.amounts import Resources, describe, minus, total, within
from muster.resources.elastic_quotas import ElasticQuota, guaranteed, largest_use
from muster.resources.quantity import ZERO, Quantity

_NOTHING: Mapping[str, int] = MappingProxyType({})
_TOGETHER = "the ElasticQuotas of all namespaces"


@dataclass(frozen=True, slots=True)
class NamespaceLimit:
    """What the ElasticQuotas of one namespace say together."""

    quotas: tuple[str, ...]
    """Their names, in order."""
    most: Resources
    """What the namespace may ever use; resources that are not named are unlimited."""
    least: Resources
    """What it is guaranteed; resources that are not named are 0."""

    def __str__(self) -> str:
        """How it is called where a gang of the namespace is told of it."""
        named = " and ".join(f'"{name}"' for name in self.quotas)
        return f"ElasticQuotas {named}" if len(self.quotas) > 1 else f"ElasticQuota {named}"


def limit_of(quotas: Iterable[ElasticQuota]) -> NamespaceLimit | None:
    """The strictest of what the quotas of one namespace say; None where there are none.

    Raises InvalidObjectError for a quota with an amount that is no quantity, or below 0.
    """
    limit = None
    for quota in sorted(quotas, key=lambda one: one.metadata.name):
        most, least = largest_use(quota), guaranteed(quota)
        if limit is None:
            limit = NamespaceLimit((quota.metadata.name,), most, least)
        else:
            limit = NamespaceLimit(
                (*limit.quotas, quota.metadata.name),
                {name: min(_of(name, limit.most, most)) for name in {**limit.most, **most}},
                {name: min(limit.least[name], least[name]) for name in limit.least if name in least},
            )
    return limit


@dataclass(frozen=True)
class Ceiling:
    """What bounds the gangs of one namespace.

    Its rule is here twice: in words for one gang, and in integers, which is asked for each of thousands.
    """

    own: NamespaceLimit
    """The limit of the namespace."""
    together: Resources
    """The sum of what all namespaces are guaranteed."""
    whole: bool = True
    """Whether the quotas of all namespaces are known; of a sum of which parts are unknown nothing follows."""

    def never(self, need: Resources) -> str | None:
        """Why what needs so much can never run in the namespace, in words with numbers; None where it can."""
        over = {name: need[name] for name in self.own.most if name in need and need[name] > self.own.most[name]}
        if over:
            return (
                f"needs {describe(over)}, {self.own} has max {describe({name: self.own.most[name] for name in over})}"
            )
        over = {name: amount for name, amount in need.items() if amount > self.together.get(name, ZERO)}
        if over and self.whole:
            have = {name: self.together.get(name, ZERO) for name in over}
            return f"needs {describe(over)}, {_TOGETHER} have min {describe(have)} together"
        return None

    def guarantees(self, need: Resources, used: Resources) -> bool:
        """Whether the namespace stays within its own min when that comes to what it has `used`."""
        return within(need, minus(_asked(self.own.least, need), used))

    def shortage(self, need: Resources, used: Resources, used_together: Resources) -> str | None:
        """What such a gang waits for: what is free of how much, in words with numbers; None where nothing is lacking.

        `used` is what the namespace uses, `used_together` what all namespaces with a quota use, this one among them.
        Resources of which nothing is needed are not looked at.
        """
        most = {name: amount for name, amount in self.own.most.items() if need.get(name)}
        if not within(need, minus(most, used)):
            return f"{self.own} has {describe(minus(most, used))} free of {describe(most)}"
        together = _asked(self.together, need)
        if self.whole and not self.guarantees(need, used) and not within(need, minus(together, used_together)):
            free = describe(minus(together, used_together))
            return f"{_TOGETHER} have {free} free of {describe(together)} together"
        return None

    @cached_property
    def _most(self) -> dict[str, int]:
        # What is 0 is a limit, too.
        return {name: amount.nano for name, amount in self.own.most.items()}

    @cached_property
    def _least(self) -> dict[str, int]:
        return dict(amounts_of(self.own.least))

    @cached_property
    def _shared(self) -> dict[str, int] | None:
        return dict(amounts_of(self.together)) if self.whole else None

    def fits(self, amounts: Amounts, used: Mapping[str, int], used_together: Mapping[str, int]) -> bool:
        """Whether so much more may be used; all in billionths."""
        guaranteed = shared = True
        for name, amount in amounts:
            own = used.get(name, 0) + amount
            if name in self._most and own > self._most[name]:
                return False
            guaranteed = guaranteed and own <= self._least.get(name, 0)
            if self._shared is not None:
                shared = shared and used_together.get(name, 0) + amount <= self._shared.get(name, 0)
        return guaranteed or shared

    def largest(self, used: Mapping[str, int], used_together: Mapping[str, int]) -> dict[str, int]:
        """No gang fits that needs more of one of these resources; all in billionths."""
        most = {name: limit - used.get(name, 0) for name, limit in self._most.items()}
        if self._shared is not None:
            for name in {*most, *self._shared}:
                own = self._least.get(name, 0) - used.get(name, 0)
                free = max(own, self._shared.get(name, 0) - used_together.get(name, 0))
                most[name] = min(free, most.get(name, free))
        return most


class NamespaceLimits:
    """The limits of all namespaces that have an ElasticQuota; not `whole` where only some of them can be read."""

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole
        self._limits: dict[str, NamespaceLimit] = {}
        self._together: Resources | None = None

    def copy(self) -> NamespaceLimits:
        """The same limits, to be changed by themselves."""
        other = NamespaceLimits(whole=self.whole)
        other._limits = dict(self._limits)
        return other

    def __bool__(self) -> bool:
        return bool(self._limits)

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._limits

    def set(self, namespace: str, limit: NamespaceLimit) -> bool:
        """Enter the limit of a namespace, or what has changed in it; True when anything did."""
        if self._limits.get(namespace) == limit:
            return False
        self._limits[namespace] = limit
        self._together = None
        return True

    def take(self, namespace: str) -> bool:
        """Take out the limit of a namespace that has no quota any more; True when there was one."""
        self._together = None
        return self._limits.pop(namespace, None) is not None

    @property
    def together(self) -> Resources:
        """The sum of what all namespaces are guaranteed; resources that are not named are 0."""
        if self._together is None:
            self._together = total(limit.least for limit in self._limits.values())
        return self._together

    def ceiling(self, namespace: str) -> Ceiling | None:
        """What bounds the gangs of a namespace; None where no quota does."""
        own = self._limits.get(namespace)
        return None if own is None else Ceiling(own, self.together, self.whole)


def _level(namespace: str = "") -> str:
    """The level of one namespace, or of all that have a quota (""); no queue has such a name."""
    return f"namespace {namespace}"


class NamespaceUse:
    """The claims in each namespace, and what all that have an ElasticQuota hold together."""

    def __init__(self, tree: QueueTree) -> None:
        self._limits = NamespaceLimits()
        self._ceilings: dict[str, Ceiling] = {}
        self._used = Usage(tree)
        # As far as it does not end by itself.
        self._lasting = Usage(tree)
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
            self._take_lasting(namespace, signed(self._others.pop(namespace, ()), -1))
        changed = self._limits.take(namespace) if limit is None else self._limits.set(namespace, limit)
        if changed:
            self._ceilings.clear()
            for usage in (self._used, self._lasting) if (limit is not None) is not before else ():
                held = usage.taken(_level(namespace)).items()
                usage.take_in((_level(),), signed(held, -1 if limit is None else 1))
        return changed

    def others(self, namespace: str, use: Resources) -> bool:
        """Note what pods use there that are not of gangs; True when that changed anything.

        When they end is not known: they count as what does not end by itself.
        """
        now, before = amounts_of(use), self._others.get(namespace, ())
        if now == before or namespace not in self._limits:
            return False
        self._others[namespace] = now
        self._take_lasting(namespace, (*signed(before, -1), *now))
        return True

    def enter(self, claim: Claim, sign: int = 1) -> None:
        """Count a claim, or with the sign -1 count it no longer; its soft part counts like the rest."""
        key = claim.key
        holders = self._holders.setdefault(key.namespace, set())
        (holders.add if sign > 0 else holders.discard)(key)
        lasting = lasting_part(claim.amounts, claim.soft_amounts, idle=claim.idle, lasts=claim.lasts)
        for usage, amounts in ((self._used, claim.amounts), (self._lasting, lasting)):
            usage.take_in(self.levels(key.namespace), signed(amounts, sign))
        if not holders:
            # Namespaces come and go; without a claim nothing is used.
            del self._holders[key.namespace]
            if key.namespace not in self._limits:
                self._used.empty(_level(key.namespace))
                self._lasting.empty(_level(key.namespace))

    def _take_lasting(self, namespace: str, amounts: Amounts) -> None:
        for usage in (self._used, self._lasting):
            usage.take_in(self.levels(namespace), amounts)

    def levels(self, namespace: str) -> tuple[str, ...]:
        """The levels at which claims of a namespace count."""
        return (_level(namespace), _level()) if namespace in self._limits else (_level(namespace),)

    def holders(self, namespace: str) -> set[EntryKey]:
        """The gangs that hold anything in a namespace."""
        return set(self._holders.get(namespace, ()))

    def ceiling(self, candidate: Candidate) -> Ceiling | None:
        """What bounds this gang other than its queue; None where nothing does."""
        return self._limits.ceiling(candidate.key.namespace) if candidate.limited else None

    def room(self) -> NamespaceRoom:
        """The room for one admission pass, to be taken without taking it here; valid until something changes here."""
        return NamespaceRoom(self._limits, self._ceilings, self._used.copy(), self._lasting.copy())


@dataclass(slots=True)
class NamespaceRoom:
    """What the namespaces have left in one admission pass."""

    limits: NamespaceLimits
    _ceilings: dict[str, Ceiling]
    _used: Usage
    _lasting: Usage
    # What `largest` gave since something was last taken or kept: gangs of a namespace stand in many lines.
    _known: dict[tuple[str, bool], dict[str, int]] = field(default_factory=dict)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.limits

    def levels(self, namespace: str) -> tuple[str, ...]:
        """The levels of a namespace: its own, and that of all together; none where it has no limit."""
        return (_level(namespace), _level()) if namespace in self.limits else ()

    def take(self, namespace: str, amounts: Amounts, *, lasts: bool) -> None:
        """Take room of the namespace, where it has a limit."""
        self._used.take_in(self.levels(namespace), amounts)
        self._known.clear()
        if lasts:
            self.take_lasting(namespace, amounts)

    def take_lasting(self, namespace: str, amounts: Amounts) -> None:
        """Count this as held, where the namespace has a limit, after all gangs that end by themselves have ended."""
        self._lasting.take_in(self.levels(namespace), amounts)
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
        if namespace not in self.limits:
            return True
        own, together = map(self._used.taken, self.levels(namespace))
        if kept or ended or ended_together:
            own = _after(own, kept, ended, amounts)
            together = _after(together, kept, ended_together, amounts)
        return self._ceiling(namespace).fits(amounts, own, together)

    def could_have(self, namespace: str, amounts: Amounts) -> bool:
        """Whether so much would be free after all gangs that end by themselves had ended."""
        if namespace not in self.limits:
            return True
        return self._ceiling(namespace).fits(amounts, *map(self._lasting.taken, self.levels(namespace)))

    def largest(self, namespace: str, *, in_the_end: bool = False) -> dict[str, int]:
        """No gang has room there that needs more of one of these resources: now, or whenever others have ended.

        One that needs no more may have room: what it may need of one resource depends on what it needs of the others.
        """
        known = self._known.get((namespace, in_the_end))
        if known is None:
            ceiling, levels = self._ceiling(namespace), self.levels(namespace)
            known = ceiling.largest(*map(self._used.taken, levels))
            if in_the_end:
                for name, amount in ceiling.largest(*map(self._lasting.taken, levels)).items():
                    known[name] = max(known[name], amount)
            self._known[namespace, in_the_end] = known
        return dict(known)

    def shortage(self, candidate: Candidate) -> str | None:
        """What the gang lacks in its namespace, in words with numbers; None where it lacks nothing."""
        namespace, need = candidate.key.namespace, candidate.need
        if not candidate.limited or namespace not in self.limits:
            return None
        own, together = (self._used.used(level, need) for level in self.levels(namespace))
        return self._ceiling(namespace).shortage(need, own, together)

    def _ceiling(self, namespace: str) -> Ceiling:
        known = self._ceilings.get(namespace)
        if known is None:
            known = self.limits.ceiling(namespace)
            if known is None:
                raise KeyError(namespace)
            self._ceilings[namespace] = known
        return known


def _after(used: Mapping[str, int], kept: Mapping[str, int], ended: Mapping[str, int], of: Amounts) -> dict[str, int]:
    """What is used of these resources with what is kept, and without what has ended."""
    return {name: used.get(name, 0) + kept.get(name, 0) - ended.get(name, 0) for name, _ in of}


def _of(name: str, *several: Resources) -> list[Quantity]:
    return [one[name] for one in several if name in one]


def _asked(limit: Resources, need: Resources) -> dict[str, Quantity]:
    """What a limit says of the resources that are needed, where it limits those that it does not name to 0."""
    return {name: limit.get(name, ZERO) for name, amount in need.items() if amount}
