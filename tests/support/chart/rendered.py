"""What a chart renders, found by kind and name; and what the programs are that render and read it."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]


@dataclass
class Rendered:
    """The manifests of one release."""

    documents: list[JSON]

    def one(self, kind: str, name: str = "") -> JSON:
        """The only one of that kind (and name)."""
        found = [item for item in self.documents if item["kind"] == kind and name in ("", item["metadata"]["name"])]
        assert len(found) == 1, [item["metadata"]["name"] for item in found]
        return found[0]

    def names(self) -> list[str]:
        """`Kind/name` of everything."""
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in self.documents)

    def webhooks(self) -> dict[str, JSON]:
        """Every webhook of both configurations by its name."""
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        return {webhook["name"]: webhook for kind in kinds for webhook in self.one(kind)["webhooks"] or ()}

    def rules(self, kind: str, name: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
        """(group, resource, names, verbs) of a role, one for each resource."""
        return sorted(
            (group, resource, tuple(rule.get("resourceNames", ())), tuple(rule["verbs"]))
            for rule in self.one(kind, name)["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        )

    def arguments(self, component: str) -> list[str]:
        """The arguments of a Deployment's only container."""
        deployment = next(
            item
            for item in self.documents
            if item["kind"] == "Deployment" and item["metadata"]["name"].endswith(f"-{component}")
        )
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        arguments: list[str] = container["args"]
        return arguments


Program = Callable[..., subprocess.CompletedProcess[str]]
Render = Callable[..., Rendered]


def assert_restricted(spec: JSON) -> None:
    """Assert that the spec of a pod meets PodSecurity `restricted`, with a root file system that nobody writes."""
    (container,) = spec["containers"]
    assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["seccompProfile"]["type"]) == (
        True,
        "RuntimeDefault",
    )
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
