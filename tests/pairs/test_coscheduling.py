"""Coscheduling places and muster's ledger admits: RayClusters and PyTorchJobs in a cluster without Volcano."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import MusterInstall, install
from muster.model.names import GATE, NUDGE, QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.objects import convert
from muster.model.resource import PODS
from muster.schedulers import named
from tests.e2e.conftest import VALUES
from tests.support.cluster import pair_stories
from tests.support.cluster.backends import bound, cluster, member, scheduled
from tests.support.cluster.leaders import replace_leader
from tests.support.cluster.objects import alive, gates, message, node_of
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.pair_stories import priority_class
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest, State
from tests.support.cluster.reservation_story import reservation
from tests.support.cluster.timeline import shown
from tests.support.manifests.applied import pytorch_job, ray_cluster
from tests.support.pages.seeds import GATED, LEDGER, Point, told

SCHEDULER = "scheduler-plugins-scheduler"
PAIR = {"schedulers": "{coscheduling}", "queues.source": "muster"}


@pytest.fixture(scope="module")
def installed() -> Iterator[MusterInstall]:
    """A cluster with scheduler-plugins beside kube-scheduler, with KubeRay, the Training operator and muster."""
    with Testbed.start(**cluster("coscheduling"), nodes=Nodes(count=4, cpu="8", gpu=0), progress=print) as testbed:
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
    with open_pair_scene(pair, name) as scene:
        yield scene


@pytest.mark.long
def test_a_ray_cluster_runs_as_a_gang(scene: PairScene) -> None:
    queue = scene.gang_queue(capability={"cpu": "4"})
    scene.apply(ray_cluster("demo").label(QUEUE_LABEL, queue).workers(2))
    members = scene.await_running("ray-demo-pg", 3)
    assert {pod["spec"]["schedulerName"] for pod in members} == {SCHEDULER}
    assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in members} == {"ray-demo-pg"}
    (scheduler,) = named("coscheduling").values()
    group = convert(scene.pod_group("ray-demo-pg"), scheduler.pod_groups)
    assert (group.spec.min_member, group.spec.queue) == (3, queue)
    assert group.spec.min_task_member == {"headgroup": 1, "worker": 2}
    scene.assert_started_together("ray-demo-pg", 3)
    scene.assert_never_above({"cpu": "4"})


@pytest.mark.coscheduling
def test_what_does_not_fit_waits_in_the_order_of_its_queue(scene: PairScene) -> None:
    """With numbers; and a smaller one passes it."""
    queue = scene.gang_queue(capability={"cpu": "4"})
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
    group = scene.await_state("second", "WaitingForQuota")
    why = message(group).replace(queue, "test")
    assert 'queue "test"' in why
    waiting = scene.pods("second")
    assert all(gates(pod) == [GATE] for pod in waiting)
    pods, named_by = shown(scene, "second"), {pod["spec"]["schedulerName"] for pod in waiting}
    scene.apply(pytorch_job("small").policy(queue=queue))
    scene.await_running("small", 1)
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("second", 2)
    scene.assert_started_together("second", 2)
    scene.assert_never_above({"cpu": "4"})
    told(
        "C2. Coscheduling as a second scheduler",
        "A PyTorchJob of two pods without room in its queue, a GangQueue, and room later. The Training operator runs "
        "without `--gang-scheduler-name`.",
        Point("start when there is room", "both pods together", "both pods together"),
        Point("schedulerName in the template", SCHEDULER, "none", f"muster's webhook writes {', '.join(named_by)}"),
        Point("pods while they wait", "2 Pending", pods, GATED),
        Point("why they wait", "not shown", f"event on job and PodGroup: {why}", LEDGER),
    )


@pytest.mark.long
def test_what_can_never_run_is_refused_with_numbers(scene: PairScene) -> None:
    queue = scene.gang_queue(capability={"cpu": "2"})
    said = scene.refused(ray_cluster("large").label(QUEUE_LABEL, queue).workers(2))
    assert f'gang "ray-large-pg" needs cpu 3, queue "{queue}" has capability cpu 2' in said
    said = scene.refused(ray_cluster("lost").label(QUEUE_LABEL, "nowhere"))
    assert 'queue "nowhere" does not exist' in said


@pytest.mark.long
def test_a_gang_that_finds_no_node_keeps_its_place(scene: PairScene) -> None:
    """This scheduler bounds no queue: who passed it would fill the queue a second time."""
    queue = scene.gang_queue(capability={"cpu": "40"}, unplacedAfter="2s")
    scene.apply(ray_cluster("wide").label(QUEUE_LABEL, queue).head(cpu="12").workers(1, cpu="12"))
    scene.await_state("ray-wide-pg", "Unschedulable")
    assert all(not node_of(pod) for pod in scene.pods("ray-wide-pg"))
    scene.apply(pytorch_job("next").policy(queue=queue).master(cpu="7").workers(2, cpu="7"))
    scene.await_state("next", "WaitingForQuota")
    scene.delete(RAY_CLUSTERS, "wide")
    scene.await_running("next", 3)


@pytest.mark.long
def test_a_lost_worker_is_replaced_at_once(scene: PairScene) -> None:
    queue = scene.gang_queue(capability={"cpu": "3"})
    scene.apply(ray_cluster("demo").label(QUEUE_LABEL, queue).workers(2))
    members = scene.await_running("ray-demo-pg", 3)
    victim = next(pod for pod in members if "worker" in pod["metadata"]["name"])
    scene.delete(PODS, victim["metadata"]["name"])

    def replaced() -> bool:
        living = [pod for pod in scene.pods("ray-demo-pg") if alive(pod)]
        return len(living) == len(members) and victim["metadata"]["name"] not in {
            pod["metadata"]["name"] for pod in living if node_of(pod)
        }

    scene.wait("the replacement", replaced)
    scene.await_running("ray-demo-pg", 3)


@pytest.mark.long
def test_a_large_gang_starts_by_the_time_it_was_told(scene: PairScene, installed: MusterInstall) -> None:
    queue = scene.gang_queue(capability={"cpu": "4"}, patience="0s")
    reservation(scene, queue, scene.await_running, lambda: replace_leader(installed))


@pytest.mark.long
def test_priority_overtakes_age(scene: PairScene) -> None:
    pair_stories.priority_overtakes_age(scene)


@pytest.mark.long
def test_on_full_nodes_no_gang_preempts_and_a_pod_does_for_which_the_victim_is_told(scene: PairScene) -> None:
    """Coscheduling refuses a gang whose minResources do not fit in what is free "to avoid any preemption attempts"."""
    queue = scene.gang_queue(capability={"cpu": "100"})
    scene.apply(pytorch_job("victim").policy(queue=queue).master(cpu="7").workers(3, cpu="7"))
    scene.await_running("victim", 4)
    with priority_class(scene) as urgent:
        claimant = pytorch_job("claimant").policy(queue=queue, priorityClass=urgent)
        scene.apply(claimant.master(cpu="7").workers(1, cpu="7"))
        scene.wait("the gang to be refused", lambda: "resource gap" in _why(scene, "claimant"))
        assert scene.events("victim", "Evicted") == []
        scene.delete(PYTORCH_JOBS, "claimant")
        scene.create(member("alone", cpu="7", schedulerName=SCHEDULER, priorityClassName=urgent))
        scene.wait("the pod to have a node", lambda: "alone" in bound(scene.pods()))
        told = scene.await_event("victim", "Evicted")
    assert re.match(
        rf"{SCHEDULER} preempted 1 of its pods \(victim-\w+-\d; cpu 7 and memory 1Gi\); it does not say", told
    )
    assert "; it had run " in told


def _why(scene: PairScene, gang: str) -> str:
    """Why the scheduler has turned pods of the gang away."""
    return " ".join(str(scheduled(pod)) for pod in scene.pods(gang))


@pytest.mark.long
def test_a_replacement_starts_and_the_other_gang_waits_on(scene: PairScene) -> None:
    pair_stories.crash_under_load(scene)


@pytest.mark.coscheduling
def test_a_tenant_moves_no_running_gang(scene: PairScene) -> None:
    pair_stories.tenant_moves_nothing(scene)


@pytest.mark.long
def test_pods_that_were_turned_away_are_looked_at_again_when_there_is_room(scene: PairScene) -> None:
    """The scheduler hears of no pod that goes: muster asks it again."""
    queue = scene.gang_queue(capability={"cpu": "40"})
    guests = [f"guest-{number}" for number in range(4)]
    for guest in guests:
        scene.create(member(guest, cpu="6"))
    scene.wait("the guests to have nodes", lambda: len(bound(scene.pods())) == len(guests))
    scene.apply(pytorch_job("crew").policy(queue=queue).master(cpu="5").workers(2, cpu="5"))
    scene.wait("all of it to be turned away", lambda: [bool(scheduled(pod)) for pod in _of(scene)] == [True] * 3)
    scene.delete(PODS, *guests)
    scene.await_running("crew", 3)
    assert scene.pod_group("crew")["metadata"]["annotations"][NUDGE]


def _of(scene: PairScene) -> list[Manifest]:
    return [pod for pod in scene.pods("crew") if not gates(pod)]


@pytest.mark.long
def test_a_closed_queue_keeps_what_runs_and_starts_nothing(scene: PairScene) -> None:
    pair_stories.closed_queue(scene)


@pytest.mark.long
def test_a_scheduler_that_muster_is_not_configured_for_is_left_alone(scene: PairScene) -> None:
    scene.apply(pytorch_job("other").label(SCHEDULER_LABEL, "volcano"))
    scene.wait("its pod", lambda: scene.recorder.now(PODS))
    (pod,) = scene.recorder.now(PODS)
    assert gates(pod) == []
    scene.delete(PYTORCH_JOBS, "other")


@pytest.mark.long
def test_an_elastic_gang_starts_with_its_head_and_grows_then(scene: PairScene) -> None:
    """The scheduler counts pods and no roles: the workers alone would be as many as it needs. So they come later."""
    queue = scene.gang_queue(capability={"cpu": "12"})
    elastic = replace(ray_cluster("demo").label(QUEUE_LABEL, queue), spec={"enableInTreeAutoscaling": True})
    elastic = elastic.head(cpu="2").workers(3, minReplicas=1, maxReplicas=3)
    scene.apply(elastic)
    scene.wait("all of it to run", lambda: scene.placed("ray-demo-pg") == 4)
    scene.recorder.settle()

    def placed(seen: State, part: str) -> bool:
        return part in seen.object["metadata"]["name"] and bool(node_of(seen.object))

    history = [seen for seen in scene.recorder.history(PODS) if not seen.gone]
    head = min(seen.version for seen in history if placed(seen, "head"))
    opened: dict[str, int] = {}
    for seen in history:
        if "worker" in seen.object["metadata"]["name"] and GATE not in gates(seen.object):
            opened.setdefault(seen.object["metadata"]["uid"], seen.version)
    assert [version > head for version in sorted(opened.values())] == [False, True, True]
    scene.assert_never_above({"cpu": "12"})
