"""What muster needs of a gang scheduler: how its PodGroup looks, and what binds a pod to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from muster.model.names import MANAGED_BY, MUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.gangs.gang import Gang
    from muster.gangs.intent import Intent
    from muster.model.objects import ObjectMeta, Pod
    from muster.workloads import Kind, Workload

__all__ = ["Binding", "GangScheduler", "group_metadata", "owner_reference"]

# Bookkeeping of other tools that says nothing about the gang.
_NOT_COPIED = ("kubectl.kubernetes.io/", "muster.dev/", "meta.helm.sh/", "argocd.argoproj.io/")

# Bytes. An object may have 262,144 of them: the rest is for muster's own, and for what others write on the PodGroup.
_MOST_COPIED = 131_072


@dataclass(frozen=True, slots=True)
class Binding:
    """What a pod carries so that its scheduler counts it towards a gang.

    `defaults` are annotations for a pod that says nothing of them itself, neither in an annotation nor in a label.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)


class GangScheduler(Protocol):
    """One gang scheduler.

    `name` is the pods' schedulerName, `queues` whether its gangs wait in queues with limits, `pod_level` whether it
    counts what a pod asks for as a whole, `timeouts` whether it lets go of a gang that takes too long to be placed.
    """

    name: str
    queues: bool
    pod_level: bool
    timeouts: bool

    def pod_group(self, gang: Gang, intent: Intent, workload: Workload) -> dict[str, Any]:
        """The PodGroup's manifest: what the workload says, without status and without muster's own annotations."""

    def binding(self, gang: Gang, intent: Intent, role: str) -> Binding:
        """What binds a pod of that role to the gang's PodGroup."""

    def bound_to(self, pod: Pod) -> str:
        """The name of the PodGroup that the pod is bound to, or "" for none."""


def group_metadata(gang: Gang, workload: Workload) -> dict[str, Any]:
    """Metadata of a PodGroup: owned by the workload, with its annotations (as KubeRay copies them: some are read)."""
    named = {"name": gang.name, "namespace": gang.namespace, "labels": {MANAGED_BY: MUSTER}}
    if not workload.kind.owns_pod_group:
        # What stands on one pod concerns that pod.
        return named
    return {
        **named,
        "annotations": _copied(workload.metadata.annotations),
        "ownerReferences": [owner_reference(workload.api_version, workload.kind, workload.metadata)],
    }


def _copied(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that may say something of the gang; where they are too many, the shortest, as all that schedulers read."""
    copied = {key: value for key, value in annotations.items() if not key.startswith(_NOT_COPIED)}
    sizes = {key: len(key.encode()) + len(value.encode()) for key, value in copied.items()}
    whole = sum(sizes.values())
    for key in sorted(sizes, key=lambda key: sizes[key], reverse=True):
        if whole <= _MOST_COPIED:
            break
        whole -= sizes[key]
        del copied[key]
    return copied


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
