"""The JSON patch of a new pod of a gang, and the patch that removes its gate.

The traps that shape it (docs/design-notes.md has the sources): the group binding goes into the same patch as the
schedulerName, or Volcano makes a group of its own; a priority class may only be patched when it differs, and then the
numbers that the apiserver computed before must go in the same patch, or it refuses the pod; parents come before
children; never a `test`; a second round over the patched pod adds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from muster.gangs.intent import Intent
from muster.gangs.roles import Gang, Role
from muster.model import names
from muster.model.modes import GateMode
from muster.model.objects import ObjectMeta, OwnerReference, convert
from muster.model.pods import Pod
from muster.schedulers import GangScheduler

Operation = dict[str, Any]

_MIRROR = names.read_key("kubernetes.io/config.mirror")


def is_free(pod: Pod, scheduler: GangScheduler) -> bool:
    """True if the pod is muster's to bind.

    It is not if it is bound already (an operator's own gang flag), names another scheduler, has a node already, was
    made by a kubelet, or is a daemon's, whose node is certain.
    """
    # No operator writes muster's label: if that names another gang, the group is not trusted either.
    if scheduler.bound_to(pod) and names.GANG not in pod.metadata.labels:
        return False
    if pod.spec.node_name or is_certain(pod):
        return False
    return pod.spec.scheduler_name in (*names.UNNAMED_SCHEDULERS, scheduler.name)


def is_certain(pod: Pod) -> bool:
    """True if the pod's node is certain, for a kubelet made it, or it is a daemon's."""
    owner = pod.metadata.controller
    daemon = owner is not None and owner.kind == "DaemonSet" and owner.group == "apps"
    return daemon or _MIRROR in pod.metadata.annotations


@dataclass(frozen=True, slots=True)
class Membership:
    """The additions to all pods of one role of a gang; `defaults` are annotations for pods that do not set them."""

    role: Role
    intent: Intent
    scheduler: GangScheduler
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    defaults: Mapping[str, str]
    spec: Mapping[str, Any]


def membership(
    role: Role, gang: Gang, intent: Intent, scheduler: GangScheduler, *, min_runtime: float = 0.0
) -> Membership:
    """Return the additions that make the pods of that role members of the gang; `min_runtime` is its queue's."""
    binding = scheduler.binding(gang, intent, role.name)
    labels = {**binding.labels, names.GANG: gang.label}
    # By this the policy knows the pods with a node that muster may delete.
    asked = {names.REQUEUE_AFTER: intent.requeue_after} if intent.requeue_after else {}
    annotations = {**binding.annotations, **asked}
    defaults = {**binding.defaults, **(scheduler.protection(min_runtime) if min_runtime else {})}
    return Membership(role, intent, scheduler, labels, annotations, defaults, binding.spec)


def inject(pod: Pod, member: Membership, *, gate: GateMode, workload: OwnerReference | None = None) -> list[Operation]:
    """Return the patch that makes a new pod a held member of the gang; empty when it is one already.

    A pod of a role that comes when the gang runs is bound, but not held; nor is any where the gate is off. `workload`
    is written down for pods that a Job of the workload controls.
    """
    operations = _missing("/metadata/labels", pod.metadata.labels, member.labels)
    annotations = member.annotations
    if member.defaults:
        texts_of_pod = (pod.metadata.labels, pod.metadata.annotations)
        missing = {
            key: text for key, text in member.defaults.items() if not any(key in texts for texts in texts_of_pod)
        }
        annotations = {**annotations, **missing}
    if workload is not None:
        annotations = {**annotations, names.WORKLOAD: msgspec.json.encode(workload).decode()}
    operations += _missing("/metadata/annotations", pod.metadata.annotations, annotations)
    # Only muster sets the workload of a pod, and the time limit of its Job.
    forged = (
        key
        for key in (names.WORKLOAD, names.GANG_TIME_LIMIT)
        if key in pod.metadata.annotations and key not in annotations
    )
    operations += [_remove("/metadata/annotations", key) for key in forged]
    if pod.spec.scheduler_name != member.scheduler.name:
        operations.append(_add("/spec/schedulerName", member.scheduler.name))
    if member.spec and member.scheduler.bound_to(pod) != member.scheduler.bound_to(convert({"spec": member.spec}, Pod)):
        # A pod gets it now or never; one that names another group would hold that up, for it is gated.
        operations += [_add(f"/spec/{name}", value) for name, value in member.spec.items()]
    operations += _priority(pod, member.role, member.intent)
    if member.role.gated and gate is not GateMode.OFF and not pod.gated(names.GATE):
        held = {"name": names.GATE}
        if pod.spec.scheduling_gates:
            operations.append(_add("/spec/schedulingGates/-", held))
        else:
            operations.append(_add("/spec/schedulingGates", [held]))
    return operations


def disown(pod: Pod, *, plain: bool = False) -> list[Operation]:
    """Return the patch for a new pod that has muster's label and is no member of any gang; empty for all others.

    Any user who may make pods, or templates, may write the label: such a pod would count as a running member, and so as
    a sign that its gang was admitted, and not as one that came without muster. A pod that muster has held in an earlier
    round, and that another webhook has given to another scheduler since, is released: its gate would never be opened. A
    `plain` pod keeps the label, but not the binding.
    """
    if names.GANG not in pod.metadata.labels:
        return []
    # The apiserver refuses a duplicate gate, but only after this. From the end, so that no index moves.
    held = [index for index, gate in enumerate(pod.spec.scheduling_gates) if gate.name == names.GATE][::-1]
    annotations = [names.GROUP_NAME, names.TASK_SPEC, names.WORKLOAD] if held or plain else [names.WORKLOAD]
    return [
        *([] if plain else [_remove("/metadata/labels", names.GANG)]),
        *(_remove("/metadata/annotations", key) for key in annotations if key in pod.metadata.annotations),
        *(_remove("/spec/schedulingGates", str(index)) for index in held),
    ]


def opening(metadata: ObjectMeta) -> dict[str, Any]:
    """Return the strategic merge patch that removes muster's gate from a pod; other gates stay.

    It needs no index and does no harm when the gate is gone; the UID keeps it to this very pod.
    """
    return {
        "metadata": {"uid": metadata.uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": names.GATE}]},
    }


def _priority(pod: Pod, role: Role, intent: Intent) -> list[Operation]:
    # The class in the template of this role stays; the class of the pod may be the cluster's default.
    if not intent.prioritise_pods or role.priority_class or pod.spec.priority_class_name == intent.priority_class:
        return []
    operations = [_add("/spec/priorityClassName", intent.priority_class)]
    if pod.spec.priority is not None:
        operations.append({"op": "remove", "path": "/spec/priority"})
    if pod.spec.preemption_policy:
        operations.append({"op": "remove", "path": "/spec/preemptionPolicy"})
    return operations


def _missing(parent: str, present: Mapping[str, str], wanted: Mapping[str, str]) -> list[Operation]:
    if not present:
        return [_add(parent, dict(wanted))] if wanted else []
    return [_add(_pointer(parent, key), value) for key, value in wanted.items() if present.get(key) != value]


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _remove(parent: str, key: str) -> Operation:
    return {"op": "remove", "path": _pointer(parent, key)}


@lru_cache(maxsize=64)
def _pointer(parent: str, key: str) -> str:
    """Return the JSON pointer to a key of that parent (RFC 6901)."""
    escaped = key.replace("~", "~0").replace("/", "~1")
    return f"{parent}/{escaped}"
