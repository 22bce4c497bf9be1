"""The chart's ValidatingAdmissionPolicies, by impersonation of a tenant, an administrator and Volcano's controller."""

import itertools
import uuid
from urllib.parse import quote

import pytest

from hack.testbed import wait_for
from muster.model.names import (
    ADMITTED,
    ADMITTED_AT,
    ADMITTED_FOR,
    DRAIN_AFTER,
    GANG,
    GANG_TIME_LIMIT,
    GATE,
    GROUP_NAME,
    MANAGED,
    MANAGED_BY,
    MESSAGE,
    MUSTER,
    NUDGE,
    PASSED_IN,
    PASSED_SINCE,
    QUEUE_LABEL,
    REQUEUE_AFTER,
    REQUEUED_AT,
    RUNS_ABOUT,
    STATE,
    TASK_SPEC,
    WORKLOAD,
)
from muster.model.resource import ADMISSION_POLICIES, NAMESPACES, POD_GROUPS, PODS
from tests.apiserver.conftest import EXCLUDED
from tests.support.cases import cases
from tests.support.cluster.desk import PATIENCE, Manifest
from tests.support.cluster.objects import gates
from tests.support.cluster.other_policies import other_policies
from tests.support.cluster.policy_actors import (
    ADMINISTRATOR,
    CONTROLLER,
    CONTROLLER_MANAGER,
    FORBIDDEN,
    GARBAGE_COLLECTOR,
    GATE_AWAY,
    LABEL_AWAY,
    OTHER_GATE_AWAY,
    OTHERS,
    TENANT,
    VOLCANO,
    Acting,
    annotated,
    foreign_group,
    group,
    labelled,
)
from tests.support.cluster.verbs import make_namespace, own_name
from tests.support.manifests import applied
from tests.support.manifests.owner_chains import owned

NOT_FOUND = 404

TRICKS = [
    pytest.param([GATE_AWAY], "", id="the gate taken off"),
    pytest.param([GATE_AWAY, labelled(team="a")], "", id="the gate taken off with a harmless change"),
    pytest.param([LABEL_AWAY], "", id="the gang's label removed"),
    pytest.param([labelled(**{GANG: "theirs"})], "", id="the gang's label changed"),
    pytest.param([LABEL_AWAY, GATE_AWAY], "", id="label and gate in one update"),
    pytest.param([LABEL_AWAY], "/status", id="the label removed through the status"),
    pytest.param([labelled(**{QUEUE_LABEL: "theirs"})], "", id="another queue on the pod"),
    pytest.param([annotated(**{GROUP_NAME: "theirs"})], "", id="bound to another PodGroup"),
    pytest.param([annotated(**{GROUP_NAME: None})], "", id="bound to none"),
    pytest.param([annotated(**{GROUP_NAME: "theirs"})], "/status", id="bound to another through the status"),
    pytest.param([annotated(**{TASK_SPEC: "head"})], "", id="another role"),
    pytest.param([annotated(**{WORKLOAD: '{"kind": "RayCluster"}'})], "", id="given to another workload"),
    pytest.param([annotated(**{GANG_TIME_LIMIT: "60"})], "", id="a shorter time limit of its Job"),
]


@pytest.mark.parametrize(("patches", "door"), TRICKS)
def test_who_may_update_pods_does_not_start_or_rebind_them(acting: Acting, patches: list[Manifest], door: str) -> None:
    answer = acting.change(TENANT, acting.member(), *patches, door=door)
    assert (answer.status, answer.body["reason"]) == (FORBIDDEN, "Forbidden")
    assert "(ClusterRole muster-release), may do that" in answer.message


@pytest.mark.parametrize(("patches", "door"), TRICKS)
def test_who_holds_the_verb_may_do_all_of_it(acting: Acting, patches: list[Manifest], door: str) -> None:
    answer = acting.change(ADMINISTRATOR, acting.member(), *patches, door=door)
    assert answer.ok, answer.message


@cases("steps", ("label first", (LABEL_AWAY, GATE_AWAY)), ("gate first", (GATE_AWAY, LABEL_AWAY)))
def test_two_steps_do_not_lead_further_than_one(acting: Acting, steps: tuple[Manifest, Manifest]) -> None:
    name = acting.member()
    assert [acting.change(TENANT, name, step).status for step in steps] == [FORBIDDEN, FORBIDDEN]
    assert gates(acting.get(PODS, name)) == [OTHERS, GATE]


