"""A PyTorchJob as the Training operator reads it."""

from dataclasses import replace

import pytest

from muster.model.findings import Reason
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.resources.amounts import as_text
from muster.workloads.kubeflow import PYTORCH_JOB
from muster.workloads.model import TimeLimit
from tests.support.cases import cases
from tests.support.manifests.families import TRAINING, Family, each_of, judged
from tests.support.manifests.observed import JSON, QUEUE_LABELS, lines, made, pytorch_job, pytorch_pod, read, template


def test_a_missing_number_of_replicas_is_one() -> None:
    """The operator defaults it, the CRD does not."""
    workload = read(pytorch_job(replicas={"Master": {"template": template()}, "Worker": {"replicas": None}}))
    assert [(role.name, role.replicas) for role in workload.roles] == [("master", 1), ("worker", 1)]


def test_the_master_stands_first_and_leads_in_whatever_order_and_case_it_was_written() -> None:
    written = {"Worker": {"replicas": 2}, "MASTER": {"replicas": 1}, "Evaluator": {"replicas": 1}}
    assert [(role.name, role.leads) for role in read(pytorch_job(replicas=written)).roles] == [
        ("master", True),
        ("evaluator", False),
        ("worker", False),
    ]


@cases(
    "replicas, line",
    ("no replica type", None, "spec.pytorchReplicaSpecs: empty; a job has at least one replica type"),
    (
        "negative",
        {"Worker": {"replicas": -1}},
        "spec.pytorchReplicaSpecs.Worker.replicas: -1 is negative; use 0 or more",
    ),
    (
        "one type twice",
        {"Worker": {"replicas": 2}, "worker": {"replicas": 3}},
        "spec.pytorchReplicaSpecs.worker: there twice, in other letters; a replica type is named once",
    ),
)
def test_numbers_that_make_no_gang_are_refused_by_field(replicas: JSON | None, line: str) -> None:
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"] = replicas
    with pytest.raises(InvalidObjectError) as refused:
        read(job)
    assert str(refused.value) == line


@cases(
    "manifest, suspended, finished",
    ("runs", pytorch_job(), False, False),
    ("suspended", pytorch_job(suspend=True), True, False),
    ("succeeded", pytorch_job(conditions=[{"type": "Succeeded", "status": "True"}]), False, True),
    ("failed", pytorch_job(conditions=[{"type": "Failed", "status": "True"}]), False, True),
    ("not failed", pytorch_job(conditions=[{"type": "Failed", "status": "False"}]), False, False),
    ("restarting", pytorch_job(conditions=[{"type": "Restarting", "status": "True"}]), False, False),
)
def test_where_a_job_stands(manifest: JSON, suspended: bool, finished: bool) -> None:
    workload = read(manifest)
    assert (workload.suspended, workload.finished) == (suspended, finished)
    assert workload.active is not (suspended or finished)


@cases(
    "policy, line",
    ("none", {"minAvailable": 0}, "minAvailable: 0 is below 1; a gang starts with at least one pod"),
    ("negative", {"minAvailable": -3}, "minAvailable: -3 is below 1; a gang starts with at least one pod"),
    (
        "more than all",
        {"minAvailable": 4},
        "minAvailable: 4 is above the 3 pods that there are; lower it or raise the replicas",
    ),
    (
        "minResources that are no quantity",
        {"minResources": {"cpu": "two"}},
        'minResources.cpu: "two" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    (
        "negative minResources",
        {"minResources": {"memory": "-1Gi"}},
        'minResources.memory: "-1Gi" is negative; a resource is 0 or more',
    ),
    (
        "negative timeout",
        {"scheduleTimeoutSeconds": -1},
        "scheduleTimeoutSeconds: -1 is negative; use 0 or more seconds",
    ),
)
@each_of(*TRAINING, "MPIJob")
def test_a_policy_that_makes_no_gang_is_refused_by_field(family: Family, policy: JSON, line: str) -> None:
    """In every kind that has a schedulingPolicy, the MPI operator's too."""
    manifest = family.manifest()
    manifest["spec"]["runPolicy"] = {"schedulingPolicy": policy}
    (only,) = judged(manifest).refusals
    assert only.message == f"spec.runPolicy.schedulingPolicy.{line}"


@each_of(*TRAINING, "MPIJob")
def test_min_resources_of_the_user_are_the_gangs_in_every_kind(family: Family) -> None:
    manifest = family.manifest()
    manifest["spec"]["runPolicy"] = {"schedulingPolicy": {"minResources": {"cpu": 7, "example.com/fpga": "2"}}}
    gang = judged(manifest).gang
    assert gang is not None
    assert as_text(gang.min_resources) == {"cpu": "7", "example.com/fpga": "2"}


WAITS_FOR_ALL = (
    "spec.elasticPolicy.minReplicas: 1 workers are enough for the job, but its gang waits for all 3; "
    "set spec.runPolicy.schedulingPolicy.minAvailable to start with fewer pods"
)


