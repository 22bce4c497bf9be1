"""kube-scheduler of Kubernetes 1.37 on: PodGroup of `scheduling.k8s.io`; a field of its spec binds a pod to it.

A pod gets `spec.schedulingGroup` at its creation or never, and one gated member holds up its whole group: so no pod
beyond the minimum belongs to it. docs/design-notes.md has the observations.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
from msgspec import structs

from muster.gangs.roles import Gang
from muster.model.names import GROUP_NAME, label_of_queue
from muster.model.objects import LocalObject, ObjectMeta, PodGroup, PodGroupSpec
from muster.model.pods import Pod
from muster.schedulers.annotated import annotated, completed
from muster.schedulers.model import Binding, GangScheduler, Request
from muster.workloads import SchedulingPolicy, Workload

# Characters of the owner's UID in the name of a PodGroup.
_OF_UID = 8


class _Gang(LocalObject, frozen=True):
    min_count: int = 0


class _Policy(LocalObject, frozen=True):
    gang: _Gang = _Gang()


class _Spec(PodGroupSpec, frozen=True):
    scheduling_policy: _Policy = _Policy()


class _PodGroup(PodGroup, frozen=True):
    """Its PodGroup, with the fields of muster's annotation."""

    scheduler: ClassVar[str] = "kubernetes"
    spec: _Spec = msgspec.field(default_factory=_Spec)

    def __post_init__(self) -> None:
        completed(self)
        structs.force_setattr(
            self, "spec", structs.replace(self.spec, min_member=self.spec.scheduling_policy.gang.min_count)
        )


class Kubernetes(GangScheduler):
    """Kubernetes' own scheduler, with the feature gate GenericWorkload."""

    product = "kubernetes"
    usual_name = "default-scheduler"
    group = "scheduling.k8s.io"
    versions = ("v1", "v1beta1")
    version = versions[-1]
    pod_groups = _PodGroup
    counts_living = True
    relaxed_patch: ClassVar[dict[str, Any]] = {"schedulingPolicy": {"gang": {"minCount": 1}}}

    def manifest(self, spec: PodGroupSpec, metadata: dict[str, Any], policy: SchedulingPolicy) -> dict[str, Any]:
        """Return the PodGroup. A preemption takes all of its pods, for a gang that loses one does nothing."""
        del policy
        fields: dict[str, Any] = {
            "schedulingPolicy": {"gang": {"minCount": spec.min_member}},
            "disruptionMode": {"all": {}},
        }
        if spec.priority_class_name:
            fields["priorityClassName"] = spec.priority_class_name
        return self.of(fields, self._named(annotated(metadata, spec)))

    def relaxed_pod_group(self, queue: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return a PodGroup of one pod."""
        marked = annotated(metadata, PodGroupSpec(queue=queue))
        return self.of({"schedulingPolicy": {"gang": {"minCount": 1}}}, self._named(marked))

    def binding(self, gang: Gang, intent: Request, role: str) -> Binding:
        """Return the group as a field of the pod's spec; pods that come when the others run are in none."""
        own = gang.role(role)
        group = self.group_name(gang.name, gang.uid)
        inside = own is not None and own.gated
        label, whole = label_of_queue(intent.queue)
        return Binding(
            labels=label,
            annotations={GROUP_NAME: gang.name, **whole},
            spec={"schedulingGroup": {"podGroupName": group}} if inside else {},
        )

    def bound_to(self, pod: Pod) -> str:
        """Return the group that the pod's field names."""
        return pod.spec.scheduling_group.pod_group_name

    def cannot(self, gang: Gang, intent: Request, workload: Workload) -> Iterator[tuple[str, str]]:
        """Yield pods beyond the minimum, and members of different priorities."""
        if any(role.exceeds and role.gated for role in gang.roles):
            yield (
                "spec",
                (
                    "the gang has, or may get, more pods than it starts with, and kube-scheduler places no pod of a "
                    "PodGroup while another one waits; let it start with all of its pods, or use another scheduler"
                ),
            )
        common = intent.priority_class if intent.prioritise_pods else ""
        members = (role for role in workload.roles if role.replicas and role.gated)
        classes = {role.template.spec.priority_class_name or common: role for role in members}
        if len(classes) > 1:
            first, second, *_ = sorted(classes)
            yield (
                f"{classes[second].path}.priorityClassName",
                (
                    f'"{second}", and "{first}" in another role; kube-scheduler takes one priority for all pods of a '
                    "PodGroup, so name the same class everywhere"
                ),
            )

    def group_name(self, gang: str, uid: str) -> str:
        """Return the name with a part of the owner's UID: Kubernetes keeps a PodGroup while pods name it."""
        return f"{gang}-{uid[:_OF_UID]}" if uid else gang

    def gang_name(self, metadata: ObjectMeta) -> str:
        """Return the name without the UID, from an annotation."""
        name = metadata.annotations.get(GROUP_NAME, "")
        of_uid = len(metadata.name) - len(name) - 1
        return name if 0 < of_uid <= _OF_UID and metadata.name.startswith(f"{name}-") else metadata.name

    def _named(self, metadata: dict[str, Any]) -> dict[str, Any]:
        owners = metadata.get("ownerReferences") or [{}]
        return {**metadata, "name": self.group_name(metadata["name"], owners[0].get("uid", ""))}
