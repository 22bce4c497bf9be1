"""Volcano's own Job, as its webhook defaults and checks it and its controller counts it."""

import pytest

from muster.gangs.intent import Defaults
from muster.gangs.roles import Gang
from muster.model.pods import Pod
from muster.model.topology import Topology
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import as_text
from muster.schedulers import named
from muster.validation.context import Context
from muster.workloads.volcano_job import VOLCANO_JOB
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, NAMESPACE, amounts, lines, made, pod, read, template


def task(name: str, replicas: int | None = 2, cpu: str = "1", priority: str = "", **fields: object) -> JSON:
    """A task of two pods."""
    counted = {} if replicas is None else {"replicas": replicas}
    return {"name": name, **counted, "template": template(cpu, priorityClassName=priority), **fields}


def job(*tasks: JSON, labels: JSON | None = None, annotations: JSON | None = None, **spec: object) -> JSON:
    """A Job of these tasks, or of one of two pods."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": NAMESPACE, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"tasks": list(tasks or (task("a"),)), **spec},
    }


def gang(manifest: JSON) -> Gang:
    found = judged(manifest, Context(priorities={"": 0, "high": 10})).gang
    assert found is not None
    return found


@cases(
    "manifest, minimums, cpu",
    ("all replicas", job(task("a"), task("b", 3)), {"a": 2, "b": 3}, "5"),
    ("no number is none", job(task("a", None), task("b")), {"b": 2}, "2"),
    ("no replica", job(task("a", 0), task("b")), {"b": 2}, "2"),
    ("a task's minAvailable", job(task("a", 5, minAvailable=1), task("b")), {"a": 1, "b": 2}, "3"),
    ("a task that may stay out", job(task("a", 5, minAvailable=0), task("b")), {"b": 2}, "2"),
    (
        "partitions",
        job(task("a", 6, partitionPolicy={"minPartitions": 2, "partitionSize": 2, "totalPartitions": 3})),
        {"a": 4},
        "4",
    ),
    (
        "minAvailable before partitions",
        job(task("a", 6, minAvailable=3, partitionPolicy={"minPartitions": 2, "partitionSize": 2})),
        {"a": 3},
        "3",
    ),
    ("minAvailable not said", job(task("a"), task("b", 3), minAvailable=0), {"a": 2, "b": 3}, "5"),
    (
        "fewer than the tasks' own: the first",
        job(task("a", 2, "4"), task("b", 3), minAvailable=3),
        {"a": 2, "b": 1},
        "9",
    ),
    (
        "fewer than the tasks' own: the urgent first",
        job(task("a", 2, "4"), task("b", 3, priority="high"), minAvailable=4),
        {"a": 1, "b": 3},
        "7",
    ),
    (
        "more than the tasks' own: filled up",
        job(task("a", 5, "4", minAvailable=1), task("b", 5, minAvailable=1), minAvailable=4),
        {"a": 3, "b": 1},
        "13",
    ),
)
def test_who_counts(manifest: JSON, minimums: dict[str, int], cpu: str) -> None:
    found = gang(manifest)
    assert found.min_task_member == minimums
    assert found.min_member == sum(minimums.values())
    assert as_text(found.min_resources)["cpu"] == cpu


@cases(
    "manifest, line",
    ("no task", {**job(), "spec": {}}, "spec.tasks: empty; a Job has at least one task"),
    ("negative", job(task("a"), task("b", -1)), "spec.tasks[1].replicas: -1 is negative; use 0 or more"),
    (
        "negative minimum of a task",
        job(task("a", minAvailable=-1)),
        "spec.tasks[0].minAvailable: -1 pods are fewer than none; use 0 or more",
    ),
    (
        "a task's minimum above its replicas",
        job(task("a", minAvailable=3)),
        "spec.tasks[0].minAvailable: 3 pods are more than the 2 of the task; lower it or raise its replicas",
    ),
    (
        "partitions above its replicas",
        job(task("a", partitionPolicy={"minPartitions": 3, "partitionSize": 2})),
        (
            "spec.tasks[0].partitionPolicy.minPartitions: 6 pods are more than the 2 of the task; "
            "lower it or raise its replicas"
        ),
    ),
    ("a name twice", job(task("a"), task("a")), 'spec.tasks[1].name: "a" is taken; task names differ'),
    (
        "a name that Volcano gives",
        job(task("default1"), task("")),
        'spec.tasks[1].name: "default1" is taken; task names differ',
    ),
    ("below 0", job(minAvailable=-1), "spec.minAvailable: -1 is below 1; a gang starts with at least one pod"),
    (
        "above all",
        job(minAvailable=3),
        "spec.minAvailable: 3 is above the 2 pods that there are; lower it or raise the replicas",
    ),
    (
        "no mode",
        job(networkTopology={"mode": "tight"}),
        'spec.networkTopology.mode: "tight" is not a mode; use hard or soft',
    ),
    (
        "negative tier",
        job(networkTopology={"highestTierAllowed": -1}),
        "spec.networkTopology.highestTierAllowed: -1 is negative; use 0 or more",
    ),
)
def test_numbers_and_names_that_make_no_gang_are_refused_by_field(manifest: JSON, line: str) -> None:
    (only,) = judged(manifest).refusals
    assert only.message == line


def test_only_its_own_fields_speak() -> None:
    """Volcano reads no labels on it, and an annotation on pods only."""
    labels = {
        "volcano.sh/queue-name": "other",
        "ray.io/priority-class-name": "other",
        "ray.io/scheduler-name": "other",
        "volcano.sh/network-topology-mode": "soft",
    }
    verdict = judged(
        job(
            labels=labels,
            annotations={"scheduling.volcano.sh/queue-name": "other"},
            queue="q",
            priorityClassName="high",
            networkTopology={"highestTierAllowed": 2},
        )
    )
    intent = verdict.intent
    assert intent is not None
    assert (intent.scheduler, intent.queue, intent.priority_class) == ("volcano", "q", "high")
    assert intent.paths == {
        "queue": "spec.queue",
        "scheduler": "spec.schedulerName",
        "priorityClassName": "spec.priorityClassName",
    }
    assert intent.topology == Topology("hard", 2)


def test_a_priority_class_of_a_task_orders_the_tasks_and_is_not_the_jobs() -> None:
    intent = judged(job(task("a", priority="high"))).intent
    assert intent is not None
    assert intent.priority_class == ""


def test_volcanos_own_defaults_hold_whatever_the_installations_are() -> None:
    """Nobody but Volcano makes its pods."""
    defaults = Defaults("ours", named("coscheduling", "volcano"))
    intent = judged(job(), Context(defaults=defaults)).intent
    assert intent is not None
    assert (intent.scheduler, intent.queue) == ("volcano", "default")


@cases(
    "manifest",
    ("for all", job(schedulerName="my-volcano")),
    ("in a template", job({**task("a"), "template": template(schedulerName="mine")})),
    ("taken out", job(labels={"muster.dev/managed": "false"})),
)
def test_a_job_for_another_scheduler_is_left_alone(manifest: JSON) -> None:
    verdict = judged(manifest)
    assert (verdict.allowed, verdict.intent, verdict.gang) == (True, None, None)


def test_a_job_larger_than_its_queue_is_refused() -> None:
    small = Context(queue=QueueTree([QueueView("q", "Open", amounts(cpu="1"))]).place)
    (only,) = judged(job(queue="q"), small).refusals
    assert only.message == (
        'spec.queue: gang "job-xxxxx" needs cpu 2, queue "q" has capability cpu 1; '
        "lower the replicas or use a larger queue"
    )


@pytest.mark.parametrize(
    ("phase", "suspended", "finished"),
    [
        ("", False, False),
        ("Pending", False, False),
        ("Running", False, False),
        ("Restarting", False, False),
        ("Aborting", True, False),
        ("Aborted", True, False),
        ("Completed", False, True),
        ("Failed", False, True),
        ("Terminated", False, True),
    ],
)
def test_where_a_job_stands(phase: str, suspended: bool, finished: bool) -> None:
    workload = read(job() | {"status": {"state": {"phase": phase}}})
    assert (workload.suspended, workload.finished) == (suspended, finished)


def test_a_job_of_no_pods_is_said_to_start_nothing() -> None:
    assert lines(judged(job(task("a", 0))).warnings) == (
        'spec: gang "job-xxxxx" has no pods; nothing starts until its replicas are raised',
    )


def test_its_pods_are_never_touched() -> None:
    assert not VOLCANO_JOB.owns_gang
    assert VOLCANO_JOB.role_of(made(Pod, pod("job-a-0", labels={"volcano.sh/job-name": "job"}))) is None
