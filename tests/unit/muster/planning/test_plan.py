"""What a gang is to the ledger in every phase of its life."""

from typing import Any

import pytest

from muster.cluster.observe import observe
from muster.model.names import ADMITTED_AT, COOLDOWN, GANG, GROUP_NAME
from muster.model.times import text_of
from muster.planning.candidate import GONE_IN
from muster.planning.expectations import Expectations
from muster.planning.phase import Phase
from muster.planning.plan import GangPlan, plan_gang
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.entries import End, EndKind
from muster.queueing.ledger import Ledger
from muster.queueing.queue_view import QueueView
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import (
    DEFAULTS,
    GROUP,
    JSON,
    KEY,
    amounts,
    old_pod,
    pod,
    pod_group,
    priority_class,
    pytorch_job,
    pytorch_pod,
    ray_cluster,
    ray_pod,
    template,
    workers,
)

HELD = [ray_pod("head", "headgroup"), ray_pod("w-0"), ray_pod("w-1")]
OPEN = [ray_pod("head", "headgroup", held=False), ray_pod("w-0", held=False), ray_pod("w-1", held=False)]
OLD = old_pod("old")
NOW = 1_000_000.0
DELETING = {"deletionTimestamp": "2026-11-21T10:00:00Z"}
BROKEN = ray_cluster(workers(replicas=-1))
NOT_OURS = ray_cluster(labels={})
LARGER = ray_cluster(workers(template=template("2")))
# Numbers in a PodGroup that muster did not write.
MUCH = {"cpu": "100", "memory": "100Gi"}
THEIRS = {
    "managedFields": [
        {"manager": "muster", "operation": "Apply", "fieldsV1": {"f:spec": {"f:queue": {}, "f:minTaskMember": {}}}}
    ]
}


def seen(
    workload: JSON | None, pods: list[JSON], group: JSON | None = None, classes: list[JSON] | None = None
) -> GangSnapshot:
    cluster = filled(
        workloads=[workload] if workload else [],
        pods=pods,
        groups=[group] if group else [],
        classes=classes or [],
    )
    return observe(KEY, cluster, DEFAULTS)


def a_ledger(**limit: str) -> Ledger:
    ledger = Ledger()
    ledger.set_queue(QueueView("q", "Open", amounts(**limit)))
    return ledger


def entered(view: GangSnapshot, ledger: Ledger | None = None, marked: str = "") -> GangPlan:
    return plan_gang(view, ledger or a_ledger(), Expectations(record=AdmissionRecord(marked)), now=NOW)


