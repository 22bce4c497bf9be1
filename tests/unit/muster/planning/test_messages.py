"""The sentences of a gang's state."""

from muster.cluster.observe import observe
from muster.model.gang_states import GangState
from muster.planning.messages import at_rest, left_alone, of_the_scheduler
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    KEY,
    pod_group,
    pytorch_job,
    ray_cluster,
    ray_pod,
    read,
    workers,
)

_GROUP: JSON = {"status": {"conditions": [{"type": "Unschedulable", "status": "True", "message": "of the group"}]}}
_POD: JSON = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "of the pod"}]}


@cases(
    "groups, status, words",
    ("the PodGroup's first", [pod_group() | _GROUP], _POD, "of the group"),
    ("else a pod's", [pod_group()], _POD, "of the pod"),
    ("without a PodGroup", [], _POD, "of the pod"),
    ("none", [], {}, "it has said nothing yet"),
)
def test_why_the_scheduler_finds_no_place_is_said_in_its_own_words(
    groups: list[JSON], status: JSON, words: str
) -> None:
    one = ray_pod("demo-head", "headgroup", held=False)
    one["status"] = {**one.get("status", {}), **status}
    view = observe(KEY, filled(workloads=[ray_cluster()], pods=[one], groups=groups), DEFAULTS)
    assert of_the_scheduler(view) == f"the scheduler finds no place: {words}"


def test_a_pod_that_names_nodes_tells_more_than_one_that_names_its_group() -> None:
    """The first pods of a group wait for the others of it; only one of them has met the nodes."""
    said = ["pod group is not ready", "0/4 nodes are available: 4 Insufficient cpu", "pod group is not ready"]
    pods = [ray_pod(f"demo-w-{number}", held=False) for number in range(len(said))]
    for pod, words in zip(pods, said, strict=True):
        pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": words}]}
    view = observe(KEY, filled(workloads=[ray_cluster(workers(replicas=3))], pods=pods), DEFAULTS)
    assert of_the_scheduler(view) == f"the scheduler finds no place: {said[1]}"


def test_a_workload_that_is_over_says_so() -> None:
    manifest = pytorch_job() | {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    assert at_rest(read(manifest)) == (GangState.FINISHED, "the workload has ended")


def test_a_workload_that_asks_for_nothing_any_more_says_so() -> None:
    view = observe(KEY, filled(workloads=[ray_cluster(labels={})], groups=[pod_group()]), DEFAULTS)
    assert view.gang is None
    assert left_alone(view) == (GangState.NOT_MANAGED, "the workload has opted out of muster")
