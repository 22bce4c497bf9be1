"""The real helm, compiled by the testbed's build, and what it renders."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from tests.support.chart.kubeconform import faults
from tests.support.chart.rendered import Rendered

if TYPE_CHECKING:
    from tests.support.chart.rendered import Program, Render

CHART = Path(__file__).parents[2] / "charts" / "muster"


@pytest.fixture(scope="session")
def helm() -> Program:
    """Run helm with these arguments."""
    program = binaries([PARTS["helm"]], print)["helm"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.fixture(scope="session")
def render(helm: Program, tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Render the chart with these `--set` values, in the eyes of kubeconform: the test that renders a mistake fails."""
    taken: set[str] = set()

    @cache
    def manifests(values: tuple[str, ...], release: str, namespace: str) -> str:
        settings = [part for value in ("image.repository=own/muster", *values) for part in ("--set", value)]
        done = helm("template", release, str(CHART), "--namespace", namespace, *settings)
        assert not done.returncode, done.stderr
        return done.stdout

    def template(*values: str, release: str = "muster", namespace: str = "muster-system") -> Rendered:
        found = yaml.load_all(manifests(values, release, namespace), yaml.CSafeLoader)
        rendered = Rendered([document for document in found if document])
        unseen = {text: one for one in rendered.documents if (text := json.dumps(one)) not in taken}
        if unseen:
            name = f"rendered with {list(values)}"
            wrong = faults({name: list(unseen.values())}, tmp_path_factory.mktemp("rendering"))
            assert not wrong, "\n".join(wrong)
            taken.update(unseen)
        return rendered

    return template


@pytest.fixture(scope="session")
def default(render: Render) -> Rendered:
    """What is installed where no value is set but the image's repository."""
    return render()


@pytest.fixture(scope="session")
def chart() -> Path:
    return CHART
