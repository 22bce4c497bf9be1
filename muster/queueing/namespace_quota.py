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

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from muster.queueing.entries import Candidate
from muster.queueing.usage import Amounts, Usage, namespace_level
from muster.resources.elastic_quotas import NamespaceLimits

_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(slots=True)
class NamespaceRoom:
    """What the namespaces have left in one admission pass."""

    limits: NamespaceLimits
    usage: Usage
    lasting: Usage
    # What `largest` gave since something was last taken or kept: gangs of a namespace stand in many lines.
    _known: dict[tuple[str, bool], dict[str, int]] = field(default_factory=dict)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.limits

    def levels(self, namespace: str) -> tuple[str, ...]:
        """The levels of a namespace: its own, and that of all together; none where it has no limit."""
        return (namespace_level(namespace), namespace_level()) if namespace in self.limits else ()

    def take(self, namespace: str, amounts: Amounts, *, lasts: bool) -> None:
        """Take room of the namespace, where it has a limit."""
        self.usage.take_in(self.levels(namespace), amounts)
        self._known.clear()
        if lasts:
            self.take_lasting(namespace, amounts)

    def take_lasting(self, namespace: str, amounts: Amounts) -> None:
        """Count this as held, where the namespace has a limit, after all gangs that end by themselves have ended."""
        self.lasting.take_in(self.levels(namespace), amounts)
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
        ceiling = self.limits.ceiling(namespace)
        if ceiling is None:
            return True
        own, together = map(self.usage.taken, self.levels(namespace))
        if kept or ended or ended_together:
            own = _after(own, kept, ended, amounts)
            together = _after(together, kept, ended_together, amounts)
        return ceiling.fits(amounts, own, together)

    def fits_when_drained(self, namespace: str, amounts: Amounts) -> bool:
        """Whether so much would be free after all gangs that end by themselves had ended."""
        ceiling = self.limits.ceiling(namespace)
        return ceiling is None or ceiling.fits(amounts, *map(self.lasting.taken, self.levels(namespace)))

    def largest(self, namespace: str, *, in_the_end: bool = False) -> dict[str, int]:
        """No gang has room there that needs more of one of these resources: now, or whenever others have ended.

        One that needs no more may have room: what it may need of one resource depends on what it needs of the others.
        """
        ceiling, levels = self.limits.ceiling(namespace), self.levels(namespace)
        if ceiling is None:
            return {}
        known = self._known.get((namespace, in_the_end))
        if known is None:
            known = ceiling.largest(*map(self.usage.taken, levels))
            if in_the_end:
                for name, amount in ceiling.largest(*map(self.lasting.taken, levels)).items():
                    known[name] = max(known[name], amount)
            self._known[namespace, in_the_end] = known
        return dict(known)

    def shortage(self, candidate: Candidate) -> str | None:
        """What the gang lacks in its namespace, in words with numbers; None where it lacks nothing."""
        ceiling, need = self.limits.ceiling(candidate.key.namespace), candidate.need
        if not candidate.limited or ceiling is None:
            return None
        own, together = (self.usage.used(level, need) for level in self.levels(candidate.key.namespace))
        return ceiling.shortage(need, own, together)


def _after(used: Mapping[str, int], kept: Mapping[str, int], ended: Mapping[str, int], of: Amounts) -> dict[str, int]:
    """What is used of these resources with what is kept, and without what has ended."""
    return {name: used.get(name, 0) + kept.get(name, 0) - ended.get(name, 0) for name, _ in of}
