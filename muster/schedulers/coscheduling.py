"""scheduler-plugins' coscheduling: PodGroup `scheduling.x-k8s.io/v1alpha1`; a label binds a pod to it.

Its PodGroup knows neither queues nor priorities nor roles. muster writes these into an annotation of it.
"""

from typing import Any, ClassVar

from msgspec import structs

from muster.gangs.roles import Gang
from muster.model.names import GROUP_NAME, POD_GROUP_LABEL, is_object_name, label_of_queue, label_value
from muster.model.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from muster.model.pods import Pod
from muster.schedulers.annotated import annotated, completed
from muster.schedulers.model import Binding, GangScheduler, Request
from muster.workloads import SchedulingPolicy


class _PodGroup(PodGroup, frozen=True):
    """Its PodGroup, with the fields of muster's annotation. Its phase is ignored: some are final."""

    scheduler: ClassVar[str] = "coscheduling"

    def __post_init__(self) -> None:
        completed(self)
        structs.force_setattr(self, "status", PodGroupStatus())


class Coscheduling(GangScheduler):
    """The scheduler of scheduler-plugins: in addition to the default one, as its chart installs it, or in its place."""

    product = "coscheduling"
    usual_name = "scheduler-plugins-scheduler"
    group = "scheduling.x-k8s.io"
    version = "v1alpha1"
    pod_groups = _PodGroup
    timeouts = True
    retries_on_group_changes = True
    elastic_quotas = True

    def manifest(self, spec: PodGroupSpec, metadata: dict[str, Any], policy: SchedulingPolicy) -> dict[str, Any]:
        """Return the PodGroup; its name must fit into a label of its pods."""
        fields: dict[str, Any] = {"minMember": spec.min_member, "minResources": {**spec.min_resources}}
        if policy.schedule_timeout_seconds is not None:
            fields["scheduleTimeoutSeconds"] = policy.schedule_timeout_seconds
        return self.of(fields, self._named(annotated(metadata, structs.replace(spec, min_resources={}))))

    def relaxed_pod_group(self, queue: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return a PodGroup of one pod."""
        return self.of({"minMember": 1}, self._named(annotated(metadata, PodGroupSpec(queue=queue))))

    def binding(self, gang: Gang, intent: Request, role: str) -> Binding:
        """Return the group as a label; the gang's name and queue as for Volcano, for people and for muster."""
        del role
        label, whole = label_of_queue(intent.queue)
        labels = {POD_GROUP_LABEL: label_value(gang.name), **label}
        return Binding(labels=labels, annotations={GROUP_NAME: gang.name, **whole})

    def bound_to(self, pod: Pod) -> str:
        """Return the group that the pod's label names."""
        return pod.metadata.labels.get(POD_GROUP_LABEL, "")

    def group_name(self, gang: str, uid: str) -> str:
        """Return the name as a label of its pods holds it."""
        del uid
        return label_value(gang)

    def gang_name(self, metadata: ObjectMeta) -> str:
        """Return the whole name from an annotation, if the PodGroup's own was cut from it."""
        name = metadata.annotations.get(GROUP_NAME, "")
        return name if is_object_name(name) and label_value(name) == metadata.name else metadata.name

    def _named(self, metadata: dict[str, Any]) -> dict[str, Any]:
        return {**metadata, "name": label_value(metadata["name"])}
