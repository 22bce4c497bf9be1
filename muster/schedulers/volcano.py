"""Volcano: PodGroup `scheduling.volcano.sh/v1beta1`; an annotation binds a pod to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.model.names import GROUP_NAME, PREEMPTABLE, QUEUE_LABEL, TASK_SPEC, label_value
from muster.resources.amounts import as_text
from muster.schedulers.model import Binding, group_metadata

if TYPE_CHECKING:
    from muster.gangs.gang import Gang
    from muster.gangs.intent import Intent
    from muster.model.objects import Pod
    from muster.workloads import Workload

__all__ = ["Volcano"]


class Volcano:
    """The `volcano` scheduler."""

    name = "volcano"
    queues = True
    timeouts = False
    pod_level = False  # as of 1.14.1, pkg/scheduler/api/pod_info.go

    def pod_group(self, gang: Gang, intent: Intent, workload: Workload) -> dict[str, Any]:
        """The PodGroup, owned by the workload."""
        spec: dict[str, Any] = {
            "minMember": gang.min_member,
            # Volcano takes part of a gang for the whole when the head is missing, unless each role has its own minimum.
            "minTaskMember": gang.min_task_member,
            # Never left out: Volcano lets a group without it into any queue unseen.
            "minResources": as_text(gang.min_resources),
            "queue": intent.queue,
        }
        if intent.priority_class:
            spec["priorityClassName"] = intent.priority_class
        if intent.topology is not None:
            spec["networkTopology"] = {"mode": intent.topology.mode}
            if intent.topology.highest_tier_allowed is not None:
                spec["networkTopology"]["highestTierAllowed"] = intent.topology.highest_tier_allowed
        return {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": group_metadata(gang, workload),
            "spec": spec,
        }

    def binding(self, gang: Gang, intent: Intent, role: str) -> Binding:
        """Group and task role as annotations, the queue as a label.

        From a gang with more pods than its minimum Volcano evicts any of the surplus: a head as well as a worker. So
        muster marks the pods of a role that needs all of its pods as not preemptable.
        """
        own = gang.role(role)
        needed = gang.exceeds and own is not None and not own.elastic
        return Binding(
            labels={QUEUE_LABEL: label_value(intent.queue)},
            annotations={GROUP_NAME: gang.name, TASK_SPEC: role},
            defaults={PREEMPTABLE: "false"} if needed else {},
        )

    def bound_to(self, pod: Pod) -> str:
        """The group that the pod's annotation names."""
        return pod.metadata.annotations.get(GROUP_NAME, "")
