"""An MPIJob as the MPI operator reads it."""

from muster.model.findings import Reason
from muster.model.pods import Pod
from muster.resources.amounts import as_text
from muster.workloads.mpi import MPI_JOB
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, QUEUE_LABELS, made, pod, pytorch_job, read, template

LAUNCHER = {"template": template("500m", "1Gi")}


def mpi_job(
    *, launcher: JSON | None = LAUNCHER, worker: JSON | None = None, policy: JSON | None = None, **spec: object
) -> JSON:
    """A launcher of half a cpu and, unless said otherwise, two workers of 1 cpu; `launcher` None leaves it out."""
    specs: JSON = {} if launcher is None else {"Launcher": launcher}
    specs["Worker"] = {"replicas": 2, "template": template()} if worker is None else worker
    job = pytorch_job(name="pi", policy=policy, labels=QUEUE_LABELS)
    run = job["spec"]["runPolicy"]
    return job | {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "spec": {"runPolicy": run, "mpiReplicaSpecs": specs, **spec},
    }


def without_workers(job: JSON) -> JSON:
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    return job


WAITING: JSON = {"launcherCreationPolicy": "WaitForWorkersReady"}


@cases(
    "manifest, member, minimums, cpu",
    ("at startup", mpi_job(), 3, {"launcher": 1, "worker": 2}, "2500m"),
    ("one launcher", mpi_job(launcher={**LAUNCHER, "replicas": 1}), 3, {"launcher": 1, "worker": 2}, "2500m"),
    ("launcher works", mpi_job(runLauncherAsWorker=True), 3, {"launcher": 1, "worker": 2}, "2500m"),
    ("no worker", without_workers(mpi_job()), 1, {"launcher": 1}, "500m"),
    ("launcher works alone", without_workers(mpi_job(runLauncherAsWorker=True)), 1, {"launcher": 1}, "500m"),
    ("waiting: room for the launcher, no place", mpi_job(**WAITING), 2, {"worker": 2}, "2500m"),
    ("any other word waits as well", mpi_job(launcherCreationPolicy="Whenever"), 2, {"worker": 2}, "2500m"),
    ("no word", mpi_job(launcherCreationPolicy=""), 3, {"launcher": 1, "worker": 2}, "2500m"),
    ("waiting, a part", mpi_job(**WAITING, policy={"minAvailable": 1}), 1, {"worker": 1}, "1500m"),
    ("waiting for nobody", without_workers(mpi_job(**WAITING)), 1, {"launcher": 1}, "500m"),
)
def test_who_counts(manifest: JSON, member: int, minimums: dict[str, int], cpu: str) -> None:
    gang = judged(manifest).gang
    assert gang is not None
    assert (gang.min_member, gang.min_task_member) == (member, minimums)
    assert as_text(gang.min_resources)["cpu"] == cpu


@cases(
    "manifest, warned",
    ("a part of the workers", mpi_job(**WAITING, policy={"minAvailable": 1}), True),
    ("all workers", mpi_job(**WAITING, policy={"minAvailable": 2}), False),
    ("a launcher that waits for nobody", mpi_job(policy={"minAvailable": 1}), False),
)
def test_a_part_of_the_workers_never_gets_the_launcher_that_waits_for_all(manifest: JSON, warned: bool) -> None:
    told = [one for one in judged(manifest).warnings if one.reason is Reason.MIN_AVAILABLE_TOO_LOW]
    assert bool(told) is warned
    if told:
        assert "1 pod starts the gang, but the job cannot work with fewer than 2" in told[0].message


@cases(
    "manifest, gated",
    ("at startup", mpi_job(), True),
    ("made when the workers are ready", mpi_job(**WAITING), False),
    ("waiting for nobody: made at once", without_workers(mpi_job(**WAITING)), True),
)
def test_a_launcher_is_held_unless_the_workers_come_first(manifest: JSON, gated: bool) -> None:
    launcher = read(manifest).role("launcher")
    assert launcher is not None
    assert launcher.gated is gated


_NOTHING = "the MPI operator makes nothing of such a job: name a number of workers, or leave out Worker"


@cases(
    "manifest, line",
    ("nothing", mpi_job() | {"spec": {}}, "spec.mpiReplicaSpecs: empty; a job has at least one replica type"),
    ("no launcher", mpi_job(launcher=None), "spec.mpiReplicaSpecs.Launcher: missing; an MPIJob has one launcher"),
    (
        "two launchers",
        mpi_job(launcher={**LAUNCHER, "replicas": 2}),
        "spec.mpiReplicaSpecs.Launcher.replicas: 2 is not 1; an MPIJob has one launcher",
    ),
    (
        "no replica of the launcher",
        mpi_job(launcher={**LAUNCHER, "replicas": 0}),
        "spec.mpiReplicaSpecs.Launcher.replicas: 0 is not 1; an MPIJob has one launcher",
    ),
    (
        "workers without a number",
        mpi_job(worker={"template": template()}),
        f"spec.mpiReplicaSpecs.Worker.replicas: missing; {_NOTHING}",
    ),
    (
        "no workers",
        mpi_job(worker={"replicas": 0, "template": template()}),
        f"spec.mpiReplicaSpecs.Worker.replicas: 0 is below 1; {_NOTHING}",
    ),
    (
        "negative workers",
        mpi_job(worker={"replicas": -1, "template": template()}),
        "spec.mpiReplicaSpecs.Worker.replicas: -1 is negative; use 0 or more",
    ),
    (
        "a slip",
        mpi_job(mpiReplicaSpecs={"Launcher": LAUNCHER, "Wroker": {"replicas": 1, "template": template()}}),
        "spec.mpiReplicaSpecs.Wroker: unknown; an MPIJob has a Launcher and Workers",
    ),
    (
        "minAvailable that needs a launcher which comes later",
        mpi_job(**WAITING, policy={"minAvailable": 3}),
        (
            "spec.runPolicy.schedulingPolicy.minAvailable: 3 is above the 2 pods that there are; "
            "lower it or raise the replicas"
        ),
    ),
)
def test_what_the_operator_makes_nothing_of_is_refused_by_field(manifest: JSON, line: str) -> None:
    (only,) = judged(manifest).refusals
    assert only.message == line


@cases(
    "manifest, suspended, finished",
    ("runs", mpi_job(), False, False),
    ("suspended", mpi_job(runPolicy={"suspend": True}), True, False),
    ("succeeded", mpi_job() | {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}, False, True),
    (
        "only a condition says so",
        mpi_job() | {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
        False,
        False,
    ),
)
def test_where_a_job_stands(manifest: JSON, suspended: bool, finished: bool) -> None:
    workload = read(manifest)
    assert (workload.suspended, workload.finished) == (suspended, finished)


def test_a_pods_role_is_its_job_role() -> None:
    labels = MPI_JOB.pod_labels(read(mpi_job()), read(mpi_job()).roles[0])
    assert labels["training.kubeflow.org/operator-name"] == "mpi-operator"
    assert MPI_JOB.role_of(made(Pod, pod("pi-launcher-x", labels=labels))) == "launcher"
    assert MPI_JOB.role_of(made(Pod, pod("other"))) is None
