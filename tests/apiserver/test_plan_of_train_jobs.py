"""`muster plan --cluster` reads the runtimes of TrainJobs from a real apiserver, where there are any."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.testbed import Testbed
from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.cli.plan.reading import from_cluster
from tests.support.cli.command import cluster_options
from tests.support.manifests.members import DEFINITIONS, serve, withdraw

pytestmark = pytest.mark.part("commands")

_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")


@pytest.fixture
def trainer_crds(bare: Testbed) -> Iterator[list[Path]]:
    """The files of the runtimes' CRDs, none of which is served before the test; after it those that were are again."""
    folder = bare.module_dir("github.com/kubeflow/trainer/v2") / "manifests/base/crds"
    files = {f"{kind.lower()}s.trainer.kubeflow.org": kind for kind in _KINDS}
    paths = {name: folder / f"trainer.kubeflow.org_{kind.lower()}s.yaml" for name, kind in files.items()}
    there = [name for name in paths if bare.api()("GET", f"{DEFINITIONS}/{name}").ok]
    withdraw(bare, *there)
    yield list(paths.values())
    withdraw(bare, *paths)
    serve(bare, [paths[name] for name in there])


def _runtime(kind: str, nodes: int) -> dict[str, Any]:
    pod = {"containers": [{"name": "node", "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "own", "namespace": "default"} if kind == "TrainingRuntime" else {"name": "own"},
        "spec": {"mlPolicy": {"numNodes": nodes}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def _planned(bare: Testbed) -> list[int | str]:
    """Of a TrainJob of either runtime: how many pods it cannot start without, or the reason why nobody can say."""
    jobs = [
        Document(
            "test",
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "train", "labels": {"volcano.sh/queue-name": "default"}},
                "spec": {"runtimeRef": {"name": "own", "kind": kind}},
            },
        )
        for kind in _KINDS
    ]
    entries = [one.data() for one in plan(jobs, *from_cluster(cluster_options(bare.kubeconfig)))]
    return [one["podGroup"]["spec"]["minMember"] if one["podGroup"] else one["verdict"]["reason"] for one in entries]


def test_runtimes_are_read_where_there_are_any(bare: Testbed, trainer_crds: list[Path]) -> None:
    """A cluster without the Trainer is no error; with it, a TrainJob finds its runtime of the namespace or cluster."""
    assert _planned(bare) == ["TrainingRuntimeNotFound", "TrainingRuntimeNotFound"]
    serve(bare, trainer_crds)
    for nodes, kind in enumerate(_KINDS, start=2):
        manifest = _runtime(kind, nodes)
        at = "namespaces/default/" if "namespace" in manifest["metadata"] else ""
        bare.api().create(f"/apis/trainer.kubeflow.org/v1alpha1/{at}{kind.lower()}s", manifest)
    assert _planned(bare) == [2, 3]
