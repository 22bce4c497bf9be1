"""Pods and their templates, as far as muster reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.model.objects import Condition, LocalObject, Object, ResourceList


class ResourceRequirements(LocalObject, frozen=True):
    """Requests and limits of a container or of a whole pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}

    @property
    def named(self) -> bool:
        """True if there is a request or a limit."""
        return bool(self.requests or self.limits)


def guaranteed(amounts: ResourceList) -> ResourceRequirements:
    """Return requests with limits of the same amounts."""
    return ResourceRequirements(requests=amounts, limits=amounts)


class Container(LocalObject, frozen=True):
    """A container, or an init container; with `restart_policy` Always an init container is a sidecar."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class SchedulingGate(LocalObject, frozen=True):
    """A reason, by name, for which no scheduler may touch the pod yet."""

    name: str = ""


class PodResourceClaim(LocalObject, frozen=True):
    """A claim on devices (DRA), whose amount is in no request."""

    name: str = ""


class SchedulingGroup(LocalObject, frozen=True):
    """The PodGroup of Kubernetes to which a pod belongs."""

    pod_group_name: str = ""


class PodSpec(LocalObject, frozen=True):
    """The part of a pod's specification that decides when, where and with which resources it runs."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    overhead: ResourceList = {}
    runtime_class_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    node_name: str = ""
    restart_policy: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup = SchedulingGroup()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    termination_grace_period_seconds: int = 30


class _AffinityTerm(LocalObject, frozen=True):
    namespaces: tuple[Any, ...] = ()
    namespace_selector: Any = None


class _WeightedTerm(LocalObject, frozen=True):
    pod_affinity_term: _AffinityTerm = _AffinityTerm()


class _PodAffinity(LocalObject, frozen=True):
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


class Affinity(LocalObject, frozen=True):
    """The pods near which, or away from which, a pod is to run.

    Only whether a term names pods of other namespaces is read: scopes of ResourceQuotas depend on that.
    """

    pod_affinity: _PodAffinity = _PodAffinity()
    pod_anti_affinity: _PodAffinity = _PodAffinity()

    @property
    def across_namespaces(self) -> bool:
        """True if a term names pods of other namespaces."""
        return self.pod_affinity.across or self.pod_anti_affinity.across


class TemplateSpec(PodSpec, frozen=True):
    """The specification of a template's pods, with the properties that scopes of ResourceQuotas go by."""

    active_deadline_seconds: int | None = None
    affinity: Affinity = Affinity()

    @classmethod
    def of(cls, spec: PodSpec) -> TemplateSpec:
        """Return the specification of a pod without a known template."""
        return cls(**{name: getattr(spec, name) for name in PodSpec.__struct_fields__})


class TemplateMeta(LocalObject, frozen=True):
    """Metadata of a pod template."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(LocalObject, frozen=True):
    """The template of a workload's pods."""

    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()


def with_init_containers(template: PodTemplate, init: tuple[Container, ...]) -> PodTemplate:
    """Return the template with these init containers in place of its own."""
    return msgspec.structs.replace(template, spec=msgspec.structs.replace(template.spec, init_containers=init))


class ContainerWaiting(LocalObject, frozen=True):
    """The reason why a container does not run, such as ImagePullBackOff."""

    reason: str = ""


class ContainerState(LocalObject, frozen=True):
    """The state of a container, if it waits."""

    waiting: ContainerWaiting | None = None


class ContainerStatus(LocalObject, frozen=True):
    """The resources that the kubelet has given a container, and the reason why it waits.

    `resources` is in force, `allocated_resources` is promised. They differ from the specification while a pod is
    resized in place; before the kubelet has seen the pod, `resources` is None.
    """

    name: str = ""
    state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


RUNNING = "Running"
"""The phase of a pod that really runs."""


class PodStatus(LocalObject, frozen=True):
    """The phase of a pod, the node where others are evicted for it, and the resources that it has been given."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class Pod(Object, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def living(self) -> bool:
        """True if the pod runs or may still run: neither finished nor being deleted."""
        return not self.metadata.deletion_timestamp and not self.finished

    @property
    def finished(self) -> bool:
        """True if all its containers have ended for good; until then it occupies its node, also while it is deleted."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def running(self) -> bool:
        """True if its kubelet reports the pod as running; any pod may name a node."""
        return self.status.phase == RUNNING

    def gated(self, gate: str) -> bool:
        """True if the named scheduling gate still holds the pod."""
        gates = self.spec.scheduling_gates
        return bool(gates) and any(held.name == gate for held in gates)
