"""Chart value `validation`: what can never run is taken with a warning, or without a word, and waits."""

from collections.abc import Callable, Iterator

import pytest

from muster.model.names import QUEUE_LABEL
from muster.model.resource import POD_GROUPS, QUEUES
from muster.queueing.verdicts import no_such_queue
from tests.e2e.conftest import Resident
from tests.support.cluster.propagation import await_said
from tests.support.cluster.scene import Scene
from tests.support.manifests import applied
from tests.support.manifests.applied import RayCluster, ray_cluster

pytestmark = pytest.mark.part("bare")


@pytest.fixture(scope="module")
def turned(resident: Resident) -> Iterator[Callable[[str], None]]:
    """Gives the session's release another value, until the end of the module."""

    def turn(mode: str) -> None:
        resident.present().upgrade({"validation": mode})
        resident.present()

    yield turn
    turn("deny")


_ASK = "; name another one, or ask its administrator"


def said(scene: Scene, cluster: RayCluster) -> list[str]:
    """What `kubectl apply` warns of; it takes the cluster."""
    return scene.apply(cluster)


def test_warn_takes_what_can_never_run_and_it_waits_and_says_why(scene: Scene, turned: Callable[[str], None]) -> None:
    """When its queue comes, or grows, or has no queues below it any more, it starts by itself."""
    queue, later, below = scene.queue(cpu="2"), f"{scene.namespace}-later", f"{scene.namespace}-below"
    field = f"metadata.labels[{QUEUE_LABEL}]"
    turned("warn")
    assert said(scene, ray_cluster("large").label(QUEUE_LABEL, queue).workers(2)) == [
        (
            f'{field}: gang "ray-large-pg" needs cpu 3, queue "{queue}" has capability cpu 2; '
            "lower the replicas or use a larger queue"
        )
    ]
    assert said(scene, ray_cluster("early").label(QUEUE_LABEL, later)) == [
        f'{field}: {no_such_queue(later, scene.namespace)} (did you mean "{queue}"?){_ASK}'
    ]
    assert scene.await_event("large", "ExceedsCapability") == (f'needs cpu 3, queue "{queue}" has capability cpu 2')
    assert scene.await_event("early", "QueueNotFound") == no_such_queue(later, scene.namespace)
    scene.await_gated("ray-large-pg", 3)

    child = applied.queue(below, cpu="4")
    child["spec"]["parent"] = queue
    scene.adopt_queue(below)
    scene.apply(child)
    scene.await_queue(below)
    upper = ray_cluster("upper").label(QUEUE_LABEL, queue)
    await_said(scene, upper, "has queues below it")
    assert "has queues below it" in "".join(said(scene, upper))
    scene.await_event("upper", "QueueNotLeaf")
    assert "ray-upper-pg" not in [one["metadata"]["name"] for one in scene.recorder.now(POD_GROUPS)]
    scene.delete(QUEUES, below)
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "5"}}})
    scene.queue("-later", cpu="1")
    for gang, pods in (("ray-large-pg", 3), ("ray-upper-pg", 1), ("ray-early-pg", 1)):
        scene.await_running(gang, pods)


def test_off_takes_it_without_a_word(scene: Scene, turned: Callable[[str], None]) -> None:
    """Nobody is asked; the gang waits all the same."""
    queue = scene.queue(cpu="2")
    turned("off")
    assert said(scene, ray_cluster("large").label(QUEUE_LABEL, queue).workers(2)) == []
    scene.await_event("large", "ExceedsCapability")
    scene.await_gated("ray-large-pg", 3)
