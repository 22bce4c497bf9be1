"""Who does what in a namespace with what the chart's policies see: a pod of a gang, a PodGroup, a patch."""

import uuid

from hack.testbed.api import Answer
from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, MANAGED_BY, MUSTER, QUEUE_LABEL, TASK_SPEC
from muster.model.resource import POD_GROUPS, PODS, Resource
from tests.support.cluster.objects import Manifest
from tests.support.cluster.verbs import Verbs
from tests.support.manifests import applied

TENANT, ADMINISTRATOR = "tenant", "administrator"
WEBHOOK = "system:serviceaccount:muster-system:muster-webhook"
VOLCANO = "system:serviceaccount:volcano-system:volcano-controllers"
GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
CONTROLLER_MANAGER = "system:kube-controller-manager"
CONTROLLER = "system:serviceaccount:muster-system:muster-controller"
OTHERS = "example.com/budget"
FORBIDDEN = 403
GATE_AWAY = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
OTHER_GATE_AWAY = {"spec": {"schedulingGates": [{"$patch": "delete", "name": OTHERS}]}}


def labelled(**texts: str | None) -> Manifest:
    return {"metadata": {"labels": texts}}


def annotated(**texts: str | None) -> Manifest:
    return {"metadata": {"annotations": texts}}


LABEL_AWAY = labelled(**{GANG: None})


class Acting(Verbs):
    """A namespace, and what somebody does in it; nothing here needs the webhook."""

    def stranger(self, **spec: object) -> str:
        """A pod that is nobody's member; gives its name."""
        name = f"pod-{uuid.uuid4().hex[:8]}"
        pod = applied.pod(name, **({} if "nodeName" in spec else {"schedulingGates": [{"name": OTHERS}]}) | spec)
        pod["metadata"]["annotations"] = {GROUP_NAME: "demo", TASK_SPEC: "worker", GANG_SIZE: "2"}
        self.create(pod)
        return name

    def member(self, **spec: object) -> str:
        """A pod as the webhook makes it, held by muster's gate and somebody else's; gives its name."""
        gates = [{"name": OTHERS}, {"name": GATE}]
        name = self.stranger(**(spec or {"schedulingGates": gates}))
        # The webhook, which is asked about new pods, is not asked about this.
        self.label(PODS, name, **{GANG: "demo", QUEUE_LABEL: "ours"})
        return name

    def change(self, user: str, name: str, *patches: Manifest, resource: Resource = PODS, door: str = "") -> Answer:
        """One update that does all of this."""
        merged: Manifest = {}
        for patch in patches:
            for part, content in patch.items():
                merged[part] = {**merged.get(part, {}), **content}
        kind = "strategic-merge" if resource is PODS else "merge"
        return self.api("PATCH", self.path(resource, name) + door, merged, patch=kind, user=user)


def foreign_group(acting: Acting, **metadata: object) -> Manifest:
    """A PodGroup without muster's label."""
    made = group(acting)
    del made["metadata"]["labels"]
    return {**made, "metadata": {**made["metadata"], **metadata}}


def group(acting: Acting, **said: str) -> Manifest:
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": f"group-{uuid.uuid4().hex[:8]}",
            "namespace": acting.namespace,
            "labels": {MANAGED_BY: MUSTER},
            "annotations": said,
        },
        "spec": {"minMember": 1, "queue": "ours"},
    }
