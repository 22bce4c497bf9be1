"""What is rendered is taken by every version of Kubernetes that the chart is for, in the eyes of the real kubeconform.

These tests show that it sees mistakes. The fixture `render` shows it every rendering of every test of this folder, and
the test that asked for one with a mistake fails.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.testbed.schemas import VERSIONS
from tests.support.chart.kubeconform import faults

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.chart.rendered import JSON, Render


@pytest.fixture(scope="module")
def documents(render: Render) -> list[JSON]:
    """Something of everything that the chart can render."""
    parts = ("networkPolicy", "podMonitor", "prometheusRule", "grafanaDashboard", "certManager")
    return render(*(f"{part}.enabled=true" for part in parts)).documents


def test_every_version_from_the_charts_first_to_the_testbeds_is_asked(chart: Path) -> None:
    first = yaml.safe_load((chart / "Chart.yaml").read_text())["kubeVersion"]
    minors = [int(version.split(".")[1]) for version in VERSIONS]
    assert first == f">=1.{minors[0]}.0-0"
    assert minors == list(range(30, 37))


def test_all_that_can_be_rendered_is_taken(documents: list[JSON], tmp_path: Path) -> None:
    assert faults({"everything": documents}, tmp_path) == []


def test_a_rendering_with_a_mistake_fails_the_test_that_asks_for_it(render: Render) -> None:
    """Each time, not the first time alone."""
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"rendered with \['webhook.+Deployment/muster-webhook: .+'operater'"):
            render("webhook.tolerations[0].operater=Exists")


@pytest.mark.parametrize(
    ("kind", "path", "said"),
    [
        pytest.param("Deployment", ("spec", "replica"), "additional properties 'replica'", id="a Deployment"),
        pytest.param(
            "ValidatingWebhookConfiguration", ("webhooks", 0, "rule"), "additional properties 'rule'", id="a webhook"
        ),
        pytest.param("Certificate", ("spec", "dnsName"), "additional properties 'dnsName'", id="cert-manager's"),
        pytest.param("PodMonitor", ("spec", "selector", "x"), "additional properties 'x'", id="Prometheus operator's"),
        pytest.param("Service", ("apiVersion",), "could not find schema for Service", id="a version that is not there"),
    ],
)
def test_a_mistake_is_seen(
    documents: list[JSON], tmp_path: Path, kind: str, path: tuple[str | int, ...], said: str
) -> None:
    """In each version, once."""
    wrong = copy.deepcopy(next(one for one in documents if one["kind"] == kind))
    *way, last = path
    part = wrong
    for step in way:
        part = part[step]  # type: ignore[index]
    part[last] = "v9"  # type: ignore[index]
    found = faults({"mistyped": [wrong]}, tmp_path)
    assert len(found) == len(VERSIONS)
    assert all(said in line for line in found)


def test_a_field_that_came_later_is_refused_by_the_versions_before(documents: list[JSON], tmp_path: Path) -> None:
    """So the schemas are each version's own."""
    newer = copy.deepcopy(next(one for one in documents if one["kind"] == "Deployment"))
    newer["spec"]["template"]["spec"]["containers"][0]["restartPolicyRules"] = []
    refused = [line.split()[1] for line in faults({"newer": [newer]}, tmp_path)]
    assert refused == [f"{version}," for version in VERSIONS if int(version.split(".")[1]) < 34]