@pytest.mark.parametrize(
    ("workload", "pods", "group", "marked", "phase"),
    [
        pytest.param(None, [], None, "", Phase.GONE, id="nothing there"),
        pytest.param(None, [], pod_group(), "", Phase.GONE, id="our group without its workload"),
        pytest.param(ray_cluster(meta=DELETING), HELD, pod_group(), "", Phase.GONE, id="workload being deleted"),
        pytest.param(None, [], pod_group(ours=False), "", Phase.FOREIGN, id="somebody's group"),
        pytest.param(ray_cluster(), HELD, pod_group(ours=False), "", Phase.FOREIGN, id="somebody's group in the way"),
        pytest.param(
            ray_cluster(meta=DELETING), [], pod_group(ours=False), "", Phase.FOREIGN, id="somebody's group stays"
        ),
        pytest.param(
            ray_cluster(),
            HELD,
            pod_group(owner_uid="uid-old", admitted="uid-old"),
            "",
            Phase.STALE,
            id="group of a former life, its mark too",
        ),
        pytest.param(BROKEN, HELD, None, "", Phase.INVALID, id="numbers that make no gang"),
        pytest.param(BROKEN, HELD, pod_group(owner_uid="uid-old"), "", Phase.STALE, id="stale before invalid"),
        pytest.param(NOT_OURS, OPEN, pod_group(), "", Phase.RELEASED, id="taken out of muster's hands"),
        pytest.param(NOT_OURS, HELD, pod_group(), "", Phase.WAITING, id="taken out of muster's hands while it waits"),
        pytest.param(ray_cluster(), [OLD, *OPEN[1:]], pod_group(), "", Phase.NOT_MANAGED, id="an old pod"),
        pytest.param(ray_cluster(), [OLD], pod_group(ours=False), "", Phase.FOREIGN, id="the operator's own gang"),
        pytest.param(NOT_OURS, [OLD], None, "", Phase.RELEASED, id="asks for nothing"),
        pytest.param(ray_cluster(suspend=True), [OLD], None, "", Phase.INACTIVE, id="suspended, old pods"),
        pytest.param(ray_cluster(suspend=True), [], pod_group(), "", Phase.INACTIVE, id="suspended"),
        pytest.param(
            ray_cluster(suspend=True), OPEN, pod_group(admitted="uid-demo"), "", Phase.INACTIVE, id="being suspended"
        ),
        pytest.param(ray_cluster(), [], None, "", Phase.ASSEMBLING, id="neither pods nor group yet"),
        pytest.param(ray_cluster(), [], pod_group(), "", Phase.ASSEMBLING, id="no pods yet"),
        pytest.param(ray_cluster(), HELD[:2], None, "", Phase.ASSEMBLING, id="a pod lacks"),
        pytest.param(ray_cluster(), HELD, None, "", Phase.WAITING, id="assembled"),
        pytest.param(ray_cluster(), HELD, pod_group(), "", Phase.WAITING, id="assembled, group there"),
        pytest.param(
            ray_cluster(), HELD, pod_group(admitted="uid-old"), "", Phase.WAITING, id="the mark of a former life"
        ),
        pytest.param(ray_cluster(), HELD, pod_group(admitted="uid-demo"), "", Phase.ADMITTED, id="marked"),
        pytest.param(ray_cluster(), HELD, pod_group(), "uid-demo", Phase.ADMITTED, id="marked by us a moment ago"),
        pytest.param(ray_cluster(), HELD, pod_group(), "uid-old", Phase.WAITING, id="marked by us in a former life"),
        pytest.param(
            ray_cluster(), [*HELD[:2], OPEN[2]], pod_group(), "", Phase.ADMITTED, id="an open member: the mark was lost"
        ),
        pytest.param(
            ray_cluster(), [OPEN[0]], pod_group(admitted="uid-demo"), "", Phase.ADMITTED, id="admitted, members crashed"
        ),
        pytest.param(ray_cluster(), [], pod_group(admitted="uid-demo"), "", Phase.ADMITTED, id="admitted, no members"),
        pytest.param(
            *(LARGER, HELD[:1], pod_group(admitted="uid-demo"), "", Phase.OUTGROWN), id="all made anew, asking for more"
        ),
        pytest.param(
            *(LARGER, [*HELD[:2], OPEN[2]], pod_group(admitted="uid-demo"), "", Phase.ADMITTED), id="some ask for more"
        ),
        pytest.param(
            LARGER, [], pod_group(admitted="uid-demo"), "", Phase.ADMITTED, id="none is there to ask for more"
        ),
    ],
)
def test_where_a_gang_stands(
    workload: JSON | None, pods: list[JSON], group: JSON | None, marked: str, phase: Phase
) -> None:
    assert entered(seen(workload, pods, group), marked=marked).phase is phase


def test_a_gang_that_needs_no_pods_does_not_wait() -> None:
    """A job whose replicas were all set to 0 lacks nothing, but there is nothing to let go either."""
    job = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 0, "template": template()}})
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": "uid-train"}
    cluster = filled(workloads=[job], groups=[pod_group("train", owner=owner)])
    assert entered(observe(KEY._replace(name="train"), cluster, DEFAULTS)).phase is Phase.ASSEMBLING


