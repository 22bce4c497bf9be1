"""What is compared: a manifest of an operator's kinds, with what it is made from."""

from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator and where its samples are."""

    name: str
    part: str
    module: str
    folder: str
    flags: tuple[str, ...]
    groups: tuple[str, ...]
    """The apiVersions of its workloads."""
    switch: str = ""
    """What turns its gang scheduling on, where that is no flag."""


KUBERAY = Operator(
    "KubeRay",
    "kuberay",
    "github.com/ray-project/kuberay/ray-operator",
    "config/samples",
    ("--batch-scheduler=volcano", "--feature-gates=RayJobDeletionPolicy=true"),
    ("ray.io/v1",),
)
TRAINING = Operator(
    "Training operator",
    "training-mpi",
    "github.com/kubeflow/training-operator",
    "examples",
    ("--gang-scheduler-name=volcano",),
    ("kubeflow.org/v1",),
)
MPI = Operator(
    "MPI operator",
    "mpi",
    "github.com/kubeflow/mpi-operator",
    "examples",
    ("--gang-scheduling=volcano",),
    ("kubeflow.org/v2beta1",),
)
TRAINER = Operator(
    "Trainer",
    "trainer",
    "github.com/kubeflow/trainer/v2",
    "manifests/base/runtimes",
    (),
    ("trainer.kubeflow.org/v1alpha1",),
    "`spec.podGroupPolicy.volcano` in the runtime",
)


@dataclass(frozen=True)
class Case:
    """One manifest: a sample, or a variant of it."""

    operator: Operator
    source: str
    variant: str
    manifest: Manifest
    generated: bool = False
    """Whether it was put together by chance; the document only counts those."""
    context: tuple[Manifest, ...] = ()
    """What must exist before the manifest does."""

    @property
    def title(self) -> str:
        """As the table calls it."""
        return f"{self.source}, {self.variant}" if self.variant else self.source

    @property
    def kind(self) -> str:
        """The kind of the workload."""
        return str(self.manifest["kind"])


def ray_cluster(manifest: Manifest) -> Manifest:
    """The spec of the cluster that a manifest of Ray's describes."""
    spec = manifest["spec"]
    found: Manifest = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
    return found


def replica_specs(manifest: Manifest) -> dict[str, Manifest]:
    """The roles of a Kubeflow job."""
    found: dict[str, Manifest] = next(
        value for name, value in manifest["spec"].items() if name.endswith("ReplicaSpecs")
    )
    return found
