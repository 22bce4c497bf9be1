"""One test's namespace at a bare apiserver: the test itself plays the operators and makes the pods."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from muster.model.resource import NAMESPACES, PODS
from tests.support.cluster.objects import Manifest
from tests.support.cluster.verbs import PATIENCE, Verbs, make_namespace, own_name
from tests.support.manifests import applied, owner_chains

__all__ = ["PATIENCE", "Desk", "Manifest", "open_desk", "wait_for_class"]


class Desk(Verbs):
    """A namespace, kubectl's verbs, and the pods that operators would make in it."""

    def __init__(self, testbed: Testbed, api: Api, namespace: str) -> None:
        super().__init__(api, namespace)
        self.testbed = testbed

    def member(self, workload: Manifest, role: str, **spec: Any) -> Manifest:  # noqa: ANN401 - JSON
        """Return the pod that KubeRay or the Training operator would make for this workload."""
        name = workload["metadata"]["name"]
        if workload["kind"] == "RayCluster":
            type_ = "head" if role == "headgroup" else "worker"
            labels = {"ray.io/cluster": name, "ray.io/group": role, "ray.io/node-type": type_}
        else:
            labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-type": role}
        return owner_chains.member(workload, labels, **spec)


@contextmanager
def open_desk(testbed: Testbed, api: Api, name: str) -> Iterator[Desk]:
    """Make a namespace of about that name, and delete it in the end."""
    namespace = own_name(name)
    make_namespace(api, namespace)
    yield Desk(testbed, api, namespace)
    api.delete(NAMESPACES.path(name=namespace), missing_ok=True)


def wait_for_class(api: Api, name: str, *, everybodys: bool = False) -> None:
    """Wait until pods may have this PriorityClass, or get it: the apiserver's admission hears of it by a watch."""
    pod = applied.pod("probe", **({} if everybodys else {"priorityClassName": name}))
    path = f"{PODS.path('default')}?dryRun=All"

    def given() -> bool:
        return bool(api("POST", path, pod).body.get("spec", {}).get("priorityClassName") == name)

    wait_for(f"PriorityClass {name} to be known", given, PATIENCE)
