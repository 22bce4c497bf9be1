"""Has the apiserver refuse some writes of one namespace, or fail at them, which holds a controller at one point.

No fault hook in muster's code is needed for it, and what is proved holds for the program as it ships.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muster.model.names import ADMITTED, GATE
from muster.model.resource import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS, VALIDATING_WEBHOOKS
from tests.support.cluster.propagation import await_said
from tests.support.cluster.scene import Scene
from tests.support.manifests import applied

_OPENS = (
    f"oldObject != null && oldObject.spec.?schedulingGates.orValue([]).exists(g, g.name == '{GATE}')"
    f" && !object.spec.?schedulingGates.orValue([]).exists(g, g.name == '{GATE}')"
)
BURST = ("pods", _OPENS)
"""No gate can be opened."""

WORKERS_OF_BURST = ("pods", f"({_OPENS}) && object.metadata.labels['ray.io/node-type'] == 'worker'")
"""The head's gate can be opened, the workers' cannot."""

MARK = ("podgroups", f"'{ADMITTED}' in object.metadata.?annotations.orValue({{}})")
"""No PodGroup can be marked as admitted."""

GROUP = ("podgroups", "oldObject == null")
"""No PodGroup can be made."""

_PROBE = "probe-of-the-policy"


@contextmanager
def refuse(scene: Scene, point: tuple[str, str], name: str = "") -> Iterator[None]:
    """Refuse the writes of this point in the scene's namespace, as a policy does, while the body runs.

    With a `name` it is the writes to the object of that name alone.
    """
    resource, refused = point
    if name:
        refused = f"({refused}) && object.metadata.name == '{name}'"
    called = f"refuse-{scene.namespace}"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": called},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": _here(scene), "resourceRules": _rules(resource)},
            "validations": [
                {
                    # The ConfigMap tells when the policy has come into force.
                    "expression": f"object.kind == 'ConfigMap' ? object.metadata.name != '{_PROBE}' : !({refused})",
                    "message": "refused by a test",
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": called},
        "spec": {"policyName": called, "validationActions": ["Deny"]},
    }
    scene.apply(policy, binding)
    try:
        await_said(scene, applied.config_map(_PROBE), "refused by a test")
        yield
    finally:
        scene.delete(ADMISSION_POLICY_BINDINGS, called)
        scene.delete(ADMISSION_POLICIES, called)


@contextmanager
def hold(scene: Scene, point: tuple[str, str]) -> Iterator[None]:
    """Fail at the writes of this point in the scene's namespace, as a webhook that is away does, while the body runs.

    The controller tries again for half a minute before it gives the gang's room back. A dry run is no such write.
    """
    resource, refused = point
    called = f"hold-{scene.namespace}"
    write = f"request.?dryRun.orValue(false) != true && ({refused})"
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": called},
        "webhooks": [
            {
                "name": "hold.muster.test",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "namespaceSelector": _here(scene),
                "rules": _rules(resource),
                "matchConditions": [
                    {
                        "name": "point",
                        "expression": f"object.kind == 'ConfigMap' ? object.metadata.name == '{_PROBE}' : {write}",
                    }
                ],
                # Nothing listens there.
                "clientConfig": {"url": "https://127.0.0.1:1/"},
            }
        ],
    }
    scene.apply(webhook)
    try:
        await_said(scene, applied.config_map(_PROBE), "failed calling webhook")
        yield
    finally:
        scene.delete(VALIDATING_WEBHOOKS, called)


def _here(scene: Scene) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}


def _rules(resource: str) -> list[dict[str, list[str]]]:
    group, version = ("", "v1") if resource == "pods" else ("scheduling.volcano.sh", "v1beta1")
    return [
        {
            "apiGroups": [group, ""],
            "apiVersions": [version, "v1"],
            "resources": [resource, "configmaps"],
            "operations": ["CREATE", "UPDATE"],
        }
    ]
