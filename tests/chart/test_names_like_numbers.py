"""Names and tags that YAML takes for numbers, or for words of its own, arrive as they were written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases import cases
from tests.support.chart.rendered import Program, Rendered

_VALUES = """
image: {repository: own/muster, tag: 20240101}
defaultQueue: 1000000
excludedNamespaces: [2000000]
schedulers: [coscheduling]
queues: {source: muster}
page: {enabled: true, existingSecret: address}
"""
# Names that objects may have, and that YAML reads as 4096 and the numbers behind it.
_NAMESPACE = "0x1000"
_NAMES = (
    "webhook.priorityClassName=0x1001,controller.priorityClassName=0x1002,page.priorityClassName=0x1003",
    "webhook.serviceAccount.name=0x1004,controller.serviceAccount.name=0x1005,page.serviceAccount.name=0x1006",
    "page.enabled=true,page.existingSecret=0x1007,networkPolicy.enabled=true,schedulers={kubernetes}",
    "prometheusRule.enabled=true,grafanaDashboard.enabled=true",
)


@pytest.fixture
def numbered(helm: Program, chart: Path, tmp_path: Path) -> Rendered:
    """What is rendered of a file of values: of its numbers helm makes others than of `--set`."""
    values = tmp_path / "values.yaml"
    values.write_text(_VALUES)
    done = helm("template", "muster", str(chart), "--namespace", "muster-system", "--values", str(values))
    assert not done.returncode, done.stderr
    return Rendered([document for document in yaml.safe_load_all(done.stdout) if document])


def test_an_excluded_namespace_is_excluded(numbered: Rendered) -> None:
    own = {"matchLabels": {"kubernetes.io/metadata.name": "muster-system"}}
    selectors = [
        webhook["namespaceSelector"]
        for webhook in numbered.webhooks().values()
        if webhook.get("namespaceSelector", own) != own
    ]
    assert selectors
    for selector in selectors:
        assert selector["matchExpressions"][0]["values"] == ["kube-system", "muster-system", "2000000"]
    excluded = "--namespace-selector=kubernetes.io/metadata.name notin (kube-system, muster-system, 2000000)"
    assert [excluded in numbered.arguments(component) for component in ("controller", "page")] == [True, True]


@pytest.mark.parametrize("component", ["webhook", "controller", "page"])
def test_the_default_queue_is_that_queue(numbered: Rendered, component: str) -> None:
    assert "--default-queue=1000000" in numbered.arguments(component)


def test_the_image_has_that_tag(numbered: Rendered) -> None:
    templates = [item["spec"]["template"] for item in numbered.documents if item["kind"] in ("Deployment", "Job")]
    pods = [*templates, numbered.one("Pod")]
    assert [pod["spec"]["containers"][0]["image"] for pod in pods] == ["own/muster:20240101"] * 5


@cases(
    "more",
    ("a Secret, and a PodMonitor", "webhook.existingSecret=0x1008,podMonitor.enabled=true"),
    ("cert-manager, and a ServiceMonitor", "certManager.enabled=true,serviceMonitor.enabled=true"),
)
def test_a_name_is_a_text_wherever_it_stands(helm: Program, chart: Path, more: str) -> None:
    """The apiserver takes no number there."""
    settings = [part for value in ("image.repository=r", *_NAMES, more) for part in ("--set", value)]
    api = ("--api-versions", "monitoring.coreos.com/v1")
    done = helm("template", "muster", str(chart), "--namespace", _NAMESPACE, *api, *settings)
    assert not done.returncode, done.stderr
    found = list(_values(list(yaml.safe_load_all(done.stdout))))
    assert {_NAMESPACE, "0x1001", "0x1002", "0x1003", "0x1004", "0x1005", "0x1006", "0x1007"} <= set(found)
    assert not set(range(0x1000, 0x1009)).intersection(found)


@pytest.mark.parametrize("name", ["null", "true", "on"])
@pytest.mark.parametrize("monitor", ["podMonitor", "serviceMonitor"])
def test_a_word_of_yaml_is_a_name_as_any_other(helm: Program, chart: Path, monitor: str, name: str) -> None:
    """Some objects have the name alone: as a boolean, or as nothing, the apiserver refuses it."""
    settings = f"image.repository=r,{monitor}.enabled=true,prometheusRule.enabled=true"
    done = helm("template", "muster", str(chart), "--set", settings, "--set-string", f"fullnameOverride={name}")
    assert not done.returncode, done.stderr
    documents = list(yaml.safe_load_all(done.stdout))
    named = [item["kind"] for item in documents if item["metadata"]["name"] == name]
    configurations = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    assert sorted(named) == sorted([*configurations, "PrometheusRule", monitor[0].upper() + monitor[1:]])
    rules = [rule for item in documents if item["kind"] == "ClusterRole" for rule in item["rules"]]
    about = [rule["resourceNames"] for rule in rules if "mutatingwebhookconfigurations" in rule["resources"]]
    assert about == [[name]] * 2


def _values(part: Any) -> Iterator[object]:  # noqa: ANN401 - any part of a manifest
    if isinstance(part, dict | list):
        for one in part.values() if isinstance(part, dict) else part:
            yield from _values(one)
    else:
        yield part
