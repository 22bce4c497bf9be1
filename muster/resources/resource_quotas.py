"""The limits of a namespace's ResourceQuotas for its gangs.

A pod is charged when it is created, held or not, so that a gang that a quota never holds never gets all of its pods.
Requests, limits and the number of pods are looked at; storage and other objects are left to the apiserver. Scopes of
quotas are in `muster.resources.quota_charges`.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from muster.model.objects import InvalidObjectError, LocalObject, Object, ResourceList
from muster.resources.amounts import Resources, parse_resources
from muster.resources.quantity import ZERO, Quantity, parse_quantity

PODS = "pods"
"""The key of the number of pods among resources."""

_REQUESTS = "requests."
_PLAIN = frozenset({"cpu", "memory", "ephemeral-storage", PODS})
_HUGE_PAGES = "hugepages-"
LIMITS = {f"limits.{name}": name for name in ("cpu", "memory", "ephemeral-storage")}
"""The keys of a quota that count limits, and the resource of each."""


class Scope(LocalObject, frozen=True):
    """A property that pods must have to be counted."""

    scope_name: str = ""
    operator: str = "Exists"
    values: tuple[str, ...] = ()


class _Scopes(LocalObject, frozen=True):
    match_expressions: tuple[Scope, ...] = ()


class _Spec(LocalObject, frozen=True):
    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: _Scopes = _Scopes()


class _Status(LocalObject, frozen=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Object, frozen=True):
    """The most that the objects of a namespace may take together (`v1`)."""

    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that a pod must match, all of them, to be charged to it."""
        return (*(Scope(scope_name=name) for name in self.spec.scopes), *self.spec.scope_selector.match_expressions)


def limits(quota: ResourceQuota) -> dict[str, Quantity]:
    """Return the limits of pods together: requests by resource, limits (`limits.cpu`), and their number, as PODS.

    Raises InvalidObjectError if an amount is no quantity.
    """
    return _known(quota.spec.hard, "spec.hard")


def charge(requests: Resources, pods: int) -> dict[str, Quantity]:
    """Return the charge of `pods` pods with these requests together."""
    return {**requests, PODS: parse_quantity(pods)}


def left_of(quotas: Iterable[ResourceQuota]) -> dict[str, Quantity]:
    """Return what all quotas together leave for pods; below zero if more is charged than one of them allows by now."""
    least: dict[str, Quantity] = {}
    for quota in quotas:
        # The apiserver has checked these amounts, so that they can be read.
        with suppress(InvalidObjectError):
            # Without scopes every pod of the namespace is charged to it.
            if not quota.scopes:
                least |= {name: min(amount, least.get(name, amount)) for name, amount in left(quota).items()}
    return least


def left(quota: ResourceQuota) -> dict[str, Quantity]:
    """Return what the quota leaves for pods; raises InvalidObjectError if an amount is no quantity."""
    hard, used = _known(quota.status.hard, "status.hard"), _known(quota.status.used, "status.used")
    return {name: hard[name] - used.get(name, ZERO) for name in hard}


def _known(raw: Mapping[str, str | int | float], path: str) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for name, amount in parse_resources(raw, path=path).items():
        resource = _resource(name)
        if resource:
            found[resource] = min(amount, found.get(resource, amount))
    return found


def _resource(name: str) -> str:
    """Return the resource whose requests a quota's key counts, or the key of limits; "" for any other key."""
    if name.startswith(_REQUESTS):
        return "" if name == "requests.storage" else name.removeprefix(_REQUESTS)
    if name == f"count/{PODS}":
        return PODS
    return name if name in _PLAIN or name in LIMITS or name.startswith(_HUGE_PAGES) else ""
