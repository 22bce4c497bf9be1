"""The defaults of a namespace's LimitRanges for pods whose containers set no requests or limits.

As the apiserver's LimitRanger admission plugin (plugin/pkg/admission/limitranger) does it, and at its moment: after
limits have stood in for missing requests and after pod-level requests have been completed, which a container default
therefore no longer changes. The bounds are checked in `muster.resources.limit_bounds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from muster.model.objects import LocalObject, ObjectMeta, ResourceList
from muster.model.pods import Container, PodSpec, ResourceRequirements
from muster.resources.amounts import as_text
from muster.resources.pod_requests import pod_level_requests

Spec = TypeVar("Spec", bound="PodSpec")


class LimitRangeItem(LocalObject, frozen=True):
    """Defaults and bounds for one `type` of thing: Container, Pod or PersistentVolumeClaim."""

    type: str = ""
    default: ResourceList = {}
    default_request: ResourceList = {}
    max: ResourceList = {}
    min: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(LocalObject, frozen=True):
    """The specification of a LimitRange."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(LocalObject, frozen=True):
    """Defaults and bounds of the containers and pods of a namespace (`v1`)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


def with_limit_ranges(
    spec: Spec, limit_ranges: Iterable[LimitRange], *, path: str = "spec", last_first: bool = False
) -> Spec:
    """Return the specification of a pod after its admission to a namespace with these LimitRanges.

    If two LimitRanges set the same default the plugin takes any; here it is the first by name, or the last.
    Raises InvalidObjectError naming the field, below `path`, when an amount at pod level is not a quantity.
    """
    defaults = [
        _defaults(item)
        for limit_range in sorted(limit_ranges, key=lambda one: one.metadata.name, reverse=last_first)
        for item in limit_range.spec.limits
        if item.type == "Container"
    ]
    if not defaults:
        return spec
    resources = spec.resources
    if resources.named:
        resources = ResourceRequirements(
            requests={**as_text(pod_level_requests(spec, path=path))}, limits=resources.limits
        )
    return replace(
        spec,
        resources=resources,
        containers=tuple(_completed(container, defaults) for container in spec.containers),
        init_containers=tuple(_completed(container, defaults) for container in spec.init_containers),
    )


def _defaults(item: LimitRangeItem) -> ResourceRequirements:
    """Return the defaults of an item, completed as by the apiserver: max, then default, then min stand in."""
    limits = item.max | item.default
    return ResourceRequirements(limits=limits, requests=item.min | limits | item.default_request)


def _completed(container: Container, defaults: Iterable[ResourceRequirements]) -> Container:
    limits = container.resources.limits
    requests = limits | container.resources.requests
    for given in defaults:
        limits = given.limits | limits
        requests = given.requests | requests
    return replace(container, resources=ResourceRequirements(limits=limits, requests=requests))
