"""Which scheduler, queue and priority the user asked for, and where it was said.

Per field the first that says something wins: labels, then `spec.runPolicy.schedulingPolicy`, then the annotation that
Volcano's users know, looked for at the workload nearest to the pod and then up its owners; then the namespace (the
queue only), then what the templates name, then the defaults of the installation. A workload for which none of the first
three says anything is not muster's unless it is opted in, and neither is one that names a scheduler muster is not
configured for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.names import (
    MANAGED,
    PRIORITY_CLASS_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
    UNNAMED_SCHEDULERS,
)
from muster.objects import ObjectMeta
from muster.topology import Topology, read_topology
from muster.workloads import SchedulingPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.workloads import RoleSpec, Workload

__all__ = ["Defaults", "Intent", "Surroundings", "find_intent", "foreign_scheduler", "speaks"]


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where a user says nothing, and which gang schedulers there are."""

    scheduler: str = "volcano"
    queue: str = "default"
    schedulers: frozenset[str] = frozenset({"volcano"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What may speak for a workload beside itself: its owners, the nearest first, and its namespace."""

    owners: tuple[ObjectMeta, ...] = ()
    namespace: ObjectMeta = field(default_factory=ObjectMeta)


_ALONE = Surroundings()


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
    topology: Topology | None = field(default=None)


def speaks(metadata: ObjectMeta, policy: SchedulingPolicy, around: Surroundings = _ALONE) -> bool:
    """Whether anything was said that makes a workload muster's; nothing else of it is looked at where it was not."""
    for one in (metadata, *around.owners, around.namespace):
        managed = one.labels.get(MANAGED)
        if managed in ("true", "false"):
            return managed == "true"
    return policy != SchedulingPolicy() or any(_says(one) for one in (metadata, *around.owners))


def _says(metadata: ObjectMeta) -> bool:
    return any(metadata.labels.get(key) for key in (SCHEDULER_LABEL, QUEUE_LABEL, PRIORITY_CLASS_LABEL)) or bool(
        metadata.annotations.get(QUEUE_ANNOTATION),
    )


def find_intent(workload: Workload, defaults: Defaults, around: Surroundings = _ALONE) -> Intent | None:
    """The intent of a workload, or None when muster leaves it alone.

    Raises InvalidObjectError for labels that have not the form that they must have.
    """
    policy = workload.policy
    if not speaks(workload.metadata, policy, around) or foreign_scheduler(workload, defaults, around):
        return None
    said: dict[str, str] = {}

    def first(field: str, *sayings: tuple[str, str]) -> str:
        for path, value in sayings:
            if value:
                said[field] = path
                return value
        return ""

    path, default_queue = _annotation(QUEUE_ANNOTATION, around.namespace)
    scheduler = first("scheduler", *_labels(SCHEDULER_LABEL, workload, around))
    queue = first(
        "queue",
        _label(QUEUE_LABEL, workload.metadata),
        (f"{workload.policy_path}.queue", policy.queue),
        _annotation(QUEUE_ANNOTATION, workload.metadata),
        *(
            (f"owner {owner.name}: {path}", value)
            for owner in around.owners
            for path, value in (_label(QUEUE_LABEL, owner), _annotation(QUEUE_ANNOTATION, owner))
        ),
        (f"namespace {around.namespace.name}: {path}", default_queue),
    )
    of_workload, *of_owners = _labels(PRIORITY_CLASS_LABEL, workload, around)
    priority = first(
        "priorityClassName",
        of_workload,
        (f"{workload.policy_path}.priorityClass", policy.priority_class),
        *of_owners,
    )
    prioritise_pods = bool(priority)
    scheduler = scheduler or first("scheduler", *((r.path + ".schedulerName", _named(r)) for r in workload.roles))
    priority = priority or first(
        "priorityClassName",
        *((f"{role.path}.priorityClassName", role.template.spec.priority_class_name) for role in workload.roles),
    )
    topologies = (read_topology(metadata.labels) for metadata in (workload.metadata, *around.owners))
    return Intent(
        scheduler=scheduler or defaults.scheduler,
        queue=queue or defaults.queue,
        priority_class=priority,
        said=said,
        prioritise_pods=prioritise_pods,
        topology=next((topology for topology in topologies if topology), None),
    )


def foreign_scheduler(
    workload: Workload,
    defaults: Defaults,
    around: Surroundings = _ALONE,
) -> tuple[str, str] | None:
    """Where a scheduler is named that muster is not configured for, and its name; None where there is none."""
    for path, label in _labels(SCHEDULER_LABEL, workload, around):
        if label:
            if label not in defaults.schedulers:
                return path, label
            break
    for role in workload.roles:
        name = _named(role)
        if name and name not in defaults.schedulers:
            return f"{role.path}.schedulerName", name
    return None


def _label(key: str, metadata: ObjectMeta) -> tuple[str, str]:
    return f"metadata.labels[{key}]", metadata.labels.get(key, "")


def _annotation(key: str, metadata: ObjectMeta) -> tuple[str, str]:
    return f"metadata.annotations[{key}]", metadata.annotations.get(key, "")


def _labels(key: str, workload: Workload, around: Surroundings) -> list[tuple[str, str]]:
    """Where a label may stand, the nearest to the pod first, and what it says there."""
    of_owners = ((owner, _label(key, owner)) for owner in around.owners)
    return [
        _label(key, workload.metadata),
        *((f"owner {owner.name}: {path}", value) for owner, (path, value) in of_owners),
    ]


def _named(role: RoleSpec) -> str:
    name = role.template.spec.scheduler_name
    return "" if name in UNNAMED_SCHEDULERS else name
