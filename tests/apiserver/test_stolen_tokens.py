"""What somebody can and cannot do who has a token of muster's: docs/security.md says what it comes to.

What RBAC alone keeps from him is in test_rights.py; here are the rights that he has, and what policies leave of them.
"""

import base64
from collections.abc import Callable, Iterator

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import ADMITTED, MANAGED_BY, NUDGE
from muster.model.resource import EVENTS, POD_GROUPS, PODS
from tests.support.cluster.desk import PATIENCE, Manifest, open_desk
from tests.support.cluster.policy_actors import (
    CONTROLLER,
    FORBIDDEN,
    GATE_AWAY,
    LABEL_AWAY,
    Acting,
    annotated,
    group,
    labelled,
)
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.trust import everywhere
from tests.support.cluster.verbs import own_name
from tests.support.manifests import applied

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/muster-system/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
EVIL = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}


@pytest.fixture(scope="module")
def thief(bare: Testbed, webhook_of_session: MusterInstall) -> Iterator[Callable[[str], Api]]:
    """Api with the token that one of muster's processes has, from wherever the thief is."""
    opened: list[Api] = []

    def with_token_of(process: str) -> Api:
        opened.append(bare.api(webhook_of_session.programs[process].token))
        return opened[-1]

    yield with_token_of
    for calls in opened:
        calls.close()


@pytest.fixture(scope="module")
def tenants(bare: Testbed, calls: Api, webhook_of_session: MusterInstall) -> Iterator[Acting]:
    """A namespace of a tenant's, when the policies are in force."""
    with open_desk(bare, calls, "stolen") as desk:
        acting = Acting(calls, desk.namespace)
        desk.create(applied.queue(desk.namespace, cpu="8"))
        probe = acting.stranger()

        def in_force() -> bool:
            return acting.change(CONTROLLER, probe, labelled(a="b"), door="?dryRun=All").status == FORBIDDEN

        wait_for(f"the policies of {webhook_of_session.release} to be in force", in_force, PATIENCE)
        yield acting


def test_a_thief_of_the_webhooks_token_reads_pods_and_workloads_and_writes_none(
    tenants: Acting, thief: Callable[[str], Api]
) -> None:
    """What stands in pods is seen, in environment variables too; nothing runs, ends or starts by it."""
    stolen, name = thief("webhook"), tenants.member()
    assert stolen("GET", tenants.path(PODS, name)).ok
    assert stolen("GET", "/api/v1/pods").ok
    own = Acting(stolen, tenants.namespace)
    for patch in (GATE_AWAY, LABEL_AWAY, EVIL, annotated(a="b")):
        assert own.change("", name, patch).status == FORBIDDEN
    assert own.ask(group(tenants)).status == FORBIDDEN
    assert stolen("POST", own.path(EVENTS), {"metadata": {"name": "a"}}).status == FORBIDDEN
    assert stolen("DELETE", tenants.path(PODS, name)).status == FORBIDDEN


def test_a_thief_of_the_webhooks_token_breaks_trust_and_muster_mends_it(
    webhook: MusterInstall, calls: Api, thief: Callable[[str], Api]
) -> None:
    """He may have the apiserver trust nobody, which refuses labelled pods for seconds; nobody else is called."""
    stolen, path = thief("webhook"), f"{HOOKS}/{webhook.release}"

    def patch(where: str, value: object) -> int:
        return stolen(
            "PATCH", path, [{"op": "add", "path": f"/webhooks/0/{where}", "value": value}], patch="json"
        ).status

    elsewhere = {"namespace": "stolen", "name": "other", "path": "/", "port": 443}
    assert patch("clientConfig/service", elsewhere) == FORBIDDEN
    assert patch("failurePolicy", "Ignore") == FORBIDDEN
    # An authority that has issued nothing.
    foreign = base64.b64encode((webhook.testbed.ca_file).read_bytes()).decode()
    assert patch("clientConfig/caBundle", foreign) < FORBIDDEN

    wait_for("muster to be trusted again", lambda: everywhere(calls), PATIENCE)


