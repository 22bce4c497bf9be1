"""Verdicts on workloads: the exact line that a user reads."""

from __future__ import annotations

import pytest

from muster.admission import Context, Reason, Verdict, judge
from muster.queues import QueueView
from muster.workloads import KINDS, kind_of
from tests.unit.builders import JSON, amounts, made, pytorch_job, ray_cluster, template, workers

QUEUE = "metadata.labels[volcano.sh/queue-name]"
SMALL = QueueView("q", "Open", amounts(cpu="4", memory="6Gi"))


def context(*queues: QueueView, **priorities: int) -> Context:
    by_name = {queue.name: queue for queue in queues}
    return Context(queue=by_name.get, priorities={"": 0, **priorities})


def verdict(manifest: JSON, known: Context) -> Verdict:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind in KINDS
    return judge(kind, made(kind.decoded, manifest), known)


def refusal(manifest: JSON, known: Context) -> tuple[Reason, str, str]:
    (only,) = verdict(manifest, known).refusals
    return only.reason, only.field, only.message


@pytest.mark.parametrize(
    ("manifest", "known", "reason", "field", "line"),
    [
        pytest.param(
            ray_cluster(head=template("4", "2Gi")),
            context(SMALL),
            Reason.EXCEEDS_CAPABILITY,
            QUEUE,
            f'{QUEUE}: gang "ray-demo-pg" needs cpu 6, queue "q" has capability cpu 4; '
            "lower the replicas or use a larger queue",
            id="larger than the queue",
        ),
        pytest.param(
            pytorch_job(policy={"queue": "q", "minResources": {"cpu": "5", "memory": "7Gi"}}),
            context(SMALL),
            Reason.EXCEEDS_CAPABILITY,
            "spec.runPolicy.schedulingPolicy.queue",
            'spec.runPolicy.schedulingPolicy.queue: gang "train" needs cpu 5 and memory 7Gi, '
            'queue "q" has capability cpu 4 and memory 6Gi; lower the replicas or use a larger queue',
            id="minResources larger than the queue",
        ),
        pytest.param(
            ray_cluster(),
            context(),
            Reason.QUEUE_NOT_FOUND,
            QUEUE,
            f'{QUEUE}: queue "q" does not exist; name an existing queue or create it first',
            id="no such queue",
        ),
        pytest.param(
            pytorch_job(policy={"minAvailable": 3}),
            context(),
            Reason.QUEUE_NOT_FOUND,
            QUEUE,
            f'{QUEUE}: queue "default" does not exist; name an existing queue or create it first',
            id="no default queue: points to where one could be named",
        ),
        pytest.param(
            ray_cluster(),
            context(QueueView("q", "Closing", {})),
            Reason.QUEUE_CLOSED,
            QUEUE,
            f'{QUEUE}: queue "q" is Closing and takes no new work; use an open queue or have this one opened',
            id="queue being closed",
        ),
        pytest.param(
            ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "hihg"}),
            context(SMALL, high=1000),
            Reason.UNKNOWN_PRIORITY_CLASS,
            "metadata.labels[ray.io/priority-class-name]",
            'metadata.labels[ray.io/priority-class-name]: PriorityClass "hihg" does not exist; '
            "name an existing class or create it first",
            id="no such priority class",
        ),
        pytest.param(
            pytorch_job(policy={"queue": "q", "minAvailable": 7}),
            context(SMALL),
            Reason.INVALID,
            "spec.runPolicy.schedulingPolicy.minAvailable",
            "spec.runPolicy.schedulingPolicy.minAvailable: 7 is above the 3 pods that there are; "
            "lower it or raise the replicas",
            id="minAvailable above the pods",
        ),
        pytest.param(
            ray_cluster(workers(template=template("two"))),
            context(SMALL),
            Reason.INVALID,
            "spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests.cpu",
            'spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests.cpu: "two" is not a quantity '
            "such as 500m, 2 or 1.5Gi",
            id="no quantity",
        ),
    ],
)
def test_a_refusal_says_field_finding_rule_and_advice(
    manifest: JSON, known: Context, reason: Reason, field: str, line: str
) -> None:
    assert refusal(manifest, known) == (reason, field, line)
    assert not verdict(manifest, known).allowed


