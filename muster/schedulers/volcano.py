"""Volcano: PodGroup `scheduling.volcano.sh/v1beta1`; an annotation binds a pod to it."""

from typing import Any

from muster.gangs.roles import Gang
from muster.model.names import COOLDOWN, GROUP_NAME, PREEMPTABLE, TASK_SPEC, label_of_queue
from muster.model.objects import PodGroupSpec
from muster.model.pods import Pod
from muster.schedulers.model import Binding, GangScheduler, Request
from muster.workloads import SchedulingPolicy


class Volcano(GangScheduler):
    """The `volcano` scheduler."""

    product = usual_name = "volcano"
    group = "scheduling.volcano.sh"
    version = "v1beta1"
    keeps_room = True
    role_minimums = True
    preempts = True
    reclaims = True
    enforces_limits = True
    topology = True
    pod_level_since = "1.15"  # pkg/scheduler/api/pod_info.go of 1.14.1 and 1.15.1

    def manifest(self, spec: PodGroupSpec, metadata: dict[str, Any], policy: SchedulingPolicy) -> dict[str, Any]:
        """Return the PodGroup."""
        del policy
        fields: dict[str, Any] = {
            "minMember": spec.min_member,
            # Without a minimum for each role Volcano takes a part of a gang for the whole when the head is missing.
            "minTaskMember": {**spec.min_task_member},
            # Never left out: Volcano lets a group without it into any queue unseen.
            "minResources": {**spec.min_resources},
            "queue": spec.queue,
        }
        if spec.priority_class_name:
            fields["priorityClassName"] = spec.priority_class_name
        topology = spec.network_topology
        if topology.mode:
            fields["networkTopology"] = {"mode": topology.mode}
            if topology.highest_tier_allowed is not None:
                fields["networkTopology"]["highestTierAllowed"] = topology.highest_tier_allowed
        return self.of(fields, metadata)

    def relaxed_pod_group(self, queue: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return a PodGroup without minimums of its roles, for which no room is kept."""
        return self.of({"minMember": 1, "queue": queue}, metadata)

    def binding(self, gang: Gang, intent: Request, role: str) -> Binding:
        """Return group and task role as annotations, the queue as a label.

        From a gang with more pods than its minimum Volcano evicts any of the surplus: a head as well as a worker. So
        muster marks the pods of a role that needs all of its pods as not preemptable.
        """
        own = gang.role(role)
        needed = gang.exceeds and own is not None and not own.elastic
        label, whole = label_of_queue(intent.queue)
        return Binding(
            labels=label,
            annotations={GROUP_NAME: gang.name, TASK_SPEC: role, **whole},
            defaults={PREEMPTABLE: "false"} if needed else {},
        )

    def protection(self, seconds: float) -> dict[str, str]:
        """Return the annotation of Volcano's plugin cdp, by which it leaves a running pod alone."""
        return {COOLDOWN: f"{round(seconds)}s"}

    def bound_to(self, pod: Pod) -> str:
        """Return the group that the pod's annotation names."""
        return pod.metadata.annotations.get(GROUP_NAME, "")
