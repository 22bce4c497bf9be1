"""The interface of a gang scheduler: its PodGroup, and the binding of pods to it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from muster.gangs.roles import Gang
from muster.model.keep import copied
from muster.model.names import MANAGED_BY, MUSTER
from muster.model.objects import NetworkTopology, ObjectMeta, PodGroup, PodGroupSpec
from muster.model.pods import Pod
from muster.model.resource import Resource
from muster.model.topology import Topology
from muster.resources.amounts import as_text
from muster.workloads import Kind, SchedulingPolicy, Workload


@dataclass(frozen=True, slots=True)
class Binding:
    """The labels, annotations and fields of a pod by which its scheduler counts it towards a gang.

    `defaults` are annotations for a pod that does not set them itself, neither as an annotation nor as a label.
    `spec` are fields of its specification.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


class Request(Protocol):
    """The requests of a user to a gang's scheduler; `muster.gangs.intent.Intent` is one."""

    @property
    def queue(self) -> str:
        """The queue of the gang."""

    @property
    def priority_class(self) -> str:
        """The name of its PriorityClass; "" for none."""

    @property
    def prioritise_pods(self) -> bool:
        """True if pods whose templates name no class get this one."""

    @property
    def topology(self) -> Topology | None:
        """The network topology in which its pods are to run; None for any."""


class GangScheduler(ABC):
    """One gang scheduler: it places gangs, which the admitter has admitted.

    `name` is the schedulerName of its pods, "" for the usual one: it may run under any name.
    """

    product: ClassVar[str]
    """Its name in the chart's values and in the arguments of muster's programs."""
    usual_name: ClassVar[str]
    """The usual schedulerName of its pods, by its own documentation."""
    group: ClassVar[str]
    """The API group of its PodGroup."""
    version: ClassVar[str]
    """The version of the API in which muster reads and writes its PodGroup."""
    versions: ClassVar[tuple[str, ...]] = ()
    """The versions in which its PodGroup is the same, the preferred one first; without any there is `version` alone."""
    pod_groups: ClassVar[type[PodGroup]] = PodGroup
    """The type as which its PodGroups are decoded, always in Volcano's terms."""
    runs: ClassVar[bool] = True
    """True if muster's processes run its gangs; without, it is for plans alone."""
    keeps_room: ClassVar[bool] = False
    """True if it keeps room for the minResources of a PodGroup without running pods."""
    role_minimums: ClassVar[bool] = False
    """True if it places no part of a gang that lacks the minimum of a role."""
    preempts: ClassVar[bool] = False
    """True if it may be set to evict gangs of lower priority in the queue of a gang that lacks room there."""
    reclaims: ClassVar[bool] = False
    """True if it may be set to take pods back, beyond the minimum of a gang, from queues that have more than theirs."""
    enforces_limits: ClassVar[bool] = False
    """True if it bounds queues itself, so that a gang without nodes may be passed: the queue never holds too much."""
    pod_level_since: ClassVar[str] = ""
    """Its first version that counts requests of a pod as a whole; "" if all do."""
    counts_living: ClassVar[bool] = False
    """True if pods that have finished count no more towards the minimum."""
    relaxed_patch: ClassVar[dict[str, Any]] = {"minMember": 1, "minTaskMember": None, "minResources": None}
    """The merge patch for the spec of its PodGroup after which that holds no pod back."""
    topology: ClassVar[bool] = False
    """True if it supports the network topology of a gang."""
    timeouts: ClassVar[bool] = False
    """True if it gives a gang up that takes too long to be placed."""
    retries_on_group_changes: ClassVar[bool] = False
    """True if it looks again at pods that it turned away only when pods come or their PodGroup changes."""
    elastic_quotas: ClassVar[bool] = False
    """True if it refuses pods for which the ElasticQuota of their namespace has no room."""

    def __init__(self, name: str = "") -> None:
        self.name = name or self.usual_name

    @property
    def api_version(self) -> str:
        """The apiVersion of its PodGroup."""
        return f"{self.group}/{self.version}"

    @property
    def resource(self) -> Resource:
        """The resource of its PodGroups at the apiserver."""
        return Resource(self.group, self.version, "podgroups", "PodGroup")

    def of(self, spec: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        """Return a PodGroup of this scheduler with that specification, in its own terms."""
        return {"apiVersion": self.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}

    def pod_group(self, gang: Gang, intent: Request, workload: Workload) -> dict[str, Any]:
        """Return the PodGroup's manifest for a workload, without status and without muster's own annotations."""
        return self.manifest(asked(gang, intent), group_metadata(gang, workload), workload.policy)

    @abstractmethod
    def manifest(self, spec: PodGroupSpec, metadata: dict[str, Any], policy: SchedulingPolicy) -> dict[str, Any]:
        """Return the manifest of a PodGroup with this specification; `policy` has the user's scheduling fields."""

    def group_name(self, gang: str, uid: str) -> str:
        """Return the name of the PodGroup of the gang of that name, whose workload has that UID."""
        del uid
        return gang

    def cannot(self, gang: Gang, intent: Request, workload: Workload) -> Iterable[tuple[str, str]]:
        """Yield demands of the gang that this scheduler cannot meet: the field at fault, and the rest of a sentence."""
        del gang, intent, workload
        return ()

    def gang_name(self, metadata: ObjectMeta) -> str:
        """Return the name of the gang of a PodGroup with this metadata."""
        return metadata.name

    @abstractmethod
    def relaxed_pod_group(self, queue: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return the manifest of a PodGroup that holds no pod back, however few there are."""

    @abstractmethod
    def binding(self, gang: Gang, intent: Request, role: str) -> Binding:
        """Return the binding of a pod of that role to the gang's PodGroup."""

    def protection(self, seconds: float) -> Mapping[str, str]:
        """Return the annotations of a pod that keep this scheduler from evicting it so soon after its start."""
        del seconds
        return {}

    @abstractmethod
    def bound_to(self, pod: Pod) -> str:
        """Return the name of the PodGroup that the pod is bound to, or "" for none."""


def asked(gang: Gang, intent: Request) -> PodGroupSpec:
    """Return the specification of a gang's PodGroup, in Volcano's terms."""
    topology = NetworkTopology()
    if intent.topology is not None:
        topology = NetworkTopology(intent.topology.mode, intent.topology.highest_tier_allowed)
    return PodGroupSpec(
        min_member=gang.min_member,
        min_task_member=gang.min_task_member,
        min_resources={**as_text(gang.min_resources)},
        queue=intent.queue,
        priority_class_name=intent.priority_class,
        network_topology=topology,
    )


def group_metadata(gang: Gang, workload: Workload) -> dict[str, Any]:
    """Return metadata of a PodGroup: owned by the workload, with its annotations, as KubeRay copies them."""
    named = {"name": gang.name, "namespace": gang.namespace, "labels": {MANAGED_BY: MUSTER}}
    if not workload.kind.owns_pod_group:
        # Annotations of one pod concern that pod.
        return named
    return {
        **named,
        "annotations": copied(workload.metadata.annotations),
        "ownerReferences": [owner_reference(workload.api_version, workload.kind, workload.metadata)],
    }


def owner_reference(api_version: str, kind: Kind, metadata: ObjectMeta) -> dict[str, Any]:
    """Return the owner reference of a workload's PodGroup: the garbage collector deletes it with its owner."""
    return {
        "apiVersion": api_version,
        "kind": kind.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
