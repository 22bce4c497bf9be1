"""The limits and guarantees of an ElasticQuota of scheduler-plugins for the pods of its namespace.

As the plugin CapacityScheduling (pkg/capacityscheduling of v0.34.7) reads one. Without a `max` the namespace is not
limited; with one, cpu, memory and ephemeral-storage that it does not name are 0, and other resources are unlimited.
A resource that `min` does not name is guaranteed to no namespace.

The plugin refuses pods for good where the namespace would use more than its `max`, and where all namespaces with a
quota would use more than the sum of all `min`. A namespace within its own `min` takes back by preemption what others
borrowed, so that the sum never limits it. A namespace without a quota is not limited, and its usage does not count.
The scheduler follows one quota of each namespace; of several, muster takes the strictest amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.model.objects import LocalObject, Object, ResourceList
from muster.resources.amounts import Resources, describe, minus, parse_resources, total, within
from muster.resources.quantity import ZERO, Quantity

# Plain fields of the scheduler's own type for amounts: they are 0 if they are not set. All others are in a map.
_NEVER_UNNAMED = ("cpu", "memory", "ephemeral-storage")
_TOGETHER = "the ElasticQuotas of all namespaces"


class _Spec(LocalObject, frozen=True):
    min: ResourceList = {}
    # An empty one allows nothing, an absent one everything.
    max: ResourceList | None = None


class _Status(LocalObject, frozen=True):
    used: ResourceList = {}


class ElasticQuota(Object, frozen=True):
    """The limit and the guarantee of the pods of a namespace (`scheduling.x-k8s.io/v1alpha1`)."""

    spec: _Spec = _Spec()
    status: _Status = _Status()


def largest_use(quota: ElasticQuota) -> dict[str, Quantity]:
    """Return the most that the namespace may ever use; {} if nothing limits it.

    Raises InvalidObjectError if an amount is no quantity, or below 0.
    """
    if quota.spec.max is None:
        return {}
    return dict.fromkeys(_NEVER_UNNAMED, ZERO) | parse_resources(quota.spec.max, path="spec.max")


def guaranteed(quota: ElasticQuota) -> dict[str, Quantity]:
    """Return the guarantee of the namespace, even when others use it now; resources that are not named are 0.

    Raises InvalidObjectError if an amount is no quantity, or below 0.
    """
    return parse_resources(quota.spec.min, path="spec.min")


def used(quota: ElasticQuota) -> dict[str, Quantity]:
    """Return the requests of the namespace's running pods together, as the scheduler's controller last counted.

    It names the resources that `min` or `max` name. Raises InvalidObjectError if an amount is no quantity.
    """
    return parse_resources(quota.status.used, path="status.used", least=None)


@dataclass(frozen=True, slots=True)
class NamespaceLimit:
    """The strictest limits of the ElasticQuotas of one namespace."""

    quotas: tuple[str, ...]
    """Their names, in order."""
    most: Resources
    """The most that the namespace may ever use; resources that are not named are unlimited."""
    least: Resources
    """The guarantee of the namespace; resources that are not named are 0."""

    def __str__(self) -> str:
        """Return its name in messages to gangs of the namespace."""
        named = " and ".join(f'"{name}"' for name in self.quotas)
        return f"ElasticQuotas {named}" if len(self.quotas) > 1 else f"ElasticQuota {named}"


def limit_of(quotas: Iterable[ElasticQuota]) -> NamespaceLimit | None:
    """Return the strictest limits of the quotas of one namespace; None if there are none.

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
                {name: min(limit.most.get(name, amount), amount) for name, amount in {**limit.most, **most}.items()},
                {name: min(limit.least[name], least[name]) for name in limit.least if name in least},
            )
    return limit


@dataclass(frozen=True)
class Ceiling:
    """The bound of the gangs of one namespace.

    Its rule is here twice: in words for one gang, and in integers, which are compared for each of thousands.
    """

    own: NamespaceLimit
    """The limit of the namespace."""
    together: Resources
    """The sum of the guarantees of all namespaces."""
    whole: bool = True
    """True if the quotas of all namespaces are known; nothing follows from a sum with unknown parts."""

    def never(self, need: Resources) -> str | None:
        """Return why a gang with that need can never run in the namespace, in words with numbers; None if it can."""
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
        """True if the namespace stays within its own min when the need is added to what it has `used`."""
        return within(need, minus(_asked(self.own.least, need), used))

    def shortage(self, need: Resources, used: Resources, used_together: Resources) -> str | None:
        """Return the shortage for which the gang waits: free amounts and limits, in words; None if there is none.

        `used` is the usage of the namespace, `used_together` that of all namespaces with a quota, this one among them.
        Resources that are not needed are not looked at.
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
        # An amount of 0 is a limit, too.
        return {name: amount.nano for name, amount in self.own.most.items()}

    @cached_property
    def _least(self) -> dict[str, int]:
        return {name: amount.nano for name, amount in self.own.least.items()}

    @cached_property
    def _shared(self) -> dict[str, int] | None:
        return {name: amount.nano for name, amount in self.together.items()} if self.whole else None

    def fits(
        self, amounts: Iterable[tuple[str, int]], used: Mapping[str, int], used_together: Mapping[str, int]
    ) -> bool:
        """True if the need fits in addition to the usage; all in billionths."""
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
        """Return the upper bound per resource for any gang of the namespace, in billionths."""
        most = {name: limit - used.get(name, 0) for name, limit in self._most.items()}
        if self._shared is not None:
            for name in {*most, *self._shared}:
                own = self._least.get(name, 0) - used.get(name, 0)
                free = max(own, self._shared.get(name, 0) - used_together.get(name, 0))
                most[name] = min(free, most.get(name, free))
        return most


class NamespaceLimits:
    """The limits of all namespaces that have an ElasticQuota; not `whole` if only some of them can be read."""

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole
        self._limits: dict[str, NamespaceLimit] = {}
        self._together: Resources | None = None
        self._ceilings: dict[str, Ceiling] = {}

    def copy(self) -> NamespaceLimits:
        """Return a copy that can be changed independently."""
        other = NamespaceLimits(whole=self.whole)
        other._limits = dict(self._limits)
        return other

    def __bool__(self) -> bool:
        return bool(self._limits)

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._limits

    def put(self, namespace: str, limit: NamespaceLimit | None) -> bool:
        """Set the limit of a namespace, None for none; True if that changed anything."""
        if self._limits.get(namespace) == limit:
            return False
        self._limits.pop(namespace, None)
        if limit is not None:
            self._limits[namespace] = limit
        self._together = None
        self._ceilings.clear()
        return True

    @property
    def together(self) -> Resources:
        """Return the sum of the guarantees of all namespaces; resources that are not named are 0."""
        if self._together is None:
            self._together = total(limit.least for limit in self._limits.values())
        return self._together

    def ceiling(self, namespace: str) -> Ceiling | None:
        """Return the bound of the gangs of a namespace; None if no quota limits them."""
        own = self._limits.get(namespace)
        if own is None:
            return None
        known = self._ceilings.get(namespace)
        if known is None:
            known = self._ceilings[namespace] = Ceiling(own, self.together, self.whole)
        return known


def _asked(limit: Resources, need: Resources) -> dict[str, Quantity]:
    """Return the limit of each resource that is needed; one that the limit does not name is 0."""
    return {name: limit.get(name, ZERO) for name, amount in need.items() if amount}
