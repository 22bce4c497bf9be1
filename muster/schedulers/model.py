"""What muster needs of a gang scheduler: how its PodGroup looks, and what binds a pod to it."""

from __future__ import annotations

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
    """What a pod carries so that its scheduler counts it towards a gang.

    `defaults` are annotations for a pod that says nothing of them itself, neither in an annotation nor in a label.
    `spec` are fields of its specification.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


class Request(Protocol):
    """What a user requests of a gang's scheduler; `muster.gangs.intent.Intent` is one."""

    @property
    def queue(self) -> str:
        """The queue of the gang."""

    @property
    def priority_class(self) -> str:
        """The name of its PriorityClass; "" for none."""

    @property
    def prioritise_pods(self) -> bool:
        """True if pods whose templates name no class get that one."""

    @property
    def topology(self) -> Topology | None:
        """How near to each other its pods are to be; None for no matter."""


class GangScheduler(ABC):
    """One gang scheduler: it places gangs. Who admits them is another question.

    `name` is the schedulerName of its pods, "" for the usual one: the same program may run under any name.
    """

    product: ClassVar[str]
    """The word for it in the chart's values and in the arguments of muster's programs."""
    usual_name: ClassVar[str]
    """The schedulerName of its pods where it is installed as its own documents say."""
    group: ClassVar[str]
    """The API group of its PodGroup."""
    version: ClassVar[str]
    """The version of the API in which muster writes its PodGroup."""
    pod_groups: ClassVar[type[PodGroup]] = PodGroup
    """How its PodGroups are decoded: always in Volcano's words, whatever its own are."""
    runs: ClassVar[bool] = True
    """True if muster's processes run its gangs; without, it is for plans alone."""
    keeps_room: ClassVar[bool] = False
    """True if it keeps room for the minResources of a PodGroup of which nothing runs yet."""
    role_minimums: ClassVar[bool] = False
    """True if it places no part of a gang that lacks the minimum of a role."""
    preempts: ClassVar[bool] = False
    """True if it may be set to evict gangs of lower priority in the queue of a gang that lacks room there."""
    reclaims: ClassVar[bool] = False
    """True if it may be set to take pods back, beyond the minimum of a gang, from queues that have more than theirs."""
    enforces_limits: ClassVar[bool] = False
    """True if it bounds queues itself, so that a gang without nodes may be passed: the queue never holds too much."""
    pod_level: ClassVar[bool] = True
    """True if it counts what a pod asks for as a whole."""
    counts_living: ClassVar[bool] = False
    """True if pods that have finished count no more towards the minimum."""
    loosened: ClassVar[dict[str, Any]] = {"minMember": 1, "minTaskMember": None, "minResources": None}
    """The merge patch for the spec of its PodGroup after which that holds no pod back."""
    topology: ClassVar[bool] = False
    """True if it heeds how near to each other a gang's pods are to be."""
    timeouts: ClassVar[bool] = False
    """True if it lets go of a gang that takes too long to be placed."""
    hears_groups_alone: ClassVar[bool] = False
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
        """A PodGroup of this scheduler with that specification, in its own words."""
        return {"apiVersion": self.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}

    def pod_group(self, gang: Gang, intent: Request, workload: Workload) -> dict[str, Any]:
        """The PodGroup's manifest: what the workload says, without status and without muster's own annotations."""
        return self.manifest(asked(gang, intent), group_metadata(gang, workload), workload.policy)

    @abstractmethod
    def manifest(self, spec: PodGroupSpec, metadata: dict[str, Any], policy: SchedulingPolicy) -> dict[str, Any]:
        """The manifest of a PodGroup that says this; `policy` is what the user asked of the scheduler besides."""

    def group_name(self, gang: str, uid: str) -> str:
        """The name of the PodGroup of the gang of that name, whose workload has that UID."""
        del uid
        return gang

    def cannot(self, gang: Gang, intent: Request, workload: Workload) -> Iterable[tuple[str, str]]:
        """What of the gang this scheduler cannot do: the field at fault, and a sentence that goes on from there."""
        del gang, intent, workload
        return ()

    def gang_name(self, metadata: ObjectMeta) -> str:
        """The name of the gang for which a PodGroup with this metadata was made."""
        return metadata.name

    @abstractmethod
    def relaxed_pod_group(self, queue: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """The manifest of a PodGroup that holds no pod back, however few there are."""

    @abstractmethod
    def binding(self, gang: Gang, intent: Request, role: str) -> Binding:
        """What binds a pod of that role to the gang's PodGroup."""

    @abstractmethod
    def bound_to(self, pod: Pod) -> str:
        """The name of the PodGroup that the pod is bound to, or "" for none."""


def asked(gang: Gang, intent: Request) -> PodGroupSpec:
    """What a PodGroup has to say of a gang, in Volcano's words."""
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
    """Metadata of a PodGroup: owned by the workload, with its annotations (as KubeRay copies them: some are read)."""
    named = {"name": gang.name, "namespace": gang.namespace, "labels": {MANAGED_BY: MUSTER}}
    if not workload.kind.owns_pod_group:
        # What stands on one pod concerns that pod.
        return named
    return {
        **named,
        "annotations": copied(workload.metadata.annotations),
        "ownerReferences": [owner_reference(workload.api_version, workload.kind, workload.metadata)],
    }


def owner_reference(api_version: str, kind: Kind, metadata: ObjectMeta) -> dict[str, Any]:
    """What makes a PodGroup a workload's own: the garbage collector takes it with its owner, and not after it."""
    return {
        "apiVersion": api_version,
        "kind": kind.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
