"""RBAC that tests grant, in a namespace or in the whole cluster."""

from collections.abc import Sequence
from typing import Any

from hack.testbed.api import Api
from muster.model.resource import Resource

_GROUP = "rbac.authorization.k8s.io"
_PATH = f"/apis/{_GROUP}/v1"

Manifest = dict[str, Any]


def user(name: str) -> Manifest:
    """Return a user as the subject of a binding."""
    return {"apiGroup": _GROUP, "kind": "User", "name": name}


def account(namespace: str, name: str = "default") -> Manifest:
    """Return a ServiceAccount as the subject of a binding."""
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def on(resource: Resource, *verbs: str, subresource: str = "") -> Manifest:
    """Return the rule of a role for one kind."""
    to = f"{resource.plural}/{subresource}".rstrip("/")
    return {"apiGroups": [resource.group], "resources": [to], "verbs": list(verbs)}


def grant(api: Api, name: str, rules: Sequence[Manifest], *subjects: Manifest, namespace: str = "") -> None:
    """Make a role with these rules and bind it to the subjects; without `namespace` for the whole cluster."""
    kind = "Role" if namespace else "ClusterRole"
    api.create(f"{_collection(namespace)}{kind.lower()}s", {"metadata": {"name": name}, "rules": rules})
    _bind(api, name, (kind, name), subjects, namespace)


def bind(api: Api, name: str, role: str, *subjects: Manifest, namespace: str = "") -> None:
    """Bind a ClusterRole that exists to the subjects."""
    _bind(api, name, ("ClusterRole", role), subjects, namespace)


def revoke(api: Api, name: str) -> None:
    """Take away what was granted or bound by that name in the whole cluster."""
    for kind in ("clusterrolebindings", "clusterroles"):
        api.delete(f"{_PATH}/{kind}/{name}", missing_ok=True)


def _bind(api: Api, name: str, role: tuple[str, str], subjects: Sequence[Manifest], namespace: str) -> None:
    reference = {"apiGroup": _GROUP, "kind": role[0], "name": role[1]}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    api.create(f"{_collection(namespace)}{'' if namespace else 'cluster'}rolebindings", body)


def _collection(namespace: str) -> str:
    return f"{_PATH}/namespaces/{namespace}/" if namespace else f"{_PATH}/"
