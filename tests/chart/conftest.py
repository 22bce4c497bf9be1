"""The real helm, compiled by the testbed's build, and what it renders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from tests.support.chart.kubeconform import faults
from tests.support.chart.rendered import Rendered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.chart.rendered import JSON, Program, Render

CHART = Path(__file__).parents[2] / "charts" / "muster"


@pytest.fixture(scope="session")
def helm() -> Program:
    """Run helm with these arguments."""
    program = binaries([PARTS["helm"]], print)["helm"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.fixture(scope="session")
def render(helm: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Render]:
    """Render the chart with these `--set` values. At the end of all tests kubeconform looks at all of it."""
    seen: dict[str, str] = {}

    def template(*values: str, release: str = "muster", namespace: str = "muster-system") -> Rendered:
        settings = [part for value in ("image.repository=own/muster", *values) for part in ("--set", value)]
        done = helm("template", release, str(CHART), "--namespace", namespace, *settings)
        assert not done.returncode, done.stderr
        found = Rendered([document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document])
        for document in found.documents:
            seen.setdefault(json.dumps(document), f"rendered with {list(values)}")
        return found

    yield template
    renderings: dict[str, list[JSON]] = {}
    for document, name in seen.items():
        renderings.setdefault(name, []).append(json.loads(document))
    assert faults(renderings, tmp_path_factory.mktemp("renderings")) == []


@pytest.fixture(scope="session")
def default(render: Render) -> Rendered:
    """What is installed where no value is set but the image's repository."""
    return render()


@pytest.fixture(scope="session")
def chart() -> Path:
    return CHART
