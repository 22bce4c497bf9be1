"""What muster's ServiceAccounts may do: nothing else, nowhere, ever. docs/security.md lists it, with what it is for."""

import pytest
import yaml

from muster.workloads import GANG_KINDS
from tests.docs.test_security import PAGE
from tests.support.chart.rendered import Render, Rendered
from tests.support.cluster.rbac import granted, listed

READ = ["get", "list", "watch"]
_NATIVE = ("schedulers={kubernetes}", "queues.source=muster")
_ELASTIC_QUOTAS = ("scheduling.x-k8s.io", "elasticquotas")


@pytest.mark.parametrize(
    ("process", "values"),
    [
        ("muster-webhook", ()),
        ("muster-controller", ()),
        ("muster-page", ("page.enabled=true", "page.existingSecret=address")),
        ("muster-uninstall", ()),
        ("muster-probe", _NATIVE),
    ],
)
def test_the_page_lists_what_the_chart_grants(render: Render, process: str, values: tuple[str, ...]) -> None:
    """Read by people, and neither more nor less than the roles."""
    rights = granted(render(*values).documents, process)
    assert rights
    assert sorted(listed(PAGE, process, "muster-system")) == sorted(rights), f"docs/security.md: rows of {process}"


def test_nobody_else_is_bound_to_anything(render: Render) -> None:
    """A further account, or a user or a group, would have rights that the page does not list.

    All users may read the settings (tests/chart/test_public.py).
    """
    documents = render().documents
    bindings = [
        item
        for item in documents
        if item["kind"].endswith("RoleBinding") and item["metadata"]["name"] not in {"muster-settings", "muster-status"}
    ]
    subjects = [subject for binding in bindings for subject in binding["subjects"]]
    assert {(subject["kind"], subject["name"], subject["namespace"]) for subject in subjects} == {
        ("ServiceAccount", name, "muster-system")
        for name in ("muster-webhook", "muster-controller", "muster-uninstall")
    }
    accounts = {item["metadata"]["name"] for item in documents if item["kind"] == "ServiceAccount"}
    assert accounts == {subject["name"] for subject in subjects}


def test_the_account_of_the_probe_makes_its_objects_and_no_others(render: Render) -> None:
    """In its own namespace, and only where kube-scheduler places gangs."""
    rendered = render(*_NATIVE)
    assert rendered.rules("Role", "muster-probe") == [
        ("", "pods", (), ("get", "create", "delete")),
        ("scheduling.k8s.io", "podgroups", (), ("create", "delete")),
    ]
    rights = granted(rendered.documents, "muster-probe")
    assert {right.namespace for right in rights} == {"muster-system"}
    assert not granted(render().documents, "muster-probe")


@pytest.mark.parametrize("values", ["certManager.enabled=true", "webhook.existingSecret=mine"])
def test_with_certificates_of_others_the_webhook_has_no_secret(render: Render, values: str) -> None:
    """What it writes are events, and that its configurations may be called; a policy keeps it from their caBundles."""
    rights = granted(render(values).documents, "muster-webhook")
    kinds = {f"{kind}webhookconfigurations" for kind in ("mutating", "validating")}
    written = {right.resource for right in rights if right.verb not in ("get", "list", "watch")}
    assert written == {"events", *kinds}
    assert {right.name for right in rights if right.resource in kinds} == {"muster"}
    assert "secrets" not in {right.resource for right in rights}


def test_no_right_is_a_wildcard(default: Rendered) -> None:
    roles = [item for item in default.documents if item["kind"] in {"Role", "ClusterRole"}]
    assert "*" not in yaml.safe_dump([role["rules"] for role in roles])


@pytest.mark.parametrize("process", ["muster-webhook", "muster-controller"])
def test_rights_go_to_the_processs_own_service_account(default: Rendered, process: str) -> None:
    subject = {"kind": "ServiceAccount", "name": process, "namespace": "muster-system"}
    for kind, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        binding = default.one(kind, process)
        assert binding["subjects"] == [subject]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (role, process)
    assert default.one("Deployment", process)["spec"]["template"]["spec"]["serviceAccountName"] == process


def test_the_role_for_tenants_reads_and_is_there_only_where_it_is_asked_for(render: Render, default: Rendered) -> None:
    assert "ClusterRole/muster-reader" not in default.names()
    role = render("readerRole=true").one("ClusterRole", "muster-reader")
    assert role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    groups = {group for rule in role["rules"] for group in rule["apiGroups"]}
    assert groups == {"scheduling.volcano.sh", *(kind.group for kind in GANG_KINDS if kind.owns_pod_group)}


def test_rights_on_elastic_quotas_come_with_their_value_alone(render: Render) -> None:
    def on_quotas(process: str, *values: str) -> list[tuple[str, ...]]:
        rules = render("schedulers={volcano,coscheduling}", *values).rules("ClusterRole", f"muster-{process}")
        return [verbs for group, plural, _, verbs in rules if (group, plural) == _ELASTIC_QUOTAS]

    for process, values in (("webhook", ()), ("controller", ()), ("reader", ("readerRole=true",))):
        assert on_quotas(process, *values, "elasticQuotas=true") == [tuple(READ)]
        assert on_quotas(process, *values) == []


def test_rights_on_kueues_objects_come_with_kueue_alone(render: Render) -> None:
    def of_kueue(rendered: Rendered, process: str) -> list[tuple[str, ...]]:
        rules = rendered.rules("ClusterRole", f"muster-{process}")
        return [(plural, *verbs) for group, plural, _, verbs in rules if group == "kueue.x-k8s.io"]

    kueues, ledgers = render("admitters={ledger,kueue}"), render("admitters={none}")
    reads = [(plural, *READ) for plural in ("clusterqueues", "localqueues", "workloads")]
    assert of_kueue(kueues, "controller") == reads
    assert of_kueue(kueues, "webhook") == [("clusterqueues", "get"), ("localqueues", "get")]
    assert not of_kueue(ledgers, "controller")
    assert not of_kueue(ledgers, "webhook")
