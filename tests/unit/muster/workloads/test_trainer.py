"""A TrainJob and its runtime as the Trainer reads them."""

import pytest

from muster.model.findings import Reason
from muster.model.objects import InvalidObjectError
from muster.model.times import seconds_of
from muster.resources.amounts import as_text
from muster.validation.workload import Verdict
from muster.workloads import Workload
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, NAMESPACE, lines
from tests.support.manifests.train_jobs import RUNTIME, TRAINER, judged, read, runtime, step, train_job

LAUNCHER = step("launcher", "trainer")


def counts(workload: Workload) -> dict[str, int]:
    return {role.name: role.replicas for role in workload.roles}


_MPI: JSON = {"mpiImplementation": "OpenMPI"}
_AS_NODE: JSON = {**_MPI, "runLauncherAsNode": True}


@cases(
    "nodes, of, counted",
    ("one where nobody says a number", None, runtime(), {"node": 1}),
    ("the runtime's", None, runtime(mlPolicy={"numNodes": 3}), {"node": 3}),
    ("the TrainJob's before the runtime's", 2, runtime(mlPolicy={"numNodes": 3}), {"node": 2}),
    ("none is a number", 0, runtime(mlPolicy={"numNodes": 3}), {"node": 0}),
    ("a runtime's none is one", None, runtime(mlPolicy={"numNodes": 0}), {"node": 1}),
    ("a policy goes before parallelism", None, runtime(step("node", "trainer", parallelism=4)), {"node": 1}),
    ("parallelism without a policy", None, runtime(step("node", "trainer", parallelism=4), mlPolicy=None), {"node": 4}),
    ("the TrainJob's without a policy", 5, runtime(mlPolicy=None), {"node": 5}),
    (
        "a runtime without a trainer step has no nodes to count",
        3,
        runtime(step("node"), step("other", parallelism=2)),
        {"node": 1, "other": 2},
    ),
    ("of two steps the first", 3, runtime(TRAINER, step("second", "trainer")), {"node": 3, "second": 1}),
    ("MPI by name", 4, runtime(LAUNCHER, step("node"), mlPolicy={"mpi": _MPI}), {"launcher": 1, "node": 4}),
    (
        "the launcher is one of the nodes",
        4,
        runtime(LAUNCHER, step("node"), mlPolicy={"mpi": _AS_NODE}),
        {"launcher": 1, "node": 3},
    ),
    (
        "and there is always another",
        1,
        runtime(LAUNCHER, step("node"), mlPolicy={"mpi": _AS_NODE}),
        {"launcher": 1, "node": 1},
    ),
    (
        "MPI: the runtime's number is the launchers'",
        None,
        runtime(LAUNCHER, step("node", parallelism=2), mlPolicy={"numNodes": 3, "mpi": _AS_NODE}),
        {"launcher": 3, "node": 2},
    ),
)
def test_how_many_pods_the_trainer_makes(nodes: int | None, of: JSON, counted: dict[str, int]) -> None:
    job = train_job({} if nodes is None else {"numNodes": nodes})
    assert counts(read(job, of)) == counted


def test_of_a_step_there_is_one_job_and_of_others_as_many_as_the_runtime_says() -> None:
    jobs = [{**one, "replicas": 2} for one in (TRAINER, step("data", "dataset-initializer"), step("metrics"))]
    assert counts(read(train_job({"numNodes": 3}), runtime(*jobs))) == {"node": 3, "data": 1, "metrics": 2}


