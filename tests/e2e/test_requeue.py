"""A gang that its queue has room for and no node: it gives its place back when it was asked to, and only then."""

import pytest

from muster.model.names import GANG, GATE, QUEUE_LABEL, REQUEUE_AFTER, REQUEUED_AT
from muster.model.resource import POD_GROUPS, PODS
from tests.support.cluster.recorder import RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, admitted, gates, message, node_of, phase, state
from tests.support.manifests.applied import PyTorchJob, RayCluster, pytorch_job, ray_cluster

pytestmark = pytest.mark.part("time")


@pytest.mark.parametrize("kind", ["RayCluster", "PyTorchJob"])
def test_a_place_that_cannot_be_used_goes_to_who_waits(scene: Scene, kind: str) -> None:
    """Another gang of the queue starts though the claim never turned soft, and the first queues again, held.

    That nobody is deleted without having asked for it is in test_queueing.py.
    """
    # No node has so much; the queue has.
    queue = scene.queue(cpu="100001")
    gang, stuck = _too_large(kind, queue)
    scene.apply(stuck)
    scene.wait("it to be admitted", lambda: _once(scene, gang, "Admitted"))
    scene.apply(ray_cluster("small").label(QUEUE_LABEL, queue).workers(1))
    scene.await_event("stuck", "Requeued")
    scene.await_running("ray-small-pg", 2)

    scene.await_state(gang, "WaitingForQuota")
    assert [gates(pod) for pod in scene.await_gated(gang, 2)] == [[GATE], [GATE]]
    group = scene.pod_group(gang)
    assert (admitted(group), REQUEUED_AT in group["metadata"]["annotations"]) == ("", True)

    scene.recorder.settle()
    # Nothing but the requeue let the other in: by this state a claim that nobody could use would have given way.
    assert not _once(scene, gang, "Unschedulable")
    unmarked = scene.recorder.first(
        POD_GROUPS,
        lambda item: item["metadata"]["name"] == gang and REQUEUED_AT in item["metadata"].get("annotations", {}),
    ).version
    history = [seen for seen in scene.recorder.history(PODS) if _is_of(seen.object, gang)]
    opened = {seen.object["metadata"]["uid"] for seen in history if not gates(seen.object)}
    history = [seen for seen in history if seen.object["metadata"]["uid"] in opened]
    gone = [seen.version for seen in history if seen.gone]
    # Where this machine was so slow that the other one came late, the place was given back more than once.
    assert len(gone) == len(opened) >= 2
    assert min(gone) > unmarked, "the mark goes first"
    assert scene.first_bound("ray-small-pg") > unmarked, "the place was not free before"
    assert not any(node_of(seen.object) for seen in history)


def _once(scene: Scene, gang: str, wanted: str) -> bool:
    """Whether muster has said this of the gang, be it no more so."""
    return any(seen.name == gang and state(seen.object) == wanted for seen in scene.recorder.history(POD_GROUPS))


def _is_of(pod: Manifest, gang: str) -> bool:
    return bool(pod["metadata"]["labels"].get(GANG) == gang)


def _all_run(scene: Scene, gang: str) -> bool:
    return [phase(pod) for pod in scene.pods(gang)] == ["Running"] * 3


def _too_large(kind: str, queue: str) -> tuple[str, RayCluster | PyTorchJob]:
    """A gang of two pods of which one fits nowhere, and which waits five seconds for a node."""
    if kind == "RayCluster":
        cluster = ray_cluster("stuck").label(QUEUE_LABEL, queue).workers(1, cpu="100000")
        return "ray-stuck-pg", cluster.annotate(REQUEUE_AFTER, "5s")
    job = pytorch_job("stuck").policy(queue=queue).workers(1, cpu="99999")
    return "stuck", job.annotate(REQUEUE_AFTER, "5s")


def test_of_two_halves_under_one_quota_one_becomes_whole(scene: Scene) -> None:
    """Held pods are charged, so neither would ever get its third pod; the younger gives back what it holds.

    Whose operator makes the next pod first is a race between the two, until one of them is whole.
    """
    queue = scene.queue(cpu="4")

    def cluster(name: str, workers: int = 1) -> RayCluster:
        return ray_cluster(name).label(QUEUE_LABEL, queue).workers(workers)

    scene.create(cluster("runs", 2))
    scene.await_running("ray-runs-pg", 3)
    scene.create(cluster("older"))
    scene.await_gated("ray-older-pg", 2)
    scene.create(cluster("younger").annotate(REQUEUE_AFTER, "12s"))
    scene.await_gated("ray-younger-pg", 2)
    # When all are there: once, eight came under a quota of seven that was as new as they were.
    scene.resource_quota({"requests.cpu": "7"}, used={"requests.cpu": "7"})
    refused = 'ResourceQuota "team" has hard cpu 7'
    scene.wait("the quota to be known", lambda: any(refused in one for one in scene.told(cluster("large", 7))))
    for name in ("older", "younger"):
        groups = cluster(name, 2).manifest()["spec"]["workerGroupSpecs"]
        scene.patch(RAY_CLUSTERS, name, {"spec": {"workerGroupSpecs": groups}})
    scene.wait("the younger to give back", lambda: scene.events("younger", "Requeued"))
    assert 'of ResourceQuota "team" is given back to gang "ray-older-pg"' in scene.events("younger", "Requeued")[0]
    halves = ("ray-older-pg", "ray-younger-pg")
    refuses = 'ResourceQuota "team" refuses the next one'
    assert any(
        seen.name in halves and refuses in message(seen.object) for seen in scene.recorder.history(POD_GROUPS)
    ), "no word of the quota"

    def in_line() -> list[str]:
        return [gang for gang in halves if state(scene.pod_group(gang)) == "WaitingForQuota"]

    scene.wait("one of them to be whole, and in line", in_line)
    scene.delete(RAY_CLUSTERS, "runs")
    scene.wait("one of them to run", lambda: any(_all_run(scene, gang) for gang in halves))
    (first,) = (gang for gang in halves if _all_run(scene, gang))
    scene.assert_started_together(first, 3)
