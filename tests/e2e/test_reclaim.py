"""Volcano takes pods back for others, by its actions reclaim and preempt (issue 5, 6.3).

A gang loses what it has beyond its minimum, never a part of the minimum; it has all of it again when the other ends.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.gang_states import GangState
from muster.model.names import BOUND, MIN_RUNTIME, PREEMPTION, RECLAIM, TASK_SPEC
from muster.model.resource import PODS, QUEUES
from muster.model.times import seconds_of
from tests.support.cluster.scene import Scene, alive, gates, node_of
from tests.support.manifests import applied
from tests.support.manifests.applied import PyTorchJob, pytorch_job, volcano_job
from tests.support.pages.recorded import keep_state

pytestmark = pytest.mark.part("kinds")

# The plugin that shares out stands beside gang: in a tier of its own it would be asked where gang says "nobody", and
# take members of the minimum.
_CONF = """\
actions: "allocate, reclaim, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: SHARING}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
# One pod fills a node, and there are four.
_CPU = "15"


# Of action, plugin and cap any two meet in every way; all three would be eight.
_PAIRS = [
    pytest.mark.parametrize(
        ("sharing", "capped"),
        [pytest.param(plugin, capped, id=f"{plugin}-{'capped' if capped else 'uncapped'}") for plugin, capped in pairs],
        indirect=["sharing"],
    )
    for pairs in ([("proportion", True), ("capacity", False)], [("proportion", False), ("capacity", True)])
]


@pytest.fixture(scope="module")
def sharing(testbed: Testbed, request: pytest.FixtureRequest) -> Iterator[str]:
    """Volcano with both actions and with this plugin, on the session's testbed, until the test has ended."""
    plugin: str = request.param
    before = testbed.volcano_conf.read_text()
    testbed.volcano_conf.write_text(_CONF.replace("SHARING", plugin))
    testbed.restart_part("volcano-scheduler")
    yield plugin
    testbed.volcano_conf.write_text(before)
    testbed.restart_part("volcano-scheduler")


def _queue(scene: Scene, suffix: str, capability: str = "", name: str = "", **deserved: str) -> str:
    """A queue that deserves half of the cluster's cpu."""
    name = name or f"{scene.namespace}-{suffix}"
    manifest = applied.queue(name, **({"cpu": capability} if capability else {}))
    manifest["spec"]["deserved"] = {"cpu": "32", **deserved}
    scene.adopt_queue(name)
    scene.apply(manifest)
    scene.await_queue(name)
    return name


def _elastic(queue: str) -> PyTorchJob:
    """A master and three workers, of which the master and one worker are enough to start with."""
    # Volcano looks for victims on this node first.
    first = {"kubernetes.io/hostname": "node-0"}
    job = pytorch_job("elastic").policy(queue=queue, minAvailable=2)
    return job.master(cpu=_CPU, nodeSelector=first).workers(3, cpu=_CPU)


@_PAIRS[0]
def test_reclaim_takes_what_is_beyond_the_minimum_and_gives_it_back(
    scene: Scene, sharing: str, *, capped: bool
) -> None:
    del sharing
    scene.apply(_elastic(_queue(scene, "rich", "60" if capped else "")))
    scene.await_running("elastic", 4)
    poor = _queue(scene, "poor", "32" if capped else "")
    scene.apply(pytorch_job("claimant").policy(queue=poor).master(cpu=_CPU).workers(1, cpu=_CPU))
    _assert_half_goes_and_comes_back(scene, "reclaimed")


@_PAIRS[1]
def test_preempt_takes_what_is_beyond_the_minimum_and_gives_it_back(
    scene: Scene, sharing: str, urgent: str, *, capped: bool
) -> None:
    del sharing
    queue = _queue(scene, "one", "60" if capped else "")
    scene.annotate(QUEUES, queue, **{PREEMPTION: "lower-priority"})
    scene.apply(_elastic(queue))
    scene.await_running("elastic", 4)
    claimant = pytorch_job("claimant").policy(queue=queue, priorityClass=urgent)
    scene.apply(claimant.master(cpu=_CPU).workers(1, cpu=_CPU))
    _assert_half_goes_and_comes_back(scene, "preempted")


@pytest.mark.parametrize("sharing", ["capacity"], indirect=True)
def test_an_evicted_pod_does_not_take_the_room_again_though_volcano_would_give_it_back(
    scene: Scene, sharing: str
) -> None:
    """By its memory, of which there is plenty, the poor queue has more than its share; the rich one has less, then."""
    del sharing
    poor, rich = _queue(scene, "poor", name="poor", memory="8Gi"), _queue(scene, "rich", memory="128Gi")
    scene.apply(pytorch_job("first").policy(queue=poor).master(cpu=_CPU, memory="16Gi"))
    scene.await_running("first", 1)
    scene.apply(pytorch_job("elastic").policy(queue=rich, minAvailable=1).master(cpu=_CPU).workers(2, cpu=_CPU))
    scene.await_running("elastic", 3)
    scene.apply(pytorch_job("claimant").policy(queue=poor).master(cpu=_CPU))
    scene.await_running("claimant", 1)
    scene.await_event("elastic", "Evicted")
    keep_state(scene, GangState.EVICTED, "pytorchjob/elastic")
    scene.wait("the evicted pod to be open again", lambda: _waiting(scene) == [[]])
    scene.await_running("claimant", 1)
    assert _evictions(scene) == 1