@pytest.mark.parametrize(
    ("workload", "pods", "group", "claim"),
    [
        pytest.param(ray_cluster(), HELD, pod_group(admitted="uid-demo"), "3", id="admitted: its minResources"),
        pytest.param(
            ray_cluster(),
            [*OPEN, ray_pod("w-2", held=False)],
            pod_group(admitted="uid-demo"),
            "4",
            id="admitted: what is open, where that is more",
        ),
        pytest.param(
            ray_cluster(),
            OPEN[:1],
            pod_group(admitted="uid-demo"),
            "3",
            id="admitted: the place of the crashed is kept",
        ),
        pytest.param(ray_cluster(), OPEN, None, "3", id="admitted: the group was deleted by somebody"),
        pytest.param(ray_cluster(), HELD, pod_group(), None, id="waiting"),
        pytest.param(ray_cluster(), HELD[:1], pod_group(), None, id="assembling"),
        pytest.param(
            ray_cluster(suspend=True), OPEN, pod_group(admitted="uid-demo"), "3", id="suspended, its pods not"
        ),
        pytest.param(
            ray_cluster(suspend=True), [], pod_group(admitted="uid-demo"), "3", id="suspended, its mark not yet"
        ),
        pytest.param(ray_cluster(suspend=True), [], pod_group(), None, id="suspended"),
        pytest.param(None, [], pod_group(), None, id="gone"),
        pytest.param(None, OPEN[:2], pod_group(), "2", id="gone, its pods not yet"),
        pytest.param(None, HELD[:2], pod_group(), None, id="gone, its pods held"),
        pytest.param(BROKEN, HELD, pod_group(), None, id="invalid before it was admitted"),
        pytest.param(BROKEN, OPEN[:1], pod_group(admitted="uid-demo"), "3", id="invalid by an edit while it runs"),
        pytest.param(BROKEN, OPEN[:1], pod_group(), "1", id="invalid, the mark lost"),
        pytest.param(
            *(BROKEN, OPEN[:1], pod_group(admitted="uid-demo", minResources=MUCH, meta=THEIRS), "1"),
            id="invalid by an edit, and somebody wrote a claim of his own",
        ),
        pytest.param(LARGER, HELD, pod_group(admitted="uid-demo"), "3", id="made anew, the mark still there"),
        pytest.param(None, [], pod_group(ours=False, phase="Inqueue"), "3", id="foreign, Volcano keeps room"),
        pytest.param(None, [], pod_group(ours=False, phase="Running"), "3", id="foreign, runs"),
        pytest.param(None, [], pod_group(ours=False, phase="Unknown"), "3", id="foreign, runs in part"),
        pytest.param(None, [], pod_group(ours=False, phase="Pending"), None, id="foreign, waits"),
        pytest.param(None, [], pod_group(ours=False, phase="Completed"), None, id="foreign, ended"),
    ],
)
def test_what_a_gang_holds(workload: JSON | None, pods: list[JSON], group: JSON | None, claim: str | None) -> None:
    ledger = a_ledger()
    entered(seen(workload, pods, group), ledger)
    held = ledger.used("q")
    assert (held["cpu"] if held else None) == (amounts(cpu=claim)["cpu"] if claim else None)


@cases(
    "pods, claim",
    ("all have ended", [], None),
    ("the last has ended", [pytorch_pod("m", "master", held=False, phase="Succeeded")], None),
    ("one runs on", [pytorch_pod("w", held=False, phase="Running")], {"cpu": "1", "memory": "1Gi"}),
    ("one was never let go", [pytorch_pod("w")], None),
)
def test_of_a_finished_workload_only_what_runs_is_held(pods: list[JSON], claim: dict[str, str] | None) -> None:
    """With cleanPodPolicy None pods outlive their job."""
    key = KEY._replace(name="train")
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": "uid-train"}
    cluster = filled(
        workloads=[pytorch_job(policy={"queue": "q"}, conditions=[{"type": "Succeeded", "status": "True"}])],
        pods=pods,
        groups=[pod_group("train", owner=owner, admitted="uid-train")],
    )
    ledger = a_ledger()
    standing = entered(observe(key, cluster, DEFAULTS), ledger)
    assert standing.phase is Phase.INACTIVE
    assert ledger.holds(key) == (amounts(**claim) if claim else None)


