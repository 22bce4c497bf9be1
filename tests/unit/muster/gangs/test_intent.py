"""What the user asked for: which saying wins, and where it was said."""

import pytest

from muster.gangs.intent import Defaults, Intent, IntentScope, find_intent, foreign_scheduler, is_managed
from muster.model.objects import ObjectMeta
from muster.schedulers import named
from tests.support.cases import cases
from tests.support.manifests.observed import DEFAULTS, JSON, pytorch_job, ray_cluster, read, template, workers

SCHEDULER = "ray.io/scheduler-name"
QUEUE = "volcano.sh/queue-name"
PRIORITY = "ray.io/priority-class-name"
ANNOTATION = "scheduling.volcano.sh/queue-name"
MANAGED = "muster.dev/managed"
POLICY = "spec.runPolicy.schedulingPolicy"


def intent(manifest: JSON, defaults: Defaults = DEFAULTS) -> Intent:
    found = find_intent(read(manifest), defaults)
    assert found is not None
    return found


@cases(
    "manifest, muster_s",
    ("nothing said", ray_cluster(labels={}), False),
    ("other labels", ray_cluster(labels={"team": "a"}), False),
    ("an empty queue says nothing", ray_cluster(labels={QUEUE: ""}), False),
    ("scheduler label", ray_cluster(labels={SCHEDULER: "volcano"}), True),
    ("queue label", ray_cluster(labels={QUEUE: "q"}), True),
    ("priority label", ray_cluster(labels={PRIORITY: "high"}), True),
    ("annotation", ray_cluster(labels={}, annotations={ANNOTATION: "q"}), True),
    ("empty annotation", ray_cluster(labels={}, annotations={ANNOTATION: ""}), False),
    ("opted in", ray_cluster(labels={MANAGED: "true"}), True),
    ("opted out wins", ray_cluster(labels={MANAGED: "false", QUEUE: "q"}), False),
    ("neither true nor false says nothing", ray_cluster(labels={MANAGED: "maybe"}), False),
    ("and hinders nothing", ray_cluster(labels={MANAGED: "maybe", QUEUE: "q"}), True),
    ("job without a policy", pytorch_job(), False),
    ("job with an empty policy", pytorch_job(policy={}), False),
    ("job with minAvailable alone", pytorch_job(policy={"minAvailable": 2}), True),
    ("job opted out", pytorch_job(policy={"minAvailable": 2}, labels={MANAGED: "false"}), False),
    ("a job may carry the labels too", pytorch_job(labels={QUEUE: "q"}), True),
    ("a template alone says nothing", ray_cluster(labels={}, head=template(schedulerName="volcano")), False),
)
def test_whose_workload_it_is(manifest: JSON, muster_s: bool) -> None:
    workload = read(manifest)
    assert is_managed(workload.metadata, workload.policy) is muster_s
    assert (find_intent(workload, DEFAULTS) is not None) is muster_s


@cases(
    "manifest, queue, said",
    ("label", ray_cluster(labels={QUEUE: "a"}), "a", f"metadata.labels[{QUEUE}]"),
    (
        "label before policy and annotation",
        pytorch_job(labels={QUEUE: "a"}, policy={"queue": "b"}, annotations={ANNOTATION: "c"}),
        "a",
        f"metadata.labels[{QUEUE}]",
    ),
    (
        "policy before annotation",
        pytorch_job(policy={"queue": "b"}, annotations={ANNOTATION: "c"}),
        "b",
        f"{POLICY}.queue",
    ),
    (
        "annotation",
        pytorch_job(policy={"minAvailable": 1}, annotations={ANNOTATION: "c"}),
        "c",
        f"metadata.annotations[{ANNOTATION}]",
    ),
    ("default, said nowhere", ray_cluster(labels={MANAGED: "true"}), "default", None),
    ("empty label passes on", pytorch_job(labels={QUEUE: ""}, policy={"queue": "b"}), "b", f"{POLICY}.queue"),
)
def test_the_queue_is_the_first_that_is_said(manifest: JSON, queue: str, said: str | None) -> None:
    found = intent(manifest)
    assert (found.queue, found.paths.get("queue")) == (queue, said)


@cases(
    "manifest, priority, said, for_pods",
    (
        "label before policy",
        pytorch_job(labels={PRIORITY: "a"}, policy={"priorityClass": "b"}),
        "a",
        f"metadata.labels[{PRIORITY}]",
        True,
    ),
    (
        "policy before templates",
        pytorch_job(policy={"priorityClass": "b"}, replicas={"Master": {"template": template(priorityClassName="c")}}),
        "b",
        f"{POLICY}.priorityClass",
        True,
    ),
    (
        "the master's template before the workers'",
        pytorch_job(
            policy={"queue": "q"},
            replicas={
                "Worker": {"template": template(priorityClassName="w")},
                "Master": {"template": template(priorityClassName="m")},
            },
        ),
        "m",
        "spec.pytorchReplicaSpecs.Master.template.spec.priorityClassName",
        False,
    ),
    (
        "a worker's template when the master's names none",
        pytorch_job(
            policy={"queue": "q"},
            replicas={"Worker": {"template": template(priorityClassName="w")}, "Master": {}},
        ),
        "w",
        "spec.pytorchReplicaSpecs.Worker.template.spec.priorityClassName",
        False,
    ),
    ("nobody", ray_cluster(), "", None, False),
)
def test_the_priority_is_the_first_that_is_said(
    manifest: JSON, priority: str, said: str | None, for_pods: bool
) -> None:
    """Only what was said for the workload as a whole is put on pods; templates speak for themselves."""
    found = intent(manifest)
    assert (found.priority_class, found.paths.get("priorityClassName")) == (priority, said)
    assert found.prioritise_pods is for_pods


