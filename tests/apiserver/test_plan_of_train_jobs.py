"""`muster plan --cluster` reads the runtimes of TrainJobs from a real apiserver, where there are any."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hack.testbed import wait_for
from muster.cli.known import from_cluster
from muster.cli.manifests import Document
from muster.cli.plan import plan
from muster.intent import Defaults
from tests.support.cluster.desk import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed import Testbed

_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")


@pytest.fixture
def trainer_crds(bare: Testbed) -> Iterator[list[str]]:
    """The files of the runtimes' CRDs, of which none is served before the test, whoever created them, nor after it."""
    folder = bare.module_dir("github.com/kubeflow/trainer/v2") / "manifests/base/crds"
    files = [f"--filename={folder}/trainer.kubeflow.org_{kind.lower()}s.yaml" for kind in _KINDS]
    bare.kubectl("delete", "--ignore-not-found", *files)
    yield files
    bare.kubectl("delete", "--ignore-not-found", *files)


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
    entries = plan(jobs, Defaults(), from_cluster(str(bare.kubeconfig)))
    return [one["podGroup"]["spec"]["minMember"] if one["podGroup"] else one["verdict"]["reason"] for one in entries]


def test_runtimes_are_read_where_there_are_any(bare: Testbed, trainer_crds: list[str]) -> None:
    """A cluster without the Trainer is no error; with it, a TrainJob finds its runtime of the namespace or cluster."""
    assert _planned(bare) == ["TrainingRuntimeNotFound", "TrainingRuntimeNotFound"]
    bare.kubectl("apply", "--server-side", *trainer_crds)
    items = [_runtime(kind, nodes) for nodes, kind in enumerate(_KINDS, start=2)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    wait_for("the runtimes to be served", lambda: bare.kubectl("apply", "-f", "-", input=text), PATIENCE)
    assert _planned(bare) == [2, 3]
