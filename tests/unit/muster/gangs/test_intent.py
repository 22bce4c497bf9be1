"""What the user asked for: which saying wins, and where it was said."""

import pytest

from muster.gangs.intent import Defaults, Intent, IntentScope, find_intent, foreign_scheduler, is_managed
from muster.model.objects import ObjectMeta
from muster.schedulers import named
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


@pytest.mark.parametrize(
    ("manifest", "muster_s"),
    [
        pytest.param(ray_cluster(labels={}), False, id="nothing said"),
        pytest.param(ray_cluster(labels={"team": "a"}), False, id="other labels"),
        pytest.param(ray_cluster(labels={QUEUE: ""}), False, id="an empty queue says nothing"),
        pytest.param(ray_cluster(labels={SCHEDULER: "volcano"}), True, id="scheduler label"),
        pytest.param(ray_cluster(labels={QUEUE: "q"}), True, id="queue label"),
        pytest.param(ray_cluster(labels={PRIORITY: "high"}), True, id="priority label"),
        pytest.param(ray_cluster(labels={}, annotations={ANNOTATION: "q"}), True, id="annotation"),
        pytest.param(ray_cluster(labels={}, annotations={ANNOTATION: ""}), False, id="empty annotation"),
        pytest.param(ray_cluster(labels={MANAGED: "true"}), True, id="opted in"),
        pytest.param(ray_cluster(labels={MANAGED: "false", QUEUE: "q"}), False, id="opted out wins"),
        pytest.param(ray_cluster(labels={MANAGED: "maybe"}), False, id="neither true nor false says nothing"),
        pytest.param(ray_cluster(labels={MANAGED: "maybe", QUEUE: "q"}), True, id="and hinders nothing"),
        pytest.param(pytorch_job(), False, id="job without a policy"),
        pytest.param(pytorch_job(policy={}), False, id="job with an empty policy"),
        pytest.param(pytorch_job(policy={"minAvailable": 2}), True, id="job with minAvailable alone"),
        pytest.param(pytorch_job(policy={"minAvailable": 2}, labels={MANAGED: "false"}), False, id="job opted out"),
        pytest.param(pytorch_job(labels={QUEUE: "q"}), True, id="a job may carry the labels too"),
        pytest.param(
            ray_cluster(labels={}, head=template(schedulerName="volcano")), False, id="a template alone says nothing"
        ),
    ],
)
def test_whose_workload_it_is(manifest: JSON, muster_s: bool) -> None:  # noqa: FBT001
    workload = read(manifest)
    assert is_managed(workload.metadata, workload.policy) is muster_s
    assert (find_intent(workload, DEFAULTS) is not None) is muster_s


@pytest.mark.parametrize(
    ("manifest", "queue", "said"),
    [
        pytest.param(ray_cluster(labels={QUEUE: "a"}), "a", f"metadata.labels[{QUEUE}]", id="label"),
        pytest.param(
            pytorch_job(labels={QUEUE: "a"}, policy={"queue": "b"}, annotations={ANNOTATION: "c"}),
            "a",
            f"metadata.labels[{QUEUE}]",
            id="label before policy and annotation",
        ),
        pytest.param(
            pytorch_job(policy={"queue": "b"}, annotations={ANNOTATION: "c"}),
            "b",
            f"{POLICY}.queue",
            id="policy before annotation",
        ),
        pytest.param(
            pytorch_job(policy={"minAvailable": 1}, annotations={ANNOTATION: "c"}),
            "c",
            f"metadata.annotations[{ANNOTATION}]",
            id="annotation",
        ),
        pytest.param(ray_cluster(labels={MANAGED: "true"}), "default", None, id="default, said nowhere"),
        pytest.param(
            pytorch_job(labels={QUEUE: ""}, policy={"queue": "b"}), "b", f"{POLICY}.queue", id="empty label passes on"
        ),
    ],
)
def test_the_queue_is_the_first_that_is_said(manifest: JSON, queue: str, said: str | None) -> None:
    found = intent(manifest)
    assert (found.queue, found.paths.get("queue")) == (queue, said)


