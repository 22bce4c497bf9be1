"""Holds a controller at one point, from outside: the apiserver refuses one of its writes in one namespace.

No fault hook in muster's code is needed for it, and what is proved holds for the program as it ships.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from muster.kube.resource import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS
from muster.model.names import ADMITTED, GATE
from tests.support.cluster.propagation import await_said
from tests.support.manifests import applied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.cluster.scene import Scene

__all__ = ["BURST", "MARK", "WORKERS_OF_BURST", "hold"]

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

_PROBE = "probe-of-the-policy"


@contextmanager
def hold(scene: Scene, point: tuple[str, str]) -> Iterator[None]:
    """Refuse the writes of this point in the scene's namespace while the body runs."""
    resource, refused = point
    name = f"hold-{scene.namespace}"
    group, version = ("", "v1") if resource == "pods" else ("scheduling.volcano.sh", "v1beta1")
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
                "resourceRules": [
                    {
                        "apiGroups": [group, ""],
                        "apiVersions": [version, "v1"],
                        "resources": [resource, "configmaps"],
                        "operations": ["CREATE", "UPDATE"],
                    }
                ],
            },
            "validations": [
                {
                    # The ConfigMap tells when the policy has come into force.
                    "expression": f"object.kind == 'ConfigMap' ? object.metadata.name != '{_PROBE}' : !({refused})",
                    "message": "held by a test",
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    scene.apply(policy, binding)
    try:
        await_said(scene, applied.config_map(_PROBE), "held by a test")
        yield
    finally:
        scene.delete(ADMISSION_POLICY_BINDINGS, name)
        scene.delete(ADMISSION_POLICIES, name)
