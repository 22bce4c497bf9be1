"""A PyTorchJob as the Training operator reads it."""

from __future__ import annotations

import pytest

from muster.objects import InvalidObjectError, Pod
from muster.workloads.kubeflow import PYTORCH_JOB
from tests.unit.builders import JSON, made, pytorch_job, pytorch_pod, read, template


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


@pytest.mark.parametrize(
    ("replicas", "line"),
    [
        pytest.param(
            None, "spec.pytorchReplicaSpecs: empty; a job has at least one replica type", id="no replica type"
        ),
        pytest.param(
            {"Worker": {"replicas": -1}},
            "spec.pytorchReplicaSpecs.Worker.replicas: -1 is negative; use 0 or more",
            id="negative",
        ),
    ],
)
def test_numbers_that_make_no_gang_are_refused_by_field(replicas: JSON | None, line: str) -> None:
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"] = replicas
    with pytest.raises(InvalidObjectError) as refused:
        read(job)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("manifest", "suspended", "finished"),
    [
        pytest.param(pytorch_job(), False, False, id="runs"),
        pytest.param(pytorch_job(suspend=True), True, False, id="suspended"),
        pytest.param(pytorch_job(conditions=[{"type": "Succeeded", "status": "True"}]), False, True, id="succeeded"),
        pytest.param(pytorch_job(conditions=[{"type": "Failed", "status": "True"}]), False, True, id="failed"),
        pytest.param(pytorch_job(conditions=[{"type": "Failed", "status": "False"}]), False, False, id="not failed"),
        pytest.param(pytorch_job(conditions=[{"type": "Restarting", "status": "True"}]), False, False, id="restarting"),
    ],
)
def test_where_a_job_stands(manifest: JSON, suspended: bool, finished: bool) -> None:  # noqa: FBT001
    workload = read(manifest)
    assert (workload.suspended, workload.finished) == (suspended, finished)
    assert workload.active is not (suspended or finished)


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
