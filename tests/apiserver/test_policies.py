"""The chart's ValidatingAdmissionPolicies, by impersonation of a tenant, an administrator and muster's controller."""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING

import pytest

from hack.testbed import wait_for
from muster.injection import opening
from muster.kube.resource import JOBS, POD_GROUPS, PODS
from muster.names import (
    ADMITTED,
    ADMITTED_AT,
    ADMITTED_FOR,
    GANG,
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
    STATE,
    TASK_SPEC,
    WORKLOAD,
)
from muster.objects import ObjectMeta
from tests import builders
from tests.apiserver.acting import (
    CONTROLLER,
    FORBIDDEN,
    GATE_AWAY,
    LABEL_AWAY,
    OTHERS,
    Acting,
    annotated,
    group,
    labelled,
)
from tests.apiserver.conftest import EXCLUDED
from tests.apiserver.desk import PATIENCE, Manifest
from tests.apiserver.owned import owned
from tests.recorder import RAY_CLUSTERS
from webhook.bundles import CLOSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed import Testbed
    from hack.testbed.muster import MusterInstall
    from tests.apiserver.calls import Answer, Calls

TENANT, ADMINISTRATOR = "tenant", "administrator"
WEBHOOK = "system:serviceaccount:muster-system:muster-webhook"
VOLCANO = "system:serviceaccount:volcano-system:volcano-controllers"
OTHER_GATE_AWAY = {"spec": {"schedulingGates": [{"$patch": "delete", "name": OTHERS}]}}
# What the apiserver gives every pod.
PUT_ON_ALL = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
BOTH_GATES_AWAY = {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate} for gate in (GATE, OTHERS)]}}


@pytest.fixture(scope="module")
def acting(bare: Testbed, calls: Calls, webhook_of_session: MusterInstall) -> Iterator[Acting]:
    """A namespace in which a tenant may do everything, and an administrator everything and release."""
    del webhook_of_session
    namespace = f"policies-{uuid.uuid4().hex[:6]}"
    bare.kubectl("create", "namespace", namespace)
    at = f"--namespace={namespace}"
    kinds = "pods,pods/status,podgroups.scheduling.volcano.sh,rayclusters.ray.io"
    bare.kubectl("create", "role", "everything", "--verb=*", f"--resource={kinds}", at)
    users = (f"--user={TENANT}", f"--user={ADMINISTRATOR}")
    bare.kubectl("create", "rolebinding", "everything", "--role=everything", *users, at)
    # As Volcano's own chart has it.
    volcano = ("--verb=get,create,patch", "--resource=pods,podgroups.scheduling.volcano.sh")
    bare.kubectl("create", "clusterrole", "volcano-of-policies", *volcano)
    bare.kubectl(
        *("create", "clusterrolebinding", "volcano-of-policies"),
        *("--clusterrole=volcano-of-policies", f"--user={VOLCANO}"),
    )
    bare.kubectl("create", "rolebinding", "release", "--clusterrole=muster-release", users[1], at)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("its ServiceAccount", lambda: calls("GET", account).ok, PATIENCE)
    acting = Acting(namespace, calls)
    probe = acting.member()

    def in_force() -> bool:
        pretend = "?dryRun=All"
        told = [
            acting.patch(TENANT, probe, GATE_AWAY, door=pretend),
            acting.patch(CONTROLLER, probe, labelled(a="b"), door=pretend),
        ]
        made = acting.create(POD_GROUPS, group(acting, **{ADMITTED: "probe"}), TENANT)
        hook = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster"
        told += [made, calls("PATCH", f"{hook}{pretend}", labelled(a="b"), patch="merge", user=WEBHOOK)]
        # And RBAC.
        may = [acting.patch(ADMINISTRATOR, probe, GATE_AWAY, door=pretend)]
        may.append(acting.patch(VOLCANO, probe, labelled(a="b"), door=pretend))
        return all(answer.status == FORBIDDEN and "muster" in answer.message for answer in told) and all(
            answer.ok for answer in may
        )

    wait_for("the policies to be in force", in_force, PATIENCE)
    yield acting
    bare.kubectl("delete", "namespace", namespace, "--wait=false")
    bare.kubectl("delete", "clusterrole,clusterrolebinding", "volcano-of-policies")


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
]


