"""The nodes: plain Node objects that kwok keeps alive and on which pods run for as long as their annotations say."""

from dataclasses import dataclass
from typing import Any

FAKE = "testbed.muster.dev/kwok"
"""The taint (NoSchedule) of kwok's nodes where there is a real one: a pod that has to run must not be placed there."""
REAL = "testbed.muster.dev/real"
"""The label of a real node, which kwok leaves alone, and its taint (NoSchedule) against what no kubelet can run.

With a real node every pod needs a toleration for its kind of node; a pod without one stays Pending.
"""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Equal nodes, `node-0` upwards; cpu and memory are Kubernetes quantities, gpu counts nvidia.com/gpu."""

    count: int = 4
    cpu: str = "16"
    memory: str = "64Gi"
    gpu: int = 8

    def manifests(self, *, tainted: bool = False) -> list[dict[str, Any]]:
        """Return one Node per node, capacity and allocatable set, so that no pod comes before they are known."""
        resources = {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": "100Gi", "pods": "110"}
        if self.gpu:
            resources["nvidia.com/gpu"] = str(self.gpu)
        return [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": f"node-{index}",
                    "labels": {
                        "kubernetes.io/hostname": f"node-{index}",
                        "kubernetes.io/os": "linux",
                        "kubernetes.io/arch": "amd64",
                    },
                },
                "spec": {"taints": [{"key": FAKE, "effect": "NoSchedule"}] if tainted else []},
                "status": {"capacity": resources, "allocatable": resources},
            }
            for index in range(self.count)
        ]
