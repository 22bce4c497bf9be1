"""Queues below queues with guarantees, under Volcano's hierarchical capacity (issue 5, 6.1)."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.names import QUEUE_LABEL
from muster.model.resource import POD_GROUPS
from tests.support.cluster.propagation import await_said
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, message, open_scene, phase
from tests.support.manifests.applied import RayCluster, ray_cluster

pytestmark = pytest.mark.part("bare")

_CAPACITY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""


@pytest.fixture
def hierarchy(testbed: Testbed) -> Iterator[None]:
    """Volcano with hierarchical capacity, until the test has ended."""
    before = testbed.volcano_conf.read_text()
    testbed.volcano_conf.write_text(_CAPACITY)
    testbed.restart_part("volcano-scheduler")
    yield
    testbed.volcano_conf.write_text(before)
    testbed.restart_part("volcano-scheduler")


@pytest.fixture
def tree(testbed: Testbed, muster: object, hierarchy: None) -> Iterator[Scene]:
    """An organisation of 6 cpu: team-a, to which 2 are guaranteed, and team-b of two queues."""
    del muster, hierarchy
    with open_scene(testbed, "tree") as scene:
        # Those below others go first.
        for name in ("b-one", "b-two", "team-a", "team-b", "org"):
            scene.adopt_queue(name)
        scene.apply(_queue("org", capability={"cpu": "6"}))
        scene.apply(_queue("team-a", "org", guarantee={"resource": {"cpu": "2"}}, deserved={"cpu": "2"}))
        scene.apply(_queue("team-b", "org"))
        scene.apply(_queue("b-one", "team-b"), _queue("b-two", "team-b"))
        for name in ("org", "team-a", "team-b", "b-one", "b-two"):
            scene.await_queue(name)
        yield scene


def _queue(name: str, parent: str = "root", **spec: object) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent, "reclaimable": False, **spec},
    }


def _cluster(name: str, queue: str, workers: int) -> RayCluster:
    return ray_cluster(name).workers(workers).label(QUEUE_LABEL, queue)


def test_every_level_is_kept_and_what_is_guaranteed_stays_free(tree: Scene) -> None:
    """And Volcano schedules what muster admits, and muster admits no more than Volcano would."""
    too_large = 'gang "ray-too-large-pg" needs cpu 5, queue "team-b" above "b-one" has capability cpu 4'
    await_said(tree, _cluster("too-large", "b-one", 4), too_large)
    assert too_large in tree.refused(_cluster("too-large", "b-one", 4))
    assert 'queue "team-b" has queues below it' in tree.refused(_cluster("inner", "team-b", 1))

    tree.apply(_cluster("first", "b-one", 2))
    tree.await_running("ray-first-pg", 3)
    tree.apply(_cluster("second", "b-two", 1))
    waiting = tree.await_state("ray-second-pg", "WaitingForQuota")
    assert message(waiting) == (
        'needs cpu 2 and memory 2Gi; queue "team-b" above "b-two" has cpu 1 free of cpu 4; position 1 of 1 waiting'
    )
    # Its guarantee kept it free, whatever the other team runs and waits for.
    tree.apply(_cluster("guaranteed", "team-a", 1))
    tree.await_running("ray-guaranteed-pg", 2)

    tree.delete(RAY_CLUSTERS, "first")
    tree.await_running("ray-second-pg", 2)
    tree.wait("the first's PodGroup to go", lambda: tree.recorder.get(POD_GROUPS, "ray-first-pg") is None)
    tree.recorder.settle()
    assert all(phase(group) == "Running" for group in tree.recorder.now(POD_GROUPS))
    tree.assert_never_above({"cpu": "6"})
