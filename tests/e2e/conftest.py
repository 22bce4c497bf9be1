"""muster on the session's testbed, and a scene of its own for every test."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pytest

from hack.testbed.muster import MusterInstall, install
from tests.scene import Scene, open_scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed import Testbed

__all__ = ["QUICK_LEASE", "VALUES", "muster", "scene", "urgent"]

WEBHOOKS, CONTROLLERS = 1, 2

# A lease so short that a test of takeover takes seconds, and so long that no leader of a full machine loses it: it ends
# then, and no kubelet starts it again. Everything else is as the chart has it.
VALUES = {
    "image.repository": "muster",
    "webhook.shutdownDelaySeconds": "0",
    "controller.lease.durationSeconds": "12",
    "controller.lease.renewDeadlineSeconds": "9",
    "controller.lease.retryPeriodSeconds": "1",
}
# Where a controller that ended is started again, and that often.
QUICK_LEASE = {
    "controller.lease.durationSeconds": "4",
    "controller.lease.renewDeadlineSeconds": "3",
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
    installed.wait_ready(90)
    return installed


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
    scene.kubectl("create", "priorityclass", name, "--value=1000", "--description=for a test")
    yield name
    scene.kubectl("delete", "priorityclass", name)