@pytest.mark.parametrize(("patches", "door"), TRICKS)
def test_who_may_update_pods_does_not_start_or_rebind_them(acting: Acting, patches: list[Manifest], door: str) -> None:
    answer = acting.patch(TENANT, acting.member(), *patches, door=door)
    assert (answer.status, answer.body["reason"]) == (FORBIDDEN, "Forbidden")
    assert "(ClusterRole muster-release), may do that" in answer.message


@pytest.mark.parametrize(("patches", "door"), TRICKS)
def test_who_holds_the_verb_may_do_all_of_it(acting: Acting, patches: list[Manifest], door: str) -> None:
    answer = acting.patch(ADMINISTRATOR, acting.member(), *patches, door=door)
    assert answer.ok, answer.message


@pytest.mark.parametrize("steps", [(LABEL_AWAY, GATE_AWAY), (GATE_AWAY, LABEL_AWAY)], ids=["label first", "gate first"])
def test_two_steps_do_not_lead_further_than_one(acting: Acting, steps: tuple[Manifest, Manifest]) -> None:
    name = acting.member()
    assert [acting.patch(TENANT, name, step).status for step in steps] == [FORBIDDEN, FORBIDDEN]
    assert acting.gates(name) == [OTHERS, GATE]


def test_no_pod_becomes_one_of_a_gang_afterwards(acting: Acting) -> None:
    name = acting.stranger()
    assert acting.patch(TENANT, name, labelled(**{GANG: "demo"})).status == FORBIDDEN
    assert acting.patch(TENANT, name, labelled(app="web")).ok


@pytest.mark.parametrize(
    ("patch", "door"),
    [
        pytest.param(labelled(team="a"), "", id="another label"),
        pytest.param(annotated(**{"example.com/note": "a"}), "", id="another annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/later"]}}, "", id="a finalizer"),
        pytest.param(OTHER_GATE_AWAY, "", id="somebody else's gate"),
        pytest.param({"spec": {"activeDeadlineSeconds": 60}}, "", id="a time limit"),
        pytest.param({"status": {"phase": "Failed"}}, "/status", id="the status, as kubelets write it"),
    ],
)
def test_everything_else_of_a_gangs_pod_is_its_owners(acting: Acting, patch: Manifest, door: str) -> None:
    name = acting.member()
    answer = acting.patch(TENANT, name, patch, door=door)
    assert answer.ok, answer.message
    acting.patch(TENANT, name, {"metadata": {"finalizers": None}})


def test_a_gangs_pod_is_deleted_by_whoever_may_delete_pods(acting: Acting) -> None:
    assert acting.calls("DELETE", acting.path(PODS, acting.member()), user=TENANT).ok


# --- pods that muster leaves alone ------------------------------------------------------------------------------------


def left_alone(acting: Acting, gang: str = "demo") -> Manifest:
    """A labelled pod for Volcano, without gate and without binding, as its owner's own label wants it."""
    pod = builders.pod(f"pod-{uuid.uuid4().hex[:8]}", schedulerName="volcano")
    pod["metadata"]["labels"] = {MANAGED: "false"}
    # The webhook, which need not run here, is not asked about an update.
    made = acting.calls.done("POST", PODS.path(acting.namespace), pod)
    acting.calls.done("PATCH", acting.path(PODS, made["metadata"]["name"]), labelled(**{GANG: gang}), patch="merge")
    return made


def bind(acting: Acting, user: str, pod: Manifest, group_name: str) -> int:
    """What the apiserver says to a new binding."""
    return acting.patch(user, pod["metadata"]["name"], annotated(**{GROUP_NAME: group_name})).status


