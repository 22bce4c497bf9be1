"""Verdicts on workloads: the exact line that a user reads."""

from muster.model.findings import Reason
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.validation.context import Context
from muster.validation.workload import Verdict, judge, no_way_in
from muster.workloads import KINDS, kind_of
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import (
    ASK,
    JSON,
    NO_QUEUE,
    amounts,
    lines,
    made,
    pytorch_job,
    ray_cluster,
    template,
    workers,
)

QUEUE = "metadata.labels[volcano.sh/queue-name]"
_NOW = "2026-11-21T10:00:00Z"
SMALL = QueueView("q", "Open", amounts(cpu="4", memory="6Gi"))


def context(*queues: QueueView, **priorities: int) -> Context:
    return Context(queue=QueueTree(queues).place, priorities={"": 0, **priorities})


def verdict(manifest: JSON, known: Context) -> Verdict:
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind in KINDS
    return judge(kind, made(kind.decoded, manifest), known)


def refusal(manifest: JSON, known: Context) -> tuple[Reason, str, str]:
    (only,) = verdict(manifest, known).refusals
    return only.reason, only.field, only.message


@cases(
    "manifest, known, reason, field, line",
    (
        "larger than the queue",
        ray_cluster(head=template("4", "2Gi")),
        context(SMALL),
        Reason.EXCEEDS_CAPABILITY,
        QUEUE,
        (
            f'{QUEUE}: gang "ray-demo-pg" needs cpu 6, queue "q" has capability cpu 4; '
            "lower the replicas or use a larger queue"
        ),
    ),
    (
        "minResources larger than the queue",
        pytorch_job(policy={"queue": "q", "minResources": {"cpu": "5", "memory": "7Gi"}}),
        context(SMALL),
        Reason.EXCEEDS_CAPABILITY,
        "spec.runPolicy.schedulingPolicy.queue",
        (
            'spec.runPolicy.schedulingPolicy.queue: gang "train" needs cpu 5 and memory 7Gi, '
            'queue "q" has capability cpu 4 and memory 6Gi; lower the replicas or use a larger queue'
        ),
    ),
    (
        "pods larger than the queue, and minResources that are not",
        pytorch_job(
            policy={"queue": "q", "minResources": {"cpu": "1"}},
            replicas={"Worker": {"replicas": 5, "template": template()}},
        ),
        context(SMALL),
        Reason.EXCEEDS_CAPABILITY,
        "spec.runPolicy.schedulingPolicy.queue",
        (
            'spec.runPolicy.schedulingPolicy.queue: gang "train" needs cpu 5, queue "q" has capability cpu 4; '
            "lower the replicas or use a larger queue"
        ),
    ),
    (
        "a class of the cluster's own",
        ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "system-node-critical"}),
        context(SMALL),
        Reason.INVALID,
        "metadata.labels[ray.io/priority-class-name]",
        (
            'metadata.labels[ray.io/priority-class-name]: PriorityClass "system-node-critical" is for the cluster\'s '
            "own pods; name another class"
        ),
    ),
    (
        "no such queue",
        ray_cluster(),
        context(),
        Reason.QUEUE_NOT_FOUND,
        QUEUE,
        f"{QUEUE}: {NO_QUEUE}{ASK}",
    ),
    (
        "no default queue: points to where one could be named",
        pytorch_job(policy={"minAvailable": 3}),
        context(),
        Reason.QUEUE_NOT_FOUND,
        QUEUE,
        f"{QUEUE}: {NO_QUEUE}{ASK}".replace('"q"', '"default"'),
    ),
    (
        "queue being closed",
        ray_cluster(),
        context(QueueView("q", "Closing", {})),
        Reason.QUEUE_CLOSED,
        QUEUE,
        f'{QUEUE}: queue "q" is Closing and takes no new work; use an open queue or have this one opened',
    ),
    (
        "no such priority class",
        ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "hihg"}),
        context(SMALL, high=1000),
        Reason.UNKNOWN_PRIORITY_CLASS,
        "metadata.labels[ray.io/priority-class-name]",
        (
            'metadata.labels[ray.io/priority-class-name]: PriorityClass "hihg" does not exist (did you mean "high"?); '
            "name an existing class or create it first"
        ),
    ),
    (
        "minAvailable above the pods",
        pytorch_job(policy={"queue": "q", "minAvailable": 7}),
        context(SMALL),
        Reason.INVALID,
        "spec.runPolicy.schedulingPolicy.minAvailable",
        (
            "spec.runPolicy.schedulingPolicy.minAvailable: 7 is above the 3 pods that there are; "
            "lower it or raise the replicas"
        ),
    ),
    (
        "no quantity",
        ray_cluster(workers(template=template("two"))),
        context(SMALL),
        Reason.INVALID,
        "spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests.cpu",
        (
            'spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests.cpu: "two" is not a quantity '
            "such as 500m, 2 or 1.5Gi"
        ),
    ),
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


