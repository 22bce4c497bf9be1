"""A control plane on which nothing but muster works on pods, so that the figures are of muster."""

from collections.abc import Iterable

from hack.testbed import Testbed, wait_for
from muster.model.resource import Resource

RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")
CRDS = (
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml"),
    ("volcano.sh/volcano", "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"),
    ("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayclusters.yaml"),
)
"""Module and file of each CRD that the benchmarks need."""


def prepare(testbed: Testbed, namespaces: Iterable[str]) -> None:
    """Have the apiserver serve the CRDs, and make namespaces in which pods can be created."""
    for module, file in CRDS:
        testbed.kubectl("apply", "--server-side", f"--filename={testbed.module_dir(module) / file}")
    established = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    wait_for("the CRDs to be served", lambda: testbed.kubectl(*established))
    for name in namespaces:
        testbed.kubectl("create", "namespace", name)
        testbed.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=120s")