def test_volcano_binds_a_labelled_pod_that_muster_left_alone(acting: Acting) -> None:
    """To the PodGroup that its controller makes for the pod; without, nobody would ever schedule it."""
    pod = left_alone(acting)
    assert bind(acting, VOLCANO, pod, f"podgroup-{pod['metadata']['uid']}") < FORBIDDEN
    assert bind(acting, VOLCANO, pod, "podgroup-other") == FORBIDDEN


def test_volcano_binds_it_to_the_group_of_its_owner(acting: Acting) -> None:
    pod, owner = left_alone(acting), left_alone(acting)
    patch = {"metadata": {"ownerReferences": owned(pod, owner)["metadata"]["ownerReferences"]}}
    acting.calls.done("PATCH", acting.path(PODS, pod["metadata"]["name"]), patch, patch="merge")
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
    assert acting.patch(ADMINISTRATOR, name, bare_of_it).ok
    uid = acting.calls.done("GET", acting.path(PODS, name))["metadata"]["uid"]
    assert acting.patch(VOLCANO, name, annotated(**{GROUP_NAME: f"podgroup-{uid}"})).status == FORBIDDEN


def test_where_no_webhook_looks_no_policy_is_in_the_way(acting: Acting) -> None:
    """In namespaces that are excluded nothing is muster's; its own controller is held there, too."""
    there = Acting(EXCLUDED, acting.calls)
    name = there.member()
    # Volcano's account holds rights there, but not the verb.
    assert there.patch(VOLCANO, name, LABEL_AWAY, GATE_AWAY).ok
    assert there.create(POD_GROUPS, group(there, **{ADMITTED: "a"}), VOLCANO).ok
    assert there.patch(CONTROLLER, name, labelled(team="a")).status == FORBIDDEN
    there.calls.done("DELETE", there.path(PODS, name))


# --- PodGroups --------------------------------------------------------------------------------------------------------


MARKS = [ADMITTED, ADMITTED_AT, ADMITTED_FOR, STATE, MESSAGE, PASSED_SINCE, PASSED_IN, REQUEUED_AT]


@pytest.mark.parametrize("mark", MARKS)
def test_what_was_decided_is_not_written_by_a_tenant(acting: Acting, mark: str) -> None:
    """Neither at the creation of a PodGroup, nor later, nor taken away."""

    def patch(user: str, text: str | None) -> int:
        return acting.patch(user, name, annotated(**{mark: text}), resource=POD_GROUPS).status

    made = acting.create(POD_GROUPS, group(acting, **{mark: "a"}), TENANT)
    assert (made.status, "are what muster has decided and said of a gang" in made.message) == (FORBIDDEN, True)
    name = acting.create(POD_GROUPS, group(acting), CONTROLLER).body["metadata"]["name"]
    assert patch(TENANT, "a") == FORBIDDEN
    assert patch(CONTROLLER, "a") < FORBIDDEN
    assert (patch(TENANT, "b"), patch(TENANT, None)) == (FORBIDDEN, FORBIDDEN)
    assert patch(ADMINISTRATOR, None) < FORBIDDEN


def test_everything_else_of_a_podgroup_is_its_owners(acting: Acting) -> None:
    """Volcano and operators write status, spec and annotations; what muster has said stays there meanwhile."""
    name = acting.create(POD_GROUPS, group(acting, **{STATE: "Running"}), CONTROLLER).body["metadata"]["name"]
    changes = ({"status": {"phase": "Running"}}, {"spec": {"minMember": 2}}, labelled(team="a"))
    # What stands on a workload for muster to read is copied by the operators that make PodGroups themselves.
    for patch in (*changes, annotated(**{REQUEUE_AFTER: "5m", NUDGE: "now"})):
        answer = acting.patch(TENANT, name, patch, resource=POD_GROUPS)
        assert answer.ok, answer.message
    assert acting.calls("DELETE", acting.path(POD_GROUPS, name), user=TENANT).ok


