"""muster on the session's testbed, and a scene of its own for every test.

One pytest starts one control plane. Tests that need it without muster run last on the same one, muster having been
uninstalled; then those that add operators to it, and at the very end the one that breaks it.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.muster import MusterInstall, adopt, install
from muster.model.resource import PRIORITY_CLASSES
from tests.support.cluster.added_operators import add_operators
from tests.support.cluster.admission_stream import admitted
from tests.support.cluster.scene import PATIENCE, Scene, open_scene

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


# From these fixtures on, in this order, tests run later than all others.
_LATER = ("bare", "added_operators", "breakable")


class Resident:
    """muster on the session's testbed: there for the tests that use it, away for those that want none."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._installed: MusterInstall | None = None

    def present(self) -> MusterInstall:
        """Install it where it is away, and start what a test before has ended; return it whole and ready."""
        if self._installed is None:
            self._installed = install(self._testbed, values=VALUES, webhooks=WEBHOOKS, controllers=CONTROLLERS)
        installed = self._installed
        installed.webhooks[:] = [process for process in installed.webhooks if process.alive()]
        installed.controllers[:] = [process for process in installed.controllers if process.alive()]
        while len(installed.webhooks) < WEBHOOKS:
            installed.start_webhook()
        while len(installed.controllers) < CONTROLLERS:
            installed.start_controller()
        installed.wait_ready()
        return installed

    def stop(self) -> None:
        """End its processes, where it is there: those that `present` starts then know what is served by then."""
        if self._installed is not None:
            self._installed.stop_webhooks()
            while self._installed.controllers:
                self._installed.kill_controller()
            self._installed.free_lease()

    def away(self) -> None:
        """Uninstall it where it is there, and wait until nobody asks it."""
        if self._installed is not None:
            _uninstall(self._installed)
            self._installed = None


def _uninstall(installed: MusterInstall) -> None:
    installed.uninstall(hooks=False)
    api = installed.testbed.api()
    wait_for("nobody to be asked any more", lambda: admitted(api, gang=True) == "gates []", PATIENCE)


@pytest.fixture(scope="session")
def resident(testbed: Testbed) -> Resident:
    """The chart on the session's testbed, when a test wants it; it goes with the testbed."""
    return Resident(testbed)


@pytest.fixture
def muster(resident: Resident) -> MusterInstall:
    """The session's muster, whole and ready, whatever the test before did to its processes."""
    return resident.present()


@pytest.fixture
def bare(testbed: Testbed, resident: Resident) -> Testbed:
    """The session's testbed, on which muster is not, but for as long as a test has it there by `install_on_bare`."""
    resident.away()
    return testbed


@pytest.fixture(scope="session")
def added_operators(testbed: Testbed, resident: Resident) -> Testbed:
    """The session's testbed with JobSet, the Trainer and the MPI operator; muster comes after them, with `muster`."""
    resident.away()
    add_operators(testbed, "jobset", "trainer", "mpi")
    return testbed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have those without muster run last, so that it is uninstalled once, and what is added for a few disturbs none."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    names = set(getattr(item, "fixturenames", ()))
    return max((turn for turn, name in enumerate(_LATER, 1) if name in names and "resident" in names), default=0)


class InstallOnBare(Protocol):
    """Installs muster, with the values of these tests and some more, and waits until it is ready."""

    def __call__(self, **values: str) -> MusterInstall:
        """Return it; dots in the names of values are double underscores here."""


@pytest.fixture
def install_on_bare(bare: Testbed) -> Iterator[InstallOnBare]:
    """Muster on the testbed that has none, until the test has ended."""
    with ExitStack() as until_the_end:

        def start(**values: str) -> MusterInstall:
            more = {name.replace("__", "."): value for name, value in values.items()}
            return until_the_end.enter_context(_installed(bare, {**VALUES, **more}))

        yield start


class AdoptOnBare(Protocol):
    """Runs what installs muster as a reader of the documents does, and has its processes run here until it is ready."""

    def __call__(self, command: Callable[[], object]) -> MusterInstall:
        """Return it; it has the values of the command, and those of these tests."""


@pytest.fixture
def adopt_on_bare(bare: Testbed) -> Iterator[AdoptOnBare]:
    """Muster on the testbed that has none, until the test has ended."""
    with ExitStack() as until_the_end:

        def start(command: Callable[[], object]) -> MusterInstall:
            command()
            installed = adopt(bare, values=VALUES)
            until_the_end.callback(_uninstall, installed)
            installed.start_webhook()
            installed.start_controller()
            installed.wait_ready()
            return installed

        yield start


@contextmanager
def _installed(bare: Testbed, values: dict[str, str]) -> Iterator[MusterInstall]:
    installed = install(bare, values=values)
    try:
        installed.wait_ready()
        yield installed
    finally:
        _uninstall(installed)


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