def test_every_reason_is_told_at_once() -> None:
    manifest = ray_cluster(labels={"volcano.sh/queue-name": "gone", "ray.io/priority-class-name": "gone"})
    assert [refusal.reason for refusal in verdict(manifest, context()).refusals] == [
        Reason.QUEUE_NOT_FOUND,
        Reason.UNKNOWN_PRIORITY_CLASS,
    ]


@pytest.mark.parametrize(
    ("manifest", "known"),
    [
        pytest.param(ray_cluster(), context(SMALL), id="fits"),
        pytest.param(ray_cluster(head=template("2", "4Gi")), context(SMALL), id="fits exactly"),
        pytest.param(ray_cluster(), context(QueueView("q", "", amounts(cpu="4"))), id="queue too new to be open"),
        pytest.param(ray_cluster(), context(QueueView("q", "Open", {})), id="queue without a limit"),
        pytest.param(ray_cluster(), context(QueueView("q", "Open", amounts(gpu="1"))), id="limit of something else"),
        pytest.param(
            ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "system-node-critical"}),
            context(SMALL),
            id="a class that Kubernetes brings along",
        ),
        pytest.param(
            ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}),
            context(SMALL, high=1),
            id="a known class",
        ),
        pytest.param(ray_cluster(head=template("400")), Context(), id="a plan without queues judges by none"),
        pytest.param(
            ray_cluster(labels={"ray.io/priority-class-name": "high"}), Context(), id="nor by classes without any"
        ),
    ],
)
def test_what_may_run_passes_without_a_word(manifest: JSON, known: Context) -> None:
    found = verdict(manifest, known)
    assert (found.allowed, found.warnings) == (True, ())
    assert found.gang is not None


def test_a_workload_that_says_nothing_is_never_looked_into() -> None:
    """Broken numbers included: they are none of muster's business."""
    manifest = ray_cluster(workers(replicas=-1, template=template("one")), labels={})
    assert verdict(manifest, context()) == Verdict()


def test_a_suspended_workload_is_judged_as_it_will_run() -> None:
    assert refusal(ray_cluster(suspend=True, head=template("4")), context(SMALL))[0] is Reason.EXCEEDS_CAPABILITY


@pytest.mark.parametrize(
    ("manifest", "warnings"),
    [
        pytest.param(
            ray_cluster(labels={"ray.io/scheduler-name": "volcanoo"}),
            (
                (
                    "metadata.labels[ray.io/scheduler-name]: muster is not configured for scheduler "
                    '"volcanoo" (volcano); it leaves this alone'
                ),
            ),
            id="a scheduler nobody knows, perhaps a slip",
        ),
        pytest.param(ray_cluster(labels={"ray.io/scheduler-name": "yunikorn"}), (), id="a well-known other scheduler"),
        pytest.param(ray_cluster(head=template(schedulerName="mine")), (), id="a template names another on purpose"),
    ],
)
def test_what_is_left_alone_is_not_judged(manifest: JSON, warnings: tuple[str, ...]) -> None:
    found = verdict(manifest, context())
    assert (found.allowed, found.gang, found.warnings) == (True, None, warnings)


def test_pods_without_requests_get_a_warning() -> None:
    found = verdict(ray_cluster(head=template("")), context(SMALL))
    assert found.allowed
    assert found.warnings == (
        'gang "ray-demo-pg": pods of headgroup request nothing, so no queue can keep room for them',
    )


def test_a_role_of_no_pods_gets_no_warning() -> None:
    assert verdict(ray_cluster(workers(replicas=0, template=template(""))), context(SMALL)).warnings == ()


def test_a_misspelt_opt_in_is_said() -> None:
    found = verdict(ray_cluster(labels={"muster.dev/managed": "yes"}), context())
    assert (found.allowed, found.warnings) == (
        True,
        ('metadata.labels[muster.dev/managed]: "yes" is neither "true" nor "false"; it is ignored',),
    )


@pytest.mark.parametrize("queue", [QueueView("q", "Open", {}, leaf=False)], ids=["has queues below it"])
def test_a_queue_that_is_no_leaf_takes_no_gang(queue: QueueView) -> None:
    assert refusal(ray_cluster(), context(queue)) == (
        Reason.QUEUE_NOT_LEAF,
        QUEUE,
        f'{QUEUE}: queue "q" has queues below it and takes no gangs itself; name one of those',
    )
