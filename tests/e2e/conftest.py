"""muster on the session's testbed, and a scene of its own for every test."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Protocol

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.muster import MusterInstall, install
from muster.kube.resource import PRIORITY_CLASSES
from tests.support.cluster import steps
from tests.support.cluster.admission_stream import admitted
from tests.support.cluster.scene import PATIENCE, Scene, open_scene

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["QUICK_LEASE", "VALUES", "InstallOnBare", "bare", "install_on_bare", "muster", "scene", "urgent"]

WEBHOOKS, CONTROLLERS = 1, 2

# A lease so short that a test of takeover takes seconds, and so long that no leader of a full machine loses it: it ends
# then, and no kubelet starts it again. Reviews may take as long as Kubernetes allows, for what is late is refused.
# Everything else is as the chart has it.
VALUES = {
    "image.repository": "muster",
    "webhook.shutdownDelaySeconds": "0",
    "webhook.timeoutSeconds": "30",
    "controller.lease.durationSeconds": "20",
    "controller.lease.renewDeadlineSeconds": "16",
    "controller.lease.retryPeriodSeconds": "1",
}
# Where a controller that ended is started again, and that often.
QUICK_LEASE = {
    "controller.lease.durationSeconds": "8",
    "controller.lease.renewDeadlineSeconds": "6",
    "controller.lease.retryPeriodSeconds": "0.5",
}


@pytest.fixture(scope="session")
def muster_of_session(testbed: Testbed) -> Iterator[MusterInstall]:
    """The chart on the session's testbed."""
    installed = install(testbed, values=VALUES, webhooks=WEBHOOKS, controllers=CONTROLLERS)
    yield installed
    installed.uninstall(hooks=False)


@pytest.fixture
def muster(muster_of_session: MusterInstall) -> MusterInstall:
    """The session's muster, whole and ready, whatever the test before did to its processes."""
    installed = muster_of_session
    installed.webhooks[:] = [process for process in installed.webhooks if process.alive()]
    installed.controllers[:] = [process for process in installed.controllers if process.alive()]
    while len(installed.webhooks) < WEBHOOKS:
        installed.start_webhook()
    while len(installed.controllers) < CONTROLLERS:
        installed.start_controller()
    installed.wait_ready()
    return installed


@pytest.fixture(scope="session")
def bare() -> Iterator[Testbed]:
    """A second testbed, on which muster is not, but for as long as a test has it there by `install_on_bare`."""
    with Testbed.start(progress=print) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have those that need the second testbed run last, one after another: nobody else is to run beside it."""
    items.sort(key=lambda item: "bare" in getattr(item, "fixturenames", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how much work of muster's the steps of this run took."""
    steps.record()
    if lines := steps.table():
        terminalreporter.section("work of muster's by step: median and most of this run (recorded median)")
        for line in lines:
            terminalreporter.write_line(line)


class InstallOnBare(Protocol):
    """Installs muster, with the values of these tests and some more, and waits until it is ready."""

    def __call__(self, **values: str) -> MusterInstall:
        """Return it; dots in the names of values are double underscores here."""


@pytest.fixture
def install_on_bare(bare: Testbed) -> Iterator[InstallOnBare]:
    """Muster on the testbed that has none, until the test has ended."""
    installed: list[MusterInstall] = []

    def start(**values: str) -> MusterInstall:
        more = {name.replace("__", "."): value for name, value in values.items()}
        installed.append(install(bare, values={**VALUES, **more}))
        installed[-1].wait_ready()
        return installed[-1]

    yield start
    for one in installed:
        one.uninstall(hooks=False)
    api = bare.api()
    wait_for("nobody to be asked any more", lambda: admitted(api, gang=True) == "gates []", PATIENCE)


@pytest.fixture
def scene(testbed: Testbed, muster: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A namespace of the test's own, with muster at work."""
    del muster
    words = re.sub(r"\[.*\]$", "", request.node.name.removeprefix("test_"))
    with open_scene(testbed, f"{words[:30]}-{uuid.uuid4().hex[:6]}") as opened:
        yield opened


@pytest.fixture
def urgent(scene: Scene) -> Iterator[str]:
    """A PriorityClass of this test's own, of value 1000."""
    name = f"urgent-{scene.namespace}"
    scene.create(
        {
            "apiVersion": PRIORITY_CLASSES.api_version,
            "kind": PRIORITY_CLASSES.kind,
            "metadata": {"name": name},
            "value": 1000,
        }
    )
    yield name
    scene.delete(PRIORITY_CLASSES, name)