# --- muster's controller ----------------------------------------------------------------------------------------------


def test_the_controller_takes_its_own_gate_off(acting: Acting) -> None:
    name = acting.member()
    pod = acting.calls.done("GET", acting.path(PODS, name))
    meta = ObjectMeta(uid=pod["metadata"]["uid"], resource_version=pod["metadata"]["resourceVersion"])
    assert acting.patch(CONTROLLER, name, opening(meta)).ok
    assert acting.gates(name) == [OTHERS]


MORE = [
    pytest.param(labelled(team="a"), id="a label"),
    pytest.param(LABEL_AWAY, id="its own label"),
    pytest.param(annotated(**{"example.com/note": "a"}), id="an annotation"),
    pytest.param({"metadata": {"finalizers": ["example.com/later"]}}, id="a finalizer"),
    pytest.param({"spec": {"containers": [{"name": "main", "image": "evil"}]}}, id="an image"),
    pytest.param({"spec": {"tolerations": [*PUT_ON_ALL, {"operator": "Exists"}]}}, id="tolerations"),
    pytest.param({"spec": {"nodeSelector": {"disk": "fast"}}}, id="where it runs"),
    pytest.param({"spec": {"activeDeadlineSeconds": 60}}, id="a time limit"),
]


@pytest.mark.parametrize("patch", [*MORE, pytest.param(OTHER_GATE_AWAY, id="somebody else's gate")])
def test_the_controller_changes_nothing_else_of_a_pod(acting: Acting, patch: Manifest) -> None:
    """Neither alone nor with its own gate, nor of a pod that is no member of any gang."""
    name = acting.member()
    both = (BOTH_GATES_AWAY,) if patch is OTHER_GATE_AWAY else (GATE_AWAY, patch)
    answers = [
        acting.patch(CONTROLLER, name, patch),
        acting.patch(CONTROLLER, name, *both),
        acting.patch(CONTROLLER, acting.stranger(), patch),
    ][: 2 if patch is LABEL_AWAY else 3]
    for answer in answers:
        assert answer.status == FORBIDDEN
        assert "takes its own gate off pods, and changes nothing else" in answer.message


def test_the_controller_deletes_only_pods_of_gangs_without_a_node(acting: Acting) -> None:
    placed = acting.member(nodeName="somewhere")
    for name in (acting.stranger(), placed):
        answer = acting.calls("DELETE", acting.path(PODS, name), user=CONTROLLER)
        assert (answer.status, "deletes no pods but those" in answer.message) == (FORBIDDEN, True)
    assert acting.calls("DELETE", acting.path(PODS, acting.member()), user=CONTROLLER).ok


def test_the_controller_only_touches_workloads(acting: Acting) -> None:
    assert acting.create(RAY_CLUSTERS, builders.ray_cluster("quiet").manifest()).ok

    def patch(change: Manifest) -> Answer:
        return acting.patch(CONTROLLER, "quiet", change, resource=RAY_CLUSTERS)

    assert patch(annotated(**{NUDGE: "now"})).ok
    others = annotated(**{NUDGE: "later", "example.com/note": "a"})
    for change in (others, labelled(team="a"), {"spec": {"suspend": True}}, {"metadata": {"finalizers": ["a.b/c"]}}):
        answer = patch(change)
        assert (answer.status, "touches the annotation muster.dev/nudge" in answer.message) == (FORBIDDEN, True)


def test_the_controller_only_touches_jobs(acting: Acting) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
    job = {"metadata": {"name": "quiet"}, "spec": {"suspend": True, "template": pod}}
    assert acting.create(JOBS, job).ok
    assert acting.patch(CONTROLLER, "quiet", annotated(**{NUDGE: "now"}), resource=JOBS).ok
    others = annotated(**{NUDGE: "later", "example.com/note": "a"})
    for change in (others, labelled(team="a"), {"spec": {"suspend": False}}, {"spec": {"parallelism": 100}}):
        answer = acting.patch(CONTROLLER, "quiet", change, resource=JOBS)
        assert (answer.status, "touches the annotation muster.dev/nudge" in answer.message) == (FORBIDDEN, True)


