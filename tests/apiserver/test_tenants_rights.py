"""What the administrator of a namespace, by Kubernetes' own role `admin`, gets of muster: nothing."""

from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.resource import NAMESPACES
from tests.apiserver.conftest import running
from tests.support.cluster.desk import PATIENCE, Manifest, open_desk
from tests.support.cluster.grants import bind, user
from tests.support.cluster.helm_release import CHART

FORBIDDEN = 403
OWNER = "owner-of-the-namespace"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
RELEASE = {"apiGroups": ["muster.dev"], "resources": ["gangs"], "verbs": ["release"]}


@pytest.fixture(scope="module")
def owned(bare: Testbed, calls: Api, webhook_of_session: MusterInstall) -> Iterator[str]:
    """A namespace whose tenant is its administrator."""
    running(webhook_of_session)
    with open_desk(bare, calls, "owned") as desk:
        bind(calls, "owner", "admin", user(OWNER), namespace=desk.namespace)
        pods = f"/api/v1/namespaces/{desk.namespace}/pods"
        wait_for("RBAC to have heard of it", lambda: calls("GET", pods, user=OWNER).ok, PATIENCE)
        yield desk.namespace


def to(role: str) -> Manifest:
    return {
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OWNER}],
    }


def test_he_may_bind_roles_of_kubernetes_in_his_namespace(calls: Api, owned: str) -> None:
    """Or what follows would show nothing."""
    made = calls("POST", f"{RBAC}/namespaces/{owned}/rolebindings?dryRun=All", to("view"), user=OWNER)
    assert made.ok, made.message


@pytest.mark.parametrize("role", ["muster-release", "muster-controller", "muster-page", "muster-webhook"])
def test_no_namespaces_administrator_takes_a_role_of_musters(calls: Api, owned: str, role: str) -> None:
    answer = calls("POST", f"{RBAC}/namespaces/{owned}/rolebindings", to(role), user=OWNER)
    assert (answer.status, "not currently held" in answer.message) == (FORBIDDEN, True)


def test_no_namespaces_administrator_makes_a_role_with_musters_verb(calls: Api, owned: str) -> None:
    role = {"metadata": {"name": "mine"}, "rules": [RELEASE]}
    answer = calls("POST", f"{RBAC}/namespaces/{owned}/roles", role, user=OWNER)
    assert (answer.status, "not currently held" in answer.message) == (FORBIDDEN, True)


@pytest.mark.parametrize("role", ["admin", "edit", "view"])
def test_the_roles_of_kubernetes_have_nothing_of_musters(calls: Api, owned: str, role: str) -> None:
    """Nothing of the chart is aggregated into them."""
    del owned
    rules = calls.done("GET", f"{RBAC}/clusterroles/{role}")["rules"]
    assert rules
    assert not [rule for rule in rules if "muster.dev" in rule.get("apiGroups", ())]
    ours = calls.done("GET", f"{RBAC}/clusterroles?labelSelector=app.kubernetes.io/name=muster")["items"]
    names = [item["metadata"]["name"] for item in ours]
    assert names == ["muster-controller", "muster-page", "muster-release", "muster-webhook"]
    assert not [key for item in ours for key in item["metadata"]["labels"] if "aggregate-to" in key]


def test_with_the_reader_role_whoever_may_view_a_namespace_reads_its_podgroups_and_workloads(
    bare: Testbed, calls: Api, owned: str
) -> None:
    """By aggregation of the real controller manager; not in other namespaces, and no writes."""
    text = bare.helm(
        *("template", "muster", str(CHART), "--namespace=muster-system", "--show-only=templates/rbac-reader.yaml"),
        *("--set=image.repository=r", "--set=readerRole=true"),
    ).stdout
    viewer, role = "viewer-of-the-namespace", yaml.safe_load(text)
    bind(calls, "viewer", "view", user(viewer), namespace=owned)
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
    clusters = "/apis/ray.io/v1/namespaces/{}/rayclusters"

    def sees(path: str) -> bool:
        return calls("GET", path.format(owned), user=viewer).ok

    assert not sees(groups)
    calls.done("POST", f"{RBAC}/clusterroles", role)
    try:
        for path in (groups, clusters):
            wait_for("the role to be aggregated", partial(sees, path), PATIENCE)
            assert calls("GET", path.format("default"), user=viewer).status == FORBIDDEN
            assert calls("POST", path.format(owned), {}, user=viewer).status == FORBIDDEN
    finally:
        calls.done("DELETE", f"{RBAC}/clusterroles/{role['metadata']['name']}")
    wait_for("the role to be taken back", lambda: not sees(groups), PATIENCE)


@pytest.mark.parametrize("label", ["muster", "muster.dev/managed"])
def test_no_namespaces_administrator_labels_it(calls: Api, owned: str, label: str) -> None:
    """So that he neither takes it out of the chart's `namespaceSelector` nor turns muster off in it."""
    path = NAMESPACES.path(name=owned)
    assert calls("GET", path, user=OWNER).ok
    change = {"metadata": {"labels": {label: "false"}}}
    for patch in ("merge", "apply"):
        query = "?fieldManager=mine" if patch == "apply" else ""
        body = {"apiVersion": "v1", "kind": "Namespace", **change} if patch == "apply" else change
        assert calls("PATCH", f"{path}{query}", body, patch=patch, user=OWNER).status == FORBIDDEN
    assert label not in calls.get(path)["metadata"]["labels"]


def test_the_label_with_a_namespaces_name_is_the_apiservers_own(calls: Api, owned: str) -> None:
    """Whoever may write the Namespace."""
    path = NAMESPACES.path(name=owned)
    for value in ("other", None):
        calls("PATCH", path, {"metadata": {"labels": {"kubernetes.io/metadata.name": value}}}, patch="merge")
        assert calls.get(path)["metadata"]["labels"]["kubernetes.io/metadata.name"] == owned


@pytest.mark.parametrize("path", ["secrets", "secrets/muster-webhook-tls", "pods", "leases"])
def test_what_is_in_musters_namespace_is_not_his_to_read(calls: Api, owned: str, path: str) -> None:
    del owned
    root = "/apis/coordination.k8s.io/v1" if path == "leases" else "/api/v1"
    assert calls("GET", f"{root}/namespaces/muster-system/{path}", user=OWNER).status == FORBIDDEN
