"""The page behind the apiserver's service proxy: off, and where it is on, no more than it needs."""

import argparse
from pathlib import Path

import pytest

from muster.cli.page import __main__ as program
from tests.support.cases import cases
from tests.support.chart.network_policies import Call, Peer, let_through
from tests.support.chart.rendered import JSON, Program, Render, Rendered, assert_restricted
from tests.support.cluster.rbac import granted

ON = ("page.enabled=true", "page.existingSecret=address")
NARROW = ("networkPolicy.enabled=true", "networkPolicy.reviewsFrom[0].ipBlock.cidr=10.0.0.0/28")
_FOLLOW = ("list", "watch")


@pytest.fixture(scope="module")
def page(render: Render) -> Rendered:
    return render(*ON)


def pod(rendered: Rendered) -> JSON:
    template: JSON = rendered.one("Deployment", "muster-page")["spec"]["template"]
    return template


def test_it_is_off_and_on_it_is_one_of_each(default: Rendered, page: Rendered) -> None:
    kinds = ("ClusterRole", "ClusterRoleBinding", "Deployment", "Role", "RoleBinding", "Service", "ServiceAccount")
    assert set(page.names()) - set(default.names()) == {f"{kind}/muster-page" for kind in kinds}


@cases("values", ("neither", ()), ("a policy that names nobody", NARROW[:1]), ("a policy that is off", NARROW[1:]))
def test_it_is_not_open_to_every_pod_without_anybody_noticing(
    helm: Program, chart: Path, values: tuple[str, ...]
) -> None:
    settings = [part for value in ("image.repository=own/muster", ON[0], *values) for part in ("--set", value)]
    done = helm("template", "muster", str(chart), "--namespace", "muster-system", *settings)
    assert done.returncode
    assert "every pod of the cluster could read the page: set page.existingSecret" in done.stderr


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ("admitters={ledger,kueue}", {"workloads", "localqueues", "clusterqueues"}),
        ("schedulers={volcano,coscheduling},elasticQuotas=true", {"elasticquotas"}),
    ],
)
def test_what_else_is_read_comes_with_its_value(render: Render, page: Rendered, values: str, more: set[str]) -> None:
    usual, now = (granted(one.documents, "muster-page") for one in (page, render(*ON, values)))
    assert {right.resource for right in now} - {right.resource for right in usual} == more
    assert {right.verb for right in now - usual} == set(_FOLLOW)


def test_an_account_of_ones_own_gets_no_rights_from_the_chart(render: Render) -> None:
    """Else the page could never show less than with the account that the chart makes."""
    rendered = render(*ON, "page.serviceAccount.create=false,page.serviceAccount.name=mine")
    assert pod(rendered)["spec"]["serviceAccountName"] == "mine"
    assert {name for name in rendered.names() if name.endswith("/muster-page")} == {
        "Deployment/muster-page",
        "Service/muster-page",
    }
    assert granted(rendered.documents, "mine") == set()


def test_it_runs_as_its_own_account_and_restricted(page: Rendered) -> None:
    spec = pod(page)["spec"]
    assert spec["serviceAccountName"] == "muster-page"
    assert_restricted(spec)


def test_there_is_never_more_than_one(page: Rendered) -> None:
    """Two would answer an open page by turns, each with a count of changes of its own."""
    spec = page.one("Deployment", "muster-page")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert "PodDisruptionBudget/muster-page" not in page.names()


def test_the_secret_of_its_addresses_is_mounted_and_nothing_else_of_it(page: Rendered) -> None:
    spec = pod(page)["spec"]
    (container,) = spec["containers"]
    secret = {"secretName": "address", "items": [{"key": "secret", "path": "secret"}]}
    assert {"name": "address", "secret": secret} in spec["volumes"]
    assert {"name": "address", "mountPath": "/etc/muster/address", "readOnly": True} in container["volumeMounts"]
    assert "--secret-file=/etc/muster/address/secret" in container["args"]


def test_without_one_a_network_policy_lets_in_the_apiserver_alone(render: Render, tmp_path: Path) -> None:
    rendered = render(ON[0], *NARROW)
    own = Peer.pod(pod(rendered), namespace="muster-system", address="10.1.0.2")
    callers = {
        "server": Peer("10.0.0.5"),
        "world": Peer("203.0.113.9"),
        "tenant": Peer("10.1.0.9", "team-a", {"app": "any"}),
        "webhook": Peer.pod(
            rendered.one("Deployment", "muster-webhook")["spec"]["template"],
            namespace="muster-system",
            address="10.1.0.3",
        ),
    }
    (number,) = (port for port, name in own.ports.items() if name == "page")
    calls = {name: Call(peer, own, number) for name, peer in callers.items()}
    calls |= {f"out {port}": Call(own, callers["server"], port) for port in (53, 80, 443, 6443)}
    policies = [one for one in rendered.documents if one["kind"] == "NetworkPolicy"]
    assert let_through(policies, calls, tmp_path) == {"server", "out 53", "out 443", "out 6443"}
    assert "--secret-file" not in " ".join(rendered.arguments("page"))


def test_the_service_leads_to_its_pods_alone(page: Rendered) -> None:
    service = page.one("Service", "muster-page")["spec"]
    ports = {port["name"]: port["containerPort"] for port in pod(page)["spec"]["containers"][0]["ports"]}
    assert service["ports"] == [{"name": "http", "port": 80, "targetPort": "page"}]
    assert f"--port={ports['page']}" in page.arguments("page")
    for name in ("muster-webhook", "muster-controller", "muster-page"):
        labels = page.one("Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert (service["selector"].items() <= labels.items()) is (name == "muster-page")


def test_probes_ask_the_port_that_is_served(page: Rendered) -> None:
    (container,) = pod(page)["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--health-port={ports['health']}" in container["args"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}


def test_every_argument_is_one_that_the_process_takes(page: Rendered, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it gets the settings of the installation as the controller does."""
    seen: list[list[str]] = []

    def keep(self: argparse.ArgumentParser, *_: object) -> argparse.Namespace:
        seen.append(self.parse_known_args(page.arguments("page"))[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", keep)
    with pytest.raises(KeyboardInterrupt):
        program.main()
    assert seen == [[]]
    of_controller = {one.partition("=")[0]: one for one in page.arguments("controller")}
    of_page = {one.partition("=")[0]: one for one in page.arguments("page")}
    same = of_controller.keys() & of_page.keys() - {"--health-port", "--log-level"}
    assert {name: of_page[name] for name in same} == {name: of_controller[name] for name in same}
    alone = {
        "--history",
        "--history-labels",
        "--metrics-resources",
        "--lease",
        "--lease-duration",
        "--renew-deadline",
        "--retry-period",
    }
    alone |= {"--kueue-timeout", "--kueue-unscheduled-timeout"}
    assert of_controller.keys() - of_page.keys() == alone


def test_who_installs_it_is_told_the_address(helm: Program, chart: Path) -> None:
    settings = [part for value in ("image.repository=own/muster", *ON) for part in ("--set", value)]
    done = helm("install", "muster", str(chart), "--namespace", "muster-system", "--dry-run=client", *settings)
    path = "/api/v1/namespaces/muster-system/services/http:muster-page:http/proxy/SECRET/"
    assert f"\n  http://127.0.0.1:8001{path}\n" in done.stdout
    assert "what the Secret address holds" in done.stdout
