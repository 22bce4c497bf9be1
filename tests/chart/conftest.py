"""The real helm, compiled by the testbed's build, and what it renders."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from tests.chart.rendered import Rendered

if TYPE_CHECKING:
    from collections.abc import Callable

CHART = Path(__file__).parents[2] / "charts" / "muster"


@pytest.fixture(scope="session")
def helm() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run helm with these arguments."""
    program = binaries([PARTS["helm"]], print)["helm"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)

    return run


@pytest.fixture(scope="session")
def render(helm: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Rendered]:
    """Render the chart with these `--set` values."""

    def template(*values: str, release: str = "muster", namespace: str = "muster-system") -> Rendered:
        settings = [part for value in ("image.repository=own/muster", *values) for part in ("--set", value)]
        done = helm("template", release, str(CHART), "--namespace", namespace, *settings)
        assert not done.returncode, done.stderr
        return Rendered([document for document in yaml.safe_load_all(done.stdout) if document])

    return template


@pytest.fixture(scope="session")
def chart() -> Path:
    return CHART