@cases(
    "job, of, line",
    ("negative nodes", train_job({"numNodes": -1}), runtime(), "spec.trainer.numNodes: -1 is negative; use 0 or more"),
    (
        "negative replicas in the runtime",
        train_job(),
        runtime(TRAINER, {**step("metrics"), "replicas": -2}),
        f"{RUNTIME}: spec.template.spec.replicatedJobs[1].replicas: -2 is negative; use 0 or more",
    ),
    (
        "an amount that is none",
        train_job({"resourcesPerNode": {"limits": {"memory": "much"}}}),
        runtime(),
        'spec.trainer.resourcesPerNode.limits.memory: "much" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    (
        "an empty runtime",
        train_job(),
        {**runtime(), "spec": {}},
        f"{RUNTIME}: spec.template.spec.replicatedJobs: empty; a JobSet has at least one",
    ),
    (
        "a topology that there is not",
        train_job(),
        runtime(podGroupPolicy={"volcano": {"networkTopology": {"mode": "firm"}}}),
        f'{RUNTIME}: spec.podGroupPolicy.volcano.networkTopology.mode: "firm" is not a mode; use hard or soft',
    ),
)
def test_what_makes_no_gang_is_refused_by_field(job: JSON, of: JSON, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        read(job, of)
    assert str(refused.value) == line


@cases(
    "ref, line",
    (
        "another kind",
        {"kind": "Deployment", "name": "x"},
        (
            'spec.runtimeRef: "Deployment" of "trainer.kubeflow.org" is no runtime; '
            "use TrainingRuntime or ClusterTrainingRuntime of trainer.kubeflow.org"
        ),
    ),
    ("no name", {}, "spec.runtimeRef.name: missing; name the runtime that the TrainJob runs in"),
)
def test_a_reference_to_no_runtime_is_invalid(ref: JSON, line: str) -> None:
    refusals = judged(train_job(runtimeRef=ref), runtime()).refusals
    assert [(one.reason, one.message) for one in refusals] == [(Reason.INVALID, line)]


@cases(
    "ref, what",
    ("of the cluster", {"name": "torch"}, 'ClusterTrainingRuntime "torch" is not known'),
    (
        "of the namespace",
        {"kind": "TrainingRuntime", "name": "torch"},
        f'TrainingRuntime "torch" is not known in namespace "{NAMESPACE}"',
    ),
)
def test_without_its_runtime_a_train_job_is_refused_with_what_to_do(ref: JSON, what: str) -> None:
    refusals = judged(train_job(runtimeRef=ref)).refusals
    assert [(one.reason, one.field) for one in refusals] == [
        (Reason.TRAINING_RUNTIME_NOT_FOUND, "spec.runtimeRef.name")
    ]
    assert refusals[0].message == (
        f"spec.runtimeRef.name: {what}: the pods cannot be counted; create it first "
        "(for muster plan: add its manifest to the input, or use --cluster)"
    )


def test_a_fault_within_the_runtime_is_refused_with_the_whole_of_its_path() -> None:
    (refusal,) = judged(train_job(), runtime(step("node"), step("node"))).refusals
    assert refusal.field == f"{RUNTIME}: spec.template.spec.replicatedJobs[1].name"
    assert refusal.message.startswith(f'{refusal.field}: "node" is taken;')


def test_a_train_job_that_is_being_deleted_needs_no_runtime_any_more() -> None:
    job = train_job()
    job["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert judged(job) == Verdict()


def test_a_runtime_of_another_namespace_is_not_its_own() -> None:
    of = runtime(kind="TrainingRuntime")
    of["metadata"]["namespace"] = "elsewhere"
    job = train_job(runtimeRef={"kind": "TrainingRuntime", "name": "torch"})
    assert [one.reason for one in judged(job, of).refusals] == [Reason.TRAINING_RUNTIME_NOT_FOUND]


def test_a_train_job_that_says_nothing_is_only_warned_about_a_missing_runtime_which_might() -> None:
    verdict = judged(train_job(labels={}))
    assert verdict.allowed
    assert verdict.intent is None
    assert "is not known" in "".join(lines(verdict.warnings))
    assert not judged(train_job(labels={"muster.dev/managed": "false"})).warnings
    assert not judged(train_job(labels={}), runtime()).warnings


_TUNE = (
    step("data", "dataset-initializer"),
    step("model", "model-initializer"),
    {**TRAINER, "dependsOn": [{"name": "data", "status": "Complete"}, {"name": "model", "status": "Complete"}]},
)


def test_only_the_first_wave_must_exist_before_the_gang_starts() -> None:
    """As in the shipped torchtune runtimes: the nodes come when the initializers are through."""
    gang = judged(train_job({"numNodes": 3}), runtime(*_TUNE)).gang
    assert gang is not None
    assert gang.min_task_member == {"data": 1, "model": 1}
    assert (gang.min_member, as_text(gang.min_resources)) == (2, {"cpu": "2"})
    assert {role.name: role.replicas for role in gang.roles} == {"data": 1, "model": 1, "node": 3}


_TWO_CONTAINERS: JSON = {
    "spec": {
        "containers": [
            {"name": "node", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}},
            {"name": "proxy", "resources": {"requests": {"cpu": "250m"}}},
        ]
    }
}


@cases(
    "per_node, asked",
    ("the runtime's", None, {"cpu": "1250m", "memory": "1Gi"}),
    ("an empty one says nothing", {}, {"cpu": "1250m", "memory": "1Gi"}),
    ("for the node container", {"requests": {"cpu": "4"}}, {"cpu": "4250m", "memory": "1Gi"}),
    ("what both say alike", {"requests": {"cpu": "500m"}}, {"cpu": "750m", "memory": "1Gi"}),
    ("a request for a limit", {"requests": {"memory": "2Gi"}}, {"cpu": "1250m", "memory": "2Gi"}),
    (
        "limits stand for requests",
        {"limits": {"nvidia.com/gpu": 2}},
        {"cpu": "1250m", "memory": "1Gi", "nvidia.com/gpu": "2"},
    ),
    ("a limit for a request", {"limits": {"cpu": "6"}}, {"cpu": "6250m", "memory": "1Gi"}),
    ("merged: empty limits change nothing", {"limits": {}}, {"cpu": "1250m", "memory": "1Gi"}),
)
def test_resources_per_node_are_the_larger_of_merged_and_replaced(per_node: JSON | None, asked: dict[str, str]) -> None:
    job = train_job({} if per_node is None else {"resourcesPerNode": per_node})
    gang = judged(job, runtime(step("node", "trainer", pod=_TWO_CONTAINERS))).gang
    assert gang is not None
    assert as_text(gang.min_resources) == asked


def test_an_amount_of_the_runtime_that_is_none_is_refused_where_it_stands() -> None:
    pod = {"spec": {"containers": [{"name": "node", "resources": {"requests": {"cpu": "much"}}}]}}
    refusals = judged(
        train_job({"resourcesPerNode": {"requests": {"cpu": "4"}}}), runtime(step("node", "trainer", pod=pod))
    ).refusals
    path = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.requests.cpu"
    assert [one.field for one in refusals] == [f"{RUNTIME}: {path}"]


def test_flux_is_installed_before_the_nodes_start() -> None:
    """By a container that asks for nothing itself, but for what a LimitRange has each ask for."""
    of = runtime(TRAINER, step("other"), mlPolicy={"flux": {}})
    counted = {role.name: len(role.template.spec.init_containers) for role in read(train_job(), of).roles}
    assert counted == {"node": 1, "other": 0}


@cases(
    "policy, cpus",
    ("launcher as node: both", {"mpi": _AS_NODE}, {"launcher": "8", "node": "8"}),
    ("else the trainer step only", {"mpi": _MPI}, {"launcher": "8", "node": "1"}),
)
def test_resources_per_node_under_mpi(policy: JSON, cpus: dict[str, str]) -> None:
    job = train_job({"resourcesPerNode": {"requests": {"cpu": "8"}}})
    gang = judged(job, runtime(LAUNCHER, step("node"), mlPolicy=policy)).gang
    assert gang is not None
    assert {role.name: str(role.requests["cpu"]) for role in gang.roles} == cpus


@cases(
    "job, suspended, finished",
    ("runs", train_job(), False, False),
    ("suspended", train_job(suspend=True), True, False),
    ("complete", train_job(status={"conditions": [{"type": "Complete", "status": "True"}]}), False, True),
    ("failed", train_job(status={"conditions": [{"type": "Failed", "status": "True"}]}), False, True),
    ("not failed", train_job(status={"conditions": [{"type": "Failed", "status": "False"}]}), False, False),
)
def test_where_a_train_job_stands(job: JSON, suspended: bool, finished: bool) -> None:
    of = runtime()
    of["spec"]["template"]["spec"]["suspend"] = not suspended  # the TrainJob's counts
    workload = read(job, of)
    assert (workload.suspended, workload.finished) == (suspended, finished)


@cases(
    "seconds, suspended, ends",
    ("from its creation on", 600, None, "2026-11-21T10:10:00Z"),
    ("resumed: from then on", 600, "False", "2026-11-21T11:10:00Z"),
    ("resumed a moment ago: the Trainer has not seen it", 600, "True", "2026-11-21T10:10:00Z"),
    ("none is no limit", 0, None, None),
    ("no limit", None, None, None),
)
def test_when_the_trainer_gives_a_train_job_up(seconds: int | None, suspended: str | None, ends: str | None) -> None:
    condition = {"type": "Suspended", "status": suspended, "lastTransitionTime": "2026-11-21T11:00:00Z"}
    job = train_job(status={"conditions": [condition] if suspended else []}, activeDeadlineSeconds=seconds)
    job["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    deadline = read(job, runtime()).deadline
    assert (deadline.ends if deadline else None) == (seconds_of(ends) if ends else None)


def test_a_suspended_train_job_has_no_clock_but_a_limit() -> None:
    job = train_job(suspend=True, activeDeadlineSeconds=600)
    job["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    (limit,) = read(job, runtime()).time_limits
    assert (limit.path, limit.text, limit.since) == ("spec.activeDeadlineSeconds", "600 s", None)


def test_the_time_limit_of_a_train_job_runs_while_it_waits() -> None:
    (warning,) = judged(train_job(activeDeadlineSeconds=600), runtime()).warnings
    assert (warning.reason, warning.field) == (Reason.TIME_LIMIT_WHILE_WAITING, "spec.activeDeadlineSeconds")
