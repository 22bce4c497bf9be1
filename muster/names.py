"""The names that muster puts on other people's objects, and those that it reads there: one place for each."""

from __future__ import annotations

import hashlib

__all__ = [
    "ADMITTED",
    "GANG",
    "GANG_SIZE",
    "GATE",
    "GROUP_NAME",
    "MANAGED",
    "MANAGED_BY",
    "MESSAGE",
    "MUSTER",
    "PRIORITY_CLASS_LABEL",
    "QUEUE_ANNOTATION",
    "QUEUE_LABEL",
    "SCHEDULER_LABEL",
    "STATE",
    "TASK_SPEC",
    "TOPOLOGY_MODE_LABEL",
    "TOPOLOGY_TIER_LABEL",
    "UNNAMED_SCHEDULERS",
    "label_value",
]

# muster's own
GATE = "muster.dev/gang"  # scheduling gate on pods
GANG = "muster.dev/gang"  # label on pods: the gang's PodGroup
GANG_SIZE = "muster.dev/gang-size"  # annotation on plain pods: how many their gang cannot start without
MANAGED = "muster.dev/managed"  # label on workloads: "true" opts in, "false" opts out
ADMITTED = "muster.dev/admitted"  # annotation on PodGroups: the UID of the workload whose gang is admitted
STATE = "muster.dev/state"  # annotation on PodGroups: one of the reasons of docs/reasons.md
MESSAGE = "muster.dev/message"  # annotation on PodGroups: the same in a sentence, with numbers
MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"

# what users write
SCHEDULER_LABEL = "ray.io/scheduler-name"
QUEUE_LABEL = "volcano.sh/queue-name"
PRIORITY_CLASS_LABEL = "ray.io/priority-class-name"
TOPOLOGY_MODE_LABEL = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"

# what stands in a pod where nobody named a scheduler: nothing yet, or what the apiserver writes then
UNNAMED_SCHEDULERS = ("", "default-scheduler")

# what Volcano reads on pods
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"

_LONGEST_LABEL = 63
_HASH_LENGTH = 10


def label_value(name: str) -> str:
    """The name as a label value: itself, or its head and a hash where it is longer than the 63 that a label holds."""
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _LONGEST_LABEL - _HASH_LENGTH - 1].rstrip('-._')}-{digest}"
