"""KAI scheduler: PodGroup `scheduling.run.ai/v2alpha2`; an annotation binds a pod to it. For `muster plan` alone.

It has not been run with muster: the objects are those of its design of external PodGroups. Its own grouper must leave
the pods alone; the roles are subgroups, each with a minimum of its own, and the queue is the PodGroup's.
"""

from typing import Any, ClassVar

from muster.gangs.roles import Gang
from muster.model.names import GROUP_NAME, label_of_queue, read_key
from muster.model.objects import PodGroup, PodGroupSpec
from muster.model.pods import Pod
from muster.schedulers.annotated import annotated, completed
from muster.schedulers.model import Binding, GangScheduler, Request
from muster.workloads import SchedulingPolicy

_GROUP = read_key("pod-group-name")
_UNGROUPED, _SUBGROUP = "kai.scheduler/skip-podgrouper", "kai.scheduler/subgroup-name"


class _PodGroup(PodGroup, frozen=True):
    """Its PodGroup, with the fields of muster's annotation."""

    scheduler: ClassVar[str] = "kai"

    def __post_init__(self) -> None:
        completed(self)


class Kai(GangScheduler):
    """The scheduler `kai-scheduler`."""

    product = "kai"
    usual_name = "kai-scheduler"
    group = "scheduling.run.ai"
    version = "v2alpha2"
    pod_groups = _PodGroup
    runs = False

    def manifest(self, spec: PodGroupSpec, metadata: dict[str, Any], policy: SchedulingPolicy) -> dict[str, Any]:
        """Return the PodGroup; a role without a minimum is no subgroup: its pods come beyond the gang's minimum."""
        del policy
        fields: dict[str, Any] = {"minMember": spec.min_member, "queue": spec.queue}
        if spec.priority_class_name:
            fields["priorityClassName"] = spec.priority_class_name
        fields["subGroups"] = [{"name": role, "minMember": count} for role, count in spec.min_task_member.items()]
        return self.of(fields, annotated(metadata, spec))

    def relaxed_pod_group(self, queue: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return a PodGroup of one pod."""
        return self.of({"minMember": 1, "queue": queue}, metadata)

    def binding(self, gang: Gang, intent: Request, role: str) -> Binding:
        """Group as an annotation, subgroup and queue as labels."""
        own = gang.role(role)
        subgroup = {_SUBGROUP: role} if own is not None and own.minimum else {}
        label, whole = label_of_queue(intent.queue)
        return Binding(
            labels={**label, **subgroup},
            annotations={GROUP_NAME: gang.name, _GROUP: gang.name, _UNGROUPED: "true", **whole},
        )

    def bound_to(self, pod: Pod) -> str:
        """Return the group that the pod's annotation names."""
        return pod.metadata.annotations.get(_GROUP, "")
