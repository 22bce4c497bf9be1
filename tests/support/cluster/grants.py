"""Rights of a test's own users: a role for one kind, and its binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.kube.resource import Resource

if TYPE_CHECKING:
    from tests.support.cluster.verbs import Verbs

__all__ = ["grant", "revoke"]

_GROUP = "rbac.authorization.k8s.io"
_KINDS = {
    kind: Resource(_GROUP, "v1", f"{kind.lower()}s", kind, not kind.startswith("Cluster"))
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
}


def grant(scene: Verbs, user: str, resource: Resource, *verbs: str, subresource: str = "") -> str:
    """Let a user do this to the kind: in the namespace, or everywhere if it has none; return the role's name."""
    scope = "" if resource.namespaced else "Cluster"
    name = f"{scene.namespace}-{resource.plural}{subresource}"
    to = f"{resource.plural}/{subresource}".rstrip("/")
    rule = {"apiGroups": [resource.group], "resources": [to], "verbs": list(verbs)}
    scene.create(_object(f"{scope}Role", name, rules=[rule]))
    scene.create(
        _object(
            f"{scope}RoleBinding",
            name,
            roleRef={"apiGroup": _GROUP, "kind": f"{scope}Role", "name": name},
            subjects=[{"apiGroup": _GROUP, "kind": "User", "name": user}],
        )
    )
    return name


def revoke(scene: Verbs, role: str) -> None:
    """Take back what was granted on a kind outside of namespaces; a namespace takes its own roles along."""
    scene.delete(_KINDS["ClusterRoleBinding"], role)
    scene.delete(_KINDS["ClusterRole"], role)


def _object(kind: str, name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": name}, **fields}
