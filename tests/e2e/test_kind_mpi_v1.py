"""MPIJob v1, with the Training operator: its CRD has the name of the MPI operator's and takes the place of that."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.names import QUEUE_LABEL
from muster.workloads.kubeflow import MPI_JOB_V1
from tests.e2e.conftest import Resident
from tests.support.cluster.added_operators import add_operators
from tests.support.cluster.gang_lifecycle import goes_through_its_life
from tests.support.cluster.recorder import Manifest
from tests.support.cluster.scene import open_scene

pytestmark = pytest.mark.part("operators")


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


@pytest.fixture
def mpi_v1(added_operators: Testbed, resident: Resident) -> Iterator[Testbed]:
    """The Training operator with MPIJobs, in place of the MPI operator, and muster, until the test has ended."""
    testbed = added_operators
    resident.stop()
    for part in ("mpi", "training"):
        testbed.stop_part(part)
    try:
        add_operators(testbed, "training-mpi")
        resident.present()
        yield testbed
        testbed.stop_part("training-mpi")
    finally:
        # Those who come next need it, whatever became of the test.
        testbed.start_part("training")


def test_launcher_and_workers_are_one_gang(mpi_v1: Testbed) -> None:
    """The launcher is a pod of the job itself, with a container more, which brings kubectl and counts."""
    with open_scene(mpi_v1, "kind-mpi-v1", kinds=(MPI_JOB_V1.resource,)) as scene:
        queue = scene.queue(cpu="4")
        goes_through_its_life(scene, lambda name: _mpi_job(name, queue), pods=3)
        group = scene.pod_group("second")["spec"]
        assert group["minTaskMember"] == {"launcher": 1, "worker": 2}
        assert group["minResources"] == {"cpu": "3", "ephemeral-storage": "5Gi", "memory": "512Mi"}
