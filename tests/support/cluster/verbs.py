"""kubectl's verbs on one namespace, by calls of the apiserver: a process of kubectl costs 0.2 CPU seconds, a call 2 ms.

They mean what kubectl's mean: an unknown field is an error, `apply` takes back what is no longer said, `delete` waits
until the object is gone and leaves its dependents to the garbage collector. kubectl itself stays in tests of what it
prints.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hack.testbed import TestbedError, wait_for
from muster.kube.resource import Resource

if TYPE_CHECKING:
    from hack.testbed.api import Answer, Api
    from tests.support.cluster.objects import Manifest
    from tests.support.manifests.applied import PyTorchJob, RayCluster

__all__ = ["PATIENCE", "RefusedError", "Verbs", "resource_of_manifest"]

# Seconds that anything may take on a busy machine; a test never depends on how long it really takes.
PATIENCE = 120.0

_STRICT = "fieldValidation=Strict"
_APPLY = f"?fieldManager=kubectl&force=true&{_STRICT}"

_NOT_FOUND = 404

_resources: dict[tuple[str, str], Resource] = {}


class RefusedError(TestbedError):
    """The apiserver refuses; the text is "Reason: its words"."""


class Verbs:
    """The verbs, for one namespace; what lives outside of namespaces is written as well."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def path(self, resource: Resource, name: str | None = None, subresource: str | None = None) -> str:
        """Return where an object of this namespace is, or one of the whole cluster."""
        return resource.path(self.namespace if resource.namespaced else None, name, subresource)

    def apply(self, *manifests: Manifest | RayCluster | PyTorchJob) -> list[str]:
        """`kubectl apply --server-side`, and return the warnings; raises RefusedError for the first that is refused."""
        warnings: list[str] = []
        for manifest in map(_manifest, manifests):
            warnings += self._done(self._apply(manifest)).warnings
        return warnings

    def try_apply(self, manifest: Manifest | RayCluster | PyTorchJob) -> str:
        """Apply what must be refused, and return "Reason: the apiserver's words"."""
        answer = self._apply(_manifest(manifest))
        assert not answer.ok, f"accepted: {answer.body}"
        return _said(answer)

    def create(self, manifest: Manifest | RayCluster | PyTorchJob) -> str:
        """`kubectl create`: return the name, which the apiserver may have generated."""
        item = _manifest(manifest)
        done = self._done(self.api.asked("POST", f"{self._collection(item)}?{_STRICT}", item))
        return str(done.body["metadata"]["name"])

    def told(self, manifest: Manifest | RayCluster | PyTorchJob) -> list[str]:
        """`kubectl create --dry-run=server`: return the warnings, and "Reason: words" where it would be refused."""
        answer = self._asked(manifest)
        return [*answer.warnings, *([] if answer.ok else [_said(answer)])]

    def would_be_accepted(self, manifest: Manifest | RayCluster | PyTorchJob) -> bool:
        """Tell whether the apiserver would take this, with warnings or without."""
        return self._asked(manifest).ok

    def _asked(self, manifest: Manifest | RayCluster | PyTorchJob) -> Answer:
        item = _manifest(manifest)
        return self.api.asked("POST", f"{self._collection(item)}?dryRun=All&{_STRICT}", item)

    def patch(self, resource: Resource, name: str, patch: Manifest, subresource: str | None = None) -> Manifest:
        """`kubectl patch --type=merge`: return the object."""
        path = f"{self.path(resource, name, subresource)}?{_STRICT}"
        return self._done(self.api.asked("PATCH", path, patch, patch="merge")).body

    def annotate(self, resource: Resource, *names: str, **annotations: str | None) -> None:
        """`kubectl annotate --overwrite`; None takes an annotation away. Keys with dots and slashes come as `**{}`."""
        for name in names:
            self.patch(resource, name, {"metadata": {"annotations": annotations}})

    def label(self, resource: Resource, *names: str, **labels: str | None) -> None:
        """`kubectl label --overwrite`; None takes a label away."""
        for name in names:
            self.patch(resource, name, {"metadata": {"labels": labels}})

    def delete(
        self,
        resource: Resource,
        *names: str,
        wait: bool = True,
        missing_ok: bool = False,
        grace_seconds: int | None = None,
    ) -> None:
        """`kubectl delete`: with `wait` it returns when these objects are gone, whoever has their names then."""
        options = "?propagationPolicy=Background"
        if grace_seconds is not None:
            options += f"&gracePeriodSeconds={grace_seconds}"
        going = []
        for name in names:
            answer = self.api.asked("DELETE", self.path(resource, name) + options)
            if not (missing_ok and answer.status == _NOT_FOUND):
                going.append((name, _uid(self._done(answer).body)))
        for name, uid in going if wait else ():
            gone = partial(self._is_gone, resource, name, uid)
            wait_for(f"{resource.kind} {name} to be gone", gone, PATIENCE)

    def delete_all(self, resource: Resource) -> None:
        """`kubectl delete --all --wait=false` in the namespace."""
        self._done(self.api.asked("DELETE", f"{resource.path(self.namespace)}?propagationPolicy=Background"))

    def _is_gone(self, resource: Resource, name: str, uid: str) -> bool:
        answer = self.api.asked("GET", self.path(resource, name))
        return answer.status == _NOT_FOUND or _uid(self._done(answer).body) != uid

    def _apply(self, manifest: Manifest) -> Answer:
        resource, name = resource_of_manifest(self.api, manifest), manifest["metadata"]["name"]
        return self.api.asked("PATCH", self.path(resource, name) + _APPLY, manifest, patch="apply")

    def _collection(self, manifest: Manifest) -> str:
        return self.path(resource_of_manifest(self.api, manifest))

    @staticmethod
    def _done(answer: Answer) -> Answer:
        if not answer.ok:
            raise RefusedError(_said(answer))
        return answer


def resource_of_manifest(api: Api, manifest: Manifest) -> Resource:
    """Return where a manifest's kind lives, as discovery says, asked once in a run. Raises TestbedError for no kind."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    if (version, kind) not in _resources:
        group, _, short = version.rpartition("/")
        for found in api.get(f"/apis/{version}" if group else f"/api/{version}")["resources"]:
            if "/" not in found["name"]:
                known = Resource(group, short, found["name"], found["kind"], found["namespaced"])
                _resources.setdefault((version, found["kind"]), known)
    if (version, kind) not in _resources:
        raise TestbedError(f"the apiserver has no {kind} in {version}")
    return _resources[version, kind]


def _manifest(item: Manifest | RayCluster | PyTorchJob) -> Manifest:
    return item if isinstance(item, dict) else item.manifest()


def _said(answer: Answer) -> str:
    return f"{answer.body.get('reason', answer.status)}: {answer.message}"


def _uid(body: Manifest) -> str:
    """The UID in the answer to a DELETE: of the object as long as it stays, else of what went."""
    return str(body.get("details", {}).get("uid") or body["metadata"].get("uid", ""))