def test_no_pod_becomes_one_of_a_gang_afterwards(acting: Acting) -> None:
    name = acting.stranger()
    assert acting.change(TENANT, name, labelled(**{GANG: "demo"})).status == FORBIDDEN
    assert acting.change(TENANT, name, labelled(app="web")).ok


@cases(
    "patch, door",
    ("another label", labelled(team="a"), ""),
    ("another annotation", annotated(**{"example.com/note": "a"}), ""),
    ("a finalizer", {"metadata": {"finalizers": ["example.com/later"]}}, ""),
    ("somebody else's gate", OTHER_GATE_AWAY, ""),
    ("a time limit", {"spec": {"activeDeadlineSeconds": 60}}, ""),
    ("the status, as kubelets write it", {"status": {"phase": "Failed"}}, "/status"),
)
def test_everything_else_of_a_gangs_pod_is_its_owners(acting: Acting, patch: Manifest, door: str) -> None:
    name = acting.member()
    answer = acting.change(TENANT, name, patch, door=door)
    assert answer.ok, answer.message
    acting.change(TENANT, name, {"metadata": {"finalizers": None}})


def test_a_gangs_pod_is_deleted_by_whoever_may_delete_pods(acting: Acting) -> None:
    assert acting.api("DELETE", acting.path(PODS, acting.member()), user=TENANT).ok


# --- pods that muster leaves alone ------------------------------------------------------------------------------------


def left_alone(acting: Acting, gang: str = "demo") -> Manifest:
    """A labelled pod for Volcano, without gate and without binding, as its owner's own label wants it."""
    pod = applied.pod(f"pod-{uuid.uuid4().hex[:8]}", schedulerName="volcano")
    pod["metadata"]["labels"] = {MANAGED: "false"}
    # The webhook, which need not run here, is not asked about an update.
    made = acting.create(pod)
    acting.label(PODS, made["metadata"]["name"], **{GANG: gang})
    return made


def bind(acting: Acting, user: str, pod: Manifest, group_name: str) -> int:
    """What the apiserver says to a new binding."""
    return acting.change(user, pod["metadata"]["name"], annotated(**{GROUP_NAME: group_name})).status


def test_volcano_binds_a_labelled_pod_that_muster_left_alone(acting: Acting) -> None:
    """To the PodGroup that its controller makes for the pod; without, nobody would ever schedule it."""
    pod = left_alone(acting)
    assert bind(acting, VOLCANO, pod, f"podgroup-{pod['metadata']['uid']}") < FORBIDDEN
    assert bind(acting, VOLCANO, pod, "podgroup-other") == FORBIDDEN


def test_volcano_binds_it_to_the_group_of_its_owner(acting: Acting) -> None:
    pod, owner = left_alone(acting), left_alone(acting)
    patch = {"metadata": {"ownerReferences": owned(pod, owner)["metadata"]["ownerReferences"]}}
    acting.patch(PODS, pod["metadata"]["name"], patch)
    assert bind(acting, VOLCANO, pod, f"podgroup-{owner['metadata']['uid']}") < FORBIDDEN


def test_nobody_joins_a_gang_by_that_way(acting: Acting) -> None:
    """A member that is not held counts as a sign that its gang was admitted."""
    pod = left_alone(acting)
    own = f"podgroup-{pod['metadata']['uid']}"
    assert bind(acting, VOLCANO, pod, "demo") == FORBIDDEN
    assert (bind(acting, TENANT, pod, "demo"), bind(acting, TENANT, pod, own)) == (FORBIDDEN, FORBIDDEN)


def test_a_held_pod_is_bound_by_nobody_else(acting: Acting) -> None:
    name = acting.member()
    bare_of_it = annotated(**{GROUP_NAME: None})
    assert acting.change(ADMINISTRATOR, name, bare_of_it).ok
    uid = acting.get(PODS, name)["metadata"]["uid"]
    assert acting.change(VOLCANO, name, annotated(**{GROUP_NAME: f"podgroup-{uid}"})).status == FORBIDDEN


