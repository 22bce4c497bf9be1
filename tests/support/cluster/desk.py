"""One test's namespace at a bare apiserver: the test itself plays the operators and makes the pods."""

from __future__ import annotations

import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.testbed import wait_for
from muster.kube.resource import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RUNTIME_CLASSES,
    Resource,
)
from muster.observe.resources import resource_of, resource_of_source
from muster.workloads import KINDS, SOURCES
from tests.support.manifests import applied, owner_chains

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed import Testbed
    from hack.testbed.api import Answer, Api

__all__ = ["PATIENCE", "Desk", "Manifest", "make_namespace", "open_desk", "resource_for", "wait_for_class"]

Manifest = dict[str, Any]

PATIENCE = 100.0

_RESOURCES = {
    (resource.api_version, resource.kind): resource
    for resource in (
        *(resource_of(kind) for kind in KINDS),
        *(resource_of_source(source) for source in SOURCES),
        *(PODS, JOBS, LIMIT_RANGES, QUEUES, RUNTIME_CLASSES, PRIORITY_CLASSES, POD_GROUPS, CONFIG_MAPS, DEPLOYMENTS),
        *(ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS),
    )
}


def resource_for(manifest: Manifest) -> Resource:
    """Return where objects of the manifest's kind are."""
    return _RESOURCES[manifest["apiVersion"], manifest["kind"]]


@dataclass(frozen=True, slots=True)
class Desk:
    """A namespace, and what tests do in it by quick calls."""

    testbed: Testbed
    namespace: str
    api: Api

    def path(self, resource: Resource, name: str | None = None) -> str:
        """Return the path of a kind's objects here, in the cluster where it has no namespaces, or of one of them."""
        return resource.path(self.namespace if resource.namespaced else None, name)

    def ask(self, manifest: Manifest, *, dry_run: bool = False) -> Answer:
        """Try to create it."""
        return self.api("POST", self.path(resource_for(manifest)) + "?dryRun=All" * dry_run, manifest)

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Create it, and return what the apiserver made of it; a refusal fails the test."""
        return self.api.create(self.path(resource_for(manifest)) + "?dryRun=All" * dry_run, manifest)

    def warned(self, manifest: Manifest, *, dry_run: bool = False) -> list[str]:
        """Create what is taken, and return the warnings."""
        answer = self.ask(manifest, dry_run=dry_run)
        assert answer.ok, f"refused: {answer.message}"
        return list(answer.warnings)

    def refused(self, manifest: Manifest) -> str:
        """Try to create what is refused, and return the apiserver's words."""
        answer = self.ask(manifest)
        assert not answer.ok, f"accepted: {answer.body}"
        return answer.message

    def merge(self, resource: Resource, name: str, change: Manifest) -> Manifest:
        """Change an object by a JSON merge patch."""
        return self.api.merge(self.path(resource, name), change)

    def delete(self, resource: Resource, *names: str) -> None:
        """Delete objects."""
        for name in names:
            self.api.delete(self.path(resource, name))

    def member(self, workload: Manifest, role: str, **spec: Any) -> Manifest:  # noqa: ANN401 - JSON
        """Return the pod that KubeRay or the Training operator would make for this workload."""
        name = workload["metadata"]["name"]
        if workload["kind"] == "RayCluster":
            type_ = "head" if role == "headgroup" else "worker"
            labels = {"ray.io/cluster": name, "ray.io/group": role, "ray.io/node-type": type_}
        else:
            labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-type": role}
        return owner_chains.member(workload, labels, **spec)

    def pods(self) -> list[Manifest]:
        """Return the pods of the namespace."""
        return self.list(PODS)

    def list(self, resource: Resource) -> list[Manifest]:
        """Return the objects of a kind in the namespace."""
        items: list[Manifest] = self.api.get(resource.path(self.namespace))["items"]
        return items


@contextmanager
def open_desk(testbed: Testbed, api: Api, name: str) -> Iterator[Desk]:
    """Make a namespace of about that name, and delete it in the end."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower())
    namespace = f"{words[:30].strip('-')}-{uuid.uuid4().hex[:6]}"
    make_namespace(api, namespace)
    yield Desk(testbed, namespace, api)
    api.delete(NAMESPACES.path(name=namespace), missing_ok=True)


def make_namespace(api: Api, name: str, **labels: str) -> None:
    """Make a namespace in which pods can be made."""
    api.create(NAMESPACES.path(), {"metadata": {"name": name, "labels": labels}})
    account = f"{NAMESPACES.path(name=name)}/serviceaccounts/default"
    wait_for("its ServiceAccount", lambda: api("GET", account).ok, PATIENCE)


def wait_for_class(api: Api, name: str, *, everybodys: bool = False) -> None:
    """Wait until pods may have this PriorityClass, or get it: the apiserver's admission hears of it by a watch."""
    pod = applied.pod("probe", **({} if everybodys else {"priorityClassName": name}))
    path = f"{PODS.path('default')}?dryRun=All"

    def given() -> bool:
        return bool(api("POST", path, pod).body.get("spec", {}).get("priorityClassName") == name)

    wait_for(f"PriorityClass {name} to be known", given, PATIENCE)
