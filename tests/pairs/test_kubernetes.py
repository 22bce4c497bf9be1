"""Kubernetes 1.37 places with its own PodGroups, muster's ledger admits: clusters without Volcano."""

import re
from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import MusterInstall, install
from muster.model.names import GANG, GANG_SIZE, GATE, QUEUE_LABEL
from muster.model.resource import PODS, PRIORITY_CLASSES
from tests.e2e.conftest import VALUES
from tests.support.cases import cases
from tests.support.cluster import pair_stories
from tests.support.cluster.backends import cluster
from tests.support.cluster.leaders import replace_leader
from tests.support.cluster.objects import gates, message
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.reservation_story import reservation
from tests.support.cluster.scene import open_scene
from tests.support.manifests.applied import pytorch_job, ray_cluster

PAIR = {"schedulers": "{kubernetes}", "queues.source": "muster"}


@pytest.fixture(scope="module")
def installed() -> Iterator[MusterInstall]:
    """A cluster of Kubernetes 1.37 with its own PodGroups, KubeRay, the Training operator and muster."""
    with Testbed.start(**cluster("kubernetes"), nodes=Nodes(count=4, cpu="8", gpu=0), progress=print) as testbed:
        muster = install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=2)
        muster.wait_ready()
        yield muster


@pytest.fixture(scope="module")
def pair(installed: MusterInstall) -> Testbed:
    """The cluster."""
    return installed.testbed


@pytest.fixture
def scene(pair: Testbed, request: pytest.FixtureRequest) -> Iterator[PairScene]:
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))
    with open_pair_scene(pair, name, "kubernetes") as scene:
        yield scene


@pytest.mark.long
def test_a_ray_cluster_runs_as_a_gang(scene: PairScene) -> None:
    """Its PodGroup has the UID of its owner in its name, and each pod names it from its creation on."""
    queue = scene.gang_queue(capability={"cpu": "4"})
    scene.apply(ray_cluster("demo").label(QUEUE_LABEL, queue).workers(2))
    scene.await_placed("ray-demo-pg", 3)
    group = scene.pod_group("ray-demo-pg")
    owner = scene.recorder.get(RAY_CLUSTERS, "demo")
    assert owner is not None
    assert group["metadata"]["name"] == f"ray-demo-pg-{owner['metadata']['uid'][:8]}"
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert group["spec"]["disruptionMode"] == {"all": {}}
    named = {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in scene.pods("ray-demo-pg")}
    assert named == {group["metadata"]["name"]}
    scene.assert_started_together("ray-demo-pg", 3)
    scene.assert_never_above({"cpu": "4"}, queue)


@pytest.mark.native
def test_what_does_not_fit_waits_in_the_order_of_its_queue(scene: PairScene) -> None:
    queue = scene.gang_queue(capability={"cpu": "4"})
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_placed("ray-first-pg", 3)
    scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
    group = scene.await_state("second", "WaitingForQuota")
    assert f'queue "{queue}"' in message(group)
    assert all(gates(pod) == [GATE] for pod in scene.pods("second"))
    scene.apply(pytorch_job("small").policy(queue=queue))
    scene.await_placed("small", 1)
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_placed("second", 2)
    scene.assert_started_together("second", 2)
    scene.assert_never_above({"cpu": "4"}, queue)


@pytest.mark.long
def test_a_gang_without_nodes_is_placed_whole_or_not_at_all_and_says_why(scene: PairScene) -> None:
    """Three workers find nodes and the head does not: the scheduler would start without it, were it not in the gang."""
    queue = scene.gang_queue(capability={"cpu": "60"}, unplacedAfter="2s")
    scene.apply(ray_cluster("wide").label(QUEUE_LABEL, queue).head(cpu="12").workers(3, cpu="1"))
    group = scene.await_state("ray-wide-pg", "Unschedulable")
    scene.wait("the scheduler's words", lambda: "nodes are available" in message(scene.pod_group("ray-wide-pg")))
    assert group["metadata"]["name"]
    assert scene.placed("ray-wide-pg") == 0


