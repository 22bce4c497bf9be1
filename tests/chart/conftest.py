"""The real helm, compiled by the testbed's build, and what it renders."""

import subprocess
from pathlib import Path

import pytest

from hack.testbed import PATIENCE
from hack.testbed.build import binaries
from hack.testbed.debian import Debian
from hack.testbed.parts import PARTS
from tests.support.chart.rendered import Program, Render, Rendered
from tests.support.chart.renderings import CHART, Rendering, add, rendered


@pytest.fixture(scope="session")
def helm() -> Program:
    """Run helm with these arguments."""
    program = binaries([PARTS["helm"]], print)["helm"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)

    return run


@pytest.fixture(scope="session")
def promtool() -> Program:
    """Run promtool with these arguments."""
    debian = Debian(("prometheus",))
    debian.ensure(print)
    program = debian.program("promtool")

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        argv = [str(program), *map(str, arguments)]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)

    return run


@pytest.fixture(scope="session")
def render(helm: Program) -> Render:
    """Render the chart with these `--set` values, which stand in the list that kubeconform judges."""

    def template(*values: str, release: str = "muster", namespace: str = "muster-system") -> Rendered:
        one = Rendering(release, namespace, values)
        add(one)
        return rendered(helm, one)

    return template


@pytest.fixture(scope="session")
def default(render: Render) -> Rendered:
    """What is installed where no value is set but the image's repository."""
    return render()


@pytest.fixture(scope="session")
def chart() -> Path:
    return CHART
