"""Coscheduling, and the Training operator with and without its own gang flag: muster stands back, or makes the gang."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.names import ADMITTED, GANG, GROUP_NAME, MANAGED_BY, QUEUE_LABEL, STATE
from muster.model.resource import PODS
from muster.workloads.kubeflow import MPI_JOB_V1
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import cluster
from tests.support.cluster.objects import alive, gates, phase
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.recorder import PYTORCH_JOBS, Manifest
from tests.support.manifests.applied import pytorch_job

pytestmark = pytest.mark.long

SCHEDULER = "scheduler-plugins-scheduler"
FLAG = f"--gang-scheduler-name={SCHEDULER}"
PAIR = {"schedulers": "{coscheduling}", "queues.source": "muster"}
POD_GROUP = "scheduling.x-k8s.io/pod-group"
JOB_NAME = "training.kubeflow.org/job-name"
MPI_JOBS = MPI_JOB_V1.resource


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """A cluster with scheduler-plugins, the Training operator with all of its kinds, and muster."""
    parts = cluster("coscheduling", operators=["training-mpi"])
    with Testbed.start(**parts, nodes=Nodes(count=2, gpu=0), progress=print) as testbed:
        installed = install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=1)
        installed.wait_ready()
        yield testbed


@pytest.fixture
def flagged(pair: Testbed) -> Iterator[Testbed]:
    """The Training operator makes gangs itself until the test has ended."""
    pair.restart_part("training-mpi", extra_args=(FLAG,))
    yield pair
    pair.restart_part("training-mpi")


def _pods(scene: PairScene, job: str) -> list[Manifest]:
    """The living pods of a job, whoever bound them."""
    return [pod for pod in scene.pods() if alive(pod) and pod["metadata"]["labels"].get(JOB_NAME) == job]


def _runs(scene: PairScene, job: str, pods: int) -> None:
    def there() -> bool:
        found = _pods(scene, job)
        return len(found) == pods and all(phase(pod) == "Running" for pod in found)

    scene.wait(f"{pods} pods of {job} to run", there)


def _assert_the_operators(scene: PairScene, job: str, members: int) -> None:
    """The PodGroup is as the operator wrote it, and none of the pods was ever muster's."""
    group = scene.pod_group(job)
    assert group["spec"]["minMember"] == members
    assert MANAGED_BY not in (group["metadata"].get("labels") or {})
    assert not {ADMITTED, STATE} & set(group["metadata"].get("annotations") or {})
    scene.recorder.settle()
    history = [seen.object for seen in scene.recorder.history(PODS)]
    pods = [pod for pod in history if pod["metadata"]["labels"].get(JOB_NAME) == job]
    assert pods
    for pod in pods:
        assert gates(pod) == []
        assert (pod["spec"]["schedulerName"], pod["metadata"]["labels"][POD_GROUP]) == (SCHEDULER, job)
        assert GANG not in pod["metadata"]["labels"]


def test_the_operators_own_gangs_are_left_to_it(flagged: Testbed) -> None:
    """They run with the operator's PodGroup, and muster says so; what can never fit is refused all the same."""
    with open_pair_scene(flagged, "operators-own", kinds=(PYTORCH_JOBS,)) as scene:
        queue = scene.gang_queue(capability={"cpu": "4"})
        scene.apply(pytorch_job("own").label(QUEUE_LABEL, queue).workers(2))
        _runs(scene, "own", 3)
        assert 'bound to the PodGroup "own"' in scene.await_event("own", "External")
        _assert_the_operators(scene, "own", 3)

        lost = next(pod for pod in _pods(scene, "own") if "worker" in pod["metadata"]["name"])
        scene.delete(PODS, lost["metadata"]["name"], wait=False)
        uid = lost["metadata"]["uid"]
        scene.wait("the worker to go", lambda: all(pod["metadata"]["uid"] != uid for pod in scene.pods()))
        _runs(scene, "own", 3)
        _assert_the_operators(scene, "own", 3)

        said = scene.refused(pytorch_job("large").label(QUEUE_LABEL, queue).workers(4))
        assert f'gang "large" needs cpu 5, queue "{queue}" has capability cpu 4' in said


def test_when_the_flag_goes_the_next_gang_is_musters(flagged: Testbed) -> None:
    """The operator's own gang runs on as it is, in no queue; deleted and applied again, it is a gang of muster's."""
    with open_pair_scene(flagged, "flag-goes", kinds=(PYTORCH_JOBS,)) as scene:
        queue = scene.gang_queue(capability={"cpu": "4"})
        job = pytorch_job("job").label(QUEUE_LABEL, queue).workers(2)
        scene.apply(job)
        _runs(scene, "job", 3)
        flagged.restart_part("training-mpi")
        _runs(scene, "job", 3)
        _assert_the_operators(scene, "job", 3)
        # More than the queue holds beside the first, whose PodGroup names no queue.
        scene.apply(pytorch_job("next").label(QUEUE_LABEL, queue).workers(1))
        scene.await_running("next", 2)
        assert len(_pods(scene, "job")) == 3
        scene.delete(PYTORCH_JOBS, "next")

        scene.delete(PYTORCH_JOBS, "job")
        scene.wait("all of it to go", lambda: not scene.pods() and not scene.pod_group("job")["spec"])
        scene.apply(job)
        members = scene.await_running("job", 3)
        assert {pod["metadata"]["annotations"][GROUP_NAME] for pod in members} == {"job"}
        assert scene.pod_group("job")["metadata"]["labels"][MANAGED_BY] == "muster"


def test_without_the_flag_an_mpi_job_is_one_gang(pair: Testbed) -> None:
    """A launcher and its workers start together; another MPIJob waits whole until they are gone."""
    with open_pair_scene(pair, "mpi-v1", kinds=(MPI_JOBS,)) as scene:
        queue = scene.gang_queue(capability={"cpu": "4"})
        scene.create(_mpi_job("first", queue))
        members = scene.await_running("first", 3)
        assert {pod["spec"]["schedulerName"] for pod in members} == {SCHEDULER}
        assert scene.pod_group("first")["spec"]["minMember"] == 3
        scene.create(_mpi_job("second", queue))
        scene.await_gated("second", 3)
        scene.await_state("second", "WaitingForQuota")
        scene.delete(MPI_JOBS, "first")
        scene.await_running("second", 3)
        for gang in ("first", "second"):
            scene.assert_started_together(gang, 3)
        scene.assert_never_above({"cpu": "4"})


def _mpi_job(name: str, queue: str) -> Manifest:
    def replica(container: str, count: int) -> Manifest:
        pod = {"containers": [{"name": container, "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
        return {"replicas": count, "template": {"spec": pod}}

    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {
            "slotsPerWorker": 1,
            "mpiReplicaSpecs": {"Launcher": replica("launcher", 1), "Worker": replica("worker", 2)},
        },
    }
