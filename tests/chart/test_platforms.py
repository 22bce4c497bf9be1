"""What platforms ask for: users of their own, the node's network, registries, names, accounts, ServiceMonitors."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases import cases
from tests.support.chart.rendered import Program, Render, Rendered

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = (_DOCS / "platforms.md").read_text()
BLOCKS = re.findall(r"^```yaml\n# values.yaml\n(.+?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
_GITOPS = [
    item
    for block in re.findall(r"^```yaml\n(.+?)^```$", (_DOCS / "gitops.md").read_text(), re.MULTILINE | re.DOTALL)
    for item in yaml.safe_load_all(block)
]
_APPLICATION, _RELEASE = (
    next(item["spec"] for item in _GITOPS if item["kind"] == kind) for kind in ("Application", "HelmRelease")
)
GITOPS = [_APPLICATION["source"]["helm"]["valuesObject"], _RELEASE["values"]]
SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}

_PODS = ("Deployment", "Job", "Pod")


def pods(rendered: Rendered) -> dict[str, dict[str, Any]]:
    """The specification of every pod that the chart makes: both processes, the hook and `helm test`."""
    found = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in rendered.documents
        if item["kind"] in ("Deployment", "Job")
    }
    return {**found, "test": rendered.one("Pod")["spec"]}


def test_all_pods_have_the_same_security_context(render: Render, default: Rendered) -> None:
    assert [spec["securityContext"] for spec in pods(default).values()] == [SECURITY] * 4
    rendered = render("podSecurityContext.fsGroup=7,securityContext.runAsUser=8,image.repository=own/muster")
    for spec in pods(rendered).values():
        assert spec["securityContext"] == {**SECURITY, "fsGroup": 7}
        (container,) = spec["containers"]
        assert container["securityContext"]["runAsUser"] == 8
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_cluster_that_chooses_users_itself_gets_none(render: Render) -> None:
    """OpenShift refuses a pod whose user is outside of the range of its namespace."""
    rendered = render("podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null")
    for spec in pods(rendered).values():
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


@cases("file, users", ("in its own", "platform/values.yaml", {65532}), ("in others", "more.yaml", {None}))
def test_an_umbrella_charts_nulls_count_where_helm_is_called(
    helm: Program, chart: Path, tmp_path: Path, file: str, users: set[int | None]
) -> None:
    """In the umbrella's own values.yaml helm ignores them; the page says so."""
    umbrella, more = tmp_path / "platform", tmp_path / "more.yaml"
    (umbrella / "charts").mkdir(parents=True)
    (umbrella / "charts" / "muster").symlink_to(chart)
    (umbrella / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "platform", "version": "1.0.0"}))
    more.write_text("{}")
    own = {"image": {"repository": "r"}, "podSecurityContext": {"runAsUser": None, "runAsGroup": None}}
    (tmp_path / file).write_text(yaml.safe_dump({"muster": own}))
    done = helm("template", "muster", str(umbrella), "--values", str(more))
    assert not done.returncode, done.stderr
    found = pods(Rendered([item for item in yaml.safe_load_all(done.stdout) if item]))
    assert {spec["securityContext"].get("runAsUser") for spec in found.values()} == users


def test_what_a_mesh_is_told_of_the_processes_it_is_told_of_pods_that_end(
    helm: Program, chart: Path, tmp_path: Path
) -> None:
    """The Job of an uninstall never succeeds beside a sidecar that runs on."""
    (block,) = [one for one in BLOCKS if "sidecar.istio.io/inject" in one]
    (tmp_path / "values.yaml").write_text(block)
    settings = ("--set", "image.repository=r,schedulers={kubernetes}", "--values", str(tmp_path / "values.yaml"))
    done = helm("template", "muster", str(chart), *settings)
    documents = [item for item in yaml.safe_load_all(done.stdout) if item]
    made = [item if item["kind"] == "Pod" else item["spec"]["template"] for item in documents if item["kind"] in _PODS]
    assert [one["metadata"]["labels"].get("sidecar.istio.io/inject") for one in made] == ["false"] * 5


