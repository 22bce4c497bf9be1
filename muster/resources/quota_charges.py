"""The charge of a new pod to ResourceQuotas, which of them count it, and their demands on its containers.

As the apiserver's pod evaluator does it (pkg/quota/v1/evaluator/core/pods.go of 1.36.3), after its defaults. If it is
not certain that a quota counts a pod, it is taken not to: nothing is refused for an uncertain reason.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from muster.model.objects import InvalidObjectError
from muster.model.pods import Container, PodSpec, TemplateSpec
from muster.resources.amounts import Resources
from muster.resources.pod_requests import (
    container_limits,
    container_requests,
    containers_of,
    has_pod_level,
    pod_limits,
    pod_requests,
)
from muster.resources.quantity import ZERO, Quantity
from muster.resources.resource_quotas import LIMITS, ResourceQuota, Scope, charge, left

_COMPUTE = ("cpu", "memory")
# A mistake by Kubernetes' own account, kept for these and made for no other resource.
_DEMANDED = {key: key.removeprefix("requests.") for name in _COMPUTE for key in (name, f"requests.{name}")} | {
    key: key for key, name in LIMITS.items() if name in _COMPUTE
}


@dataclass(frozen=True, slots=True)
class PodCharge:
    """The properties of a new pod that quotas go by."""

    amounts: Resources
    """The charge of one pod, by resource, with its limits as `limits.cpu`, and `resource_quotas.PODS`."""
    unsaid: Mapping[str, tuple[str, ...]]
    """The containers that do not set their requests (`cpu`) or their limits (`limits.cpu`), by these keys."""
    best_effort: bool
    """True if it asks for no cpu and no memory at all."""
    terminating: bool
    """True if it has an activeDeadlineSeconds."""
    across_namespaces: bool
    """True if its affinity names pods of other namespaces."""
    priority_class: str
    """Its priority class; "" if none is named: a cluster may have a default."""


def pod_charge(spec: TemplateSpec, priority_class: str, *, path: str = "spec") -> PodCharge:
    """Return the charge of a pod with that specification, completed as the apiserver completes it.

    Raises InvalidObjectError, with the field below `path`, when an amount is no quantity.
    """
    limits = pod_limits(spec, path=path)
    asked = {
        **pod_requests(spec, path=path),
        **{key: limits[name] for key, name in LIMITS.items() if name in limits},
    }
    return PodCharge(
        amounts=charge(asked, 1),
        unsaid=_unset(spec, path),
        best_effort=_best_effort(spec, path),
        terminating=spec.active_deadline_seconds is not None,
        across_namespaces=spec.affinity.across_namespaces,
        priority_class=priority_class,
    )


def counts(quota: ResourceQuota, pod: PodCharge) -> bool:
    """True if the quota certainly counts the pod."""
    return all(_in_scope(scope, pod) for scope in quota.scopes)


def demands(quota: ResourceQuota, pod: PodCharge) -> dict[str, tuple[str, ...]]:
    """Return the amounts that the quota demands of containers, by its keys, and the containers that do not set them."""
    return {
        key: pod.unsaid[_DEMANDED[key]]
        for key in sorted(quota.spec.hard)
        if key in _DEMANDED and _DEMANDED[key] in pod.unsaid
    }


def short_of(quotas: Iterable[ResourceQuota], pod: PodCharge) -> tuple[ResourceQuota, dict[str, Quantity]] | None:
    """Return the first quota that refuses one more such pod for now, and what is left of it; None if none does."""
    for quota in quotas:
        # The apiserver has checked these amounts, so that they can be read.
        with suppress(InvalidObjectError):
            there = {name: amount for name, amount in left(quota).items() if pod.amounts.get(name, ZERO) > ZERO}
            lacking = {name: max(amount, ZERO) for name, amount in there.items() if pod.amounts[name] > amount}
            if lacking and counts(quota, pod):
                return quota, lacking
    return None


def _in_scope(scope: Scope, pod: PodCharge) -> bool:
    match scope.scope_name:
        case "Terminating":
            return pod.terminating
        case "NotTerminating":
            return not pod.terminating
        case "BestEffort":
            return pod.best_effort
        case "NotBestEffort":
            return not pod.best_effort
        case "CrossNamespacePodAffinity":
            return pod.across_namespaces
        case "PriorityClass":
            return bool(pod.priority_class) and _of_class(scope, pod.priority_class)
        case _:
            return False


def _of_class(scope: Scope, name: str) -> bool:
    match scope.operator:
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values
        case _:
            return scope.operator == "Exists"


def _unset(spec: PodSpec, path: str) -> dict[str, tuple[str, ...]]:
    if has_pod_level(spec):
        # Requests of the pod as a whole stand in for all of them.
        return {}
    unsaid: dict[str, list[str]] = {}
    for container, _, words in containers_of(spec, path):
        limits = container.resources.limits
        for name in _COMPUTE:
            if name not in limits:
                unsaid.setdefault(f"limits.{name}", []).append(words)
                if name not in container.resources.requests:
                    unsaid.setdefault(name, []).append(words)
    return {key: tuple(names) for key, names in unsaid.items()}


def _best_effort(spec: PodSpec, path: str) -> bool:
    whole = [(Container(resources=spec.resources), path)] if spec.resources.named else []
    asking = whole or [(one, where) for one, where, _ in containers_of(spec, path)]
    asked = (amounts(*one) for one in asking for amounts in (container_requests, container_limits))
    return not any(amounts.get(name, ZERO) > ZERO for amounts in asked for name in _COMPUTE)
