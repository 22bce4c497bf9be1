"""What a gang's PodGroup should say, and whether the one that is there says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.kube.resource import POD_GROUPS
from muster.names import MANAGED_BY, MUSTER, QUEUE_LABEL
from muster.objects import InvalidObjectError, PodGroup, convert
from muster.resources import Resources, as_text, parse_resources
from muster.schedulers import SCHEDULERS, owner_reference

if TYPE_CHECKING:
    from controller.view import View

__all__ = ["claim_of", "desired", "lenient", "up_to_date"]


def desired(view: View, *, admitted: bool) -> dict[str, Any]:
    """The manifest to apply for a gang that has workload, intent and gang.

    While the gang is admitted its numbers never rise (Volcano would block the replacement of a crashed member) and its
    queue and priority stay (its usage would move unchecked); what changed acts at the next admission.
    """
    if view.gang is None or view.intent is None or view.workload is None:
        raise ValueError(f"{view.key} has no gang to make a PodGroup for")
    manifest = SCHEDULERS[view.intent.scheduler].pod_group(view.gang, view.intent, view.workload)
    if admitted and view.pod_group is not None:
        now, spec = view.pod_group.spec, manifest["spec"]
        spec["queue"] = now.queue
        spec.pop("priorityClassName", None)
        if now.priority_class_name:
            spec["priorityClassName"] = now.priority_class_name
        minimums, claim = view.gang.min_task_member, claim_of(view.pod_group)
        spec["minMember"] = min(view.gang.min_member, now.min_member)
        spec["minTaskMember"] = {
            role: min(count, now.min_task_member[role])
            for role, count in minimums.items()
            if role in now.min_task_member
        }
        spec["minResources"] = as_text(
            {name: min(amount, claim[name]) for name, amount in view.gang.min_resources.items() if name in claim},
        )
    return manifest


def lenient(view: View) -> dict[str, Any]:
    """A PodGroup that holds nobody back: for pods that are bound to one, and whose workload is no gang any more."""
    if view.decoded is None or view.kind is None:
        raise ValueError(f"{view.key} has no workload to make a PodGroup for")
    api_version = f"{view.kind.group}/{view.kind.versions[0]}"
    queues = (member.pod.metadata.labels.get(QUEUE_LABEL) for member in view.members)
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": view.key.name,
            "namespace": view.key.namespace,
            "labels": {MANAGED_BY: MUSTER},
            "ownerReferences": [owner_reference(api_version, view.kind, view.decoded.metadata)],
        },
        "spec": {"minMember": 1, "queue": next((queue for queue in queues if queue), "default")},
    }


def up_to_date(group: PodGroup, manifest: dict[str, Any]) -> bool:
    """Whether the PodGroup says what the manifest says; what others added to it does not count."""
    wanted = convert(manifest, PodGroup)
    spec, meta = wanted.spec, wanted.metadata
    return (
        group.spec.min_member == spec.min_member
        and group.spec.min_task_member == spec.min_task_member
        and group.spec.queue == spec.queue
        and group.spec.priority_class_name == spec.priority_class_name
        and claim_of(group) == claim_of(wanted)
        and meta.owner_references == group.metadata.owner_references
        and meta.labels.items() <= group.metadata.labels.items()
        and meta.annotations.items() <= group.metadata.annotations.items()
    )


def claim_of(group: PodGroup) -> Resources:
    """What the PodGroup claims of its queue; nothing when its numbers cannot be read."""
    try:
        return parse_resources(group.spec.min_resources, path="spec.minResources")
    except InvalidObjectError:
        return {}
