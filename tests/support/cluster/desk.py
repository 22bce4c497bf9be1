"""One test's namespace at a bare apiserver: the test itself plays the operators and makes the pods."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.kube.resource import PODS, Resource

if TYPE_CHECKING:
    from hack.testbed import Testbed
    from hack.testbed.api import Api

__all__ = ["PATIENCE", "Desk", "Manifest"]

Manifest = dict[str, Any]

PATIENCE = 100.0


@dataclass(frozen=True, slots=True)
class Desk:
    """A namespace, and what tests do in it."""

    testbed: Testbed
    namespace: str
    api: Api

    def create(self, manifest: Manifest, *options: str) -> Manifest:
        """`kubectl create`: return what the apiserver made of it."""
        done = self.testbed.kubectl(
            "create", "-f-", f"--namespace={self.namespace}", "--output=json", *options, input=json.dumps(manifest)
        )
        made: Manifest = json.loads(done.stdout)
        return made

    def warned(self, manifest: Manifest, *options: str) -> list[str]:
        """`kubectl create` of what is taken: return the lines of its standard error."""
        namespace = f"--namespace={self.namespace}"
        done = self.testbed.kubectl("create", "-f-", namespace, *options, input=json.dumps(manifest))
        return done.stderr.splitlines()

    def refused(self, *args: str, manifest: Manifest | None = None) -> str:
        """Run kubectl, which must fail, and return what it says."""
        text = None if manifest is None else json.dumps(manifest)
        done = self.testbed.kubectl(*args, f"--namespace={self.namespace}", input=text, check=False)
        assert done.returncode, f"accepted: {done.stdout}"
        return done.stderr.strip()

    def kubectl(self, *args: str) -> str:
        """Run kubectl in the namespace and return what it prints."""
        return self.testbed.kubectl(*args, f"--namespace={self.namespace}").stdout

    def member(self, workload: Manifest, role: str, **spec: object) -> Manifest:
        """Return the pod that KubeRay or the Training operator would make for this workload."""
        meta = workload["metadata"]
        if workload["kind"] == "RayCluster":
            labels = {
                "ray.io/cluster": meta["name"],
                "ray.io/group": role,
                "ray.io/node-type": "head" if role == "headgroup" else "worker",
            }
        else:
            labels = {
                "training.kubeflow.org/job-name": meta["name"],
                "training.kubeflow.org/replica-type": role,
            }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": f"{meta['name']}-{role}-",
                "labels": labels,
                "ownerReferences": [
                    {
                        "apiVersion": workload["apiVersion"],
                        "kind": workload["kind"],
                        "name": meta["name"],
                        "uid": meta["uid"],
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {"containers": [{"name": "main", "image": "none"}], **spec},
        }

    def pods(self) -> list[Manifest]:
        """Return the pods of the namespace."""
        return self.list(PODS)

    def list(self, resource: Resource) -> list[Manifest]:
        """Return the objects of a kind in the namespace."""
        items: list[Manifest] = self.api.get(resource.path(self.namespace))["items"]
        return items