@pytest.mark.parametrize("sharing", ["capacity"], indirect=True)
def test_a_job_of_volcanos_that_reclaims_is_named_by_its_queue(scene: Scene, sharing: str) -> None:
    """It is no gang of muster's: its PodGroup counts in its queue, and its pod says for which node it waits."""
    del sharing
    scene.apply(_elastic(_queue(scene, "rich")))
    scene.await_running("elastic", 4)
    poor = _queue(scene, "poor")
    scene.create(volcano_job("claimant", poor, _CPU))
    told = scene.await_event("elastic", "Evicted")
    assert told.startswith("volcano reclaimed 1 of its pods (elastic-worker-")
    assert ' for gang "claimant-' in told
    assert f'" of queue "{poor}"; it had run ' in told


@pytest.fixture
def bound(scene: Scene) -> Iterator[None]:
    """The nodes bound all queues together."""
    scene.annotate(QUEUES, "root", **{BOUND: "nodes"})
    yield
    scene.annotate(QUEUES, "root", **{BOUND: None, RECLAIM: None})


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("sharing", ["capacity", pytest.param("proportion", marks=pytest.mark.long)], indirect=True)
def test_on_full_nodes_a_gang_below_its_share_gets_what_others_hold_beyond_theirs(scene: Scene, sharing: str) -> None:
    """Where the root says that Volcano takes it back; else it waits for free nodes, held, and Volcano sees nothing."""
    del sharing
    scene.apply(_elastic(_queue(scene, "rich")))
    scene.await_running("elastic", 4)
    scene.apply(pytorch_job("claimant").policy(queue=_queue(scene, "poor")).master(cpu=_CPU).workers(1, cpu=_CPU))
    scene.await_state("claimant", "WaitingForQuota")
    assert _evictions(scene) == 0
    scene.annotate(QUEUES, "root", **{RECLAIM: "beyond-share"})
    _assert_half_goes_and_comes_back(scene, "reclaimed")


@pytest.mark.parametrize("sharing", ["capacity}, {name: cdp"], indirect=True)
def test_pods_of_a_queue_with_a_min_runtime_are_not_evicted_before_it(scene: Scene, sharing: str) -> None:
    del sharing
    rich = _queue(scene, "rich")
    scene.annotate(QUEUES, rich, **{MIN_RUNTIME: "15s"})
    scene.apply(_elastic(rich))
    scene.await_running("elastic", 4)
    claimant = pytorch_job("claimant").policy(queue=_queue(scene, "poor"))
    scene.apply(claimant.master(cpu=_CPU).workers(1, cpu=_CPU))
    scene.await_running("claimant", 2)
    scene.await_event("elastic", "Evicted")
    scene.recorder.settle()
    pods = [seen.object for seen in scene.recorder.history(PODS) if seen.name.startswith("elastic-")]
    evicted = [pod for pod in pods if pod["metadata"].get("deletionTimestamp") and pod["status"].get("startTime")]
    assert evicted
    for pod in evicted:
        deleted = seconds_of(pod["metadata"]["deletionTimestamp"]) or 0.0
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        assert deleted - grace - (seconds_of(pod["status"]["startTime"]) or 0.0) >= 14, pod["metadata"]["name"]


def _assert_half_goes_and_comes_back(scene: Scene, verb: str) -> None:
    """The claimant starts whole and stays; two pods of the other are evicted, no more, and made anew to wait."""
    first = {pod["metadata"]["uid"] for pod in scene.await_running("claimant", 2)}
    scene.wait("the evicted pods to be made anew", lambda: len(_waiting(scene)) == 2)
    scene.await_state("elastic", "Running")
    told = scene.await_event("elastic", "Evicted")
    assert f"volcano {verb} 2 of its pods (elastic-" in told
    assert '; cpu 30 and memory 2Gi) for gang "claimant" of queue "' in told
    before_the_end = {pod["metadata"]["uid"] for pod in scene.pods("claimant")}
    scene.end("claimant")
    scene.await_ended("claimant")
    scene.await_running("elastic", 4)
    assert before_the_end == first, "the claimant lost pods to those that it had displaced"
    scene.assert_started_together("claimant", 2)
    scene.assert_never_open_above(acts=2)
    assert _evictions(scene) == 2
    _assert_minimum_stayed(scene, {"master": 1, "worker": 1})


def _evictions(scene: Scene) -> int:
    """How many pods the scheduler has evicted.

    A replacement that is still held may be deleted and made once more within 50 ms, by its name and with no word of the
    scheduler on it (seen in one of 20 runs): an eviction has the condition that Volcano writes.
    """
    scene.recorder.settle()
    gone = [seen.object for seen in scene.recorder.history(PODS) if seen.gone and seen.name.startswith("elastic-")]
    return sum(
        any(one["type"] == "DisruptionTarget" for one in pod.get("status", {}).get("conditions", ())) for pod in gone
    )


def _waiting(scene: Scene) -> list[list[str]]:
    """The gates of the pods that have no node."""
    return [gates(pod) for pod in scene.pods("elastic") if alive(pod) and not node_of(pod)]


def _assert_minimum_stayed(scene: Scene, minimum: dict[str, int]) -> None:
    """From the moment when its minimum was placed, the elastic gang never had less of it."""
    placed: dict[str, str] = {}
    started = False
    for seen in scene.recorder.history(PODS):
        if not seen.name.startswith("elastic-"):
            continue
        if seen.gone or not alive(seen.object) or not node_of(seen.object):
            placed.pop(seen.name, None)
        else:
            placed[seen.name] = seen.object["metadata"]["annotations"][TASK_SPEC]
        whole = Counter(placed.values()) >= Counter(minimum)
        started = started or whole
        assert whole or not started, f"at version {seen.version} of the minimum only {placed} were placed"
    assert started