@pytest.mark.parametrize(
    ("manifest", "priority", "said", "for_pods"),
    [
        pytest.param(
            pytorch_job(labels={PRIORITY: "a"}, policy={"priorityClass": "b"}),
            "a",
            f"metadata.labels[{PRIORITY}]",
            True,
            id="label before policy",
        ),
        pytest.param(
            pytorch_job(
                policy={"priorityClass": "b"}, replicas={"Master": {"template": template(priorityClassName="c")}}
            ),
            "b",
            f"{POLICY}.priorityClass",
            True,
            id="policy before templates",
        ),
        pytest.param(
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
            id="the master's template before the workers'",
        ),
        pytest.param(
            pytorch_job(
                policy={"queue": "q"},
                replicas={"Worker": {"template": template(priorityClassName="w")}, "Master": {}},
            ),
            "w",
            "spec.pytorchReplicaSpecs.Worker.template.spec.priorityClassName",
            False,
            id="a worker's template when the master's names none",
        ),
        pytest.param(ray_cluster(), "", None, False, id="nobody"),
    ],
)
def test_the_priority_is_the_first_that_is_said(
    manifest: JSON,
    priority: str,
    said: str | None,
    for_pods: bool,  # noqa: FBT001
) -> None:
    """Only what was said for the workload as a whole is put on pods; templates speak for themselves."""
    found = intent(manifest)
    assert (found.priority_class, found.paths.get("priorityClassName")) == (priority, said)
    assert found.prioritise_pods is for_pods


URGENT = template(priorityClassName="system-node-critical")


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(ray_cluster(workers(), workers("idle", 0, template=URGENT)), id="no pods"),
        pytest.param(ray_cluster(workers(), workers("idle", suspend=True, template=URGENT)), id="suspended"),
        pytest.param(
            ray_cluster(workers(), workers("idle", 1, template=URGENT), enableInTreeAutoscaling=True),
            id="an autoscaler may do without",
        ),
    ],
)
def test_a_class_of_pods_that_the_gang_can_do_without_is_not_the_gangs(manifest: JSON) -> None:
    """No pod may ever get it: it would put the gang first, and no quota of the class would have seen a pod."""
    assert intent(manifest).priority_class == ""


BOTH = Defaults(schedulers=named("volcano", "coscheduling=coscheduling"))


@pytest.mark.parametrize(
    ("manifest", "scheduler", "said"),
    [
        pytest.param(
            ray_cluster(labels={SCHEDULER: "coscheduling"}, head=template(schedulerName="volcano")),
            "coscheduling",
            f"metadata.labels[{SCHEDULER}]",
            id="label before template",
        ),
        pytest.param(
            ray_cluster(head=template(schedulerName="coscheduling")),
            "coscheduling",
            "spec.headGroupSpec.template.spec.schedulerName",
            id="template before default",
        ),
        pytest.param(ray_cluster(), "volcano", None, id="default"),
        pytest.param(
            ray_cluster(head=template(schedulerName="default-scheduler")),
            "volcano",
            None,
            id="the apiserver's own name for none says nothing",
        ),
    ],
)
def test_the_scheduler_is_the_first_that_is_said(manifest: JSON, scheduler: str, said: str | None) -> None:
    found = intent(manifest, BOTH)
    assert (found.scheduler, found.paths.get("scheduler")) == (scheduler, said)


@pytest.mark.parametrize(
    ("manifest", "where"),
    [
        pytest.param(
            ray_cluster(labels={SCHEDULER: "yunikorn", QUEUE: "q"}),
            (f"metadata.labels[{SCHEDULER}]", "yunikorn"),
            id="label",
        ),
        pytest.param(
            pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"template": template(schedulerName="mine")}}),
            ("spec.pytorchReplicaSpecs.Worker.template.spec.schedulerName", "mine"),
            id="template",
        ),
        pytest.param(
            ray_cluster(labels={SCHEDULER: "volcano"}, head=template(schedulerName="mine")),
            ("spec.headGroupSpec.template.spec.schedulerName", "mine"),
            id="template, although the label names ours",
        ),
    ],
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


@pytest.mark.parametrize(
    ("manifest", "scheduler"),
    [
        pytest.param(ray_cluster(), "coscheduling", id="the namespace's"),
        pytest.param(ray_cluster(labels={SCHEDULER: "volcano"}), "volcano", id="the workload's own before it"),
        pytest.param(ray_cluster(head=template(schedulerName="volcano")), "volcano", id="a template's before it"),
    ],
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
