"""What a pod really asks for, by the formula of the Kubernetes scheduler.

Source of the rules: component-helpers/resource/helpers.go (containers, init containers, sidecars, pod level, overhead)
and the defaults that the apiserver writes into pods (limits stand in for missing requests, rounding up to thousandths).
They happen on pods only, so that a template must be read with them in mind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.resources import Resources, largest, parse_resources, total

if TYPE_CHECKING:
    from muster.objects import Container, PodSpec, ResourceList
    from muster.quantity import Quantity

__all__ = ["pod_requests"]

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def pod_requests(spec: PodSpec, *, path: str = "spec") -> dict[str, Quantity]:
    """The effective requests of a pod; `path` says where the spec stands, for errors.

    Raises InvalidObjectError naming the field when an amount is not a quantity.
    """
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for index, init in enumerate(spec.init_containers):
        asked = _container_requests(init, f"{path}.initContainers[{index}]")
        if init.restart_policy == "Always":
            sidecars = total((sidecars, asked))
            peak = largest(peak, sidecars)
        else:
            peak = largest(peak, total((sidecars, asked)))
    running = total(
        (
            *(
                _container_requests(container, f"{path}.containers[{index}]")
                for index, container in enumerate(spec.containers)
            ),
            sidecars,
        ),
    )
    asked = largest(running, peak)
    asked |= _pod_level(spec, asked, path)
    return total((asked, _rounded(spec.overhead, f"{path}.overhead")))


def _container_requests(container: Container, path: str) -> dict[str, Quantity]:
    limits = _rounded(container.resources.limits, f"{path}.resources.limits")
    return limits | _rounded(container.resources.requests, f"{path}.resources.requests")


def _pod_level(spec: PodSpec, of_containers: Resources, path: str) -> dict[str, Quantity]:
    """Requests of the pod as a whole; for cpu, memory and huge pages they replace what the containers ask for.

    A request that is missing beside a limit is what all containers ask for, init containers included, else the limit;
    of huge pages, which cannot be promised twice, it is always the limit.
    """
    requests = _rounded(spec.resources.requests, f"{path}.resources.requests")
    limits = _rounded(spec.resources.limits, f"{path}.resources.limits")
    for name, limit in limits.items():
        requests.setdefault(name, limit if name.startswith(_HUGE_PAGES) else of_containers.get(name, limit))
    return {name: amount for name, amount in requests.items() if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)}


def _rounded(raw: ResourceList, path: str) -> dict[str, Quantity]:
    return {name: amount.rounded_up_to_milli() for name, amount in parse_resources(raw, path=path).items()}
