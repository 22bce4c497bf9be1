"""What `helm install` installs, and what it is called."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

import muster
from hack.chart import SETTINGS, complaints
from tests.support.chart.rendered import JSON, Program, Render, Rendered

POLICIES = ("other-pods", "podgroups", "pods", "webhook", "workloads")


@pytest.mark.parametrize("settings", SETTINGS)
def test_helm_finds_nothing_to_complain_about(chart: Path, settings: str) -> None:
    assert not complaints(chart, SETTINGS[settings])


def test_a_value_that_the_schema_does_not_know_is_a_complaint(chart: Path, tmp_path: Path) -> None:
    copy = tmp_path / "muster"
    shutil.copytree(chart, copy)
    values = copy / "values.yaml"
    values.write_text(values.read_text() + "\ngaet: queue\n")
    assert "additional properties 'gaet' not allowed" in complaints(copy, ())


def test_everything_that_is_installed(default: Rendered) -> None:
    assert default.names() == [
        "ClusterRole/muster-controller",
        "ClusterRole/muster-release",
        "ClusterRole/muster-uninstall",
        "ClusterRole/muster-webhook",
        "ClusterRoleBinding/muster-controller",
        "ClusterRoleBinding/muster-uninstall",
        "ClusterRoleBinding/muster-webhook",
        "ConfigMap/muster",
        "ConfigMap/muster-history",
        "ConfigMap/muster-history-starts",
        "Deployment/muster-controller",
        "Deployment/muster-webhook",
        "Job/muster-uninstall",
        "MutatingWebhookConfiguration/muster",
        "Pod/muster-test",
        "PodDisruptionBudget/muster-controller",
        "PodDisruptionBudget/muster-webhook",
        "Role/muster-controller",
        "Role/muster-settings",
        "Role/muster-status",
        "Role/muster-webhook",
        "RoleBinding/muster-controller",
        "RoleBinding/muster-settings",
        "RoleBinding/muster-status",
        "RoleBinding/muster-webhook",
        "Secret/muster-webhook-tls",
        "Service/muster-webhook",
        "ServiceAccount/muster-controller",
        "ServiceAccount/muster-uninstall",
        "ServiceAccount/muster-webhook",
        *(f"ValidatingAdmissionPolicy/muster-{name}" for name in POLICIES),
        *(f"ValidatingAdmissionPolicyBinding/muster-{name}" for name in POLICIES),
        "ValidatingWebhookConfiguration/muster",
    ]


def test_without_an_image_one_line_says_what_to_do(helm: Program, chart: Path) -> None:
    done = helm("template", "muster", str(chart))
    assert done.returncode
    assert "image.repository is not set: push muster's image to a registry of your own and name it" in done.stderr


def test_the_charts_version_is_the_programs(chart: Path) -> None:
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert described["appVersion"] == muster.__version__


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_what_muster_fills_has_no_data(default: Rendered, kind: str) -> None:
    """An upgrade then leaves its certificates, and the run times that it knows, alone."""
    found = [item for item in default.documents if item["kind"] == kind and item["metadata"]["name"] != "muster"]
    assert found
    assert all({"data", "binaryData", "stringData"}.isdisjoint(item) for item in found)


def test_the_labels_of_the_accounts_reach_the_controller(render: Render) -> None:
    documents = yaml.safe_dump(render("history.labels={team,example.com/cost}").documents)
    assert "--history-labels=team,example.com/cost" in documents


def test_without_a_history_nothing_of_it_is_there(render: Render) -> None:
    rendered = render("history.enabled=false")
    assert "history" not in yaml.safe_dump(rendered.documents)
    assert "configmaps" not in {resource for _, resource, *_ in rendered.rules("Role", "muster-controller")}


@pytest.mark.parametrize(
    ("release", "prefix"),
    [
        ("muster", "muster"),
        ("my-muster", "my-muster"),
        ("gangs", "gangs-muster"),
        ("x" * 45, "x" * 40),
        ("x" * 39 + "-y", "x" * 39),
    ],
)
def test_everything_is_named_after_the_release(render: Render, release: str, prefix: str) -> None:
    """But for the settings, which users find without its name."""
    rendered = render(release=release)
    names = {item["metadata"]["name"] for item in rendered.documents} - {"muster"}
    assert all(name.startswith(prefix) for name in names)
    assert all(len(item["metadata"]["name"]) <= 63 for item in rendered.documents)
    assert f"--configuration={prefix}" in rendered.arguments("webhook")
    assert f"--secret={prefix}-webhook-tls" in rendered.arguments("webhook")
    assert f"--lease={prefix}-controller" in rendered.arguments("controller")


def test_two_releases_share_no_object(render: Render) -> None:
    """But for the settings: by them helm refuses the second one, too."""
    assert set(render(release="one").names()) & set(render(release="two").names()) == {"ConfigMap/muster"}


def test_two_releases_do_not_select_each_others_pods(render: Render) -> None:
    one, two = render(release="one"), render(release="two")
    selector: JSON = one.one("Service")["spec"]["selector"]
    labels = two.one("Deployment", "two-muster-webhook")["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= labels.items()


def test_everything_namespaced_is_in_the_releases_namespace(render: Render) -> None:
    """But for what all users may know, which tests/chart/test_public.py lists."""
    for item in render(namespace="elsewhere").documents:
        if item["metadata"]["labels"]["app.kubernetes.io/component"] == "public":
            continue
        cluster_wide = re.match(r"Cluster|.*WebhookConfiguration|ValidatingAdmissionPolicy", item["kind"])
        assert item["metadata"].get("namespace") == (None if cluster_wide else "elsewhere")
