"""What ElasticQuotas let the gangs of a namespace hold, beside the limits of its queue.

As CapacityScheduling of scheduler-plugins (v0.34.7) refuses pods: for good where the namespace would use more than its
`max`, and where all namespaces with a quota would use more than the sum of all `min`. A namespace within its own `min`
gets back by preemption what others borrowed, so that the sum never keeps it from that.

A namespace without a quota is not limited, and what it uses does not count. The scheduler heeds one quota of each
namespace; of several, muster takes the strictest amounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from muster.resources.amounts import Resources, describe, minus, total, within
from muster.resources.elastic_quotas import guaranteed, largest_use
from muster.resources.quantity import ZERO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from muster.resources.elastic_quotas import ElasticQuota
    from muster.resources.quantity import Quantity

__all__ = ["Ceiling", "NamespaceLimit", "NamespaceLimits", "limit_of"]

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


class Ceiling(NamedTuple):
    """What bounds the gangs of one namespace: its `own` limit, and the sum of what all are guaranteed `together`.

    Unless they are `whole`, not the quotas of all namespaces are known, and the sum bounds nothing.
    """

    own: NamespaceLimit
    together: Resources
    whole: bool = True

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


class NamespaceLimits:
    """The limits of all namespaces that have an ElasticQuota; whoever cannot know all says so by `whole`."""

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


def _of(name: str, *several: Resources) -> list[Quantity]:
    return [one[name] for one in several if name in one]


def _asked(limit: Resources, need: Resources) -> dict[str, Quantity]:
    """What a limit says of the resources that are needed, where it limits those that it does not name to 0."""
    return {name: limit.get(name, ZERO) for name, amount in need.items() if amount}
