"""Volcano and coscheduling in one cluster, and Volcano's queues for the gangs of both."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.names import QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.resource import NAMESPACES, PODS
from tests.e2e.conftest import VALUES
from tests.support.cluster.objects import alive, gates
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.manifests.applied import pytorch_job, ray_cluster

pytestmark = pytest.mark.long

OTHER = "scheduler-plugins-scheduler"
BOTH = {"schedulers": "{volcano,coscheduling}"}


@pytest.fixture(scope="module")
def both() -> Iterator[Testbed]:
    """A cluster with Volcano and scheduler-plugins, KubeRay, the Training operator and muster."""
    parts = ["volcano", "coscheduling", "kuberay", "training"]
    with Testbed.start(parts=parts, nodes=Nodes(count=2, gpu=0), progress=print) as testbed:
        installed = install(testbed, values={**VALUES, **BOTH}, webhooks=1, controllers=1)
        installed.wait_ready()
        yield testbed


def _names(scene: PairScene, gang: str) -> set[str]:
    return {pod["spec"]["schedulerName"] for pod in scene.pods(gang) if alive(pod)}


def test_gangs_of_both_fill_one_queue_in_one_order(both: Testbed) -> None:
    with open_pair_scene(both, "one-queue", queues="volcano") as scene:
        queue = scene.queue(cpu="3")
        scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).label(SCHEDULER_LABEL, OTHER).workers(2))
        scene.await_running("ray-first-pg", 3)
        assert _names(scene, "ray-first-pg") == {OTHER}
        scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
        scene.await_event("second", "WaitingForQuota")
        assert _names(scene, "second") == {"volcano"}
        assert all(gates(pod) for pod in scene.pods("second"))
        scene.delete(RAY_CLUSTERS, "first")
        scene.wait("the second to be placed", lambda: scene.placed("second") == 2)
        scene.assert_never_above({"cpu": "3"}, queue)


def test_a_label_that_changes_later_moves_no_gang(both: Testbed) -> None:
    """A replaced pod comes for the scheduler with which its gang began."""
    with open_pair_scene(both, "label-changes", queues="volcano") as scene:
        queue = scene.queue(cpu="4")
        demo = ray_cluster("demo").label(QUEUE_LABEL, queue).workers(2)
        scene.apply(demo.label(SCHEDULER_LABEL, OTHER))
        members = scene.await_running("ray-demo-pg", 3)
        scene.apply(demo.label(SCHEDULER_LABEL, "volcano"))
        victim = next(pod["metadata"]["name"] for pod in members if "worker" in pod["metadata"]["name"])
        scene.delete(PODS, victim)
        scene.wait(
            "a new worker to run",
            lambda: victim not in scene.living("ray-demo-pg") and scene.placed("ray-demo-pg") == 3,
        )
        assert _names(scene, "ray-demo-pg") == {OTHER}


def test_a_namespace_chooses_for_its_workloads(both: Testbed) -> None:
    with open_pair_scene(both, "namespace-chooses", queues="volcano") as scene:
        path = NAMESPACES.path(name=scene.namespace)
        scene.api.merge(path, {"metadata": {"annotations": {"muster.dev/scheduler": OTHER}}})
        queue = scene.queue(cpu="4")
        scene.apply(pytorch_job("job").policy(queue=queue).workers(1))
        scene.await_running("job", 2)
        assert _names(scene, "job") == {OTHER}
