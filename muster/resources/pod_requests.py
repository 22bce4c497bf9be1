"""The effective requests and limits of a pod, by the formulas of the Kubernetes scheduler.

Source of the rules: component-helpers/resource/helpers.go (containers, init containers, sidecars, pod level, overhead,
resizes in place) and the defaults that the apiserver writes into pods (limits stand in for missing requests, rounding
up to thousandths). These defaults are set on pods only, so that they must be added to a template.
"""

from collections.abc import Callable, Iterable, Iterator

from muster.model.large_objects import MOST_CONTAINERS
from muster.model.objects import InvalidObjectError, ResourceList
from muster.model.pods import Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements
from muster.resources.amounts import Resources, check_few, largest, parse_resources, total
from muster.resources.quantity import ZERO, Quantity

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def pod_requests(spec: PodSpec, *, status: PodStatus | None = None, path: str = "spec") -> dict[str, Quantity]:
    """Return the effective requests of a pod, in cores, bytes and pieces; `path` is the path of the spec, for errors.

    With the `status` of a pod that is bound to a node, they are what the pod holds there: while it is resized in place
    the largest of the wanted, promised and current amounts, without the wanted ones if the node can never provide them.

    Raises InvalidObjectError naming the field when an amount is not a quantity.
    """
    of_containers = _container_level(spec, _Held(status), path)
    requests = of_containers | _of_pod(spec, status, of_containers, path)
    return total((requests, rounded(spec.overhead, f"{path}.overhead")))


def pod_limits(spec: PodSpec, *, path: str = "spec") -> dict[str, Quantity]:
    """Return the limits of all containers of a new pod together, or of the pod as a whole if it has its own.

    The overhead counts where there is a limit at all. Raises InvalidObjectError as `pod_requests`.
    """
    limits = _container_level(spec, _Held(None), path, container_limits)
    limits |= _of_whole_pod(rounded(spec.resources.limits, f"{path}.resources.limits"))
    overhead = rounded(spec.overhead, f"{path}.overhead")
    return {name: amount + overhead.get(name, ZERO) if amount > ZERO else amount for name, amount in limits.items()}


def containers_of(spec: PodSpec, path: str) -> Iterator[tuple[Container, str, str]]:
    """Yield each container of a pod, its path, and its name in words."""
    for index, one in enumerate(spec.containers):
        yield one, f"{path}.containers[{index}]", f'container "{one.name}"'
    for index, one in enumerate(spec.init_containers):
        yield one, f"{path}.initContainers[{index}]", f'init container "{one.name}"'


def container_requests(container: Container, path: str) -> dict[str, Quantity]:
    """Return the requests of a container, its limits where it sets none; its spec is at `path`."""
    limits = rounded(container.resources.limits, f"{path}.resources.limits")
    return limits | rounded(container.resources.requests, f"{path}.resources.requests")


def container_limits(container: Container, path: str) -> dict[str, Quantity]:
    """Return the limits of a container, whose spec is at `path`."""
    return rounded(container.resources.limits, f"{path}.resources.limits")


def has_pod_level(spec: PodSpec) -> bool:
    """True if the pod as a whole has a request or a limit that counts at this level."""
    return any(
        name in _POD_LEVEL or name.startswith(_HUGE_PAGES)
        for name in (*spec.resources.requests, *spec.resources.limits)
    )


def check_size(spec: PodSpec, path: str = "spec") -> None:
    """Raise InvalidObjectError for a pod that names more than muster reads; a store keeps no more of it (`Projection`).

    If such a pod runs all the same, as it was not made for a gang, the kept part counts.
    """
    if max(len(spec.containers), len(spec.init_containers), len(spec.scheduling_gates)) > MOST_CONTAINERS:
        raise InvalidObjectError(
            path,
            f"holds more than muster reads: {MOST_CONTAINERS} containers, gates, and amounts to match; use fewer",
        )
    resources = (spec.resources, *(one.resources for one in (*spec.containers, *spec.init_containers)))
    named = {name for one in resources for name in (*one.requests, *one.limits)}
    check_few(named.union(spec.overhead), path)


def pod_level_requests(spec: PodSpec, *, path: str = "spec") -> dict[str, Quantity]:
    """Return the requests of the pod as a whole, as the apiserver completes them.

    For cpu, memory and huge pages they replace the requests of the containers; no other resource can be requested at
    this level. If there is any limit, a missing request is the sum of the containers' requests, init containers
    included, else the limit; for huge pages, which cannot be promised twice, it is always the limit, the containers'
    where it has none.
    """
    return _completed(spec, _container_level(spec, _Held(None), path), path)


