"""Which scheduler, queue and priority the user asked for, and where it was said.

Per field the first that says something wins: labels, then `spec.runPolicy.schedulingPolicy`, then the annotation that
Volcano's users know, then what the templates name, then the defaults of the installation. A workload for which none of
the first three says anything is not muster's, and neither is one that names a scheduler muster is not configured for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.names import MANAGED, PRIORITY_CLASS_LABEL, QUEUE_ANNOTATION, QUEUE_LABEL, SCHEDULER_LABEL
from muster.workloads import SchedulingPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.objects import ObjectMeta
    from muster.workloads import RoleSpec, Workload

__all__ = ["Defaults", "Intent", "find_intent", "foreign_scheduler", "speaks"]

# The name that the apiserver writes where no scheduler was named.
_UNNAMED = ("", "default-scheduler")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where a user says nothing, and which gang schedulers there are."""

    scheduler: str = "volcano"
    queue: str = "default"
    schedulers: frozenset[str] = frozenset({"volcano"})


@dataclass(frozen=True, slots=True)
class Intent:
    """What the user wants of gang scheduling.

    `priority_class` is "" where nobody named one. `said` gives for each of `scheduler`, `queue` and `priorityClassName`
    the path of the field that decided it; a field that is missing there has its default. `prioritise_pods` tells that
    the priority was asked for the workload as a whole, so that pods whose template names none get it.
    """

    scheduler: str
    queue: str
    priority_class: str
    said: Mapping[str, str]
    prioritise_pods: bool


def speaks(metadata: ObjectMeta, policy: SchedulingPolicy) -> bool:
    """Whether anything was said that makes a workload muster's; nothing else of it is looked at where it was not."""
    managed = metadata.labels.get(MANAGED)
    if managed in ("true", "false"):
        return managed == "true"
    return (
        any(metadata.labels.get(key) for key in (SCHEDULER_LABEL, QUEUE_LABEL, PRIORITY_CLASS_LABEL))
        or bool(metadata.annotations.get(QUEUE_ANNOTATION))
        or policy != SchedulingPolicy()
    )


def find_intent(workload: Workload, defaults: Defaults) -> Intent | None:
    """The intent of a workload, or None when muster leaves it alone."""
    labels, policy = workload.metadata.labels, workload.policy
    if not speaks(workload.metadata, policy) or foreign_scheduler(workload, defaults):
        return None
    said: dict[str, str] = {}

    def first(field: str, *sayings: tuple[str, str]) -> str:
        for path, value in sayings:
            if value:
                said[field] = path
                return value
        return ""

    def label(key: str) -> tuple[str, str]:
        return f"metadata.labels[{key}]", labels.get(key, "")

    scheduler = first("scheduler", label(SCHEDULER_LABEL))
    queue = first(
        "queue",
        label(QUEUE_LABEL),
        (f"{workload.policy_path}.queue", policy.queue),
        (f"metadata.annotations[{QUEUE_ANNOTATION}]", workload.metadata.annotations.get(QUEUE_ANNOTATION, "")),
    )
    priority = first(
        "priorityClassName",
        label(PRIORITY_CLASS_LABEL),
        (f"{workload.policy_path}.priorityClass", policy.priority_class),
    )
    prioritise_pods = bool(priority)
    scheduler = scheduler or first("scheduler", *((r.path + ".schedulerName", _named(r)) for r in workload.roles))
    priority = priority or first(
        "priorityClassName",
        *((f"{role.path}.priorityClassName", role.template.spec.priority_class_name) for role in workload.roles),
    )
    return Intent(
        scheduler=scheduler or defaults.scheduler,
        queue=queue or defaults.queue,
        priority_class=priority,
        said=said,
        prioritise_pods=prioritise_pods,
    )


def foreign_scheduler(workload: Workload, defaults: Defaults) -> tuple[str, str] | None:
    """Where a scheduler is named that muster is not configured for, and its name; None where there is none."""
    label = workload.metadata.labels.get(SCHEDULER_LABEL, "")
    if label and label not in defaults.schedulers:
        return f"metadata.labels[{SCHEDULER_LABEL}]", label
    for role in workload.roles:
        name = _named(role)
        if name and name not in defaults.schedulers:
            return f"{role.path}.schedulerName", name
    return None


def _named(role: RoleSpec) -> str:
    name = role.template.spec.scheduler_name
    return "" if name in _UNNAMED else name
