"""`helm upgrade --reuse-values` from a chart that knew fewer values: the new ones have their defaults."""

import json
import os
import shutil
from pathlib import Path

import yaml

from tests.support.cases import cases
from tests.support.chart.rendered import Program

_FIRST = '{{- include "muster.complete" . -}}\n'
_EVERYTHING = (
    "image.repository=own/muster",
    "networkPolicy.enabled=true,podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true",
)


def test_the_defaults_are_those_of_values_yaml(chart: Path) -> None:
    """No template can read values.yaml: what they read instead is written from it."""
    written = chart / "files" / "defaults.json"
    expected = json.dumps(yaml.safe_load((chart / "values.yaml").read_text()), indent=1) + "\n"
    if os.environ.get("MUSTER_REWRITE"):
        written.write_text(expected)
    assert written.read_text() == expected, (
        "charts/muster/files/defaults.json is out of date: "
        "write it anew with MUSTER_REWRITE=1 pytest tests/chart/test_reused_values.py"
    )


def test_every_template_fills_in_what_is_missing(chart: Path) -> None:
    """But for the ones that define only, and the one that looks at no value."""
    templates = [path for path in (chart / "templates").iterdir() if not path.name.startswith("_")]
    assert [path.name for path in templates if not path.read_text().startswith(_FIRST)] == ["single.yaml"]


@cases(
    "values",
    ("as installed", ()),
    ("what is off stays off", ("policies=false", "webhook.podDisruptionBudget.enabled=false")),
    ("zero stays zero", ("webhook.shutdownDelaySeconds=0",)),
    ("no limit stays no limit", ("controller.resources.limits=null",)),
    ("a part of a part", ("certManager.enabled=true",)),
)
def test_a_chart_without_its_values_renders_the_same(
    helm: Program, chart: Path, tmp_path: Path, values: tuple[str, ...]
) -> None:
    """Whichever values a former chart lacked: here all of them."""
    bare = tmp_path / "muster"
    shutil.copytree(chart, bare)
    # A null takes away what values.yaml has, and is otherwise none of the values.
    kept = {"controller": {"resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {}}}}
    (bare / "values.yaml").write_text(json.dumps(kept if "controller.resources.limits=null" in values else {}))
    settings = [part for value in (*_EVERYTHING, *values) for part in ("--set", value)]
    api = ("--api-versions", "monitoring.coreos.com/v1")
    whole, without = (helm("template", "muster", str(path), *api, *settings) for path in (chart, bare))
    assert not whole.returncode, whole.stderr
    assert (without.stdout, without.stderr) == (whole.stdout, whole.stderr)