class _Held:
    """The resources that the containers of a pod have been given, by container name."""

    def __init__(self, status: PodStatus | None) -> None:
        self._given: dict[str, tuple[ContainerStatus, str]] = {}
        self._wanted_counts = True
        if status is not None:
            self._wanted_counts = not _infeasible(status)
            self._note(status.container_statuses, "status.containerStatuses")
            self._note(status.init_container_statuses, "status.initContainerStatuses")

    def _note(self, statuses: Iterable[ContainerStatus], path: str) -> None:
        self._given.update({one.name: (one, f"{path}[{index}]") for index, one in enumerate(statuses)})

    def or_wanted(self, name: str, wanted: dict[str, Quantity]) -> dict[str, Quantity]:
        """Return the amounts that count for a container that may be resized."""
        given, path = self._given.get(name, (None, ""))
        if given is None or given.resources is None:
            return wanted
        held = _given(given.resources, given.allocated_resources, path)
        return largest(wanted, held) if self._wanted_counts else held


def _container_level(
    spec: PodSpec,
    held: _Held,
    path: str,
    amounts: Callable[[Container, str], dict[str, Quantity]] = container_requests,
) -> dict[str, Quantity]:
    # One step for each amount in the manifest: one of 3 MiB may have thousands of containers.
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for index, init in enumerate(spec.init_containers):
        asked = amounts(init, f"{path}.initContainers[{index}]")
        if init.restart_policy == "Always":
            for name, amount in held.or_wanted(init.name, asked).items():
                sidecars[name] = sidecars[name] + amount if name in sidecars else amount
                peak[name] = _larger(peak.get(name, ZERO), sidecars[name])
        else:
            for name, amount in asked.items():
                with_sidecar = amount + sidecars[name] if name in sidecars else amount
                peak[name] = _larger(peak.get(name, ZERO), with_sidecar)
    running = total(
        (
            *(
                held.or_wanted(one.name, amounts(one, f"{path}.containers[{index}]"))
                for index, one in enumerate(spec.containers)
            ),
            sidecars,
        ),
    )
    return largest(running, peak)


def _larger(first: Quantity, second: Quantity) -> Quantity:
    return second if second.nano > first.nano else first


def _of_pod(spec: PodSpec, status: PodStatus | None, of_containers: Resources, path: str) -> dict[str, Quantity]:
    wanted = _completed(spec, of_containers, path)
    if status is None or status.resources is None:
        return wanted
    held = _given(status.resources, status.allocated_resources, "status")
    counts = held if _infeasible(status) else largest(wanted, held)
    return {name: counts.get(name, ZERO) for name in wanted}


def _completed(spec: PodSpec, of_containers: Resources, path: str) -> dict[str, Quantity]:
    requests = rounded(spec.resources.requests, f"{path}.resources.requests")
    limits = rounded(spec.resources.limits, f"{path}.resources.limits")
    if requests or limits:
        huge = (name for name in of_containers if name.startswith(_HUGE_PAGES) and name not in requests)
        limits = {name: of_containers[name] for name in huge} | limits
    asked = {name: of_containers[name] for name in _POD_LEVEL if name in of_containers} if limits else {}
    return _of_whole_pod(limits | asked | requests)


def _of_whole_pod(amounts: Resources) -> dict[str, Quantity]:
    """Return the resources that a pod as a whole can have."""
    return {name: amount for name, amount in amounts.items() if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)}


def _given(in_force: ResourceRequirements, promised: ResourceList, path: str) -> dict[str, Quantity]:
    return largest(
        rounded(in_force.requests, f"{path}.resources.requests"), rounded(promised, f"{path}.allocatedResources")
    )


def _infeasible(status: PodStatus) -> bool:
    """True if the kubelet reports that the node can never provide what is wanted; a deferred resize still counts."""
    pending = next((one for one in status.conditions if one.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def rounded(raw: ResourceList, path: str) -> dict[str, Quantity]:
    """Return the amounts of a resource list as the apiserver keeps them, in thousandths; raises InvalidObjectError."""
    return {name: amount.rounded_up_to_milli() for name, amount in parse_resources(raw, path=path).items()}
