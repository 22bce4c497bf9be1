"""Kueue admits and another scheduler than Volcano places: no queue of muster's is there, so that its ledger is off."""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.resource import PODS
from muster.schedulers import named
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import RESOURCE_FLAVORS, bound, cluster, resource_flavor
from tests.support.cluster.kueue_scene import (
    FLAVOR,
    admitted_workloads,
    cluster_of,
    in_team,
    open_kueue_scene,
    placed_of_each,
)
from tests.support.cluster.objects import alive, message
from tests.support.cluster.pair_scene import PairScene
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene

pytestmark = pytest.mark.long

Pair = tuple[Testbed, str]


@pytest.fixture(scope="module", params=["coscheduling", "kubernetes"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """A cluster with Kueue and a scheduler, whose product is returned, and muster with no admitter but Kueue."""
    product = request.param
    values = {"schedulers": f"{{{product}}}", "queues.source": "muster", "admitters": "{kueue}"}
    asked = cluster(product, kueue=True)
    with Testbed.start(**asked, nodes=Nodes(count=4, cpu="8", gpu=0), progress=print) as testbed:
        testbed.api().create(RESOURCE_FLAVORS.path(), resource_flavor(FLAVOR))
        install(testbed, values={**VALUES, **values}, webhooks=1, controllers=1).wait_ready()
        yield testbed, product


def test_what_kueue_admits_runs_as_a_gang_and_what_it_does_not_waits(pair: Pair) -> None:
    testbed, product = pair
    (name,) = named(product)
    with open_kueue_scene(testbed, f"kueue-{product}", product, cpu="4", memory="64Gi") as scene:
        assert isinstance(scene, PairScene)
        scene.apply(in_team("first", scheduler=name))
        scene.await_placed("ray-first-pg", 3)
        assert {pod["spec"]["schedulerName"] for pod in scene.pods("ray-first-pg")} == {name}
        assert "admitted by Kueue" in message(scene.pod_group("ray-first-pg"))
        scene.apply(in_team("second", 3, name))
        # At first Kueue may not have looked at it, and other words of the same state are news after half a minute.
        words = "insufficient unused quota for cpu"
        scene.wait("Kueue's words", lambda: any(words in said for said in scene.events("second", "WaitingForKueue")))
        assert scene.pods("ray-second-pg") == []
        scene.delete(RAY_CLUSTERS, "first")
        scene.await_placed("ray-second-pg", 4)
        for gang, pods in (("ray-first-pg", 3), ("ray-second-pg", 4)):
            scene.assert_started_together(gang, pods)
        scene.assert_never_placed_above({"cpu": "4"})


def test_of_three_admitted_clusters_with_room_for_one_no_part_of_the_others_is_placed(pair: Pair) -> None:
    """Kueue's quota is larger than the nodes; four nodes hold a pod of 5 cpu each."""
    testbed, product = pair
    (name,) = named(product)
    with open_kueue_scene(testbed, f"all-or-nothing-{product}", product, cpu="1000", memory="1000Gi") as scene:
        for one in ("a", "b", "c"):
            scene.apply(in_team(one, scheduler=name).head(cpu="5").workers(2, cpu="5"))
        scene.wait("all to be admitted", lambda: admitted_workloads(scene) == 3)
        scene.wait("one to be placed", lambda: placed_of_each(scene) == [3])
        first = {cluster_of(pod) for pod in scene.pods() if bound([pod])}
        scene.delete(RAY_CLUSTERS, *first)
        scene.wait("another to be placed", lambda: placed_of_each(scene) == [3])
        scene.recorder.settle()
        most = max(_clusters_placed_at_once(scene))
        assert most == 1


def _clusters_placed_at_once(scene: Scene) -> Iterator[int]:
    """How many clusters had a pod with a node, after each change."""
    held: dict[str, str] = {}
    for seen in scene.recorder.history(PODS):
        uid = seen.object["metadata"]["uid"]
        if seen.gone or not alive(seen.object) or not bound([seen.object]):
            held.pop(uid, None)
        else:
            held[uid] = cluster_of(seen.object)
        yield len(set(held.values()))
