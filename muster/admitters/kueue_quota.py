"""Workloads that Kueue's ClusterQueue can never hold, by its flavors' quotas (kueue.x-k8s.io/v1beta2).

Kueue distinguishes a gang that waits for a moment from one that waits for ever in its messages alone, so it is computed
here. One pod set takes one flavor of each resource group. If a ClusterQueue is in a cohort, it is not known what it may
borrow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.admitters.kueue import KueueWorkload, PodSet
from muster.model.objects import InvalidObjectError, LocalObject, Object, ResourceList
from muster.resources.amounts import Resources, describe, minus, parse_resources, part_of, times, total, within
from muster.resources.pod_requests import pod_requests
from muster.resources.quantity import ZERO

# Most choices of flavors that are tried; if these are too few, the gang may fit.
_TRIES = 20_000


class _QuotaOf(LocalObject, frozen=True):
    name: str = ""
    nominal_quota: str | int | float = "0"


class _Flavor(LocalObject, frozen=True):
    name: str = ""
    resources: tuple[_QuotaOf, ...] = ()


class _Group(LocalObject, frozen=True):
    covered_resources: tuple[str, ...] = ()
    flavors: tuple[_Flavor, ...] = ()


class _ClusterQueueSpec(LocalObject, frozen=True):
    cohort_name: str = ""
    resource_groups: tuple[_Group, ...] = ()


class ClusterQueue(Object, frozen=True):
    """A ClusterQueue of Kueue's."""

    spec: _ClusterQueueSpec = _ClusterQueueSpec()


class _LocalQueueSpec(LocalObject, frozen=True):
    cluster_queue: str = ""


class LocalQueue(Object, frozen=True):
    """A LocalQueue of Kueue's, which leads to a ClusterQueue."""

    spec: _LocalQueueSpec = _LocalQueueSpec()


@dataclass(frozen=True, slots=True)
class PodSetNeed:
    """Equal pods, and their requests together."""

    name: str
    need: Resources


def needs_of(workload: KueueWorkload) -> list[PodSetNeed]:
    """Return the least that Kueue admits of a Workload; raises InvalidObjectError if an amount is no quantity.

    As Kueue has counted it, if it has: without the resources that it is configured to exclude, and with those that it
    is configured to transform replaced. Else the requests of the pods.
    """
    counted = {one.name: one.resources for one in workload.status.resource_requests}
    return [PodSetNeed(one.name, _least(one, counted.get(one.name))) for one in workload.spec.pod_sets]


def _least(pods: PodSet, counted: ResourceList | None) -> Resources:
    if counted is None:
        need = times(pod_requests(pods.template.spec), pods.count)
    else:
        need = parse_resources(counted, path="status.resourceRequests")
    return need if pods.min_count is None else part_of(need, pods.min_count, pods.count)


def never_fits(sets: Sequence[PodSetNeed], queue: ClusterQueue) -> str:
    """Return why the queue can never hold these pods, in words with numbers; "" if it can, or if that is not known."""
    if queue.spec.cohort_name:
        return ""
    name = queue.metadata.name
    needs = total(one.need for one in sets)
    covered = {resource for group in queue.spec.resource_groups for resource in group.covered_resources}
    if uncovered := sorted(resource for resource, amount in needs.items() if amount > ZERO and resource not in covered):
        needed = _only(needs, uncovered)
        return f'ClusterQueue "{name}" has no quota of {", ".join(uncovered)}, and the gang needs {needed}'
    for group in queue.spec.resource_groups:
        of_group = [_part(one, group.covered_resources) for one in sets]
        try:
            flavors = [_quota(flavor, group.covered_resources) for flavor in group.flavors]
        except InvalidObjectError:
            return ""
        asked = total(one.need for one in of_group)
        most = total(flavors)
        if not within(asked, most):
            short = [resource for resource in asked if asked[resource] > most.get(resource, ZERO)]
            return f'it needs {_only(asked, short)}, and all flavors of ClusterQueue "{name}" have {_only(most, short)}'
        for one in of_group:
            if not any(within(one.need, flavor) for flavor in flavors):
                return (
                    f'its pod set "{one.name}" needs {describe(one.need)} of one flavor, and none of ClusterQueue '
                    f'"{name}" has as much'
                )
        if not _placed(of_group, flavors):
            words = describe(asked)
            return f'no choice of flavors of ClusterQueue "{name}" holds its pod sets together, which need {words}'
    return ""


def _placed(sets: Sequence[PodSetNeed], flavors: list[Resources]) -> bool:
    """True if each set finds a flavor together with the others, or if that takes too long to find out."""
    tries = [_TRIES]
    ordered = sorted((one.need for one in sets if any(one.need.values())), key=_size, reverse=True)

    def place(at: int) -> bool:
        if at == len(ordered):
            return True
        for number, left in enumerate(flavors):
            tries[0] -= 1
            if tries[0] < 0:
                return True
            if within(ordered[at], left):
                flavors[number] = minus(left, ordered[at])
                if place(at + 1):
                    return True
                flavors[number] = left
        return False

    return place(0)


def _size(need: Resources) -> int:
    return sum(amount.nano for amount in need.values())


def _part(one: PodSetNeed, resources: Iterable[str]) -> PodSetNeed:
    return PodSetNeed(one.name, {name: one.need[name] for name in resources if one.need.get(name, ZERO) > ZERO})


def _quota(flavor: _Flavor, covered: Iterable[str]) -> Resources:
    quota = {one.name: one.nominal_quota for one in flavor.resources}
    return parse_resources({name: quota.get(name, "0") for name in covered}, path=flavor.name)


def _only(amounts: Resources, names: Iterable[str]) -> str:
    return describe({name: amounts[name] for name in names if name in amounts})
