"""Pod affinity: only whether it names pods of other namespaces is read, as scopes of ResourceQuotas depend on that."""

from __future__ import annotations

from typing import Any

import msgspec


class _Decoded(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The same as `objects.LocalObject`, which imports this module."""


class _AffinityTerm(_Decoded, frozen=True):
    namespaces: tuple[Any, ...] = ()
    namespace_selector: Any = None


class _WeightedTerm(_Decoded, frozen=True):
    pod_affinity_term: _AffinityTerm = _AffinityTerm()


class _PodAffinity(_Decoded, frozen=True):
    # There may be thousands of terms, and only `across` is kept of them; a value in the manifest is overwritten.
    required: tuple[_AffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[_WeightedTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )
    across: bool = False

    def __post_init__(self) -> None:
        terms = (*self.required, *(one.pod_affinity_term for one in self.preferred))
        across = any(one.namespaces or one.namespace_selector is not None for one in terms)
        for name, value in (("required", ()), ("preferred", ()), ("across", across)):
            msgspec.structs.force_setattr(self, name, value)


class Affinity(_Decoded, frozen=True):
    """The pods near which, or away from which, a pod is to run."""

    pod_affinity: _PodAffinity = _PodAffinity()
    pod_anti_affinity: _PodAffinity = _PodAffinity()

    @property
    def across_namespaces(self) -> bool:
        """True if a term names pods of other namespaces."""
        return self.pod_affinity.across or self.pod_anti_affinity.across
