"""Jobs of Kubeflow on coscheduling, as a second scheduler and in kube-scheduler's place, without a gang flag."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.names import QUEUE_LABEL
from muster.model.resource import Resource
from muster.workloads.kubeflow import TF_JOB
from muster.workloads.mpi import MPI_JOB
from tests.e2e.conftest import VALUES
from tests.support.cases import cases
from tests.support.cluster.backends import cluster
from tests.support.cluster.pair_scene import open_pair_scene
from tests.support.cluster.recorder import JOBS, Manifest
from tests.support.manifests.applied import RUN_SECONDS

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Pair:
    """A cluster with muster, and the schedulerName that a template has there, "" for none."""

    testbed: Testbed
    names: str
    scheduler: str


@pytest.fixture(
    scope="module",
    params=[
        ("coscheduling", "scheduler-plugins-scheduler", "scheduler-plugins-scheduler"),
        ("coscheduling-as-default", "", "default-scheduler"),
    ],
    ids=["second scheduler", "default scheduler"],
)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    addon, names, scheduler = request.param
    parts = cluster(addon, operators=["training", "mpi"])
    values = {**VALUES, "schedulers": f"{{coscheduling={scheduler}}}", "queues.source": "muster"}
    with Testbed.start(**parts, nodes=Nodes(count=2, gpu=0), progress=print) as testbed:
        install(testbed, values=values, webhooks=1, controllers=1).wait_ready()
        yield Pair(testbed, names, scheduler)


def _job(name: str, labels: dict[str, str], scheduler: str, resource: Resource, replicas: dict[str, int]) -> Manifest:
    """A job of pods of 1 cpu, which run until they are deleted."""
    containers = [{"name": "tensorflow", "image": "none", "resources": {"requests": {"cpu": "1"}}}]
    pod = {"containers": containers, **({"schedulerName": scheduler} if scheduler else {})}
    template = {"metadata": {"annotations": {RUN_SECONDS: "3600"}}, "spec": pod}
    roles = {role: {"replicas": count, "template": template} for role, count in replicas.items()}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {f"{resource.kind.removesuffix('Job').lower()}ReplicaSpecs": roles},
    }


@cases(
    "resource, replicas",
    ("MPIJob v2beta1", MPI_JOB.resource, {"Launcher": 1, "Worker": 2}),
    ("TFJob", TF_JOB.resource, {"PS": 1, "Worker": 2}),
)
def test_one_job_runs_as_a_gang_and_the_other_waits_whole(
    pair: Pair, resource: Resource, replicas: dict[str, int]
) -> None:
    """C2: a queue of 4 cpu has room for one job of three pods, and not for a part of the other."""
    with open_pair_scene(pair.testbed, f"kubeflow-{resource.kind}".lower(), kinds=(resource, JOBS)) as scene:
        labels = {QUEUE_LABEL: scene.gang_queue(capability={"cpu": "4"})}
        scene.create(_job("first", labels, pair.names, resource, replicas))
        members = scene.await_running("first", 3)
        assert {pod["spec"]["schedulerName"] for pod in members} == {pair.scheduler}
        assert scene.pod_group("first")["spec"]["minMember"] == 3
        scene.create(_job("second", labels, pair.names, resource, replicas))
        scene.await_gated("second", 3)
        scene.await_state("second", "WaitingForQuota")
        scene.delete(resource, "first")
        scene.await_running("second", 3)
        for gang in ("first", "second"):
            scene.assert_started_together(gang, 3)
        scene.assert_never_above({"cpu": "4"})
