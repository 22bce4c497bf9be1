"""Refusals by a namespace's LimitRanges: pods with a container, or as a whole, outside their min, max and ratio.

As the apiserver's LimitRanger admission plugin judges (plugin/pkg/admission/limitranger of 1.36.3), once the defaults
have been set; and its validation, where a default contradicts the pod's own amounts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from muster.model.pods import PodSpec
from muster.resources.amounts import Resources
from muster.resources.pod_defaults import LimitRange, LimitRangeItem, with_limit_ranges
from muster.resources.pod_requests import (
    container_limits,
    container_requests,
    containers_of,
    pod_level_requests,
    pod_limits,
    pod_requests,
    rounded,
)
from muster.resources.quantity import ZERO, Quantity

_NANO = 10**9
_MILLI = 10**6
# Beyond these the plugin compares whole numbers and no thousandths (resource.MaxMilliValue).
_MOST_IN_MILLI = (2**63 - 1) // 1000
# For all other resources requests and limits of a container must be equal.
_OVERCOMMITTED = frozenset({"cpu", "memory", "ephemeral-storage"})


class OutOfBounds(NamedTuple):
    """A violation in words; `container` is the container's name in words, "" for the pod as a whole."""

    container: str
    words: str


def out_of_bounds(spec: PodSpec, limit_ranges: Sequence[LimitRange], *, path: str = "spec") -> tuple[OutOfBounds, ...]:
    """Return why every pod of that specification is refused; () if one may be accepted.

    If two LimitRanges set different defaults, a pod may get either. Raises InvalidObjectError, with the field below
    `path`, when an amount is no quantity.
    """
    found: tuple[OutOfBounds, ...] = ()
    bounds = [_bounds(one, item) for one in limit_ranges for item in one.spec.limits]
    for last_first in (False, True)[: len(limit_ranges)]:
        completed = with_limit_ranges(spec, limit_ranges, path=path, last_first=last_first)
        judged = tuple(_judged(spec, completed, bounds, path))
        found = found or judged
        if not judged:
            return ()
    return found


class _Bounds(NamedTuple):
    """The bounds of one item of a LimitRange; `called` is its name in messages."""

    kind: str
    called: str
    min: Resources
    max: Resources
    ratio: Resources


def _bounds(limit_range: LimitRange, item: LimitRangeItem) -> _Bounds:
    called = f'LimitRange "{limit_range.metadata.name}"'
    ratio = rounded(item.max_limit_request_ratio, f"{called}: maxLimitRequestRatio")
    return _Bounds(item.type, called, rounded(item.min, f"{called}: min"), rounded(item.max, f"{called}: max"), ratio)


def _judged(spec: PodSpec, completed: PodSpec, bounds: Sequence[_Bounds], path: str) -> Iterator[OutOfBounds]:
    of_containers = [one for one in bounds if one.kind == "Container"]
    ours = (one for one, _, _ in containers_of(spec, path))
    for (container, where, called), own in zip(containers_of(completed, path), ours, strict=True):
        if of_containers:
            requests, limits = container_requests(container, where), container_limits(container, where)
            given = {name: limit for name, limit in limits.items() if name not in own.resources.limits}
            yield from (OutOfBounds(called, words) for words in _against_given(requests, given))
            for one in of_containers:
                yield from (OutOfBounds(called, words) for words in _outside(one, requests, limits))
    if of_containers and spec.resources.named:
        yield from (OutOfBounds("", words) for words in _against_whole_pod(completed, path))
    if len(of_containers) < len(bounds):
        whole = replace(completed, overhead={})
        requests, limits = pod_requests(whole, path=path), pod_limits(whole, path=path)
        for one in bounds:
            if one.kind == "Pod":
                yield from (OutOfBounds("", words) for words in _outside(one, requests, limits))


def _outside(bounds: _Bounds, requests: Resources, limits: Resources) -> Iterator[str]:
    for resource, least in bounds.min.items():
        asked, limit = requests.get(resource, ZERO), limits.get(resource, least)
        if resource not in requests:
            yield f"requests no {resource}, and {bounds.called} has min {resource} {least}"
        elif min(asked, limit) < least:
            fault = f"requests {resource} {asked}" if asked < least else f"has limit {resource} {limit}"
            yield f"{fault}, below the min {least} of {bounds.called}"
    for resource, most in bounds.max.items():
        asked, limit = requests.get(resource, ZERO), limits.get(resource, ZERO)
        if resource not in limits:
            yield f"has no limit of {resource}, and {bounds.called} has max {resource} {most}"
        elif max(asked, limit) > most:
            fault = f"has limit {resource} {limit}" if limit > most else f"requests {resource} {asked}"
            yield f"{fault}, above the max {most} of {bounds.called}"
    yield from _outside_ratio(bounds, requests, limits)


def _outside_ratio(bounds: _Bounds, requests: Resources, limits: Resources) -> Iterator[str]:
    for resource, ratio in bounds.ratio.items():
        asked, limit = requests.get(resource, ZERO), limits.get(resource, ZERO)
        if not (asked and limit):
            lacks = "limit of" if asked else "request of"
            yield f"has no {lacks} {resource}, whose ratio {bounds.called} bounds ({ratio})"
        elif _above(ratio, limit, asked):
            fault = f"has limit {resource} {limit} with request {asked}"
            yield f"{fault}, above the maxLimitRequestRatio {ratio} of {bounds.called}"


def _above(ratio: Quantity, limit: Quantity, request: Quantity) -> bool:
    """True if the limit exceeds the ratio, in floating point as the plugin computes it."""
    unit = _MILLI if max(one.nano for one in (ratio, limit, request)) // _NANO <= _MOST_IN_MILLI else _NANO
    found = float(-(-limit.nano // unit)) / float(-(-request.nano // unit))
    return found * 1000 > float(ratio.nano // _MILLI)


def _against_given(requests: Resources, given: Resources) -> Iterator[str]:
    """Yield requests above the limit that a default sets, and smaller ones where both must be equal."""
    for name, limit in given.items():
        asked = requests.get(name, limit)
        if asked > limit or (asked < limit and name not in _OVERCOMMITTED):
            yield f"requests {name} {asked}, and gets limit {limit} from a LimitRange; it needs a limit of its own"


def _against_whole_pod(completed: PodSpec, path: str) -> Iterator[str]:
    """Yield the defaults of containers that exceed the limits of the pod as a whole."""
    parts = replace(completed, resources=type(completed.resources)(), overhead={})
    own = pod_level_requests(completed, path=path)
    for name, asked in pod_requests(parts, path=path).items():
        if name in own and asked > own[name]:
            yield f"requests {name} {own[name]}, and its containers {asked} with what LimitRanges give them"
    limits = rounded(completed.resources.limits, f"{path}.resources.limits")
    for index, container in enumerate(completed.containers):
        for name, limit in container_limits(container, f"{path}.containers[{index}]").items():
            if name in limits and limit > limits[name]:
                yield f'has limit {name} {limits[name]}, and a LimitRange gives container "{container.name}" {limit}'