def test_where_no_webhook_looks_no_policy_is_in_the_way(acting: Acting) -> None:
    """In namespaces that are excluded nothing is muster's; its own controller is held there, too."""
    there = Acting(acting.api, EXCLUDED)
    name = there.member()
    # Volcano's account holds rights there, but not the verb.
    assert there.change(VOLCANO, name, LABEL_AWAY, GATE_AWAY).ok
    assert there.ask(group(there, **{ADMITTED: "a"}), user=VOLCANO).ok
    assert there.change(CONTROLLER, name, labelled(team="a")).status == FORBIDDEN
    there.delete(PODS, name)


SELECTORS = {
    "team=a": {"matchLabels": {"team": "a"}},
    "team in (a,b)": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
    "team notin (a)": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
    "team": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    "!team,pilot=on": {
        "matchLabels": {"pilot": "on"},
        "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}],
    },
}


@pytest.mark.parametrize("selector", SELECTORS)
def test_the_policies_hold_in_the_namespaces_that_the_selector_selects(acting: Acting, selector: str) -> None:
    """What the chart makes of a selector for the policies selects what the apiserver selects by it."""
    labels: list[dict[str, str]] = [{}, {"team": "a"}, {"team": "b", "pilot": "on"}, {"pilot": "on"}]
    there = {own_name("selected"): texts for texts in labels}
    pods: dict[str, str] = {}
    for namespace, texts in there.items():
        make_namespace(acting.api, namespace, **texts)
        pods[namespace] = Acting(acting.api, namespace).member()
    known = f"{NAMESPACES.path()}?labelSelector={quote(selector)}"
    selected = {one["metadata"]["name"] for one in acting.api.get(known)["items"]} & {*there}
    with other_policies(acting.api, {"namespaceSelector": SELECTORS[selector]}) as prefix:

        def refused() -> set[str]:
            # Volcano's account holds rights everywhere, but not the verb.
            moved = labelled(**{f"{prefix}/gang": "theirs"})
            acts = {name: Acting(acting.api, name) for name in pods}
            answers = {name: act.change(VOLCANO, pods[name], moved, door="?dryRun=All") for name, act in acts.items()}
            return {name for name, answer in answers.items() if answer.status == FORBIDDEN}

        for namespace, pod in pods.items():
            Acting(acting.api, namespace).label(PODS, pod, **{f"{prefix}/gang": "ours"})
        wait_for(f"the policies to hold in {sorted(selected)}", lambda: refused() == selected != set(), PATIENCE)
    for namespace in there:
        acting.api.delete(NAMESPACES.path(name=namespace))


# --- PodGroups --------------------------------------------------------------------------------------------------------


MARKS = [
    *(ADMITTED, ADMITTED_AT, ADMITTED_FOR, STATE, MESSAGE),
    *(PASSED_SINCE, PASSED_IN, DRAIN_AFTER, REQUEUED_AT, RUNS_ABOUT),
]


@pytest.mark.parametrize("mark", MARKS)
def test_what_was_decided_is_not_written_by_a_tenant(acting: Acting, mark: str) -> None:
    """Neither at the creation of a PodGroup, nor later, nor taken away."""

    def patch(user: str, text: str | None) -> int:
        return acting.change(user, name, annotated(**{mark: text}), resource=POD_GROUPS).status

    made = acting.ask(group(acting, **{mark: "a"}), user=TENANT)
    assert (made.status, "are what muster has decided and said of a gang" in made.message) == (FORBIDDEN, True)
    name = acting.ask(group(acting), user=CONTROLLER).body["metadata"]["name"]
    assert patch(TENANT, "a") == FORBIDDEN
    assert patch(CONTROLLER, "a") < FORBIDDEN
    assert (patch(TENANT, "b"), patch(TENANT, None)) == (FORBIDDEN, FORBIDDEN)
    assert patch(ADMINISTRATOR, None) < FORBIDDEN


def test_the_label_of_its_state_is_not_written_by_a_tenant(acting: Acting) -> None:
    """By which people select gangs: as the annotation of the same name."""

    def patch(user: str, text: str | None) -> int:
        return acting.change(user, name, labelled(**{STATE: text}), resource=POD_GROUPS).status

    forged = group(acting)
    forged["metadata"]["labels"] = {**forged["metadata"].get("labels", {}), STATE: "Running"}
    made = acting.ask(forged, user=TENANT)
    assert (made.status, "muster.dev/state is what muster has said of a gang" in made.message) == (FORBIDDEN, True)
    name = acting.ask(group(acting), user=CONTROLLER).body["metadata"]["name"]
    assert patch(TENANT, "Running") == FORBIDDEN
    assert patch(CONTROLLER, "Running") < FORBIDDEN
    assert (patch(TENANT, "Admitted"), patch(TENANT, None)) == (FORBIDDEN, FORBIDDEN)
    assert patch(ADMINISTRATOR, None) < FORBIDDEN


