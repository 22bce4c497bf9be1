"""The chart's ValidatingAdmissionPolicies on muster's own ServiceAccounts: a stolen token does what muster does."""

import base64

import pytest

from hack.testbed import wait_for
from hack.testbed.api import Answer
from muster.gangs.pod_patch import opening
from muster.model.names import ADMITTED, GATE, MANAGED_BY, MUSTER, NUDGE, REQUEUE_AFTER, STATE
from muster.model.objects import ObjectMeta
from muster.model.resource import JOBS, POD_GROUPS, PODS
from tests.support.cluster.desk import Manifest
from tests.support.cluster.objects import gates
from tests.support.cluster.policy_actors import (
    ADMINISTRATOR,
    CONTROLLER,
    FORBIDDEN,
    GATE_AWAY,
    LABEL_AWAY,
    OTHER_GATE_AWAY,
    OTHERS,
    TENANT,
    WEBHOOK,
    Acting,
    annotated,
    foreign_group,
    group,
    labelled,
)
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.verbs import own_name
from tests.support.manifests import applied
from webhook.certificates.bundles import CLOSED

# What the apiserver gives every pod.
PUT_ON_ALL = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
BOTH_GATES_AWAY = {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate} for gate in (GATE, OTHERS)]}}


# --- muster's controller ----------------------------------------------------------------------------------------------


def test_the_controller_takes_its_own_gate_off(acting: Acting) -> None:
    name = acting.member()
    pod = acting.get(PODS, name)
    meta = ObjectMeta(uid=pod["metadata"]["uid"], resource_version=pod["metadata"]["resourceVersion"])
    assert acting.change(CONTROLLER, name, opening(meta)).ok
    assert gates(acting.get(PODS, name)) == [OTHERS]


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
        acting.change(CONTROLLER, name, patch),
        acting.change(CONTROLLER, name, *both),
        acting.change(CONTROLLER, acting.stranger(), patch),
    ][: 2 if patch is LABEL_AWAY else 3]
    for answer in answers:
        assert answer.status == FORBIDDEN
        assert "takes its own gate off pods, and changes nothing else" in answer.message


def test_the_controller_deletes_only_pods_of_gangs_without_a_node(acting: Acting) -> None:
    placed = acting.member(nodeName=own_name("node"))
    for name in (acting.stranger(), placed):
        answer = acting.api("DELETE", acting.path(PODS, name), user=CONTROLLER)
        assert (answer.status, "deletes no pods but those" in answer.message) == (FORBIDDEN, True)
    assert acting.api("DELETE", acting.path(PODS, acting.member()), user=CONTROLLER).ok


@pytest.mark.parametrize(("text", "may"), [("30m,not-ready", True), ("30m", False)])
def test_the_controller_deletes_placed_pods_that_ask_for_it(acting: Acting, text: str, *, may: bool) -> None:
    """The annotation comes with the pod, from its workload."""
    name = acting.member(nodeName=own_name("node"))
    assert acting.change(ADMINISTRATOR, name, annotated(**{REQUEUE_AFTER: text})).ok
    assert acting.api("DELETE", acting.path(PODS, name), user=CONTROLLER).ok is may


def test_the_controller_only_touches_workloads(acting: Acting) -> None:
    acting.create(applied.ray_cluster("quiet"))

    def patch(change: Manifest) -> Answer:
        return acting.change(CONTROLLER, "quiet", change, resource=RAY_CLUSTERS)

    assert patch(annotated(**{NUDGE: "now"})).ok
    others = annotated(**{NUDGE: "later", "example.com/note": "a"})
    for change in (others, labelled(team="a"), {"spec": {"suspend": True}}, {"metadata": {"finalizers": ["a.b/c"]}}):
        answer = patch(change)
        assert (answer.status, "touches the annotation muster.dev/nudge" in answer.message) == (FORBIDDEN, True)


def test_the_controller_only_touches_jobs(acting: Acting) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "quiet"}}
    acting.create({**job, "spec": {"suspend": True, "template": pod}})
    assert acting.change(CONTROLLER, "quiet", annotated(**{NUDGE: "now"}), resource=JOBS).ok
    others = annotated(**{NUDGE: "later", "example.com/note": "a"})
    for change in (others, labelled(team="a"), {"spec": {"suspend": False}}, {"spec": {"parallelism": 100}}):
        answer = acting.change(CONTROLLER, "quiet", change, resource=JOBS)
        assert (answer.status, "touches the annotation muster.dev/nudge" in answer.message) == (FORBIDDEN, True)


def test_the_controller_leaves_podgroups_of_others_alone(acting: Acting) -> None:
    """By the label that says whose one is; it neither takes one over, nor gives one away."""

    def patch(name: str, change: Manifest) -> int:
        return acting.change(CONTROLLER, name, change, resource=POD_GROUPS).status

    made = acting.ask(foreign_group(acting), user=CONTROLLER)
    assert (made.status, "no PodGroups but its own" in made.message) == (FORBIDDEN, True)
    theirs = acting.ask(foreign_group(acting), user=TENANT).body["metadata"]["name"]
    changes: list[Manifest] = [{"spec": {"minMember": 2}}, labelled(**{MANAGED_BY: MUSTER}), annotated(note="a")]
    assert [patch(theirs, change) for change in changes] == [FORBIDDEN] * 3
    assert acting.api("DELETE", acting.path(POD_GROUPS, theirs), user=CONTROLLER).status == FORBIDDEN
    own = acting.ask(group(acting), user=CONTROLLER).body["metadata"]["name"]
    assert patch(own, {"spec": {"minMember": 2}}) < FORBIDDEN
    assert patch(own, labelled(**{MANAGED_BY: None})) == FORBIDDEN
    assert acting.api("DELETE", acting.path(POD_GROUPS, own), user=CONTROLLER).ok


def test_the_controller_puts_its_label_back(acting: Acting) -> None:
    """On a PodGroup with its marks; so it was before the policy, or without it, that somebody took the label off."""
    name = acting.ask(group(acting, **{ADMITTED: "a"}), user=CONTROLLER).body["metadata"]["name"]
    for change in (labelled(**{MANAGED_BY: None}), {"spec": {"queue": "theirs"}}):
        assert acting.change(ADMINISTRATOR, name, change, resource=POD_GROUPS).ok
    assert acting.change(CONTROLLER, name, annotated(**{STATE: "Running"}), resource=POD_GROUPS).status == FORBIDDEN
    mend = {**labelled(**{MANAGED_BY: MUSTER}), "spec": {"queue": "ours"}}
    assert acting.change(CONTROLLER, name, mend, resource=POD_GROUPS).ok


# --- muster's webhook -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_the_webhook_writes_nothing_but_whom_to_trust(acting: Acting, kind: str) -> None:
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/muster"

    def opened() -> str:
        hook = acting.api.get(path)["webhooks"][0]
        closed = [one for one in hook.get("matchConditions", ()) if one["name"] == CLOSED]
        return "" if closed else hook["clientConfig"].get("caBundle", "")

    authority = wait_for("the webhook to say whom to trust, and to be called", opened)

    def change(where: str, value: object) -> Answer:
        body = [{"op": "add", "path": where, "value": value}]
        return acting.api("PATCH", f"{path}?dryRun=All", body, patch="json", user=WEBHOOK)

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