def test_an_invalid_edit_before_the_watch_shows_the_mark_takes_nothing_of_the_claim() -> None:
    ledger = a_ledger()
    entered(seen(BROKEN, HELD, pod_group()), ledger, "uid-demo")
    held = ledger.holds(KEY)
    assert held is not None
    assert held["cpu"] == amounts(cpu="3")["cpu"]


def test_the_queue_of_an_admitted_gang_is_that_of_its_group() -> None:
    """An edit of the workload's queue acts at the next admission."""
    ledger = a_ledger()
    view = seen(ray_cluster(labels={"volcano.sh/queue-name": "r"}), HELD, pod_group(admitted="uid-demo"))
    entered(view, ledger)
    assert ledger.queue_of(KEY) == "q"


def test_the_queue_of_a_waiting_gang_is_that_of_its_workload() -> None:
    ledger = a_ledger()
    ledger.set_queue(QueueView("r", "Open", {}))
    entered(seen(ray_cluster(labels={"volcano.sh/queue-name": "r"}), HELD, pod_group()), ledger)
    assert ledger.queue_of(KEY) == "r"


def test_a_foreign_group_without_a_queue_stands_in_volcanos_default() -> None:
    ledger = a_ledger()
    entered(seen(None, [], pod_group(ours=False, phase="Running", queue="")), ledger)
    assert ledger.used("default") == amounts(cpu="3", memory="3Gi")


@cases(
    "limit, opens, waits, claim",
    ("room for all", "5", ["w-2", "w-3"], [], "5"),
    ("room for one", "4", ["w-2"], ["w-3"], "4"),
    ("no room", "3", [], ["w-2", "w-3"], "3"),
)
def test_members_beyond_the_minimum_are_opened_where_the_queue_has_room(
    limit: str, opens: list[str], waits: list[str], claim: str
) -> None:
    pods = [*OPEN, ray_pod("w-2"), ray_pod("w-3")]
    ledger = a_ledger(cpu=limit)
    opening = entered(seen(ray_cluster(), pods, pod_group(admitted="uid-demo")), ledger).opening
    assert opening is not None
    assert [member.pod.metadata.name for member in opening.members] == opens
    assert [member.pod.metadata.name for member in opening.waiting] == waits
    assert (ledger.holds(KEY) or {})["cpu"] == amounts(cpu=claim)["cpu"]


def test_what_the_workload_came_to_want_since_its_admission_is_growth() -> None:
    """Scaled up from two workers to four in a full queue: the two new ones wait, whatever the workload's minimum is."""
    pods = [*OPEN, ray_pod("w-2"), ray_pod("w-3")]
    view = seen(ray_cluster(workers(replicas=4)), pods, pod_group(admitted="uid-demo"))
    opening = entered(view, a_ledger(cpu="3")).opening
    assert opening is not None
    assert [member.pod.metadata.name for member in opening.waiting] == ["w-2", "w-3"]


@cases(
    "said",
    ("more resources", {"minResources": MUCH}),
    ("more resources, in a field that is not muster's", {"minResources": MUCH, "meta": THEIRS}),
    ("more members", {"minMember": 9, "minTaskMember": {"headgroup": 1, "workers": 8}}),
    ("nothing, as while a claim is soft", {"minResources": {"cpu": "0", "memory": "0"}}),
)
def test_a_new_leader_believes_no_claim_beyond_what_the_workload_asks_for(said: dict[str, Any]) -> None:
    """Whoever may patch PodGroups makes no room for himself: of six more workers one fits in the queue."""
    pods = [*OPEN, *(ray_pod(f"x-{number}") for number in range(6))]
    ledger = a_ledger(cpu="4")
    standing = entered(seen(ray_cluster(), pods, pod_group(admitted="uid-demo", **said)), ledger)
    assert standing.opening is not None
    assert [member.pod.metadata.name for member in standing.opening.members] == ["x-0"]
    assert (ledger.holds(KEY) or {})["cpu"] == amounts(cpu="4")["cpu"]