def test_what_makes_no_gang_is_told_of_its_names_too() -> None:
    """Nobody has to come back for the second half."""
    job = pytorch_job(policy={"queue": "gone", "minAvailable": 7, "priorityClass": "gone"})
    assert [one.reason for one in verdict(job, context(SMALL)).refusals] == [
        Reason.INVALID,
        Reason.QUEUE_NOT_FOUND,
        Reason.UNKNOWN_PRIORITY_CLASS,
    ]


@cases(
    "manifest, known",
    ("fits", ray_cluster(), context(SMALL)),
    ("fits exactly", ray_cluster(head=template("2", "4Gi")), context(SMALL)),
    ("queue too new to be open", ray_cluster(), context(QueueView("q", "", amounts(cpu="4")))),
    ("queue without a limit", ray_cluster(), context(QueueView("q", "Open", {}))),
    ("limit of something else", ray_cluster(), context(QueueView("q", "Open", amounts(gpu="1")))),
    (
        "a class that Kubernetes brings along, on a pod",
        ray_cluster(head=template(priorityClassName="system-node-critical")),
        context(SMALL),
    ),
    (
        "a known class",
        ray_cluster(labels={"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "high"}),
        context(SMALL, high=1),
    ),
    ("a plan without queues judges by none", ray_cluster(head=template("400")), Context()),
    ("nor by classes without any", ray_cluster(labels={"ray.io/priority-class-name": "high"}), Context()),
)
def test_what_may_run_passes_without_a_word(manifest: JSON, known: Context) -> None:
    found = verdict(manifest, known)
    assert (found.allowed, found.warnings) == (True, ())
    assert found.gang is not None


def test_a_workload_that_says_nothing_is_never_looked_into() -> None:
    """Broken numbers included: they are none of muster's business."""
    manifest = ray_cluster(workers(replicas=-1, template=template("one")), labels={})
    assert verdict(manifest, context()) == Verdict()


@cases(
    "manifest",
    ("finished", pytorch_job(policy={"queue": "q"}, conditions=[{"type": "Succeeded", "status": "True"}])),
    ("being deleted", ray_cluster(meta={"deletionTimestamp": _NOW})),
)
def test_what_starts_nothing_any_more_is_not_refused(manifest: JSON) -> None:
    found = verdict(manifest, context())
    assert (found.allowed, found.warnings) == (True, ())
    assert found.gang is not None


@cases(
    "manifest",
    ("being deleted", ray_cluster(workers(replicas=-1), meta={"deletionTimestamp": _NOW})),
    ("finished", pytorch_job(policy={"minAvailable": 99}, conditions=[{"type": "Failed", "status": "True"}])),
)
def test_not_even_what_makes_no_gang_is_refused_when_it_starts_nothing_any_more(manifest: JSON) -> None:
    """Its finalizers must come off, whatever its numbers are."""
    assert verdict(manifest, context()) == Verdict()


@cases("known", ("of unknown queues", Context()), ("of known queues", context(SMALL)))
def test_a_name_that_no_queue_can_have_is_refused_where_it_stands(known: Context) -> None:
    """The apiserver would refuse every pod with such a label."""
    path = "spec.runPolicy.schedulingPolicy.queue"
    assert refusal(pytorch_job(policy={"queue": "Team A"}), known) == (
        Reason.INVALID,
        path,
        f'{path}: "Team A" is not a valid queue name; use at most 253 lower-case letters, digits, - and .',
    )


_OF_A_NAMESPACE = "a NamespaceQueue of Volcano 1.16 is none of muster's queues: name a Queue"
_AS_NAMES_ARE = "use at most 253 lower-case letters, digits, - and ."


@cases(
    "name, cure",
    ("likely a NamespaceQueue", "team/research", _OF_A_NAMESPACE),
    ("no namespace", "/research", _AS_NAMES_ARE),
    ("no name", "team/", _AS_NAMES_ARE),
    ("two of them", "a/b/c", _AS_NAMES_ARE),
)
def test_the_name_of_a_queue_of_a_namespace_is_known_for_one(name: str, cure: str) -> None:
    path = "spec.runPolicy.schedulingPolicy.queue"
    message = f'{path}: "{name}" is not a valid queue name; {cure}'
    assert refusal(pytorch_job(policy={"queue": name}), context(SMALL)) == (Reason.INVALID, path, message)


def test_a_pod_group_in_a_queue_of_a_namespace_is_refused_with_the_same_advice() -> None:
    found = no_way_in("spec.queue", "team/research", "team", None)
    assert found is not None
    assert found.message.endswith(f"; {_OF_A_NAMESPACE}")


def test_a_name_that_no_priority_class_can_have_is_refused_where_it_stands() -> None:
    path = "spec.runPolicy.schedulingPolicy.priorityClass"
    assert refusal(pytorch_job(policy={"priorityClass": "High!"}), Context())[:2] == (Reason.INVALID, path)


def test_a_suspended_workload_is_judged_as_it_will_run() -> None:
    assert refusal(ray_cluster(suspend=True, head=template("4")), context(SMALL))[0] is Reason.EXCEEDS_CAPABILITY


@cases(
    "manifest, warnings",
    (
        "a scheduler nobody knows, perhaps a slip",
        ray_cluster(labels={"ray.io/scheduler-name": "volcanoo"}),
        (
            (
                "metadata.labels[ray.io/scheduler-name]: muster is not configured for scheduler "
                '"volcanoo" (volcano); it leaves this alone'
            ),
        ),
    ),
    ("a well-known other scheduler", ray_cluster(labels={"ray.io/scheduler-name": "yunikorn"}), ()),
    ("a template names another on purpose", ray_cluster(head=template(schedulerName="mine")), ()),
)
def test_what_is_left_alone_is_not_judged(manifest: JSON, warnings: tuple[str, ...]) -> None:
    found = verdict(manifest, context())
    assert (found.allowed, found.gang, lines(found.warnings)) == (True, None, warnings)


def test_pods_without_requests_get_a_warning() -> None:
    found = verdict(ray_cluster(head=template("")), context(SMALL))
    assert found.allowed
    (warning,) = found.warnings
    assert (warning.reason, warning.field) == (
        Reason.REQUESTS_MISSING,
        "spec.headGroupSpec.template.spec.containers",
    )
    assert warning.message == (
        f"{warning.field}: the pods of role headgroup request nothing, so that no queue keeps room for them; "
        "give their containers requests"
    )


def test_a_role_of_no_pods_gets_no_warning() -> None:
    assert verdict(ray_cluster(workers(replicas=0, template=template(""))), context(SMALL)).warnings == ()


def test_a_misspelt_opt_in_is_said() -> None:
    found = verdict(ray_cluster(labels={"muster.dev/managed": "yes"}), context())
    assert (found.allowed, lines(found.warnings)) == (
        True,
        ('metadata.labels[muster.dev/managed]: "yes" is neither "true" nor "false"; it is ignored',),
    )


def test_a_misspelt_opt_out_is_said_where_something_else_speaks() -> None:
    found = verdict(ray_cluster(labels={"volcano.sh/queue-name": "q", "muster.dev/managed": "False"}), context(SMALL))
    assert [(one.reason, one.field) for one in found.warnings] == [
        (Reason.VALUE_IGNORED, "metadata.labels[muster.dev/managed]")
    ]


def test_a_queue_that_is_no_leaf_takes_no_gang() -> None:
    below = QueueView("r", "Open", {}, parent="q")
    assert refusal(ray_cluster(), context(QueueView("q", "Open", {}), below)) == (
        Reason.QUEUE_NOT_LEAF,
        QUEUE,
        f'{QUEUE}: queue "q" has queues below it and takes no gangs itself; name one of those',
    )


def test_what_a_queue_above_can_never_hold_is_refused_with_its_numbers() -> None:
    known = context(QueueView("q", "Open", {}, parent="team"), QueueView("team", "Open", amounts(cpu="2")))
    assert refusal(ray_cluster(), known) == (
        Reason.EXCEEDS_CAPABILITY,
        QUEUE,
        (
            f'{QUEUE}: gang "ray-demo-pg" needs cpu 3, queue "team" above "q" has capability cpu 2; '
            "lower the replicas or use a larger queue"
        ),
    )


def ray_parent(kind: str, field: str, **spec: object) -> JSON:
    """A RayJob or RayService that asks for a queue."""
    cluster = ray_cluster()
    return {**cluster, "kind": kind, "spec": {field: cluster["spec"], **spec}}


COUNTED = (
    "are counted while the gang waits for room, too; when they are over, the workload fails, whether it has run or not"
)
POLICY = "spec.runPolicy"


@cases(
    "manifest, warning",
    (
        "PyTorchJob",
        pytorch_job(policy={"queue": "q"}, activeDeadlineSeconds=600),
        f"{POLICY}.activeDeadlineSeconds: 600 s {COUNTED}",
    ),
    (
        "RayJob",
        ray_parent("RayJob", "rayClusterSpec", activeDeadlineSeconds=600),
        f"spec.activeDeadlineSeconds: 600 s {COUNTED}",
    ),
    (
        "RayJob until it runs",
        ray_parent("RayJob", "rayClusterSpec", preRunningDeadlineSeconds=60),
        f"spec.preRunningDeadlineSeconds: 60 s {COUNTED}",
    ),
    (
        "RayService",
        ray_parent("RayService", "rayClusterConfig", upgradeStrategy={"type": "None"})
        | {"metadata": {**ray_cluster()["metadata"], "annotations": {"ray.io/initializing-timeout": "5m"}}},
        f"metadata.annotations[ray.io/initializing-timeout]: 5m {COUNTED}",
    ),
    (
        "scheduleTimeoutSeconds",
        pytorch_job(policy={"queue": "q", "scheduleTimeoutSeconds": 60}),
        (
            f"{POLICY}.schedulingPolicy.scheduleTimeoutSeconds: volcano does not know it; "
            "the gang waits for as long as it must"
        ),
    ),
    (
        "requeue-after",
        ray_cluster(annotations={"muster.dev/requeue-after": "soon"}),
        (
            'metadata.annotations[muster.dev/requeue-after]: "soon" is not a duration such as 30s, 10m or 1h30m; '
            "it is ignored"
        ),
    ),
)
def test_what_may_end_or_surprise_a_gang_that_waits_is_warned_of(manifest: JSON, warning: str) -> None:
    found = verdict(manifest, context(SMALL))
    assert (found.allowed, lines(found.warnings)) == (True, (warning,))


@cases(
    "kind, name, words",
    ("as long as may be", "RayCluster", "r" * 53, ""),
    ("a longer one", "RayCluster", "r" * 54, "at most 53 lower-case letters"),
    ("no DNS label", "RayCluster", "a.b", "at most 53 lower-case letters"),
    ("a digit first", "RayCluster", "1a", "at most 53 lower-case letters"),
    ("of a job, whose cluster has six more", "RayJob", "r" * 47, ""),
    ("a longer job", "RayJob", "r" * 48, "at most 47 lower-case letters"),
    ("a longer service", "RayService", "r" * 48, "at most 47 lower-case letters"),
    ("a longer job to come", "RayCronJob", "r" * 42, "at most 41 lower-case letters"),
)
def test_a_name_with_which_kuberay_makes_no_pods_is_refused(kind: str, name: str, words: str) -> None:
    """Its gang would wait for ever, in line for room that it never needs (KubeRay 1.6.2, validation.go)."""
    cluster = ray_cluster()["spec"]
    specs = {
        "RayCluster": cluster,
        "RayService": {"rayClusterConfig": cluster},
        "RayCronJob": {"jobTemplate": {"rayClusterSpec": cluster}},
    }
    metadata = {**ray_cluster()["metadata"], "name": name}
    spec = specs.get(kind, {"rayClusterSpec": cluster})
    manifest = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    found = judged(manifest, context(SMALL)).refusals
    assert [(one.reason, one.field) for one in found] == [(Reason.INVALID, "metadata.name")] * bool(words)
    assert all(words in one.message for one in found)
