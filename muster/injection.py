"""What muster writes into a new pod of a gang, as a JSON patch.

The traps that shape it (docs/design-notes.md has the sources): the group binding goes into the same patch as the
schedulerName, or Volcano makes a group of its own; a priority class may only be patched when it differs, and then the
numbers that the apiserver computed before must go in the same patch, or it refuses the pod; parents come before
children; never a `test`; a second round over the patched pod adds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.names import GANG, GATE, UNNAMED_SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.gang import Gang
    from muster.intent import Intent
    from muster.objects import Pod
    from muster.schedulers import GangScheduler
    from muster.workloads import RoleSpec

__all__ = ["Operation", "inject", "is_free"]

Operation = dict[str, Any]

_MIRROR = "kubernetes.io/config.mirror"


def is_free(pod: Pod, gang: Gang, scheduler: GangScheduler) -> bool:
    """Whether the pod is muster's to bind.

    It is not when somebody bound it already (an operator's own gang flag), when it names another scheduler, when it has
    a node already, or when a kubelet made it.
    """
    ours = pod.metadata.labels.get(GANG) == gang.label
    if scheduler.bound_to(pod) and not ours:
        return False
    if pod.spec.node_name or _MIRROR in pod.metadata.annotations:
        return False
    return pod.spec.scheduler_name in (*UNNAMED_SCHEDULERS, scheduler.name)


def inject(pod: Pod, role: RoleSpec, gang: Gang, intent: Intent, scheduler: GangScheduler) -> list[Operation]:
    """The patch that makes a new pod a held member of the gang; empty when it is one already.

    A pod of a role that comes when the gang runs is bound, but not held.
    """
    binding = scheduler.binding(gang, intent, role.name)
    operations = _missing("/metadata/labels", pod.metadata.labels, {**binding.labels, GANG: gang.label})
    operations += _missing("/metadata/annotations", pod.metadata.annotations, binding.annotations)
    if pod.spec.scheduler_name != scheduler.name:
        operations.append(_add("/spec/schedulerName", scheduler.name))
    operations += _priority(pod, role, intent)
    if role.gated and not pod.gated(GATE):
        gate = {"name": GATE}
        if pod.spec.scheduling_gates:
            operations.append(_add("/spec/schedulingGates/-", gate))
        else:
            operations.append(_add("/spec/schedulingGates", [gate]))
    return operations


def _priority(pod: Pod, role: RoleSpec, intent: Intent) -> list[Operation]:
    # What the user wrote into the template of this very role stays; what is on the pod may be the cluster's default.
    chosen = role.template.spec.priority_class_name
    if not intent.prioritise_pods or chosen or pod.spec.priority_class_name == intent.priority_class:
        return []
    operations = [_add("/spec/priorityClassName", intent.priority_class)]
    if pod.spec.priority is not None:
        operations.append({"op": "remove", "path": "/spec/priority"})
    if pod.spec.preemption_policy:
        operations.append({"op": "remove", "path": "/spec/preemptionPolicy"})
    return operations


def _missing(parent: str, present: Mapping[str, str], wanted: Mapping[str, str]) -> list[Operation]:
    lacking = {key: value for key, value in wanted.items() if present.get(key) != value}
    if not present:
        return [_add(parent, lacking)] if lacking else []
    return [_add(f"{parent}/{_escape(key)}", value) for key, value in lacking.items()]


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _escape(key: str) -> str:
    """A key as a segment of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
