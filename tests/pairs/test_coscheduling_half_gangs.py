"""Half gangs of coscheduling: its Permit counts names of pods, and some stay in its memory for ever.

Its issue 930 says that a part of a group is let through. In v0.34.7 one way leads there for certain: a PodGroup without
minResources is deleted while members wait at Permit. Their names stay, and count for the next group of that name.
"""

from collections.abc import Iterator

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.names import GANG
from muster.model.resource import PODS
from muster.workloads.jobset import JOB_SET
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import (
    COSCHEDULING_POD_GROUPS,
    bound,
    cluster,
    coscheduling_pod_group,
    member,
    scheduled,
)
from tests.support.cluster.objects import alive
from tests.support.cluster.pair_scene import PairScene, open_pair_scene
from tests.support.cluster.recorder import JOBS, Manifest
from tests.support.manifests.applied import FAIL_AFTER_SECONDS, RUN_SECONDS
from tests.support.manifests.batch import job_set, replicated

pytestmark = pytest.mark.long

SCHEDULER = "scheduler-plugins-scheduler"
PAIR = {"schedulers": "{coscheduling}", "queues.source": "muster"}
POD_GROUP = "scheduling.x-k8s.io/pod-group"
# While a tenth of a group or less finds no node, this scheduler lets the others wait at Permit.
CREW, ROOM = 10, 9
JOB_SETS = JOB_SET.resource


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """A cluster with JobSet, muster, and room for nine pods of one cpu beside muster's own."""
    parts = cluster("coscheduling", operators=["jobset"])
    with Testbed.start(**parts, nodes=Nodes(count=1, cpu=str(ROOM + 1), gpu=0), progress=print) as testbed:
        installed = install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=1)
        installed.wait_ready()
        yield testbed


def _job(name: str, pods: int, group: str = "crew") -> Manifest:
    """A Job whose pods, of one cpu each, name the PodGroup."""
    made = member(name, labels={POD_GROUP: group}, schedulerName=SCHEDULER, restartPolicy="Never")
    metadata = {"labels": made["metadata"]["labels"], "annotations": {RUN_SECONDS: "3600"}}
    template = {"metadata": metadata, "spec": made["spec"]}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": spec}


def _of(scene: PairScene, group: str) -> list[Manifest]:
    """The living pods that name a PodGroup, whoever bound them."""
    labelled = [(pod, pod["metadata"].get("labels") or {}) for pod in scene.pods() if alive(pod)]
    return [pod for pod, labels in labelled if labels.get(POD_GROUP) == group]


def _named(scene: PairScene, *names: str) -> list[Manifest]:
    return [pod for pod in scene.pods() if pod["metadata"]["name"] in names]


def _said_of(scene: PairScene, name: str) -> str:
    return "".join(scheduled(pod) for pod in _named(scene, name))


def _all_turned_away(scene: PairScene, group: str, pods: int) -> bool:
    """Whether the scheduler has said of each that it lacks a node, or that another one of the group does."""
    said = [scheduled(pod) for pod in _of(scene, group)]
    return len(said) == pods and all("Insufficient cpu" in words or "rejection in" in words for words in said)


def _await_at_permit(scene: PairScene, group: str) -> None:
    """Wait until the last pod finds no node: all others have one in the scheduler's memory, and wait."""

    def lacks_a_node() -> bool:
        pods = _of(scene, group)
        return len(pods) == CREW and any("Insufficient cpu" in scheduled(pod) for pod in pods)

    scene.wait(f"the last pod of {group} to find no node", lacks_a_node)
    assert bound(_of(scene, group)) == []


def _await_bound(scene: PairScene, group: str, pods: int) -> None:
    scene.wait(f"{pods} pods of {group} to have a node", lambda: len(bound(_of(scene, group))) == pods)


