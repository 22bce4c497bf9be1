"""What holds for every kind of workload alike: plain pods and Jobs, of one role, have their own file."""

import re

import pytest

from muster.gangs.intent import Defaults
from muster.model.findings import Reason
from muster.model.pods import Pod
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import as_text
from muster.schedulers import SCHEDULERS
from muster.validation.context import Context
from muster.workloads import GANG_KINDS, Kind
from tests.support.cases import cases
from tests.support.manifests.families import TRAINING, Family, each, judged
from tests.support.manifests.generators import labels_of, small
from tests.support.manifests.observed import JSON, amounts, lines, made, pod, template

TINY = Context(queue=QueueTree([QueueView("q", "Open", amounts(cpu="1"))]).place)
AS_A_WHOLE = template(resources={"requests": {"cpu": "8"}})


def refused(manifest: JSON, context: Context | None = None) -> str:
    """The one line of a refusal."""
    (only,) = judged(manifest, context).refusals
    return only.message


def pod_group(manifest: JSON) -> JSON:
    verdict = judged(manifest)
    assert verdict.intent is not None
    assert verdict.gang is not None
    assert verdict.workload is not None
    return SCHEDULERS[verdict.intent.scheduler].pod_group(verdict.gang, verdict.intent, verdict.workload)


@each()
def test_all_pods_of_both_roles_are_the_gang(family: Family) -> None:
    verdict = judged(family.manifest())
    assert verdict.gang is not None
    assert (verdict.gang.name, verdict.gang.min_member) == (family.pod_group.format("demo"), 3)
    assert [role.minimum for role in verdict.gang.roles] == [1, 2]
    # Of a JAXJob's types there is one; with two it is told so.
    odd = [Reason.MISSPELLED] if family.kind == "JAXJob" else []
    assert (verdict.allowed, [one.reason for one in verdict.warnings]) == (True, odd)


@pytest.mark.parametrize("kind", GANG_KINDS, ids=lambda kind: f"{kind.kind} {kind.versions[0]}")
def test_a_pod_with_the_labels_of_its_operator_has_its_role(kind: Kind) -> None:
    """`role_of` reads what `pod_labels` says that the operator writes, the name of the workload in `pod_label`."""
    roles = {role.name: labels_of(kind, role.name) for role in small(kind).roles}
    assert {name: kind.role_of(made(Pod, pod("", labels=labels))) for name, labels in roles.items()} == {
        name: name for name in roles
    }
    assert {labels.get(kind.pod_label) for labels in roles.values()} == {"demo"}


@pytest.mark.parametrize("kind", GANG_KINDS, ids=lambda kind: f"{kind.kind} {kind.versions[0]}")
def test_a_webhook_is_named_after_who_makes_its_pods(kind: Kind) -> None:
    """One for each label; beside those of operators there are three others with such a name."""
    assert re.fullmatch("[A-Za-z]+", kind.maker), "Kind.maker: letters alone"
    assert kind.maker.lower() not in ("cleanup", "plain", "queues")
    same_label = {one.maker for one in GANG_KINDS if one.pod_label == kind.pod_label}
    same_maker = {one.pod_label for one in GANG_KINDS if one.maker.lower() == kind.maker.lower()}
    assert (same_label, same_maker) == ({kind.maker}, {kind.pod_label})


@each()
@cases("index", ("first role", 0), ("second role", 1))
@cases("empty", ("no template", {}), ("no containers", {"spec": {}}), ("none of them", {"spec": {"containers": []}}))
def test_a_template_without_containers_is_refused_by_its_field(family: Family, index: int, empty: JSON) -> None:
    line = refused(family.manifest(*(empty if index == at else template() for at in range(2))))
    assert line == f"{family.paths[index]}.containers: empty; a pod has at least one container"


@each()
def test_an_amount_that_is_none_is_refused_by_its_field(family: Family) -> None:
    assert refused(family.manifest(second=template("1 core"))) == (
        f'{family.paths[1]}.containers[0].resources.requests.cpu: "1 core" is not a quantity such as 500m, 2 or 1.5Gi'
    )
    assert refused(family.manifest(second=template("-1"))) == (
        f'{family.paths[1]}.containers[0].resources.requests.cpu: "-1" is negative; a resource is 0 or more'
    )


@each("Job")
@cases(
    "first, second, name, index",
    ("the first role's", "high", "", "high", 0),
    ("the second role's", "", "low", "low", 1),
    ("the first role's though the other is higher", "low", "high", "low", 0),
)
def test_a_priority_class_that_only_templates_carry(
    family: Family, first: str, second: str, name: str, index: int
) -> None:
    """It goes into the PodGroup, and the pods keep their own."""
    manifest = family.manifest(template(priorityClassName=first), template(priorityClassName=second))
    intent = judged(manifest, Context(priorities={"": 0, "high": 10, "low": 1})).intent
    assert intent is not None
    assert (intent.priority_class, intent.prioritise_pods) == (name, False)
    assert intent.paths["priorityClassName"] == f"{family.paths[index]}.priorityClassName"
    assert pod_group(manifest)["spec"]["priorityClassName"] == name


@each("Job")
def test_a_priority_class_of_a_template_that_is_unknown_is_refused_by_its_field(family: Family) -> None:
    assert refused(family.manifest(second=template(priorityClassName="hihg")), Context(priorities={"": 0})) == (
        f'{family.paths[1]}.priorityClassName: PriorityClass "hihg" does not exist; '
        "name an existing class or create it first"
    )


