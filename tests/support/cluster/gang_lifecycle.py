"""What every kind of workload goes through: it waits as a whole, runs as a whole, ends, and gives its place back."""

from collections.abc import Callable

from tests.support.cluster.recorder import Manifest
from tests.support.cluster.scene import Scene, admitted, node_of


def goes_through_its_life(scene: Scene, make: Callable[[str], Manifest], *, pods: int, held: int | None = None) -> None:
    """Two workloads in a queue that holds one of them, whose gangs have their names.

    The second waits until the first has ended; `held` of its `pods` wait then (all, if not said).
    """
    scene.create(make("first"))
    scene.await_running("first", pods)
    first = admitted(scene.pod_group("first"))
    assert first, "a running gang is not on record as admitted"

    scene.create(make("second"))
    waiting = scene.await_gated("second", pods if held is None else held)
    assert not any(node_of(pod) for pod in waiting)
    scene.await_state("second", "WaitingForQuota")

    scene.end("first")
    assert not admitted(scene.await_state("first", "Finished")), "an ended workload still holds its place"
    scene.await_running("second", pods)
    for gang in ("first", "second"):
        scene.assert_started_together(gang, pods if held is None else held)
    group, manifest = scene.pod_group("second"), make("second")
    owners = [(owner["kind"], owner["uid"]) for owner in group["metadata"]["ownerReferences"]]
    assert owners == [(manifest["kind"], admitted(group))]
    scene.end("second")
    scene.await_state("second", "Finished")
    scene.assert_never_open_above(acts=2)