def elastic(least: int | None, most: int | None, *, policy: JSON | None = None) -> JSON:
    job = pytorch_job(policy=policy, labels=QUEUE_LABELS, replicas={"Worker": {"replicas": 3, "template": template()}})
    job["spec"]["elasticPolicy"] = {"minReplicas": least, "maxReplicas": most}
    return job


@cases(
    "manifest, member, warnings",
    ("all that there are now, and a word about it", elastic(1, 5), 3, [WAITS_FOR_ALL]),
    ("the least it can have", elastic(3, 5), 3, []),
    ("no minimum: the operator takes the maximum", elastic(None, 5), 3, []),
    ("the user decided", elastic(1, 5, policy={"minAvailable": 1}), 1, []),
)
def test_an_elastic_job_waits_for_all_unless_told_otherwise(manifest: JSON, member: int, warnings: list[str]) -> None:
    """The operator counts so, too; its autoscaler changes the replicas, and minMember follows."""
    verdict = judged(manifest)
    assert verdict.gang is not None
    assert (verdict.gang.min_member, list(lines(verdict.warnings))) == (member, warnings)


@cases(
    "manifest, line",
    ("negative minimum", elastic(-1, 5), "minReplicas: -1 is negative; a number of workers is 0 or more"),
    ("negative maximum", elastic(0, -5), "maxReplicas: -5 is negative; a number of workers is 0 or more"),
    (
        "minimum above maximum",
        elastic(6, 5),
        "minReplicas: 6 is above maxReplicas 5; raise maxReplicas or lower minReplicas",
    ),
)
def test_bounds_that_no_elastic_job_can_have_are_refused_by_field(manifest: JSON, line: str) -> None:
    (only,) = judged(manifest).refusals
    assert only.message == f"spec.elasticPolicy.{line}"


@each_of(*(kind for kind in TRAINING if kind != "JAXJob"))
def test_what_a_pod_asks_for_as_a_whole_is_dropped_and_the_user_told(family: Family) -> None:
    """The operator's CRDs do not know the field: a plan counts what will be in the cluster."""
    verdict = judged(family.manifest(second=template(resources={"requests": {"cpu": "8"}})))
    assert verdict.gang is not None
    assert as_text(verdict.gang.roles[1].requests)["cpu"] == "1"
    line = (
        f"{family.paths[1]}.resources: the CRDs of the Training operator do not have pod-level `resources`, so that "
        "the apiserver drops them; set the requests of the containers"
    )
    assert lines(verdict.warnings) == (line,)


@each_of("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob")
def test_a_job_of_no_pods_is_said_to_start_nothing(family: Family) -> None:
    manifest = family.manifest()
    (specs,) = manifest["spec"].values()
    for spec in specs.values():
        spec["replicas"] = 0
    verdict = judged(manifest)
    assert verdict.gang is not None
    assert (verdict.gang.min_member, verdict.gang.min_resources) == (1, {})
    assert lines(verdict.warnings) == ('spec: gang "demo" has no pods; nothing starts until its replicas are raised',)


def mpi_v1(workers: int | None) -> JSON:
    specs = {"Launcher": {"template": template("10m", "1Mi")}, "Worker": {"replicas": workers, "template": template()}}
    return pytorch_job(labels=QUEUE_LABELS) | {"kind": "MPIJob", "spec": {"mpiReplicaSpecs": specs}}


@pytest.mark.parametrize(("workers", "member"), [(None, 1), (0, 1), (2, 3)])
def test_an_mpi_job_of_the_training_operator_has_no_workers_unless_told(workers: int | None, member: int) -> None:
    gang = judged(mpi_v1(workers)).gang
    assert gang is not None
    assert gang.min_member == member


@cases(
    "types, line",
    ("none", {"Worker": {"replicas": 2}}, "spec.mpiReplicaSpecs.Launcher: missing; an MPIJob has one launcher"),
    (
        "two",
        {"Launcher": {"replicas": 2}, "Worker": {"replicas": 2}},
        "spec.mpiReplicaSpecs.Launcher.replicas: 2 is not 1; an MPIJob has one launcher",
    ),
    (
        "a type in other letters",
        {"Launcher": {"replicas": 1}, "worker": {"replicas": 2}},
        "spec.mpiReplicaSpecs.worker: unknown; an MPIJob has a Launcher and Workers",
    ),
)
def test_an_mpi_job_that_the_training_operator_leaves_alone_is_refused(types: JSON, line: str) -> None:
    """It has no webhook for this kind, and says what is wrong in an event: the gang would wait for ever."""
    manifest = mpi_v1(1)
    manifest["spec"]["mpiReplicaSpecs"] = {name: {**spec, "template": template()} for name, spec in types.items()}
    assert lines(judged(manifest).refusals) == (line,)


def test_what_the_operator_adds_to_an_mpi_launcher_counts() -> None:
    gang = judged(mpi_v1(1)).gang
    assert gang is not None
    assert as_text(gang.roles[0].requests) == {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}