@pytest.mark.long
def test_a_lost_pod_is_replaced_also_when_another_has_finished(scene: PairScene) -> None:
    """A pod that has succeeded counts no more for the scheduler: minCount follows."""
    queue = scene.gang_queue(capability={"cpu": "3"})
    scene.apply(pytorch_job("demo").policy(queue=queue).workers(2))
    scene.await_placed("demo", 3)
    scene.finish("demo-worker-0")
    scene.wait(
        "minCount to follow",
        lambda: scene.pod_group("demo")["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}},
    )
    scene.delete(PODS, "demo-worker-1")
    scene.wait("the replacement to run", lambda: sorted(scene.living("demo")) == ["demo-master-0", "demo-worker-1"])
    scene.wait("both to be placed", lambda: scene.placed("demo") == 2)


@pytest.mark.long
def test_a_new_workload_of_the_name_has_a_new_group(scene: PairScene) -> None:
    """The old one may stay for as long as a pod of its name does."""
    queue = scene.gang_queue(capability={"cpu": "3"})
    job = pytorch_job("again").policy(queue=queue)
    scene.apply(job)
    scene.await_placed("again", 1)
    before = scene.pod_group("again")["metadata"]["name"]
    scene.delete(PYTORCH_JOBS, "again")
    scene.apply(job.workers(1))
    scene.wait("the new gang to run", lambda: scene.placed("again") == 2)
    assert scene.pod_group("again")["metadata"]["name"] != before


@pytest.mark.long
def test_a_large_gang_starts_by_the_time_it_was_told(scene: PairScene, installed: MusterInstall) -> None:
    queue = scene.gang_queue(capability={"cpu": "4"}, patience="0s")
    reservation(scene, queue, scene.await_placed, lambda: replace_leader(installed))


@pytest.mark.long
def test_priority_overtakes_age(scene: PairScene) -> None:
    pair_stories.priority_overtakes_age(scene)


@pytest.mark.long
def test_a_replacement_starts_and_the_other_gang_waits_on(scene: PairScene) -> None:
    pair_stories.crash_under_load(scene)


@pytest.mark.native
def test_a_tenant_moves_no_running_gang(scene: PairScene) -> None:
    pair_stories.tenant_moves_nothing(scene)


@pytest.mark.long
def test_a_closed_queue_keeps_what_runs_and_starts_nothing(scene: PairScene) -> None:
    pair_stories.closed_queue(scene)


@pytest.mark.long
def test_what_it_cannot_do_is_refused(scene: PairScene) -> None:
    queue = scene.gang_queue(capability={"cpu": "8"})
    elastic = pytorch_job("elastic").policy(queue=queue, minAvailable=2).workers(3)
    assert "places no pod of a PodGroup while another one waits" in scene.refused(elastic)
    urgent = {"metadata": {"name": f"{scene.namespace[:30]}-urgent"}, "value": 1000}
    scene.api.create(PRIORITY_CLASSES.path(), {**urgent, "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"})
    name = urgent["metadata"]["name"]  # type: ignore[index]
    try:
        mixed = ray_cluster("mixed").label(QUEUE_LABEL, queue).head(priorityClassName=name).workers(1)
        scene.wait("the class to be known", lambda: "one priority" in "".join(scene.told(mixed)))
        assert "takes one priority for all pods" in scene.refused(mixed)
    finally:
        scene.api.delete(PRIORITY_CLASSES.path(name=str(name)))


@pytest.mark.long
def test_a_gated_member_that_vanishes_leaves_no_group_stuck(scene: PairScene) -> None:
    """1.37.0 keeps such a group waiting until a new gated member is opened: its operator makes one, muster opens it."""
    queue = scene.gang_queue(capability={"cpu": "4"})
    hold = "tests.muster.dev/hold"
    scene.apply(pytorch_job("held").policy(queue=queue).workers(1, schedulingGates=[{"name": hold}]))
    scene.wait("muster's gates to be open", lambda: sorted(map(gates, scene.pods("held"))) == [[], [hold]])
    first = next(pod for pod in scene.pods("held") if gates(pod))
    scene.delete(PODS, first["metadata"]["name"])

    def second() -> list[str]:
        return [
            pod["metadata"]["name"]
            for pod in scene.pods("held")
            if gates(pod) == [hold] and pod["metadata"]["uid"] != first["metadata"]["uid"]
        ]

    scene.wait("the replacement to be opened by muster", second)
    assert scene.placed("held") == 0
    scene.api("PATCH", scene.path(PODS, second()[0]), {"spec": {"schedulingGates": None}}, patch="merge")
    scene.await_placed("held", 2)


def _plain_pod(name: str, queue: str, **spec: object) -> Manifest:
    """One of a gang of two that no operator made."""
    metadata = {"name": name, "labels": {GANG: "plain", QUEUE_LABEL: queue}, "annotations": {GANG_SIZE: "2"}}
    containers = [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@pytest.mark.long
def test_a_gated_pod_that_no_operator_made_is_made_again_by_hand(scene: PairScene) -> None:
    """Until then the gang keeps its room, and its other pod is not placed alone."""
    queue = scene.gang_queue(capability={"cpu": "4"})
    hold = "tests.muster.dev/hold"
    scene.apply(_plain_pod("plain-0", queue), _plain_pod("plain-1", queue, schedulingGates=[{"name": hold}]))
    scene.wait("muster's gates to be open", lambda: [gates(pod) for pod in scene.pods("plain")] == [[], [hold]])
    scene.delete(PODS, "plain-1")
    scene.wait("the pod to go", lambda: scene.living("plain") == ["plain-0"])
    scene.apply(_plain_pod("plain-1", queue))
    scene.await_placed("plain", 2)
    scene.assert_started_together("plain", 2)


@pytest.mark.long
@cases(
    "version, words",
    ("the field is dropped", "1.37-gate-off", "GenericWorkload"),
    ("nobody serves PodGroups", "1.37-not-served", "scheduling.k8s.io/v1beta1"),
)
def test_where_the_apiserver_knows_no_groups_the_gang_stays_held_and_says_so(version: str, words: str) -> None:
    """Its pods would be placed one by one, or never."""
    parts = cluster("kubernetes", operators=["training"])["parts"]
    with Testbed.start(parts=parts, kubernetes=version, nodes=Nodes(count=2, gpu=0), progress=print) as testbed:
        install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=1).wait_ready()
        with open_scene(testbed, "half", [PYTORCH_JOBS], made=PairScene) as scene:
            assert isinstance(scene, PairScene)
            queue = scene.gang_queue(capability={"cpu": "4"})
            scene.apply(pytorch_job("job").policy(queue=queue).workers(1))
            scene.wait("the reason", lambda: scene.events("job", "Invalid"))
            assert words in scene.events("job", "Invalid")[0]
            scene.wait("both pods", lambda: len(scene.pods("job")) == 2)
            assert [gates(pod) for pod in scene.pods("job")] == [[GATE], [GATE]]