def test_the_controller_leaves_podgroups_of_others_alone(acting: Acting) -> None:
    """By the label that says whose one is; it neither takes one over, nor gives one away."""

    def patch(name: str, change: Manifest) -> int:
        return acting.patch(CONTROLLER, name, change, resource=POD_GROUPS).status

    foreign = group(acting)
    del foreign["metadata"]["labels"]
    made = acting.create(POD_GROUPS, foreign, CONTROLLER)
    assert (made.status, "no PodGroups but its own" in made.message) == (FORBIDDEN, True)
    theirs = acting.create(POD_GROUPS, group(acting), CONTROLLER).body["metadata"]["name"]
    assert acting.patch(TENANT, theirs, labelled(**{MANAGED_BY: None}), resource=POD_GROUPS).ok
    changes: list[Manifest] = [{"spec": {"minMember": 2}}, labelled(**{MANAGED_BY: MUSTER}), annotated(note="a")]
    assert [patch(theirs, change) for change in changes] == [FORBIDDEN] * 3
    assert acting.calls("DELETE", acting.path(POD_GROUPS, theirs), user=CONTROLLER).status == FORBIDDEN
    own = acting.create(POD_GROUPS, group(acting), CONTROLLER).body["metadata"]["name"]
    assert patch(own, {"spec": {"minMember": 2}}) < FORBIDDEN
    assert patch(own, labelled(**{MANAGED_BY: None})) == FORBIDDEN
    assert acting.calls("DELETE", acting.path(POD_GROUPS, own), user=CONTROLLER).ok


# --- muster's webhook -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_the_webhook_writes_nothing_but_whom_to_trust(acting: Acting, kind: str) -> None:
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/muster"
    authority = acting.calls.done("GET", path)["webhooks"][0]["clientConfig"]["caBundle"]

    def change(where: str, value: object) -> Answer:
        body = [{"op": "add", "path": where, "value": value}]
        return acting.calls("PATCH", f"{path}?dryRun=All", body, patch="json", user=WEBHOOK)

    trusted = change("/webhooks/0/clientConfig/caBundle", base64.b64encode(base64.b64decode(authority) * 2).decode())
    assert trusted.ok, trusted.message
    elsewhere = {"namespace": "tenant", "name": "other", "path": "/", "port": 443}
    tricks: dict[str, object] = {
        "/webhooks/0/clientConfig/service": elsewhere,
        "/webhooks/0/rules/0/resources": ["secrets"],
        "/webhooks/0/failurePolicy": "Ignore",
        "/webhooks/0/namespaceSelector": {},
        "/webhooks/0/matchConditions": [{"name": CLOSED, "expression": "false"}],
        "/metadata/labels/team": "a",
    }
    if kind == "validating":
        tricks |= {
            "/webhooks/0/matchConditions": [],
            "/webhooks/0/matchConditions/-": {"name": CLOSED, "expression": "false"},
        }
    for where, value in tricks.items():
        answer = change(where, value)
        assert (answer.status, "changes nothing else of them" in answer.message) == (FORBIDDEN, True), where


def test_no_expression_of_a_policy_fails_its_type_check(bare: Testbed, acting: Acting) -> None:
    """Against pods and PodGroups, whose schemas the apiserver knows."""
    del acting
    text = bare.kubectl("get", "validatingadmissionpolicies", "--output=json").stdout
    policies = {item["metadata"]["name"]: item for item in json.loads(text)["items"]}
    for name in ("muster-pods", "muster-podgroups"):
        assert not policies[name].get("status", {}).get("typeChecking", {}).get("expressionWarnings")