def test_without_muster_a_deleted_pod_group_leaves_names_behind(pair: Testbed) -> None:
    """The counter-proof: deleted and made again with the same name, nine of ten are placed."""
    with open_pair_scene(pair, "without-muster", kinds=(JOBS,)) as scene:
        scene.create(coscheduling_pod_group("crew", CREW))
        scene.create(_job("crew", CREW))
        _await_at_permit(scene, "crew")
        scene.delete(COSCHEDULING_POD_GROUPS, "crew")
        scene.delete(JOBS, "crew")
        scene.wait("its pods to go", lambda: not scene.pods())

        scene.create(coscheduling_pod_group("crew", CREW))
        scene.create(_job("crew", CREW))
        _await_bound(scene, "crew", ROOM)
        assert len(_of(scene, "crew")) == CREW
        assert all(GANG not in pod["metadata"]["labels"] for pod in scene.pods())


def test_pods_that_have_finished_stand_for_nobody(pair: Testbed) -> None:
    """The scheduler hears of a finished pod as of one that is gone: of its successors too all are placed, or none."""
    with open_pair_scene(pair, "finished", kinds=(JOBS,)) as scene:
        scene.create(coscheduling_pod_group("crew", ROOM))
        scene.create(_job("crew", ROOM))
        _await_bound(scene, "crew", ROOM)
        first = bound(_of(scene, "crew"))
        scene.create(member("guest"))
        scene.wait("the guest to wait for a node", lambda: "Insufficient cpu" in _said_of(scene, "guest"))
        scene.annotate(PODS, *first, **{FAIL_AFTER_SECONDS: "0"})
        scene.wait("the guest to take a place", lambda: bound(_named(scene, "guest")))
        scene.wait("all of the first to fail", lambda: not _of(scene, "crew"))
        assert len(_named(scene, *first)) == ROOM, "they are to be there still"

        scene.create(_job("again", ROOM))
        scene.wait("each of the successors to be turned away", lambda: _all_turned_away(scene, "crew", ROOM))
        assert bound(_of(scene, "crew")) == []


def test_with_muster_no_pod_waits_at_permit_for_room_of_its_queue(pair: Testbed) -> None:
    """What waits in a full queue is held: its PodGroup may come and go, and none of its pods is placed alone."""
    with open_pair_scene(pair, "with-muster", kinds=(JOBS, JOB_SETS)) as scene:
        queue = scene.gang_queue(capability={"cpu": str(ROOM)})
        scene.create(job_set("first", queue, replicated("work", pods=1)))
        scene.await_running("first", 1)
        for _ in range(2):
            scene.create(job_set("crew", queue, replicated("work", pods=ROOM)))
            scene.await_gated("crew", ROOM)
            scene.delete(JOB_SETS, "crew")
            scene.wait("its pods to go", lambda: not scene.pods("crew"))
        scene.create(job_set("crew", queue, replicated("work", pods=ROOM)))
        waiting = scene.await_gated("crew", ROOM)
        assert bound(waiting) == []
        scene.delete(JOB_SETS, "first")
        scene.await_running("crew", ROOM)
        scene.assert_started_together("crew", ROOM)
        scene.assert_never_above({"cpu": str(ROOM)})


def test_with_muster_and_too_few_nodes_no_pod_comes_as_far_as_permit(pair: Testbed) -> None:
    """The queue has room for all, the nodes have not: the PodGroup says what all need, and nobody leaves a name."""
    with open_pair_scene(pair, "too-few-nodes", kinds=(JOBS, JOB_SETS)) as scene:
        queue = scene.gang_queue(capability={"cpu": "40"})
        for _ in range(2):
            scene.create(job_set("crew", queue, replicated("work", pods=CREW)))
            scene.wait("the scheduler to find the room too small", lambda: _all_lack_room(scene, "crew"))
            assert scene.pod_group("crew")["spec"]["minResources"] == {"cpu": str(CREW)}
            assert bound(_of(scene, "crew")) == []
            scene.delete(JOB_SETS, "crew")
            scene.wait("all of it to go", lambda: not scene.pods() and not scene.pod_group("crew")["spec"])


def _all_lack_room(scene: PairScene, group: str) -> bool:
    """Whether all were turned away before a node was sought; not each of them is asked again when the last is open."""
    said = [scheduled(pod) for pod in _of(scene, group)]
    early = [words for words in said if "resource gap" in words or "due to gated pods" in words]
    return len(early) == len(said) == CREW and any("resource gap" in words for words in said)
