"""MPIJob v1, with the Training operator: its CRD has the name of the MPI operator's, so on a testbed of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.kube.workloads import resource_of
from muster.names import QUEUE_LABEL
from muster.workloads.kubeflow import MPI_JOB_V1
from tests.e2e.conftest import VALUES
from tests.support.cluster.gang_lifecycle import goes_through_its_life
from tests.support.cluster.scene import open_scene

if TYPE_CHECKING:
    from tests.support.cluster.recorder import Manifest


def _mpi_job(name: str, queue: str) -> Manifest:
    def replica(container: str, count: int) -> Manifest:
        pod = {"containers": [{"name": container, "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
        return {"replicas": count, "template": {"spec": pod}}

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {
            "slotsPerWorker": 1,
            "mpiReplicaSpecs": {"Launcher": replica("launcher", 1), "Worker": replica("worker", 2)},
        },
    }


def test_launcher_and_workers_are_one_gang() -> None:
    """The launcher is a pod of the job itself, with a container more, which brings kubectl and counts."""
    with Testbed.start(parts=["volcano", "training-mpi"], nodes=Nodes(gpu=0), progress=print) as testbed:
        install(testbed, values=VALUES).wait_ready()
        with open_scene(testbed, "kind-mpi-v1", kinds=(resource_of(MPI_JOB_V1),)) as scene:
            queue = scene.queue(cpu="4")
            goes_through_its_life(scene, lambda name: _mpi_job(name, queue), pods=3)
            group = scene.pod_group("second")["spec"]
            assert group["minTaskMember"] == {"launcher": 1, "worker": 2}
            assert group["minResources"] == {"cpu": "3", "ephemeral-storage": "5Gi", "memory": "512Mi"}
