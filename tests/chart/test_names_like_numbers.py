"""Names and tags that YAML takes for numbers arrive as they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.chart.rendered import Rendered

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.chart.rendered import Program

_VALUES = """
image: {repository: own/muster, tag: 20240101}
defaultQueue: 1000000
excludedNamespaces: [2000000]
schedulers: [coscheduling]
queues: {source: muster}
page: {enabled: true, existingSecret: address}
"""


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