SPECS = [
    pytest.param({"spec": {"queue": "theirs"}}, id="another queue"),
    pytest.param({"spec": {"minMember": 2}}, id="another minimum"),
    pytest.param({"spec": {"minTaskMember": {"head": None, "worker": 1}}}, id="other roles"),
    pytest.param({"spec": {"minResources": {"cpu": "1"}}}, id="other resources"),
    pytest.param({"spec": {"minResources": None}}, id="no resources"),
    pytest.param({"spec": {"priorityClassName": "high"}}, id="a priority"),
    pytest.param(annotated(**{GROUP_NAME: "theirs"}), id="another gang"),
]
LINKS = [
    pytest.param({"metadata": {"ownerReferences": None}}, id="no owner"),
    pytest.param({"metadata": {"finalizers": ["example.com/keeps"]}}, id="a finalizer"),
]


def refused(acting: Acting, name: str, *patches: Manifest) -> None:
    """Whoever may write PodGroups cannot do this, apart from the verb's holders."""
    before = acting.get(POD_GROUPS, name)
    for user in (TENANT, VOLCANO, GARBAGE_COLLECTOR, CONTROLLER_MANAGER):
        answer = acting.change(user, name, *patches, resource=POD_GROUPS)
        assert (answer.status, "of muster's PodGroup stay as they are" in answer.message) == (FORBIDDEN, True), user
    assert acting.get(POD_GROUPS, name) == before
    assert acting.change(ADMINISTRATOR, name, *patches, resource=POD_GROUPS).ok


@cases("marked", ("by its marks", True), ("by its label", False))
@pytest.mark.parametrize("patch", SPECS)
def test_nothing_of_musters_podgroup_is_a_tenants(acting: Acting, patch: Manifest, *, marked: bool) -> None:
    """Nor Volcano's, of whose accounts none has the verb; nor kube-controller-manager's."""
    name = musters(acting, **({ADMITTED: "a"} if marked else {}))
    if marked:
        assert acting.change(ADMINISTRATOR, name, labelled(**{MANAGED_BY: None}), resource=POD_GROUPS).ok
    refused(acting, name, patch, labelled(team="a"))


@cases("text", ("taken off", None), ("changed", "Helm"))
def test_nobody_takes_musters_label_off(acting: Acting, text: str | None) -> None:
    refused(acting, musters(acting), labelled(**{MANAGED_BY: text}))
    refused(acting, musters(acting), labelled(**{MANAGED_BY: text}), {"spec": {"queue": "theirs"}})


@cases("marked", ("by its marks", True), ("by its label", False))
@pytest.mark.parametrize("patch", LINKS)
def test_owners_and_finalizers_are_the_garbage_collectors(acting: Acting, patch: Manifest, *, marked: bool) -> None:
    """Which takes owners off what is orphaned, and finalizers off what was deleted in the foreground."""
    name = musters(acting, **({ADMITTED: "a"} if marked else {}))
    if marked:
        assert acting.change(ADMINISTRATOR, name, labelled(**{MANAGED_BY: None}), resource=POD_GROUPS).ok
    another = {"metadata": {"ownerReferences": [owner(acting)]}}
    for user, change in itertools.product((TENANT, VOLCANO), (patch, another)):
        answer = acting.change(user, name, change, resource=POD_GROUPS)
        assert (answer.status, "of muster's PodGroup stay as they are" in answer.message) == (FORBIDDEN, True), user
    for user in (GARBAGE_COLLECTOR, CONTROLLER_MANAGER):
        made = musters(acting)
        answer = acting.change(user, made, patch, resource=POD_GROUPS)
        assert answer.ok, answer.message
        assert acting.change(user, made, {"metadata": {"finalizers": None}}, resource=POD_GROUPS).ok
    refused(acting, name, patch, {"spec": {"queue": "theirs"}})
    acting.change(GARBAGE_COLLECTOR, name, {"metadata": {"finalizers": None}}, resource=POD_GROUPS)