@cases("roles, cpu", ("with a master", ("Master", "Worker"), "50m"), ("without", ("Worker",), "10m"))
def test_pytorch_workers_wait_for_a_master_in_an_init_container(roles: tuple[str, ...], cpu: str) -> None:
    specs = {role: {"replicas": 1, "template": template("10m", "20Mi")} for role in roles}
    gang = judged(pytorch_job(labels=QUEUE_LABELS, replicas=specs)).gang
    assert gang is not None
    assert as_text(gang.roles[-1].requests) == {"cpu": cpu, "memory": "20Mi"}


def test_the_pod_group_is_named_as_the_job() -> None:
    assert read(pytorch_job(name="train")).pod_group == "train"


def test_the_policy_is_read_whole() -> None:
    given = {
        "queue": "q",
        "priorityClass": "high",
        "minAvailable": 2,
        "minResources": {"cpu": "2"},
        "scheduleTimeoutSeconds": 60,
    }
    policy = read(pytorch_job(policy=given)).policy
    assert (policy.queue, policy.priority_class, policy.min_available) == ("q", "high", 2)
    assert (policy.min_resources, policy.schedule_timeout_seconds) == ({"cpu": "2"}, 60)


def test_a_pods_role_is_its_replica_type() -> None:
    assert PYTORCH_JOB.role_of(made(Pod, pytorch_pod("train-worker-0", "worker"))) == "worker"


def test_pods_of_a_plan_carry_the_operators_labels() -> None:
    workload = read(pytorch_job())
    labels = PYTORCH_JOB.pod_labels(workload, workload.roles[0])
    assert labels["training.kubeflow.org/operator-name"] == "pytorchjob-controller"
    assert labels["training.kubeflow.org/job-name"] == "train"
    assert labels["training.kubeflow.org/replica-type"] == "master"


BEGAN = "2026-11-21T10:00:00Z"
RESUMED = [{"type": "Suspended", "status": "True"}]


@cases(
    "job, ends",
    ("from its startTime on", pytorch_job(activeDeadlineSeconds=600, start_time=BEGAN), "2026-11-21T10:10:00Z"),
    ("no limit", pytorch_job(start_time=BEGAN), None),
    ("the clock has not begun", pytorch_job(activeDeadlineSeconds=600), None),
    (
        "resumed a moment ago: it begins anew",
        pytorch_job(activeDeadlineSeconds=600, start_time=BEGAN, conditions=RESUMED),
        None,
    ),
)
def test_when_the_operator_gives_a_job_up(job: JSON, ends: str | None) -> None:
    deadline = read(job).deadline
    assert (deadline.ends if deadline else None) == (seconds_of(ends) if ends else None)


@cases("seconds, before", ("the last tenth", 3600, 360), ("a minute at least", 60, 60))
def test_from_when_on_the_end_is_near(seconds: int, before: int) -> None:
    deadline = read(pytorch_job(activeDeadlineSeconds=seconds, start_time=BEGAN)).deadline
    assert deadline is not None
    assert deadline.ends is not None
    assert deadline.near == deadline.ends - before


def test_of_several_limits_the_one_that_ends_first_counts() -> None:
    limits = (TimeLimit("later", "", since=0.0, seconds=100), TimeLimit("sooner", "", since=50.0, seconds=10))
    workload = replace(read(pytorch_job()), time_limits=(*limits, TimeLimit("not begun", "", seconds=1)))
    assert workload.deadline == limits[1]


@pytest.mark.parametrize(
    ("type_", "rest"),
    [
        ("Wroker", '"Wroker" is no replica type of a PyTorchJob (Master, Worker); did you mean Worker?'),
        ("Workers", '"Workers" is no replica type of a PyTorchJob (Master, Worker); did you mean Worker?'),
        ("PS", '"PS" is no replica type of a PyTorchJob (Master, Worker)'),
    ],
)
def test_a_replica_type_that_the_kind_does_not_have_is_told(type_: str, rest: str) -> None:
    manifest = pytorch_job(policy={"queue": "q"}, replicas={type_: {"replicas": 1, "template": template()}})
    (warning,) = judged(manifest).warnings
    assert (warning.reason, warning.message) == (Reason.MISSPELLED, f"spec.pytorchReplicaSpecs.{type_}: {rest}")


def test_of_many_unknown_replica_types_three_are_told() -> None:
    """To compare each of thousands of words would take as long as everything else."""
    one = {"replicas": 1, "template": template()}
    manifest = pytorch_job(policy={"queue": "q"}, replicas={f"R{number}": one for number in range(9)})
    assert [found.reason for found in judged(manifest).warnings] == [Reason.MISSPELLED] * 3


@pytest.mark.parametrize("type_", ["worker", "WORKER", "Worker"])
def test_the_letters_of_a_replica_type_do_not_matter(type_: str) -> None:
    manifest = pytorch_job(policy={"queue": "q"}, replicas={type_: {"replicas": 1, "template": template()}})
    assert judged(manifest).warnings == ()
