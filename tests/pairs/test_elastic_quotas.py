"""ElasticQuotas of scheduler-plugins and muster's ledger: gangs wait for their namespace, and the scheduler agrees."""

import re
from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.gang_states import GangState
from muster.model.names import GATE, QUEUE_LABEL
from muster.model.resource import ELASTIC_QUOTAS, PODS
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import bound, cluster, elastic_quota, member
from tests.support.cluster.objects import gates, has_condition, message
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.manifests.applied import pytorch_job, ray_cluster
from tests.support.pages.recorded import keep_state

pytestmark = pytest.mark.long

SCHEDULER = "scheduler-plugins-scheduler"
PAIR = {"schedulers": "{coscheduling}", "queues.source": "muster", "elasticQuotas": "true"}
QUOTA = "team"


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """A cluster whose second scheduler runs CapacityScheduling, and muster that heeds ElasticQuotas."""
    with Testbed.start(**cluster("coscheduling"), nodes=Nodes(count=4, cpu="8", gpu=0), progress=print) as testbed:
        installed = install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=2)
        installed.wait_ready()
        yield testbed


@pytest.fixture
def scene(pair: Testbed, request: pytest.FixtureRequest) -> Iterator[PairScene]:
    """A namespace with an ElasticQuota of 4 cpu."""
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))
    with open_pair_scene(pair, name, kinds=(RAY_CLUSTERS, PYTORCH_JOBS, ELASTIC_QUOTAS)) as scene:
        scene.create(elastic_quota(QUOTA, cpu="4", memory="64Gi"))
        yield scene


def test_two_queues_share_the_quota_of_their_namespace(scene: PairScene) -> None:
    """Who waits says for what, and starts when another ends."""
    one, other = scene.gang_queue("-one"), scene.gang_queue("-other")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, one).workers(2))
    scene.await_running("ray-first-pg", 3)
    scene.apply(pytorch_job("second").policy(queue=other).workers(1))
    said = message(scene.await_state("second", "WaitingForQuota"))
    assert f'; ElasticQuota "{QUOTA}" has cpu 1 and memory' in said
    assert all(gates(pod) == [GATE] for pod in scene.pods("second"))
    scene.apply(pytorch_job("small").policy(queue=other))
    scene.await_running("small", 1)
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("second", 2)
    scene.assert_started_together("second", 2)
    scene.assert_never_above({"cpu": "4"})


def test_a_full_namespace_holds_up_no_other_in_their_queue(scene: PairScene, pair: Testbed) -> None:
    """Also where the queue is strict, and the gang that waits for its namespace is the first there."""
    queue = scene.gang_queue(capability={"cpu": "6"}, queueing="strict")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
    scene.await_state("second", "WaitingForQuota")
    with open_pair_scene(pair, "its-neighbour") as neighbour:
        neighbour.apply(pytorch_job("guest").policy(queue=queue).workers(1))
        neighbour.await_running("guest", 2)


def test_the_next_starts_when_the_quota_grows(scene: PairScene) -> None:
    """And one that waits when the quota is lowered is told that it can never start."""
    queue = scene.gang_queue()
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
    scene.await_state("second", "WaitingForQuota")
    set_quota(scene, cpu="1", memory="64Gi")
    said = message(scene.await_state("second", "ExceedsElasticQuota"))
    assert said.startswith(f'needs cpu 2, ElasticQuota "{QUOTA}" has max cpu 1')
    scene.await_event("second", "ExceedsElasticQuota")
    keep_state(scene, GangState.EXCEEDS_ELASTIC_QUOTA, "pytorchjob/second", groups="podgroups.scheduling.x-k8s.io")
    set_quota(scene, cpu="5", memory="64Gi")
    scene.await_running("second", 2)
    scene.assert_never_above({"cpu": "5"})


def set_quota(scene: PairScene, **limit: str) -> None:
    scene.api.merge(scene.path(ELASTIC_QUOTAS, QUOTA), {"spec": {"min": limit, "max": limit}})


def test_what_is_above_the_quota_is_refused_with_numbers(scene: PairScene) -> None:
    queue = scene.gang_queue()
    large = ray_cluster("large").label(QUEUE_LABEL, queue).workers(4)
    words = f'gang "ray-large-pg" needs cpu 5, ElasticQuota "{QUOTA}" has max cpu 4'
    # The webhook has its quotas from a watch.
    scene.wait("the gang to be refused", lambda: words in " ".join(scene.told(large)))


def test_pods_that_are_not_of_gangs_count(scene: PairScene) -> None:
    queue = scene.gang_queue()
    scene.create(member("beside", cpu="2", schedulerName=SCHEDULER))
    scene.wait("the pod to be bound", lambda: bound(scene.recorder.now(PODS)) == ["beside"])

    def used() -> list[str]:
        quotas = scene.recorder.now(ELASTIC_QUOTAS)
        return [quota.get("status", {}).get("used", {}).get("cpu", "") for quota in quotas]

    scene.wait("the scheduler's controller to count it", lambda: used() == ["2"])
    scene.apply(pytorch_job("second").policy(queue=queue).workers(2))
    said = message(scene.await_state("second", "WaitingForQuota"))
    assert f'ElasticQuota "{QUOTA}" has cpu 2 and memory' in said
    scene.delete(PODS, "beside")
    scene.await_running("second", 3)
    scene.assert_never_above({"cpu": "4"})


def test_pods_that_the_scheduler_takes_back_for_another_namespace_are_reported(scene: PairScene, pair: Testbed) -> None:
    """They had more than their own `min`; who got it is the business of the other namespace, and named by its queue."""
    queue = scene.gang_queue()
    borrowed = {"min": {"cpu": "4", "memory": "64Gi"}, "max": {"cpu": "8", "memory": "64Gi"}}
    scene.api.merge(scene.path(ELASTIC_QUOTAS, QUOTA), {"spec": borrowed})
    with open_pair_scene(pair, "its-lender", kinds=(RAY_CLUSTERS, PYTORCH_JOBS, ELASTIC_QUOTAS)) as lender:
        lender.create(elastic_quota(QUOTA, cpu="4", memory="64Gi"))
        scene.apply(pytorch_job("elastic").policy(queue=queue, minAvailable=2).workers(6))
        scene.await_running("elastic", 7)
        lender.apply(pytorch_job("claimant").policy(queue=queue).workers(2))
        lender.await_running("claimant", 3)
        # As many as it takes, of the minimum as well: the scheduler knows nothing of roles.
        scene.wait("all to be reported", lambda: 2 <= len(_evicted(scene)) == _counted(scene))
    told = scene.await_event("elastic", "Evicted")
    assert f' for another gang of queue "{queue}"; ' in told


def _evicted(scene: PairScene) -> set[str]:
    history = [seen.object for seen in scene.recorder.history(PODS) if seen.name.startswith("elastic-")]
    return {pod["metadata"]["uid"] for pod in history if has_condition(pod, "DisruptionTarget")}


def _counted(scene: PairScene) -> int:
    """How many pods of the gang were evicted, by its events."""
    told = " ".join(scene.events("elastic", "Evicted"))
    return sum(map(int, re.findall(rf"{SCHEDULER} preempted (\d) of its pods \(elastic-", told)))