def owner(acting: Acting) -> Manifest:
    """A reference to an object that is there, or the garbage collector would take what it owns."""
    meta = acting.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "owner-"}})["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}


def musters(acting: Acting, **said: str) -> str:
    """The name of a PodGroup that muster's controller made, with an owner."""
    made = group(acting, **said)
    made["metadata"]["ownerReferences"] = [owner(acting)]
    made["spec"] |= {"minTaskMember": {"head": 1}, "minResources": {"cpu": "500m", "memory": "3Gi"}}
    name: str = acting.ask(made, user=CONTROLLER).body["metadata"]["name"]
    return name


@pytest.mark.parametrize("user", [TENANT, VOLCANO])
def test_nobody_makes_one_like_musters(acting: Acting, user: str) -> None:
    """Neither at once, nor by labelling one's own."""
    made = acting.ask(group(acting), user=user)
    assert (made.status, "is the label of PodGroups that muster made" in made.message) == (FORBIDDEN, True)
    own = acting.ask(foreign_group(acting), user=TENANT).body["metadata"]["name"]
    answer = acting.change(user, own, labelled(**{MANAGED_BY: MUSTER}), resource=POD_GROUPS)
    assert (answer.status, "is the label of PodGroups that muster made" in answer.message) == (FORBIDDEN, True)


def test_everything_of_other_podgroups_is_their_owners(acting: Acting) -> None:
    name = acting.ask(foreign_group(acting), user=TENANT).body["metadata"]["name"]
    for patch in (
        {"spec": {"queue": "theirs"}},
        {"metadata": {"ownerReferences": [owner(acting)]}},
        labelled(**{MANAGED_BY: "Helm"}),
        annotated(**{GROUP_NAME: "a"}),
    ):
        answer = acting.change(TENANT, name, patch, resource=POD_GROUPS)
        assert answer.ok, answer.message


def test_everything_else_of_musters_podgroup_is_open(acting: Acting) -> None:
    """Others' labels and annotations, the status, and the deletion."""
    name = musters(acting, **{STATE: "Running"})
    # What stands on a workload for muster to read is copied by the operators that make PodGroups themselves.
    for patch in (
        {"status": {"phase": "Running"}},
        labelled(team="a"),
        annotated(**{REQUEUE_AFTER: "5m", NUDGE: "now"}),
    ):
        answer = acting.change(TENANT, name, patch, resource=POD_GROUPS)
        assert answer.ok, answer.message
    assert acting.api("DELETE", acting.path(POD_GROUPS, name), user=TENANT).ok


def test_a_namespace_goes_with_musters_podgroups_in_it(acting: Acting) -> None:
    there = Acting(acting.api, own_name("going"))
    make_namespace(acting.api, there.namespace)
    musters(there, **{ADMITTED: "a"})
    path = NAMESPACES.path(name=there.namespace)
    acting.api.delete(path)
    wait_for("the namespace to be gone", lambda: acting.api("GET", path).status == NOT_FOUND, PATIENCE)


def test_volcano_writes_the_status_of_musters_podgroup(acting: Acting) -> None:
    """As its scheduler does: the whole object, in which its client leaves out what is empty."""
    name = musters(acting, **{ADMITTED: "a"})
    assert acting.change(CONTROLLER, name, {"spec": {"minTaskMember": {"head": None}}}, resource=POD_GROUPS).ok
    whole = acting.get(POD_GROUPS, name)
    assert whole["spec"].pop("minTaskMember") == {}
    whole["status"] = {"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "status": "True"}]}
    answer = acting.api("PUT", acting.path(POD_GROUPS, name), whole, user=VOLCANO)
    assert answer.ok, answer.message
    whole = answer.body | {"spec": answer.body["spec"] | {"queue": "theirs"}}
    assert acting.api("PUT", acting.path(POD_GROUPS, name), whole, user=VOLCANO).status == FORBIDDEN


def test_no_expression_of_a_policy_fails_its_type_check(acting: Acting) -> None:
    """Against pods and PodGroups, whose schemas the apiserver knows."""
    for name in ("muster-pods", "muster-other-pods", "muster-podgroups"):
        policy = acting.api.get(ADMISSION_POLICIES.path(name=name))
        assert not policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings")