def test_every_pod_runs_on_linux(default: Rendered) -> None:
    assert [spec["nodeSelector"] for spec in pods(default).values()] == [{"kubernetes.io/os": "linux"}] * 4


def test_the_webhook_may_run_on_the_nodes_network_with_ports_of_its_own(render: Render) -> None:
    """EKS with another network plugin: its apiserver reaches nodes only."""
    rendered = render("webhook.hostNetwork=true,webhook.ports.reviews=19443,webhook.ports.health=18080")
    spec = pods(rendered)["muster-webhook"]
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    (container,) = spec["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [19443, 18080]
    assert {"--port=19443", "--health-port=18080"} <= set(container["args"])
    template = rendered.one("Deployment", "muster-webhook")["spec"]["template"]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == "18080"
    assert rendered.one("Service")["spec"]["ports"] == [{"name": "reviews", "port": 443, "targetPort": "reviews"}]
    assert "hostNetwork" not in pods(rendered)["muster-controller"]


@cases(
    "values, webhook, controller",
    ("on a network of their own", (), 0, None),
    ("on the nodes'", ("webhook.hostNetwork=true", "controller.hostNetwork=true,controller.ports.health=18080"), 1, 1),
    ("a single webhook keeps serving", ("webhook.hostNetwork=true,webhook.replicas=1",), 0, None),
)
def test_an_update_ends_where_the_old_pods_have_the_ports_of_every_node(
    render: Render, values: tuple[str, ...], webhook: int, controller: int | None
) -> None:
    """A new pod finds no node then before an old one has ended: so many old ones may end first."""
    rendered = render(*values)
    strategies = [
        rendered.one("Deployment", f"muster-{one}")["spec"].get("strategy") for one in ("webhook", "controller")
    ]
    assert strategies == [
        None if most is None else {"rollingUpdate": {"maxUnavailable": most, "maxSurge": 1}}
        for most in (webhook, controller)
    ]


@pytest.mark.parametrize("registry", ["registry:5000/mirror", "registry:5000/mirror/"])
def test_a_registry_of_an_umbrella_chart_goes_before_the_repository(render: Render, registry: str) -> None:
    for spec in pods(render(f"global.imageRegistry={registry},image.repository=muster,image.tag=v1")).values():
        assert spec["containers"][0]["image"] == "registry:5000/mirror/muster:v1"


@pytest.mark.parametrize(
    ("values", "name"),
    [("nameOverride=gangs", "muster-gangs"), ("fullnameOverride=gangs,nameOverride=x", "gangs")],
)
def test_names_may_be_others(render: Render, values: str, name: str) -> None:
    rendered = render(values)
    names = {item["metadata"]["name"] for item in rendered.documents if item["kind"] == "Deployment"}
    assert names == {f"{name}-webhook", f"{name}-controller"}
    assert {one["metadata"]["name"] for one in rendered.documents if not one["metadata"]["name"].startswith(name)} == {
        "muster"
    }


@cases(
    "release, value",
    ("the release's", f"muster-{'r' * 31}--cluster", "nameOverride="),
    ("with another name behind it", "r", f"nameOverride={'r' * 35}---cluster"),
    ("the whole name", "r", f"fullnameOverride={'r' * 38}--cluster"),
)
def test_a_name_that_is_cut_short_ends_with_no_dash(render: Render, release: str, value: str) -> None:
    """The apiserver takes no such name of a webhook configuration."""
    assert not render(value, release=release).one("MutatingWebhookConfiguration")["metadata"]["name"].endswith("-")


def test_accounts_that_are_there_already_get_the_rights_and_the_policies_words(render: Render) -> None:
    rendered = render(
        "webhook.serviceAccount.create=false,webhook.serviceAccount.name=serves",
        "controller.serviceAccount.name=admits,controller.serviceAccount.annotations.team=ml",
    )
    accounts = {item["metadata"]["name"]: item for item in rendered.documents if item["kind"] == "ServiceAccount"}
    assert set(accounts) == {"admits", "muster-uninstall"}
    assert accounts["admits"]["metadata"]["annotations"] == {"team": "ml"}
    assert {name: spec["serviceAccountName"] for name, spec in pods(rendered).items()} == {
        "muster-webhook": "serves",
        "muster-controller": "admits",
        "muster-uninstall": "muster-uninstall",
        "test": "serves",
    }
    bound = {
        subject["name"]
        for item in rendered.documents
        if item["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in item["subjects"]
        if subject["kind"] == "ServiceAccount"
    }
    assert bound == {"serves", "admits", "muster-uninstall"}
    text = str(rendered.documents)
    assert "system:serviceaccount:muster-system:admits" in text
    assert "system:serviceaccount:muster-system:muster-controller" not in text
    assert "system:serviceaccount:muster-system:muster-webhook" not in text


def test_a_service_monitor_finds_both_processes_by_a_service_of_its_own(render: Render) -> None:
    rendered = render("serviceMonitor.enabled=true,serviceMonitor.labels.release=prometheus")
    monitor = rendered.one("ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    service = rendered.one("Service", "muster-metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    webhooks = rendered.one("Service", "muster-webhook")
    assert not monitor["spec"]["selector"]["matchLabels"].items() <= webhooks["metadata"]["labels"].items()
    (port,), (endpoint,) = service["spec"]["ports"], monitor["spec"]["endpoints"]
    assert (port["name"], port["targetPort"], endpoint["path"]) == (endpoint["port"], "health", "/metrics")
    for name in ("muster-webhook", "muster-controller"):
        labels = rendered.one("Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize("values", [*BLOCKS, *map(yaml.safe_dump, GITOPS)])
def test_the_values_of_the_page_are_taken_and_change_what_is_rendered(
    helm: Program, chart: Path, tmp_path: Path, values: str
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(values)
    rendered = [
        helm("template", "muster", str(chart), "--set", "image.repository=r", *options)
        for options in ((), ("--values", str(file)))
    ]
    assert [(done.returncode, done.stderr) for done in rendered] == [(0, "")] * 2
    before, after = ([*yaml.safe_load_all(done.stdout)] for done in rendered)
    assert before != after


def test_what_gitops_is_to_leave_alone_is_what_the_chart_renders(default: Rendered) -> None:
    """By kind and name, as Argo CD and Flux select it."""
    ignored = [*_APPLICATION["ignoreDifferences"], *(one["target"] for one in _RELEASE["driftDetection"]["ignore"])]
    assert len(ignored) == 8
    for one in ignored:
        assert [
            item["metadata"]["name"]
            for item in default.documents
            if item["kind"] == one["kind"] and one.get("name") in (None, item["metadata"]["name"])
        ], one


def test_the_page_shows_values_for_each_platform() -> None:
    _, *sections = re.split(r"^## ", _PAGE, flags=re.MULTILINE)
    assert sections
    # The last section has autoscalers, which need no value.
    assert [section.partition("\n")[0] for section in sections if "# values.yaml" not in section] == ["Autoscalers"]


@pytest.mark.parametrize(
    "values",
    [
        (
            "certManager.enabled=true,serviceMonitor.enabled=true,prometheusRule.enabled=true,"
            "grafanaDashboard.enabled=true,networkPolicy.enabled=true,readerRole=true,"
            "controller.serviceAccount.annotations.own=kept"
        ),
        "webhook.failurePolicy=Ignore",
    ],
)
def test_annotations_of_ones_own_are_on_every_object_beside_musters(render: Render, values: str) -> None:
    before, after = render(values), render(f"{values},commonAnnotations.team=ml")
    assert before.names() == after.names()
    for old, new in zip(before.documents, after.documents, strict=True):
        annotations = old["metadata"].get("annotations") or {}
        assert new["metadata"]["annotations"] == {**annotations, "team": "ml"}


def test_the_reviews_of_private_nodes_are_on_a_port_that_their_firewall_opens() -> None:
    """The section names the ports that are open by default, and the values use the one that needs no root."""
    (section,) = (one for one in re.split(r"^## ", _PAGE, flags=re.MULTILINE) if one.startswith("GKE"))
    opened = re.search(r"by default (\d+) and (\d+) are open", section)
    (block,) = (one for one in BLOCKS if one in section)
    assert opened is not None
    assert yaml.safe_load(block) == {"webhook": {"ports": {"reviews": max(map(int, opened.groups()))}}}