def test_a_thief_of_the_webhooks_token_has_the_keys_of_its_certificate_and_no_other_secret(
    webhook: MusterInstall, thief: Callable[[str], Api]
) -> None:
    """He can then sign as muster's authority; to be asked in muster's place he must get hold of its traffic as well."""
    stolen = thief("webhook")
    secret = stolen("GET", f"/api/v1/namespaces/{webhook.namespace}/secrets/muster-webhook-tls")
    assert set(secret.body["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert stolen("GET", f"/api/v1/namespaces/{webhook.namespace}/secrets").status == FORBIDDEN
    for traffic in ("services/muster-webhook", "endpoints/muster-webhook"):
        change = stolen("PATCH", f"/api/v1/namespaces/{webhook.namespace}/{traffic}", {}, patch="merge")
        assert change.status == FORBIDDEN


def test_a_thief_of_the_controllers_token_starts_gangs_early_and_changes_nothing_of_their_pods(
    tenants: Acting, thief: Callable[[str], Api]
) -> None:
    """A gate that he takes off stays off: Volcano alone holds that pod to its queue then."""
    stolen = Acting(thief("controller"), tenants.namespace)
    # kube-controller-manager deletes pods on a node that it has missed for long: each has one of its own.
    name, placed = tenants.member(), tenants.member(nodeName=own_name("node"))
    for patch in (EVIL, annotated(a="b"), labelled(a="b")):
        for pod in (name, placed, tenants.stranger()):
            assert stolen.change("", pod, patch).status == FORBIDDEN
    assert stolen.change("", name, GATE_AWAY).ok
    # Its operator makes a pod anew that never ran; what runs is not his to end.
    assert stolen.api("DELETE", tenants.path(PODS, name)).ok
    assert stolen.api("DELETE", tenants.path(PODS, placed)).status == FORBIDDEN


def test_a_thief_of_the_controllers_token_forges_what_was_decided_of_gangs(
    tenants: Acting, thief: Callable[[str], Api]
) -> None:
    """On PodGroups of muster's, which he may make and take away; on those of operators and Volcano nothing."""
    stolen = Acting(thief("controller"), tenants.namespace)
    own = group(tenants, **{ADMITTED: "uid"})
    assert stolen.ask(own).ok
    foreign = group(tenants)
    foreign["metadata"]["labels"], foreign["spec"]["queue"] = {}, tenants.namespace
    assert stolen.ask(foreign).status == FORBIDDEN
    tenants.create(foreign)
    name = foreign["metadata"]["name"]
    for patch in (annotated(**{ADMITTED: "uid"}), labelled(**{MANAGED_BY: "muster"}), {"spec": {"minMember": 9}}):
        assert stolen.change("", name, patch, resource=POD_GROUPS).status == FORBIDDEN
    assert stolen.api("DELETE", tenants.path(POD_GROUPS, name)).status == FORBIDDEN


def test_a_thief_of_the_controllers_token_nudges_workloads_and_stops_none(
    tenants: Acting, thief: Callable[[str], Api]
) -> None:
    stolen = Acting(thief("controller"), tenants.namespace)
    tenants.create(applied.ray_cluster("quiet"))

    def patch(change: Manifest) -> int:
        return stolen.change("", "quiet", change, resource=RAY_CLUSTERS).status

    assert patch(annotated(**{NUDGE: "now"})) < FORBIDDEN
    assert patch({"spec": {"suspend": True}}) == FORBIDDEN
    assert patch({"metadata": {"finalizers": ["example.com/never"]}}) == FORBIDDEN
    assert stolen.api("DELETE", tenants.path(RAY_CLUSTERS, "quiet")).status == FORBIDDEN


def test_a_thief_of_the_controllers_token_takes_the_lease_and_no_other(thief: Callable[[str], Api], calls: Api) -> None:
    """While he keeps it no replica admits anything: the alert on a missing leader says so."""
    stolen = thief("controller")
    name = "muster-controller"
    spec = {"holderIdentity": "thief", "leaseDurationSeconds": 3600}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    made = stolen("POST", LEASES, body)
    current = made if made.ok else stolen("GET", f"{LEASES}/{name}")
    taken = stolen("PUT", f"{LEASES}/{name}", {**current.body, "spec": spec})
    assert (taken.status, taken.body["spec"]["holderIdentity"]) == (200, "thief")
    others = stolen("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
    assert others.status == FORBIDDEN
    calls("DELETE", f"{LEASES}/{name}")


def test_a_thief_of_the_controllers_token_spoils_estimates_and_reads_no_other_config_map(
    thief: Callable[[str], Api],
) -> None:
    """And makes none."""
    stolen = thief("controller")
    own = f"{MAPS}/muster-history"
    kept = stolen("GET", own).body.get("data")
    assert stolen("PATCH", own, {"data": {"runs": "{}"}}, patch="merge").ok
    assert stolen("PATCH", own, {"data": kept}, patch="merge").ok
    assert stolen("GET", MAPS).status == FORBIDDEN
    assert stolen("GET", f"{MAPS}/kube-root-ca.crt").status == FORBIDDEN
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "muster-history-another"}}
    assert stolen("POST", MAPS, made).status == FORBIDDEN
    assert stolen("DELETE", own).status == FORBIDDEN


def test_a_token_of_muster_asks_for_no_other_token(tenants: Acting, thief: Callable[[str], Api]) -> None:
    """What is stolen ends with its pod, for it is bound to it, and cannot be made to last."""
    for process in ("webhook", "controller"):
        for account in (
            f"muster-system/serviceaccounts/muster-{process}",
            f"{tenants.namespace}/serviceaccounts/default",
        ):
            answer = thief(process)("POST", f"/api/v1/namespaces/{account}/token", {"spec": {}})
            assert answer.status == FORBIDDEN