def test_the_place_of_a_gang_that_crashed_while_its_claim_was_soft_is_what_it_was_admitted_for() -> None:
    ledger = a_ledger()
    zeros = pod_group(admitted="uid-demo", minResources={"cpu": "0", "memory": "0"})
    entered(seen(ray_cluster(), HELD[:1], zeros), ledger)
    assert ledger.holds(KEY) == amounts(cpu="3", memory="3Gi")


def by_itself(name: str, cpu: str, **rest: Any) -> JSON:  # noqa: ANN401 - whatever `pod` takes
    """A pod that names muster's PodGroup, without muster's label."""
    return pod(name, annotations={GROUP_NAME: GROUP}, **{**template(cpu)["spec"], **rest})


LABELLED = pod("big", labels={GANG: GROUP}, annotations={GROUP_NAME: GROUP}, nodeName="n")


@cases(
    "pods, used",
    ("it runs beside the gang", [*OPEN, by_itself("big", "5", nodeName="n")], "8"),
    ("it has ended", [*OPEN, by_itself("big", "5", nodeName="n", phase="Succeeded")], "3"),
    ("it has no node", [*OPEN, by_itself("big", "5")], "3"),
    ("the gang waits", [*HELD, by_itself("big", "5", nodeName="n")], "5"),
    ("the gang has no pods", [by_itself("big", "5", nodeName="n")], "5"),
    ("with the label, and nobody's", [*OPEN, LABELLED], "4"),
    ("a member with a node", [*OPEN[:2], ray_pod("w-1", held=False, nodeName="n")], "3"),
)
def test_who_binds_itself_to_a_gangs_group_counts_when_it_has_a_node(pods: list[JSON], used: str) -> None:
    """Volcano places it in the gang's queue."""
    ledger = a_ledger()
    entered(seen(ray_cluster(), pods, pod_group()), ledger)
    assert ledger.used("q")["cpu"] == amounts(cpu=used)["cpu"]


def test_who_had_bound_itself_and_is_gone_leaves_its_room() -> None:
    ledger = a_ledger()
    entered(seen(ray_cluster(), [*OPEN, by_itself("big", "5", nodeName="n")], pod_group()), ledger)
    assert entered(seen(ray_cluster(), OPEN, pod_group()), ledger).changed
    assert ledger.used("q")["cpu"] == amounts(cpu="3")["cpu"]


def test_the_pods_of_an_operators_own_group_are_counted_once() -> None:
    ledger = a_ledger()
    pods = [by_itself("head", "1", nodeName="n"), by_itself("big", "5", nodeName="n")]
    entered(seen(None, pods, pod_group(ours=False, phase="Running")), ledger)
    assert ledger.used("q")["cpu"] == amounts(cpu="6")["cpu"]


@cases(
    "first, second, changed",
    ("nothing", HELD, HELD, False),
    ("comes to wait", HELD[:2], HELD, True),
    ("comes to hold", HELD, OPEN, True),
    ("a member crashes, and nobody knows that it had a place", OPEN, OPEN[:1], True),
    ("comes to hold more", OPEN, [*OPEN, ray_pod("w-2", held=False)], True),
)
def test_whether_it_changed_anything_for_others(first: list[JSON], second: list[JSON], changed: bool) -> None:
    ledger = a_ledger()
    entered(seen(ray_cluster(), first, pod_group()), ledger)
    assert entered(seen(ray_cluster(), second, pod_group()), ledger).changed is changed


