"""The operators of MPIJob, JobSet and TrainJob work as parts: what each makes of a workload is there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.testbed import CommandError, Nodes, Testbed, TestbedError, wait_for
from hack.testbed.parts import select
from tests.support.cluster.scene import PATIENCE

pytestmark = pytest.mark.long

_NAMESPACE = "batch"


@pytest.fixture(scope="module")
def batch() -> Iterator[Testbed]:
    """One testbed for this file, with the three operators and nothing else."""
    with Testbed.start(parts=["mpi", "trainer"], nodes=Nodes(count=2, gpu=0), progress=print) as running:
        running.kubectl("create", "namespace", _NAMESPACE)
        wait_for("its ServiceAccount", lambda: running.kubectl("get", "sa", "default", "-n", _NAMESPACE), PATIENCE)
        yield running


def _conditions(testbed: Testbed, kind: str, name: str) -> set[str]:
    status = json.loads(testbed.kubectl("get", kind, name, "-n", _NAMESPACE, "-ojson").stdout).get("status", {})
    return {one["type"] for one in status.get("conditions", []) if one["status"] == "True"}


def _job_set(name: str) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    spec = {"parallelism": 1, "completions": 1, "template": {"spec": pod}}
    job = {"name": "work", "replicas": 2, "template": {"spec": spec}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [job]},
    }


def test_mpi_operators_own_sample_succeeds(batch: Testbed) -> None:
    """The launcher is the pod of a batch Job, and such pods end by themselves on the testbed's nodes."""
    sample: Path = batch.module_dir("github.com/kubeflow/mpi-operator") / "examples/v2beta1/pi/pi.yaml"
    batch.kubectl("apply", "-n", _NAMESPACE, "-f", str(sample))
    wait_for("the MPIJob to succeed", lambda: "Succeeded" in _conditions(batch, "mpijobs", "pi"), PATIENCE)


def test_jobset_runs_its_jobs(batch: Testbed) -> None:
    batch.kubectl("apply", "-n", _NAMESPACE, "-f", "-", input=json.dumps(_job_set("pair")))
    wait_for("the JobSet to complete", lambda: "Completed" in _conditions(batch, "jobsets", "pair"), PATIENCE)


def test_jobsets_own_webhooks_are_reached(batch: Testbed) -> None:
    wrong = _job_set("wrong")
    wrong["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["nobody"]}
    with pytest.raises(CommandError, match="invalid replicatedJob name 'nobody'"):
        batch.kubectl("apply", "-n", _NAMESPACE, "-f", "-", input=json.dumps(wrong))


def test_trainer_makes_a_jobset_of_its_shipped_runtime(batch: Testbed) -> None:
    runtimes = batch.module_dir("github.com/kubeflow/trainer/v2") / "manifests/base/runtimes"
    runtime = yaml.safe_load((runtimes / "torch_distributed.yaml").read_bytes())
    batch.kubectl("apply", "-f", "-", input=json.dumps(runtime))
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "train"},
        "spec": {"runtimeRef": {"name": runtime["metadata"]["name"]}, "trainer": {"numNodes": 2}},
    }
    text = json.dumps(job)
    trial = ("create", "--dry-run=server", "-n", _NAMESPACE, "-f", "-")
    wait_for("the Trainer to know of the runtime", lambda: batch.kubectl(*trial, input=text), PATIENCE)
    batch.kubectl("apply", "-n", _NAMESPACE, "-f", "-", input=text)
    wait_for("the TrainJob to complete", lambda: "Complete" in _conditions(batch, "trainjobs", "train"), PATIENCE)


def test_trainers_own_webhooks_are_reached(batch: Testbed) -> None:
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "lost"},
        "spec": {"runtimeRef": {"name": "nowhere"}},
    }
    with pytest.raises(CommandError, match=r"validator\.trainjob\.trainer\.kubeflow\.org.*denied"):
        batch.kubectl("apply", "-n", _NAMESPACE, "-f", "-", input=json.dumps(job))


def test_addon_brings_what_it_needs() -> None:
    assert [part.name for part in select(["trainer"]) if part.addon] == ["jobset", "trainer"]


@pytest.mark.parametrize("other", ["training", "mpi"])
def test_addons_with_one_crd_between_them_are_refused(other: str) -> None:
    with pytest.raises(TestbedError, match=f"^training-mpi and {other} have CRDs of the same name: start a testbed"):
        select(["training-mpi", other])
