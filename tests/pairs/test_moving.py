"""A cluster moves to another scheduler, and to another admitter, while gangs run and wait."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import MusterInstall, install
from muster.model.names import ADMITTER, QUEUE_LABEL
from muster.model.resource import NAMESPACES, PODS
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import cluster
from tests.support.cluster.objects import alive, message
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.manifests.applied import RayCluster, ray_cluster
from tests.support.pages.blocks import block, sentence
from tests.support.pages.walkthrough import Shell

pytestmark = pytest.mark.long

OTHER = "scheduler-plugins-scheduler"


@pytest.fixture
def moving() -> Iterator[MusterInstall]:
    """A cluster with Volcano, scheduler-plugins and Kueue; muster knows Volcano and its ledger alone."""
    asked = cluster("coscheduling", kueue=True)
    asked["parts"].append("volcano")
    with Testbed.start(**asked, nodes=Nodes(count=2, gpu=0), progress=print) as testbed:
        installed = install(testbed, values=VALUES, webhooks=1, controllers=1)
        installed.wait_ready()
        yield installed


def _move(installed: MusterInstall, **values: str) -> None:
    """As an administrator does it: `helm upgrade`, after which new processes run."""
    installed.upgrade(values)
    _restart(installed)


def _restart(installed: MusterInstall) -> None:
    """With what the release says now."""
    installed.stop_webhooks()
    installed.read_programs()
    while installed.controllers:
        installed.controllers.pop().stop()
    installed.start_webhook()
    installed.start_controller()
    installed.wait_ready()


def _schedulers(scene: PairScene, gang: str) -> set[str]:
    return {pod["spec"]["schedulerName"] for pod in scene.pods(gang) if alive(pod)}


def _lose_a_worker(scene: PairScene, gang: str, pods: int) -> None:
    """And wait for its replacement, which counts as the gang's own whoever admits and places now."""
    victim = next(pod["metadata"]["name"] for pod in scene.pods(gang) if "worker" in pod["metadata"]["name"])
    scene.delete(PODS, victim)
    scene.wait(f"{gang} to be whole again", lambda: victim not in scene.living(gang) and scene.placed(gang) == pods)


def test_gangs_finish_where_they_began(moving: MusterInstall) -> None:
    with open_pair_scene(moving.testbed, "moving", queues="volcano") as scene:
        queue = scene.queue(cpu="3")

        def gang(name: str) -> RayCluster:
            return ray_cluster(name).label(QUEUE_LABEL, queue).workers(2)

        scene.apply(gang("runs"))
        scene.wait("it to run", lambda: scene.placed("ray-runs-pg") == 3)
        ran = set(scene.living("ray-runs-pg"))
        scene.apply(gang("waits"))
        scene.await_event("waits", "WaitingForQuota")

        _move(moving, schedulers="{coscheduling,volcano}")
        scene.apply(gang("new"))
        scene.await_event("new", "WaitingForQuota")
        assert set(scene.living("ray-runs-pg")) == ran
        _lose_a_worker(scene, "ray-runs-pg", 3)
        for done, following, name in (("runs", "waits", "volcano"), ("waits", "new", OTHER)):
            scene.delete(RAY_CLUSTERS, done)
            scene.wait(f"{following} to run", lambda one=following: scene.placed(f"ray-{one}-pg") == 3)  # type: ignore[misc]
            assert _schedulers(scene, f"ray-{following}-pg") == {name}

        # And its namespace to Kueue, as the page says.
        reader = Shell.on(moving.testbed, {"team": scene.namespace})
        reader.obey(block("docs/kueue.md", "helm upgrade muster"))
        _restart(moving)
        scene.apply(gang("later"))
        scene.await_event("later", "WaitingForKueue")
        _lose_a_worker(scene, "ray-new-pg", 3)
        assert _schedulers(scene, "ray-new-pg") == {OTHER}
        assert "Kueue" not in message(scene.pod_group("ray-new-pg"))
        _moves_back(scene, reader, gang("back"))
        scene.assert_never_above({"cpu": "3"}, queue)


def _moves_back(scene: PairScene, reader: Shell, workload: RayCluster) -> None:
    """Away from Kueue: what comes from now on waits for the ledger. Kueue has no Workload of what lacks its label."""
    reader.obey(block("docs/choosing.md", "kubectl annotate namespace team"))
    assert scene.api.get(NAMESPACES.path(name=scene.namespace))["metadata"]["annotations"][ADMITTER] == "ledger"
    scene.apply(workload)
    scene.await_event(workload.name, "WaitingForQuota")
    said = reader.obey(sentence("docs/choosing.md", "kubectl get workloads.kueue.x-k8s.io -A"))
    assert "No resources found" in said
