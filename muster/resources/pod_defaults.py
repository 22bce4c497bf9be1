"""Additions of a cluster to new pods: the overhead of their RuntimeClass, and the defaults of LimitRanges.

They are made when a pod is created, so that no template shows them, and yet they take room.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from muster.model.findings import Finding, Reason
from muster.model.objects import LocalObject, Object, ResourceList
from muster.model.pods import Container, PodSpec, ResourceRequirements
from muster.resources.amounts import as_text, describe, parse_resources
from muster.resources.pod_requests import pod_level_requests
from muster.resources.resource_quotas import ResourceQuota

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


class LimitRange(Object, frozen=True):
    """Defaults and bounds of the containers and pods of a namespace (`v1`)."""

    spec: LimitRangeSpec = LimitRangeSpec()


class Overhead(LocalObject, frozen=True):
    """The resources that a pod takes in addition to its containers."""

    pod_fixed: ResourceList = {}


class RuntimeClass(Object, frozen=True):
    """A way to run pods, by name (`node.k8s.io/v1`, cluster-scoped)."""

    overhead: Overhead = Overhead()


@dataclass(frozen=True, slots=True)
class PodDefaults:
    """Defaults of a namespace's pods: `ranges` are its LimitRanges, `runtimes` the cluster's RuntimeClasses by name.

    `runtimes` is None where no RuntimeClass is known at all; then none is missing either. `quotas` are the namespace's
    ResourceQuotas, to which the pods are charged.
    """

    ranges: Sequence[LimitRange] = ()
    runtimes: Mapping[str, RuntimeClass] | None = None
    quotas: Sequence[ResourceQuota] = ()

    def completed(self, spec: Spec, *, path: str = "spec") -> Spec:
        """Return the specification of a pod as the apiserver stores it.

        An overhead in the template stays: if it differs from the class's, `objection` reports it.
        Raises InvalidObjectError, with the field below `path`, when an amount is not a quantity.
        """
        runtime = (self.runtimes or {}).get(spec.runtime_class_name)
        if runtime is not None and not spec.overhead:
            spec = replace(spec, overhead=runtime.overhead.pod_fixed)
        return with_limit_ranges(spec, self.ranges, path=path)

    def objection(self, spec: PodSpec, *, path: str) -> Finding | None:
        """Return why the apiserver's RuntimeClass admission plugin will refuse such pods; None if it will not.

        Source of the rule: plugin/pkg/admission/runtimeclass. None, too, if no RuntimeClass is known.
        """
        if self.runtimes is None:
            return None
        name = spec.runtime_class_name
        runtime = self.runtimes.get(name)
        if name and runtime is None:
            field = f"{path}.runtimeClassName"
            message = (
                f'{field}: RuntimeClass "{name}" does not exist; the apiserver refuses such pods, '
                "name an existing class or create it first"
            )
            return Finding(Reason.UNKNOWN_RUNTIME_CLASS, field, message)
        written = parse_resources(spec.overhead, path=f"{path}.overhead")
        given = parse_resources(runtime.overhead.pod_fixed, path="overhead.podFixed") if runtime else {}
        if not written or written == given:
            return None
        of_class = f'RuntimeClass "{name}" has {describe(given)}' if name else "there is no runtimeClassName"
        message = (
            f"{path}.overhead: found {describe(written)}, {of_class}; the apiserver refuses such pods, "
            "leave the overhead to the RuntimeClass"
        )
        return Finding(Reason.OVERHEAD_MISMATCH, f"{path}.overhead", message)


NOTHING_ADDED = PodDefaults()


def with_limit_ranges(
    spec: Spec, limit_ranges: Iterable[LimitRange], *, path: str = "spec", last_first: bool = False
) -> Spec:
    """Return the specification of a pod after its admission to a namespace with these LimitRanges.

    As the apiserver's LimitRanger admission plugin (plugin/pkg/admission/limitranger) does it, and at its moment: after
    limits have stood in for missing requests and after pod-level requests have been completed, which a container
    default therefore no longer changes. The bounds are checked in `muster.resources.limit_bounds`.

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