def test_what_a_gang_can_spare_is_known_to_the_ledger() -> None:
    ledger = a_ledger(cpu="9")
    running = [{**one, "status": {"phase": "Running"}} for one in OPEN]
    elastic = ray_cluster(workers(replicas=2, minReplicas=1, maxReplicas=2), enableInTreeAutoscaling=True)
    entered(seen(elastic, running, pod_group(admitted="uid-demo")), ledger)
    assert ledger.claims("q")[KEY].spare == amounts(cpu="1", memory="1Gi")


def test_the_ledger_counts_on_no_young_pod_and_the_gang_is_planned_again_when_it_may() -> None:
    ledger, young = a_ledger(cpu="9"), []
    for one in OPEN:
        meta = {**one["metadata"], "annotations": {**one["metadata"]["annotations"], COOLDOWN: "30s"}}
        status = {"phase": "Running", "startTime": text_of(NOW - 20)}
        young.append({**one, "metadata": meta, "spec": {**one["spec"], "nodeName": "n"}, "status": status})
    elastic = ray_cluster(workers(replicas=2, minReplicas=1, maxReplicas=2), enableInTreeAutoscaling=True)
    plan = entered(seen(elastic, young, pod_group(admitted="uid-demo")), ledger)
    claim = ledger.claims("q")[KEY]
    assert (plan.ages, claim.kept, claim.spare) == (NOW + 10, True, {})


def test_an_admitted_gang_keeps_the_priority_it_was_admitted_with() -> None:
    ledger = a_ledger(cpu="9")
    group = pod_group(admitted="uid-demo", priorityClassName="high")
    view = seen(ray_cluster(), OPEN, group, classes=[priority_class("high", 100)])
    plan_gang(view, ledger, now=NOW)
    assert ledger.claims("q")[KEY].priority == 100


@cases(
    "pods, admitted, waits",
    ("open, and nowhere yet", OPEN, "uid-demo", True),
    ("placed", [ray_pod("head", "headgroup", held=False, nodeName="n")], "uid-demo", False),
    ("nothing open", HELD, "uid-demo", False),
    ("not admitted", HELD, "", False),
)
def test_who_waits_for_a_node(pods: list[JSON], admitted: str, waits: bool) -> None:
    view = seen(ray_cluster(), pods, pod_group(admitted=admitted))
    standing = plan_gang(view, a_ledger(cpu="9"), now=view.since or NOW)
    assert standing.awaits_node is waits


def test_a_claim_has_the_end_of_its_gang_and_pods_that_are_deleted_have_their_own() -> None:
    """What is left of a gang goes at the last of its pods' deletion timestamps, which have their grace in them."""
    says = pytorch_job(policy={"queue": "q"}, annotations={"muster.dev/runs-at-most": "2h"})
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": "uid-train"}
    group = pod_group("train", owner=owner, admitted="uid-train", annotations={ADMITTED_AT: text_of(NOW)})
    runs = [
        pytorch_pod(name, role, held=False) for name, role in (("m", "master"), ("w-0", "worker"), ("w-1", "worker"))
    ]
    going = [
        pytorch_pod(f"gone-{second}", held=False, nodeName="n", meta={"deletionTimestamp": text_of(NOW + second)})
        for second in (10, 30)
    ]
    ledger, key = a_ledger(cpu="9", memory="9Gi"), KEY._replace(name="train")
    view = observe(key, filled(workloads=[says], pods=[*runs, *going], groups=[group]), DEFAULTS, now=NOW)
    entered(view, ledger)
    ends = {one: claim.end for one, claim in ledger.claims("q").items()}
    assert ends == {
        key: End(NOW, 7200.0, EndKind.SAID),
        key.part("leaving"): End(NOW + 30 + GONE_IN, 0.0, EndKind.ENFORCED),
    }
