"""A large gang that smaller ones pass has a reservation, and says when it starts."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall
from muster.model.names import PATIENCE
from muster.model.resource import QUEUES
from tests.support.cluster.leaders import replace_leader
from tests.support.cluster.recorder import JOBS, PYTORCH_JOBS
from tests.support.cluster.reservation_story import longer_than_said, reservation
from tests.support.cluster.scene import Scene, open_scene


@pytest.fixture
def scene(testbed: Testbed, muster: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene in which Jobs are on record."""
    del muster
    name = request.node.name.removeprefix("test_").replace("_", "-")
    with open_scene(testbed, name, kinds=(JOBS, PYTORCH_JOBS)) as scene:
        yield scene


@pytest.fixture
def queue(scene: Scene) -> str:
    """A queue where a gang is passed once."""
    name = scene.queue(cpu="4")
    scene.annotate(QUEUES, name, **{PATIENCE: "0s"})
    return name


def test_a_large_gang_starts_by_the_time_it_was_told(scene: Scene, queue: str, muster: MusterInstall) -> None:
    reservation(scene, queue, scene.await_running, lambda: replace_leader(muster))
    scene.assert_never_open_above()


def test_a_run_that_takes_longer_than_said_changes_the_plan(scene: Scene, queue: str) -> None:
    longer_than_said(scene, queue, scene.await_running)
