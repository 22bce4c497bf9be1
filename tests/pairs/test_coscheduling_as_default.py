"""Coscheduling in the place of kube-scheduler: all pods name it, and only the gangs are muster's."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.names import QUEUE_LABEL
from muster.model.resource import PODS
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import cluster, member
from tests.support.cluster.objects import gates, node_of
from tests.support.cluster.pair_scene import open_pair_scene
from tests.support.cluster.recorder import Manifest
from tests.support.manifests.applied import pytorch_job, ray_cluster

pytestmark = pytest.mark.long

PAIR = {"schedulers": "{coscheduling=default-scheduler}", "queues.source": "muster"}


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """A cluster whose only scheduler is scheduler-plugins' own."""
    with Testbed.start(**cluster("coscheduling-as-default"), nodes=Nodes(count=2, gpu=0), progress=print) as testbed:
        installed = install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=1)
        installed.wait_ready()
        yield testbed


def test_gangs_wait_and_run_and_other_pods_pass(pair: Testbed) -> None:
    with open_pair_scene(pair, "as-default") as scene:
        queue = scene.gang_queue(capability={"cpu": "3"})
        scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
        members = scene.await_running("ray-first-pg", 3)
        assert {pod["spec"]["schedulerName"] for pod in members} == {"default-scheduler"}
        scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
        scene.await_state("second", "WaitingForQuota")
        scene.create(member("alone"))

        def alone() -> list[Manifest]:
            return [pod for pod in scene.recorder.now(PODS) if pod["metadata"]["name"] == "alone" and node_of(pod)]

        scene.wait("a pod of no gang to be placed", alone)
        assert gates(alone()[0]) == []
        scene.assert_started_together("ray-first-pg", 3)
        scene.assert_never_above({"cpu": "3"}, queue)
