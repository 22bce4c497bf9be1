"""kubectl's verbs on one namespace, by calls of the apiserver: a process of kubectl costs 0.2 CPU seconds, a call 2 ms.

They mean what kubectl's mean: an unknown field is an error, `apply` takes back what is no longer said, `delete` waits
until the object is gone and leaves its dependents to the garbage collector. kubectl itself stays in tests of what it
prints.
"""

import re
import uuid
from functools import partial

from hack.testbed import PATIENCE, TestbedError, wait_for
from hack.testbed.api import Answer, Api
from muster.model.resource import NAMESPACES, Resource
from tests.support.cluster.objects import Manifest
from tests.support.manifests.applied import PyTorchJob, RayCluster

Applied = Manifest | RayCluster | PyTorchJob

__all__ = ["PATIENCE", "Verbs", "make_namespace", "own_name"]


_STRICT = "fieldValidation=Strict"
_APPLY = f"?fieldManager=kubectl&force=true&{_STRICT}"

_NOT_FOUND = 404

_resources: dict[tuple[str, str], Resource] = {}


class Verbs:
    """The verbs, for one namespace; what lives outside of namespaces is written as well.

    What the apiserver refuses raises TestbedError with "Reason: its words", but where an answer is asked for.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def path(self, resource: Resource, name: str | None = None, subresource: str | None = None) -> str:
        """Return where a kind's objects are, or one: in this namespace, or in the whole cluster."""
        path = resource.path(self.namespace if resource.namespaced else None, name)
        return f"{path}/{subresource}" if subresource else path

    def get(self, resource: Resource, name: str) -> Manifest:
        """`kubectl get`; raises NotFoundError when there is none."""
        return self.api.get(self.path(resource, name))

    def apply(self, *manifests: Applied) -> list[str]:
        """`kubectl apply --server-side`, and return the warnings."""
        warnings: list[str] = []
        for manifest in map(_manifest, manifests):
            path = self.path(self._resource(manifest), manifest["metadata"]["name"]) + _APPLY
            warnings += _done(self.api("PATCH", path, manifest, patch="apply")).warnings
        return warnings

    def ask(self, manifest: Applied, *, dry_run: bool = False, user: str = "") -> Answer:
        """Try to create it, as somebody else perhaps, and return the answer, a refusal too."""
        item = _manifest(manifest)
        path = f"{self.path(self._resource(item))}?{_STRICT}" + "&dryRun=All" * dry_run
        return self.api("POST", path, item, user=user)

    def create(self, manifest: Applied, *, dry_run: bool = False) -> Manifest:
        """`kubectl create`: return what the apiserver made of it."""
        return _done(self.ask(manifest, dry_run=dry_run)).body

    def refused(self, manifest: Applied) -> str:
        """Try to create what must be refused, and return "Reason: the apiserver's words"."""
        answer = self.ask(manifest)
        assert not answer.ok, f"accepted: {answer.body}"
        return _said(answer)

    def told(self, manifest: Applied) -> list[str]:
        """`kubectl create --dry-run=server`: return the warnings, and "Reason: words" where it would be refused."""
        answer = self.ask(manifest, dry_run=True)
        return [*answer.warnings, *([] if answer.ok else [_said(answer)])]

    def patch(self, resource: Resource, name: str, patch: Manifest, subresource: str | None = None) -> Manifest:
        """`kubectl patch --type=merge`: return the object."""
        path = f"{self.path(resource, name, subresource)}?{_STRICT}"
        return _done(self.api("PATCH", path, patch, patch="merge")).body

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
            answer = self.api("DELETE", self.path(resource, name) + options)
            if not (missing_ok and answer.status == _NOT_FOUND):
                going.append((name, _uid(_done(answer).body)))
        for name, uid in going if wait else ():
            gone = partial(self._is_gone, resource, name, uid)
            wait_for(f"{resource.kind} {name} to be gone", gone)

    def delete_all(self, resource: Resource) -> None:
        """`kubectl delete --all --wait=false` in the namespace."""
        _done(self.api("DELETE", f"{resource.path(self.namespace)}?propagationPolicy=Background"))

    def list(self, resource: Resource) -> list[Manifest]:
        """Return the objects of a kind in the namespace."""
        items: list[Manifest] = self.api.get(self.path(resource))["items"]
        return items

    def _is_gone(self, resource: Resource, name: str, uid: str) -> bool:
        answer = self.api("GET", self.path(resource, name))
        return answer.status == _NOT_FOUND or _uid(_done(answer).body) != uid

    def _resource(self, manifest: Manifest) -> Resource:
        """Return where a manifest's kind is, as discovery says, asked once a run; raises TestbedError for no kind."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        if (version, kind) not in _resources:
            group, _, short = version.rpartition("/")
            for found in self.api.get(f"/apis/{version}" if group else f"/api/{version}")["resources"]:
                if "/" not in found["name"]:
                    known = Resource(group, short, found["name"], found["kind"], found["namespaced"])
                    _resources.setdefault((version, found["kind"]), known)
        if (version, kind) not in _resources:
            raise TestbedError(f"the apiserver has no {kind} in {version}")
        return _resources[version, kind]


def own_name(test: str) -> str:
    """Return about that name, for a namespace that no other test has."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower())
    return f"{words[:30].strip('-')}-{uuid.uuid4().hex[:6]}"


def make_namespace(api: Api, name: str, **labels: str) -> None:
    """Make a namespace in which pods can be made."""
    api.create(NAMESPACES.path(), {"metadata": {"name": name, "labels": labels}})
    account = f"{NAMESPACES.path(name=name)}/serviceaccounts/default"
    wait_for("its ServiceAccount", lambda: api("GET", account).ok)


def _done(answer: Answer) -> Answer:
    if not answer.ok:
        raise TestbedError(_said(answer))
    return answer


def _manifest(item: Applied) -> Manifest:
    return item if isinstance(item, dict) else item.manifest()


def _said(answer: Answer) -> str:
    return f"{answer.body.get('reason', answer.status)}: {answer.message}"


def _uid(body: Manifest) -> str:
    """The UID in the answer to a DELETE: of the object as long as it stays, else of what went."""
    return str(body.get("details", {}).get("uid") or body["metadata"].get("uid", ""))
