"""The settings of the installation, which the chart publishes for every authenticated user."""

from typing import Any

import pytest
import yaml

from muster.admitters import Admitter
from muster.cli.settings import Settings, read_settings
from muster.model.findings import Reason
from muster.model.modes import GateMode
from tests.support.cases import cases
from tests.support.chart.rendered import JSON, Render, Rendered

PUBLIC = "kube-public"


def published(rendered: Rendered) -> JSON:
    """The ConfigMap with the settings."""
    return rendered.one("ConfigMap", "muster")


def settings(rendered: Rendered) -> Settings:
    """The settings as a command reads them."""
    return read_settings("the chart", published(rendered)["data"]["values.yaml"])


@cases(
    "values, expected",
    ("as installed", (), {}),
    (
        "without Volcano",
        ("queues.source=muster,schedulers={coscheduling=batch,kubernetes},elasticQuotas=true,gate=off",),
        {
            "schedulers": ["batch", "default-scheduler"],
            "queue_source": "GangQueue",
            "elastic_quotas": True,
            "gate": GateMode.OFF,
        },
    ),
    (
        "Kueue",
        ("admitters={kueue,ledger},defaultQueue=1000000,bound=nodes,dra=deny",),
        {"admitters": (Admitter.KUEUE, Admitter.LEDGER), "queue": "1000000", "by_nodes": True, "dra": "deny"},
    ),
    ("a reason goes first", ("dra=deny,validationReasons.ResourceClaims=off",), {"dra": "off"}),
)
def test_commands_read_what_the_processes_are_given(
    render: Render, values: tuple[str, ...], expected: dict[str, Any]
) -> None:
    found = settings(render(*values))
    defaults = found.defaults
    assert {
        "schedulers": list(defaults.schedulers),
        "queue_source": defaults.queue_source.kind,
        "queue": defaults.queue,
        "gate": defaults.gate,
        "admitters": defaults.admitters,
        "elastic_quotas": defaults.elastic_quotas,
        "by_nodes": found.by_nodes,
        "dra": defaults.validation.severity(Reason.RESOURCE_CLAIMS),
    } == {
        "schedulers": ["volcano"],
        "queue_source": "Queue",
        "queue": "default",
        "gate": GateMode.QUEUE,
        "admitters": (Admitter.LEDGER,),
        "elastic_quotas": False,
        "by_nodes": False,
        "dra": "warn",
        **expected,
    }


def test_namespaces_are_selected_as_for_the_webhook(render: Render) -> None:
    selector = settings(render("excludedNamespaces={infra},namespaceSelector.matchLabels.team=ml")).defaults.namespaces
    ml = {"team": "ml"}
    name = "kubernetes.io/metadata.name"
    known = {one: selector.matches({name: one, **ml}) for one in ("a", "infra", "kube-system", "muster-system")}
    assert known == {"a": True, "infra": False, "kube-system": False, "muster-system": False}
    assert not selector.matches({name: "a"})


@pytest.mark.parametrize(("release", "prefix"), [("muster", "muster"), ("gangs", "gangs-muster")])
def test_every_authenticated_user_may_get_it_and_nothing_else(render: Render, release: str, prefix: str) -> None:
    """Under the same name whatever the release is called, in the namespace that Kubernetes has for that."""
    rendered = render(release=release)
    assert published(rendered)["metadata"]["namespace"] == PUBLIC
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
    lease = ("coordination.k8s.io", "leases", (f"{prefix}-controller",), ("get",))
    for name, namespace, opened in (
        (f"{prefix}-settings", PUBLIC, [("", "configmaps", ("muster",), ("get",))]),
        (f"{prefix}-status", "muster-system", [lease, ("", "configmaps", (f"{prefix}-history-starts",), ("get",))]),
    ):
        assert sorted(rendered.rules("Role", name)) == sorted(opened)
        binding = rendered.one("RoleBinding", name)
        assert {one["metadata"]["namespace"] for one in (binding, rendered.one("Role", name))} == {namespace}
        assert (binding["roleRef"]["name"], binding["subjects"]) == (name, [group])
    assert published(rendered)["data"]["starts"] == f"muster-system/{prefix}-history-starts"
    assert published(rendered)["data"]["lease"] == f"muster-system/{prefix}-controller"
    assert f"--lease={prefix}-controller" in rendered.arguments("controller")


def test_without_a_history_the_lease_may_be_read_all_the_same(render: Render) -> None:
    rendered = render("history.enabled=false")
    lease = ("coordination.k8s.io", "leases", ("muster-controller",), ("get",))
    assert rendered.rules("Role", "muster-status") == [lease]
    assert "starts" not in published(rendered)["data"]


def test_it_holds_no_other_value(default: Rendered) -> None:
    """Secrets, addresses and names of others stay with those who may read the release."""
    assert set(yaml.safe_load(published(default)["data"]["values.yaml"])) == {
        "admitters",
        "bound",
        "defaultQueue",
        "dra",
        "elasticQuotas",
        "excludedNamespaces",
        "gate",
        "namespaceSelector",
        "queues",
        "schedulers",
    }
