"""Chains of owners, as operators make them: each object is controlled by the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.testbed import wait_for
from muster.kube.resource import JOBS, LIMIT_RANGES, PODS, QUEUES, RUNTIME_CLASSES
from muster.kube.workloads import resource_of, resource_of_source
from muster.workloads import KINDS, SOURCES
from tests.support.cluster.desk import PATIENCE
from tests.support.manifests import workloads as builders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hack.testbed.api import Answer, Api
    from tests.support.cluster.desk import Manifest

__all__ = ["Maker", "chain", "member", "owned", "wait_for_class"]

_RESOURCES = {
    (resource.api_version, resource.kind): resource
    for resource in (
        *(resource_of(kind) for kind in KINDS),
        *(resource_of_source(source) for source in SOURCES),
        *(PODS, JOBS, LIMIT_RANGES, QUEUES, RUNTIME_CLASSES),
    )
}


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes objects in one namespace, by few and quick calls."""

    calls: Api
    namespace: str

    def path(self, manifest: Manifest, name: str | None = None) -> str:
        """Where objects of its kind are, or with `name` one of them."""
        resource = _RESOURCES[manifest["apiVersion"], manifest["kind"]]
        return resource.path(self.namespace if resource.namespaced else None, name)

    def create(self, manifest: Manifest) -> Manifest:
        """Create it, and return what the apiserver made of it; a refusal fails the test."""
        return self.calls.done("POST", self.path(manifest), manifest)

    def ask(self, manifest: Manifest) -> Answer:
        """Try to create it."""
        return self.calls("POST", self.path(manifest), manifest)


def owned(manifest: Manifest, owner: Manifest) -> Manifest:
    """The manifest, controlled by an object that exists."""
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}}


def chain(manifests: Iterable[Manifest], create: Callable[[Manifest], Manifest]) -> Manifest:
    """Create the manifests, the topmost first, each controlled by the one before; gives the last."""
    last: Manifest = {}
    for manifest in manifests:
        last = create(owned(manifest, last) if last else manifest)
    return last


def member(
    owner: Manifest | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    container: Mapping[str, object] | None = None,
    **spec: object,
) -> Manifest:
    """The pod that somebody makes for its owner, with a name that the apiserver completes."""
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-", "labels": dict(labels), "annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "main", "image": "none", **(container or {})}], **spec},
    }
    return pod if owner is None else owned(pod, owner)


def wait_for_class(calls: Api, name: str, *, everybodys: bool = False) -> None:
    """Wait until pods may have this PriorityClass, or get it: the apiserver's admission hears of it by a watch."""
    pod = builders.pod("probe", **({} if everybodys else {"priorityClassName": name}))
    path = f"{PODS.path('default')}?dryRun=All"

    def given() -> bool:
        return bool(calls("POST", path, pod).body.get("spec", {}).get("priorityClassName") == name)

    wait_for(f"PriorityClass {name} to be known", given, PATIENCE)