URGENT = template(priorityClassName="system-node-critical")


@cases(
    "manifest",
    ("no pods", ray_cluster(workers(), workers("idle", 0, template=URGENT))),
    ("suspended", ray_cluster(workers(), workers("idle", suspend=True, template=URGENT))),
    (
        "an autoscaler may do without",
        ray_cluster(workers(), workers("idle", 1, template=URGENT), enableInTreeAutoscaling=True),
    ),
)
def test_a_class_of_pods_that_the_gang_can_do_without_is_not_the_gangs(manifest: JSON) -> None:
    """No pod may ever get it: it would put the gang first, and no quota of the class would have seen a pod."""
    assert intent(manifest).priority_class == ""


BOTH = Defaults(schedulers=named("volcano", "coscheduling=coscheduling"))


@cases(
    "manifest, scheduler, said",
    (
        "label before template",
        ray_cluster(labels={SCHEDULER: "coscheduling"}, head=template(schedulerName="volcano")),
        "coscheduling",
        f"metadata.labels[{SCHEDULER}]",
    ),
    (
        "template before default",
        ray_cluster(head=template(schedulerName="coscheduling")),
        "coscheduling",
        "spec.headGroupSpec.template.spec.schedulerName",
    ),
    ("default", ray_cluster(), "volcano", None),
    (
        "the apiserver's own name for none says nothing",
        ray_cluster(head=template(schedulerName="default-scheduler")),
        "volcano",
        None,
    ),
)
def test_the_scheduler_is_the_first_that_is_said(manifest: JSON, scheduler: str, said: str | None) -> None:
    found = intent(manifest, BOTH)
    assert (found.scheduler, found.paths.get("scheduler")) == (scheduler, said)


@cases(
    "manifest, where",
    ("label", ray_cluster(labels={SCHEDULER: "yunikorn", QUEUE: "q"}), (f"metadata.labels[{SCHEDULER}]", "yunikorn")),
    (
        "template",
        pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"template": template(schedulerName="mine")}}),
        ("spec.pytorchReplicaSpecs.Worker.template.spec.schedulerName", "mine"),
    ),
    (
        "template, although the label names ours",
        ray_cluster(labels={SCHEDULER: "volcano"}, head=template(schedulerName="mine")),
        ("spec.headGroupSpec.template.spec.schedulerName", "mine"),
    ),
)
def test_a_scheduler_that_is_not_ours_means_hands_off(manifest: JSON, where: tuple[str, str]) -> None:
    workload = read(manifest)
    assert foreign_scheduler(workload, DEFAULTS) == where
    assert find_intent(workload, DEFAULTS) is None


def test_defaults_are_the_installations() -> None:
    found = intent(ray_cluster(labels={MANAGED: "true"}), Defaults(queue="shared"))
    assert (found.scheduler, found.queue, found.priority_class) == ("volcano", "shared", "")


@pytest.mark.parametrize("managed", ["true", "required"])
def test_in_a_namespace_that_is_not_selected_nothing_is_ours(managed: str) -> None:
    """Whatever is written on the workload or on the namespace."""
    workload = read(ray_cluster())
    namespace = ObjectMeta(name="team", labels={MANAGED: managed})
    for unselected, ours in ((False, True), (True, False)):
        scope = IntentScope(namespace=namespace, unselected=unselected)
        assert is_managed(workload.metadata, workload.policy, scope) is ours
        assert (find_intent(workload, DEFAULTS, scope) is not None) is ours


@cases(
    "manifest, scheduler",
    ("the namespace's", ray_cluster(), "coscheduling"),
    ("the workload's own before it", ray_cluster(labels={SCHEDULER: "volcano"}), "volcano"),
    ("a template's before it", ray_cluster(head=template(schedulerName="volcano")), "volcano"),
)
def test_a_namespace_names_the_scheduler_of_workloads_that_name_none(manifest: JSON, scheduler: str) -> None:
    scope = IntentScope(namespace=ObjectMeta(name="team", annotations={"muster.dev/scheduler": "coscheduling"}))
    found = find_intent(read(manifest), BOTH, scope)
    assert found is not None
    assert (found.scheduler, found.gang_scheduler.name) == (scheduler, scheduler)


def test_a_namespace_that_names_a_scheduler_of_others_is_left_alone() -> None:
    scope = IntentScope(namespace=ObjectMeta(name="team", annotations={"muster.dev/scheduler": "yunikorn"}))
    assert find_intent(read(ray_cluster()), BOTH, scope) is None
    assert foreign_scheduler(read(ray_cluster()), BOTH, scope) == (
        "namespace team: metadata.annotations[muster.dev/scheduler]",
        "yunikorn",
    )