@each()
def test_annotations_are_copied_to_the_pod_group_but_for_bookkeeping(family: Family) -> None:
    """Of kubectl, helm and Argo CD, which would take the PodGroup for the workload, and of muster itself."""
    manifest = family.manifest(
        annotations={
            "example.com/note": "kept",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "meta.helm.sh/release-name": "r",
            "argocd.argoproj.io/tracking-id": "app:ray.io/RayCluster:team/demo",
            "muster.dev/admitted": "uid",
        }
    )
    assert pod_group(manifest)["metadata"]["annotations"] == {"example.com/note": "kept"}


@each("Job")
def test_network_topology_comes_from_labels(family: Family) -> None:
    labels = {
        "volcano.sh/queue-name": "q",
        "volcano.sh/network-topology-mode": "soft",
        "volcano.sh/network-topology-highest-tier-allowed": "2",
    }
    topology = {"mode": "soft", "highestTierAllowed": 2}
    assert pod_group(family.manifest(labels=labels))["spec"]["networkTopology"] == topology


@each("Job")
def test_a_network_topology_of_the_wrong_form_is_refused_by_its_label(family: Family) -> None:
    labels = {"volcano.sh/queue-name": "q", "volcano.sh/network-topology-highest-tier-allowed": "-1"}
    assert refused(family.manifest(labels=labels)) == (
        'metadata.labels[volcano.sh/network-topology-highest-tier-allowed]: "-1" is not a tier; use 0 or more'
    )


@each("RayCronJob")
def test_what_is_being_deleted_is_not_judged(family: Family) -> None:
    """It starts nothing any more, however little its queue can hold."""
    assert judged(family.manifest(), TINY).refusals[0].reason is Reason.EXCEEDS_CAPABILITY
    verdict = judged(family.manifest(deletionTimestamp="2026-11-21T10:00:00Z"), TINY)
    assert (verdict.allowed, verdict.warnings) == (True, ())
    assert verdict.workload is not None
    assert not verdict.workload.active


@each("Job")
@pytest.mark.parametrize("length", [63, 64, 200])
def test_pods_carry_a_long_name_hashed(family: Family, length: int) -> None:
    """A PodGroup's name may have 253 characters, a label 63; coscheduling binds by a label."""
    verdict = judged(family.manifest(name="n" * (length - len(family.pod_group) + 2)))
    assert verdict.gang is not None
    assert verdict.intent is not None
    assert verdict.workload is not None
    gang = verdict.gang
    assert len(gang.name) == length
    assert len(gang.label) == 63
    assert (gang.label == gang.name) is (length == 63)
    volcano, coscheduling = (
        SCHEDULERS[name].pod_group(gang, verdict.intent, verdict.workload)["metadata"]["name"]
        for name in ("volcano", "scheduler-plugins-scheduler")
    )
    assert (volcano, coscheduling) == (gang.name, gang.label)


@each()
def test_a_pod_group_has_a_name_of_at_most_253_characters(family: Family) -> None:
    around = len(family.pod_group) - 2
    assert judged(family.manifest(name="n" * (253 - around))).gang is not None
    longer = "n" * (254 - around)
    # KubeRay refuses far shorter names as well.
    first, *_ = judged(family.manifest(name=longer)).refusals
    assert first.message == (
        f'metadata.name: its PodGroup "{family.pod_group.format(longer)}" would have 254 characters and may have 253; '
        "use a shorter name"
    )


@each(*TRAINING)
def test_what_pods_ask_for_as_a_whole_counts_and_volcano_misses_it(family: Family) -> None:
    verdict = judged(family.manifest(second=AS_A_WHOLE))
    assert verdict.gang is not None
    second = verdict.gang.roles[1]
    assert as_text(second.requests)["cpu"] == "8"
    line = (
        f"{family.paths[1]}.resources: volcano before 1.15 does not count what pods of "
        f"{second.name} ask for as a whole, so that a node may be given more than it has; ask for it in the containers"
    )
    assert lines(verdict.warnings) == (line,)


@each(*TRAINING, "Job")
def test_coscheduling_counts_what_pods_ask_for_as_a_whole(family: Family) -> None:
    labels = {"ray.io/scheduler-name": "scheduler-plugins-scheduler"}
    known = Context(defaults=Defaults(schedulers=SCHEDULERS))
    verdict = judged(family.manifest(second=AS_A_WHOLE, labels=labels), known)
    assert verdict.intent is not None
    assert (verdict.intent.scheduler, verdict.warnings) == ("scheduler-plugins-scheduler", ())


@each()
def test_a_template_for_another_scheduler_is_left_alone(family: Family) -> None:
    verdict = judged(family.manifest(second=template(schedulerName="mine")))
    assert (verdict.allowed, verdict.intent, verdict.gang, verdict.warnings) == (True, None, None, ())


@each("batch.volcano.sh/v1alpha1 Job")
@pytest.mark.parametrize(
    ("manager", "allowed"), [("kueue.x-k8s.io/multikueue", True), ("example.org/controller", False), (None, False)]
)
def test_what_runs_in_another_cluster_is_judged_there(manager: str | None, allowed: bool, family: Family) -> None:
    """Its operator makes no pods of it here; another manager's may be of this cluster."""
    manifest = family.manifest()
    spec = manifest["spec"]
    within = {"RayCronJob": "jobTemplate", **dict.fromkeys((*TRAINING, "MPIJob"), "runPolicy")}.get(family.kind)
    (spec.setdefault(within, {}) if within else spec)["managedBy"] = manager
    assert judged(manifest, TINY).allowed is allowed
