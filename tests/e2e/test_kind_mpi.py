"""MPIJob with the real MPI operator: the launcher is the pod of a batch Job."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.names import GATE
from muster.model.resource import PODS
from muster.workloads.mpi import MPI_JOB
from tests.support.cases import cases
from tests.support.cluster.gang_lifecycle import goes_through_its_life
from tests.support.cluster.recorder import JOBS, Manifest
from tests.support.cluster.scene import Scene, gates, has_condition, open_scene, phase
from tests.support.manifests.applied import FAIL_AFTER_SECONDS, RUN_SECONDS

pytestmark = pytest.mark.part("operators")

_MPI_JOBS = MPI_JOB.resource
# kwok ends the pods of any Job at once, unless told otherwise.
_GOES_ON = {"annotations": {RUN_SECONDS: "3600"}}


@pytest.fixture
def mpi(added_operators: Testbed, muster: object, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene in which MPIJobs and their launchers' Jobs are on record."""
    del muster
    with open_scene(added_operators, request.node.name.removeprefix("test_"), kinds=(_MPI_JOBS, JOBS)) as scene:
        yield scene


def _mpi_job(name: str, queue: str, *, workers: int = 2, **spec: object) -> Manifest:
    def replica(container: str, count: int) -> Manifest:
        pod = {"containers": [{"name": container, "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
        return {"replicas": count, "template": {"metadata": _GOES_ON, "spec": pod}}

    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "runPolicy": {"cleanPodPolicy": "Running", "schedulingPolicy": {"queue": queue}},
            "mpiReplicaSpecs": {"Launcher": replica("launcher", 1), "Worker": replica("worker", workers)},
            **spec,
        },
    }


def _last_worker_ready(scene: Scene, gang: str) -> int:
    """The resource version from which all workers of a gang were ready."""
    ready: dict[str, int] = {}
    for seen in scene.recorder.history(PODS):
        if seen.name.startswith(f"{gang}-worker-") and has_condition(seen.object, "Ready"):
            ready.setdefault(seen.name, seen.version)
    return max(ready.values())


@cases("launcher", ("beside the workers", {}), ("a worker too", {"runLauncherAsWorker": True}))
def test_launcher_and_workers_are_one_gang(mpi: Scene, launcher: dict[str, bool]) -> None:
    queue = mpi.queue(cpu="4")
    goes_through_its_life(mpi, lambda name: _mpi_job(name, queue, **launcher), pods=3)
    assert mpi.pod_group("second")["spec"]["minTaskMember"] == {"launcher": 1, "worker": 2}


def test_a_launcher_that_waits_for_its_workers_is_never_held_and_its_room_is_kept(mpi: Scene) -> None:
    """The gang is its workers; a queue without room for the launcher, too, does not let them start."""
    queue = mpi.queue(cpu="5")

    def job(name: str) -> Manifest:
        return _mpi_job(name, queue, launcherCreationPolicy="WaitForWorkersReady")

    goes_through_its_life(mpi, job, pods=3, held=2)
    mpi.wait("both to succeed", lambda: all(has_condition(one, "Succeeded") for one in mpi.recorder.now(_MPI_JOBS)))
    group = mpi.pod_group("second")["spec"]
    assert (group["minTaskMember"], group["minResources"]) == ({"worker": 2}, {"cpu": "3"})
    launchers = [seen.object for seen in mpi.recorder.history(PODS) if "launcher" in seen.name]
    assert launchers
    for name in ("first", "second"):
        made = next(seen for seen in mpi.recorder.history(JOBS) if seen.name == f"{name}-launcher")
        assert made.version > _last_worker_ready(mpi, name), "that launcher did not wait"
    assert all(GATE not in gates(pod) and pod["spec"]["schedulerName"] == "volcano" for pod in launchers)


def test_a_launcher_that_fails_is_tried_again_in_its_place(mpi: Scene) -> None:
    """The Job makes another pod; it is opened at once, and nobody else takes the room."""
    queue = mpi.queue(cpu="3")
    mpi.apply(_mpi_job("first", queue))
    before = {pod["metadata"]["name"] for pod in mpi.await_running("first", 3)}
    mpi.apply(_mpi_job("second", queue))
    mpi.await_gated("second", 3)
    (launcher,) = (name for name in before if "launcher" in name)
    mpi.annotate(PODS, launcher, **{FAIL_AFTER_SECONDS: "0"})
    mpi.wait(
        "another launcher to run",
        lambda: any(
            pod["metadata"]["name"] not in before and phase(pod) == "Running" and "launcher" in pod["metadata"]["name"]
            for pod in mpi.pods("first")
        ),
    )
    mpi.await_gated("second", 3)
    mpi.assert_never_above({"cpu": "3"})


def test_a_suspended_job_gives_its_place_back_and_queues_again(mpi: Scene) -> None:
    queue = mpi.queue(cpu="4")
    mpi.apply(_mpi_job("first", queue))
    mpi.await_running("first", 3)
    mpi.apply(_mpi_job("second", queue))
    mpi.await_gated("second", 3)
    mpi.patch(_MPI_JOBS, "first", {"spec": {"runPolicy": {"suspend": True}}})
    mpi.await_running("second", 3)
    mpi.await_state("first", "Suspended")
    mpi.patch(_MPI_JOBS, "first", {"spec": {"runPolicy": {"suspend": False}}})
    mpi.await_gated("first", 3)
    mpi.delete(_MPI_JOBS, "second")
    mpi.await_running("first", 3)
    mpi.assert_never_above({"cpu": "4"})


def test_an_unmanaged_launcher_keeps_its_workers_from_being_held(mpi: Scene) -> None:
    """A Job stands between it and its MPIJob: new workers, alone, would wait for a launcher that runs already."""
    queue = mpi.queue(cpu="5")
    job = _mpi_job("first", queue)
    policy = job["spec"]["runPolicy"].pop("schedulingPolicy")
    mpi.apply(job)
    mpi.wait("it to run", lambda: [phase(pod) for pod in mpi.pods()] == ["Running"] * 3)
    mpi.patch(_MPI_JOBS, "first", {"spec": {"runPolicy": {"schedulingPolicy": policy}}})
    mpi.await_event("first", "NotManaged")
    launcher, *workers = sorted(mpi.pods(), key=lambda pod: "launcher" not in pod["metadata"]["name"])
    names = [pod["metadata"]["name"] for pod in workers]
    mpi.delete(PODS, *names)
    mpi.patch(_MPI_JOBS, "first", {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})
    mpi.wait("new workers, one of them more", lambda: [phase(pod) for pod in mpi.pods()] == ["Running"] * 4)
    assert launcher["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in mpi.pods()}
    mpi.recorder.settle()
    assert {GATE in gates(seen.object) for seen in mpi.recorder.history(PODS)} == {False}

    mpi.patch(_MPI_JOBS, "first", {"spec": {"runPolicy": {"suspend": True}}})
    mpi.wait("all to go", lambda: not mpi.pods())
    mpi.patch(_MPI_JOBS, "first", {"spec": {"runPolicy": {"suspend": False}}})
    mpi.await_running("first", 4)
