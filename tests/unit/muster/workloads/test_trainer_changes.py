"""What a TrainJob changes of its runtime: runtimePatches, and before Trainer 2.2 podTemplateOverrides."""

from collections.abc import Callable

import pytest

from muster.workloads import Workload
from muster.workloads.jobset import JobSet
from muster.workloads.trainer import TRAIN_JOB, TrainingRuntime, TrainJob
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, made, template
from tests.support.manifests.train_jobs import judged, patch, read, runtime, step, train_job

EXCLUSIVE = {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}}
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def override(names: list[str], pod: JSON) -> JSON:
    return {"podTemplateOverrides": [{"targetJobs": [{"name": name} for name in names], **pod}]}


def patches(names: list[str], pod: JSON) -> JSON:
    return {"runtimePatches": [patch(*({"name": name, "template": {"spec": {"template": pod}}} for name in names))]}


both = pytest.mark.parametrize("changing", [override, patches], ids=["podTemplateOverrides", "runtimePatches"])


@both
def test_the_metadata_and_gates_of_pods_are_changed(changing: Callable[[list[str], JSON], JSON]) -> None:
    pod = {**template(schedulingGates=[{"name": "a"}]), "metadata": {"labels": {"x": "1"}, "annotations": {"y": "1"}}}
    change = {
        "metadata": {"labels": {"x": "2"}, "annotations": {"z": "1"}},
        "spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
    }
    jobs = [step(name, pod=pod) for name in ("node", "other")]
    roles = read(train_job(**changing(["node"], change)), runtime(*jobs)).roles
    node, other = (role.template for role in roles)
    assert (node.metadata.labels, node.metadata.annotations) == ({"x": "2"}, {"y": "1", "z": "1"})
    assert [gate.name for gate in node.spec.scheduling_gates] == ["a", "b"]
    assert (other.metadata.labels, other.metadata.annotations) == ({"x": "1"}, {"y": "1"})
    assert [gate.name for gate in other.spec.scheduling_gates] == ["a"]


@both
@cases(
    "targets, changed",
    ("each of several", ["node", "other"], ["node", "other"]),
    ("one", ["other"], ["other"]),
    ("one that there is not", ["gone"], []),
    ("none", [], []),
)
def test_all_jobs_that_are_named_are_changed_and_no_others(
    changing: Callable[[list[str], JSON], JSON], targets: list[str], changed: list[str]
) -> None:
    change = changing(targets, {"metadata": {"labels": {"x": "1"}}})
    roles = read(train_job(**change), runtime(step("node"), step("other"))).roles
    assert [role.name for role in roles if "x" in role.template.metadata.labels] == changed


def test_patches_are_merged_in_their_order() -> None:
    one, two = (
        patch(step("node", pod={"metadata": {"labels": labels}, "spec": {"schedulingGates": [{"name": gate}]}}))
        for labels, gate in (({"x": "1", "y": "1"}, "a"), ({"x": "2"}, "b"))
    )
    (role,) = read(train_job(runtimePatches=[one, {"manager": "example.com/empty"}, two]), runtime()).roles
    assert role.template.metadata.labels == {"x": "2", "y": "1"}
    assert [gate.name for gate in role.template.spec.scheduling_gates] == ["a", "b"]


def test_a_patch_gives_no_container_resources() -> None:
    """The Trainer's ContainerPatch has none, and its pods no priority class and no scheduler."""
    of = runtime(step("node", "trainer", pod=template("2")))
    change = patch(step("node", pod=template("9", schedulerName="x", priorityClassName="y")))
    before, after = (read(job, of).roles for job in (train_job(), train_job(runtimePatches=[change])))
    assert before == after


def test_a_job_that_a_patch_makes_a_step_of_the_trainer_has_its_nodes() -> None:
    change = patch({"name": "node", "template": {"metadata": {"labels": {_STEP: "trainer"}}}})
    (role,) = read(train_job({"numNodes": 3}, runtimePatches=[change]), runtime(step("node"))).roles
    assert role.replicas == 3


@cases(
    "change",
    ("of the JobSet", patch(meta=EXCLUSIVE)),
    ("of a Job", patch({"name": "node", "template": {"metadata": EXCLUSIVE}})),
    ("of its pods", patch(step("node", pod={"metadata": EXCLUSIVE}))),
)
def test_exclusive_placement_that_a_patch_asks_for(change: JSON) -> None:
    gang = judged(train_job({"numNodes": 4}, runtimePatches=[change]), runtime()).gang
    assert gang is not None
    assert (gang.min_member, gang.roles[0].replicas) == (1, 4)


def as_made(job: JSON, of: JSON, meta: JSON, *jobs: JSON) -> Workload:
    """The TrainJob when the Trainer has made its JobSet."""
    origin = TRAIN_JOB.origin
    assert origin is not None
    job_set = made(JobSet, {"metadata": {"name": "train", **meta}, "spec": {"replicatedJobs": list(jobs)}})
    return TRAIN_JOB.read(origin.as_made(origin.joined(made(TrainJob, job), made(TrainingRuntime, of)), job_set))


def test_a_jobset_that_is_there_counts_whatever_became_of_the_runtime() -> None:
    four = step("node", "trainer", parallelism=4)
    for of in (runtime(mlPolicy={"numNodes": 9}), runtime(step("node"), step("node")), runtime(meta=EXCLUSIVE)):
        assert as_made(train_job(), of, {}, four).roles[0].minimum == 4
    assert as_made(train_job(), runtime(), EXCLUSIVE, four).roles[0].minimum == 1
