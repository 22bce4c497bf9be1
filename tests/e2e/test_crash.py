"""A controller that dies at the worst moments loses nothing, and starts nothing by halves (issue 3, 4.5)."""

from collections.abc import Callable

import pytest

from hack.testbed.muster import MusterInstall
from muster.model.names import GATE, PRIORITY_CLASS_LABEL, QUEUE_LABEL
from tests.support.cases import cases
from tests.support.cluster.leaders import leader as leader_of
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, admitted, gates, node_of, state
from tests.support.faults.refused_writes import BURST, MARK, WORKERS_OF_BURST, hold
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("time")

_GANG = "ray-fragile-pg"


def _marked(scene: Scene) -> bool:
    return bool(admitted(scene.pod_group(_GANG)))


def _gated(scene: Scene) -> int:
    return sum(GATE in gates(pod) for pod in scene.pods(_GANG))


@cases(
    "point, reached",
    (
        "PodGroup written, not marked",
        MARK,
        lambda scene: scene.pod_group(_GANG)["metadata"] and not _marked(scene) and _gated(scene) == 3,
    ),
    ("marked, no gate opened", BURST, lambda scene: _marked(scene) and _gated(scene) == 3),
    ("in the middle of the burst", WORKERS_OF_BURST, lambda scene: _marked(scene) and _gated(scene) == 2),
)
def test_killed_at_the_worst_moment(
    scene: Scene, muster: MusterInstall, urgent: str, point: tuple[str, str], reached: Callable[[Scene], bool]
) -> None:
    """SIGKILL between two steps: nothing runs by halves meanwhile, and after the restart the gang runs whole."""
    queue = scene.queue(cpu="3")
    with hold(scene, point):
        scene.apply(ray_cluster("fragile").label(QUEUE_LABEL, queue).workers(2))
        scene.wait("the controller to be at this point", lambda: len(scene.pods(_GANG)) == 3 and reached(scene))
        while muster.controllers:
            muster.kill_controller()
    assert reached(scene), "somebody else went on"
    assert not any(node_of(pod) for pod in scene.pods(_GANG)), "a part of the gang was placed"

    # More urgent, but too late for a place that was given away: only a gang without the mark may be overtaken.
    given = _marked(scene)
    scene.apply(ray_cluster("other").label(QUEUE_LABEL, queue).label(PRIORITY_CLASS_LABEL, urgent).workers(1))
    scene.await_gated("ray-other-pg", 2)
    muster.free_lease()
    muster.start_controller()
    muster.wait_ready()
    if not given:
        scene.await_running("ray-other-pg", 2)
        scene.delete(RAY_CLUSTERS, "other")
    scene.await_running(_GANG, 3)
    assert not any(gates(pod) for pod in scene.pods(_GANG))
    if given:
        scene.await_state("ray-other-pg", "WaitingForQuota")
    scene.assert_started_together(_GANG, 3)
    scene.assert_never_above({"cpu": "3"})


def test_leader_killed_the_other_takes_over(scene: Scene, muster: MusterInstall) -> None:
    """Two controllers: the one that works is killed; what ran runs on and new gangs are started by the other."""
    queue = scene.queue(cpu="3")
    scene.apply(ray_cluster("before").label(QUEUE_LABEL, queue).workers(1))
    before = {pod["metadata"]["uid"] for pod in scene.await_running("ray-before-pg", 2)}
    leader = leader_of(muster)
    leader.kill()

    scene.apply(ray_cluster("after").label(QUEUE_LABEL, queue))
    scene.await_running("ray-after-pg", 1)
    assert leader_of(muster).name != leader.name
    assert {pod["metadata"]["uid"] for pod in scene.await_running("ray-before-pg", 2)} == before
    # The new leader knows what the old one gave away.
    scene.apply(ray_cluster("more").label(QUEUE_LABEL, queue))
    scene.await_state("ray-more-pg", "WaitingForQuota")
    scene.assert_never_above({"cpu": "3"})


def test_the_other_finishes_what_the_killed_leader_began(scene: Scene, muster: MusterInstall) -> None:
    """The leader dies in the middle of a burst: the other opens the rest, and nobody has to start anything."""
    queue = scene.queue(cpu="3")
    with hold(scene, WORKERS_OF_BURST):
        scene.apply(ray_cluster("fragile").label(QUEUE_LABEL, queue).workers(2))
        scene.wait(
            "one gate open of three", lambda: len(scene.pods(_GANG)) == 3 and _marked(scene) and _gated(scene) == 2
        )
        leader = leader_of(muster)
        leader.kill()
    scene.await_running(_GANG, 3)
    assert leader_of(muster).name != leader.name
    scene.assert_started_together(_GANG, 3)


def test_controllers_may_come_and_go_while_gangs_wait(scene: Scene, muster: MusterInstall) -> None:
    """With no controller at all the operators' pods stay gated, and nothing is placed; one that comes finds them."""
    while muster.controllers:
        muster.kill_controller()
    queue = scene.queue(cpu="3")
    scene.apply(*(ray_cluster(name).label(QUEUE_LABEL, queue).workers(1) for name in ("one", "two")))
    scene.await_gated("ray-one-pg", 2)
    scene.await_gated("ray-two-pg", 2)
    assert not scene.pod_group("ray-one-pg")["metadata"]
    muster.free_lease()
    muster.start_controller()
    # Of the same second, names decide who is first.
    scene.wait("the older to run and the younger to wait", lambda: _states(scene) == ["Running", "WaitingForQuota"])
    scene.assert_never_above({"cpu": "3"})


def _states(scene: Scene) -> list[str]:
    return [state(scene.pod_group(gang)) for gang in ("ray-one-pg", "ray-two-pg")]
