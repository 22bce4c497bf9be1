"""scheduler-plugins' coscheduling: PodGroup `scheduling.x-k8s.io/v1alpha1`; a label binds a pod to it.

It knows neither queues nor priorities of groups: it orders pods by their own priorities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.model.names import POD_GROUP_LABEL, label_value
from muster.resources.amounts import as_text
from muster.schedulers.model import Binding, group_metadata

if TYPE_CHECKING:
    from muster.gangs.gang import Gang
    from muster.gangs.intent import Intent
    from muster.model.objects import Pod
    from muster.workloads import Workload

__all__ = ["Coscheduling"]


class Coscheduling:
    """The scheduler that scheduler-plugins' chart installs beside the default one."""

    name = "scheduler-plugins-scheduler"
    timeouts = True
    queues = False
    pod_level = True

    def pod_group(self, gang: Gang, intent: Intent, workload: Workload) -> dict[str, Any]:
        """The PodGroup; its name must fit into a label of its pods."""
        del intent
        spec: dict[str, Any] = {"minMember": gang.min_member, "minResources": as_text(gang.min_resources)}
        if workload.policy.schedule_timeout_seconds is not None:
            spec["scheduleTimeoutSeconds"] = workload.policy.schedule_timeout_seconds
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {**group_metadata(gang, workload), "name": label_value(gang.name)},
            "spec": spec,
        }

    def binding(self, gang: Gang, intent: Intent, role: str) -> Binding:
        """The group as a label; roles and queues mean nothing here."""
        del intent, role
        return Binding(labels={POD_GROUP_LABEL: label_value(gang.name)}, annotations={})

    def bound_to(self, pod: Pod) -> str:
        """The group that the pod's label names."""
        return pod.metadata.labels.get(POD_GROUP_LABEL, "")
