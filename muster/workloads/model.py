"""What every kind of workload is reduced to, and the interface that a family file fills in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from muster.objects import LocalObject, ObjectMeta, Pod, PodTemplate, ResourceList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Decoded", "Kind", "RoleSpec", "SchedulingPolicy", "Workload"]


class SchedulingPolicy(LocalObject, frozen=True):
    """`spec.runPolicy.schedulingPolicy` of the Kubeflow jobs."""

    queue: str = ""
    priority_class: str = ""
    min_available: int | None = None
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


class Decoded(Protocol):
    """A decoded workload of any kind, as the stores keep it."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A group of equal pods as the workload describes it.

    `replicas` is how many pods the operator makes, `minimum` how many of them the workload cannot start without;
    `leads` marks the role that comes first among equals: head, master, launcher. `path` is where the template stands.
    A role that is not `gated` has pods that come later, when the gang runs, and must never wait; `reserved` of them
    count in what the gang needs from the beginning, so that their room is there when they come.
    """

    name: str
    replicas: int
    minimum: int
    template: PodTemplate
    path: str
    leads: bool = False
    gated: bool = True
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, whatever its kind.

    `suspended` and `finished` workloads hold nothing and wait for nothing; a finished one may still have running pods.
    """

    kind: Kind
    api_version: str
    metadata: ObjectMeta
    pod_group: str
    roles: tuple[RoleSpec, ...]
    policy: SchedulingPolicy
    policy_path: str = ""
    suspended: bool = False
    finished: bool = False

    @property
    def deleting(self) -> bool:
        """Whether the workload is being deleted."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def active(self) -> bool:
        """Whether the workload runs or wants to run."""
        return not (self.suspended or self.finished or self.deleting)

    def role(self, name: str) -> RoleSpec | None:
        """The role of that name."""
        return next((role for role in self.roles if role.name == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of workload: how it is named at the apiserver and how its manifests and pods are read.

    `pod_group_name` gives the PodGroup's name for a workload's; `policy` what the user wrote of scheduling beside
    labels. `read` raises InvalidObjectError when the manifest cannot be a gang. `role_of` gives the role of a pod that
    the workload controls, or None for a pod that is no member; `pod_labels` are what the operator puts on a role's pod.
    A kind without a gang of its own (`owns_gang`) makes a workload that has one; `read` gives that workload.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    pod_label: str
    pod_group_name: Callable[[str], str]
    decoded: type[Any]
    policy: Callable[[Any], SchedulingPolicy]
    read: Callable[[Any], Workload]
    role_of: Callable[[Pod], str | None]
    pod_labels: Callable[[Workload, RoleSpec], Mapping[str, str]]
    owns_gang: bool = True
