"""Stories of docs/seeds.md as each scheduler beside Volcano must tell them, in muster's own queues."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from muster.model.names import ADMITTED_FOR, GANG_SPEC, GATE, GROUP_NAME, MANAGED_BY
from muster.model.resource import PODS, PRIORITY_CLASSES
from muster.schedulers import named
from tests.support.cluster.grants import bind, grant, on, user
from tests.support.cluster.objects import gates, message, state
from tests.support.cluster.pair_scene import PairScene
from tests.support.cluster.recorder import PYTORCH_JOBS
from tests.support.manifests.applied import pytorch_job

_CRASHES = (1, 2, 2)
_TENANT, _FORBIDDEN = "tenant", 403


@contextmanager
def priority_class(scene: PairScene) -> Iterator[str]:
    """Make a PriorityClass of this test's own, of value 1000."""
    urgent = f"urgent-{scene.namespace}"
    made = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind, "metadata": {"name": urgent}}
    scene.create({**made, "value": 1000})
    try:
        yield urgent
    finally:
        scene.delete(PRIORITY_CLASSES, urgent)


def priority_overtakes_age(scene: PairScene) -> None:
    """A1: two jobs wait for a third; the younger has the priority, and runs first."""
    with priority_class(scene) as urgent:
        queue = scene.gang_queue(capability={"cpu": "3"})
        scene.apply(pytorch_job("first").policy(queue=queue).workers(1))
        scene.await_placed("first", 2)
        scene.apply(pytorch_job("second").policy(queue=queue).workers(1))
        scene.await_state("second", "WaitingForQuota")
        scene.apply(pytorch_job("third").policy(queue=queue, priorityClass=urgent).workers(1))
        scene.wait("the younger to be first", lambda: "position 1 of 2" in message(scene.pod_group("third")))
        scene.wait("the older to be second", lambda: "position 2 of 2" in message(scene.pod_group("second")))
        for job, following in (("first", "third"), ("third", "second")):
            scene.delete(PYTORCH_JOBS, job)
            scene.await_placed(following, 2)
        assert scene.first_bound("third") < scene.last_ungated("second", 1)
        for job in ("first", "second", "third"):
            scene.assert_started_together(job, 2)
        scene.assert_never_above({"cpu": "3"}, queue)


def crash_under_load(scene: PairScene) -> None:
    """C5: of two jobs in a queue for one and a half one loses a worker, then two at once, then two again."""
    queue = scene.gang_queue(capability={"cpu": "6"})
    scene.apply(pytorch_job("first").policy(queue=queue).workers(3))
    scene.await_placed("first", 4)
    scene.apply(pytorch_job("second").policy(queue=queue).workers(3))
    scene.await_state("second", "WaitingForQuota")
    for count in _CRASHES:
        workers = [pod for pod in scene.pods("first") if "worker" in pod["metadata"]["name"]][:count]
        lost = {pod["metadata"]["uid"] for pod in workers}
        scene.delete(PODS, *(pod["metadata"]["name"] for pod in workers))
        scene.wait(
            "the crash to be seen",
            lambda lost=lost: lost.isdisjoint(pod["metadata"]["uid"] for pod in scene.pods("first")),  # type: ignore[misc]
        )
        scene.await_placed("first", 4)
    waits = [pod for pod in scene.recorder.history(PODS) if pod.name.startswith("second-")]
    assert waits
    assert all(gates(seen.object) == [GATE] for seen in waits)
    scene.delete(PYTORCH_JOBS, "first")
    scene.await_placed("second", 4)
    scene.assert_started_together("second", 4)
    scene.assert_never_above({"cpu": "6"}, queue)


def closed_queue(scene: PairScene) -> None:
    """What runs in a queue stays when it is closed, what waits there waits on, and nothing new comes."""
    queue = scene.gang_queue(capability={"cpu": "3"})
    scene.apply(pytorch_job("runs").policy(queue=queue).workers(1))
    scene.await_placed("runs", 2)
    ran = sorted(scene.living("runs"))
    scene.apply(pytorch_job("waits").policy(queue=queue).workers(1))
    scene.await_state("waits", "WaitingForQuota")
    scene.set_queue(queue, closed=True)
    scene.await_state("waits", "QueueClosed")
    late = pytorch_job("late").policy(queue=queue)
    scene.wait("the webhook to know", lambda: "is Closed" in "".join(scene.told(late)))
    assert f'queue "{queue}" is Closed and takes no new work' in scene.refused(late)
    assert ran == sorted(scene.living("runs"))
    scene.delete(PYTORCH_JOBS, "runs")
    scene.wait("room", lambda: not scene.pods("runs"))
    assert all(gates(pod) == [GATE] for pod in scene.pods("waits"))
    assert state(scene.pod_group("waits")) == "QueueClosed"
    scene.set_queue(queue, closed=False)
    scene.await_placed("waits", 2)
    scene.assert_never_above({"cpu": "3"}, queue)


def tenant_moves_nothing(scene: PairScene) -> None:
    """Who has the role `edit` and may write PodGroups, and their status, moves no running gang out of its queue."""
    (scheduler,) = named(scene.product).values()
    groups, spec = scheduler.resource, dict(scheduler.relaxed_patch)
    bind(scene.api, "edit", "edit", user(_TENANT), namespace=scene.namespace)
    may = [on(groups, "*"), on(groups, "*", subresource="status")]
    grant(scene.api, "writes", may, user(_TENANT), namespace=scene.namespace)
    queue = scene.gang_queue(capability={"cpu": "3"})
    scene.apply(pytorch_job("runs").policy(queue=queue).workers(2))
    scene.await_placed("runs", 3)
    scene.apply(pytorch_job("waits").policy(queue=queue).workers(2))
    scene.await_state("waits", "WaitingForQuota")
    path = scene.path(groups, scene.pod_group("runs")["metadata"]["name"])

    def write(door: str, **metadata: object) -> int:
        body = {"metadata": metadata, **({} if door or metadata else {"spec": spec})}
        return scene.api("PATCH", path + door, body, patch="merge", user=_TENANT).status

    scene.wait("the role to count", lambda: write("", labels={"team": "a"}) < _FORBIDDEN)
    annotations = [{key: None} for key in (GANG_SPEC, ADMITTED_FOR, GROUP_NAME)]
    assert [write("", annotations=one) for one in annotations] == [_FORBIDDEN] * 3
    links: Sequence[dict[str, object]] = (
        {"labels": {MANAGED_BY: None}},
        {"ownerReferences": None},
        {"finalizers": ["tenant.io/keeps"]},
        {},
    )
    assert [write("", **one) for one in links] == [_FORBIDDEN] * 4
    before = scene.api.get(path)["metadata"]
    write("/status", labels={MANAGED_BY: None}, ownerReferences=None, annotations=annotations[0])
    after = scene.api.get(path)["metadata"]
    for part in ("labels", "ownerReferences", "annotations"):
        assert after[part] == before[part]
    assert scene.api("DELETE", path, user=_TENANT).ok
    # Muster makes it again, or Kubernetes keeps it for its pods.
    scene.wait("it to say that its gang runs", lambda: state(scene.api("GET", path).body) == "Running")
    assert scene.placed("runs") == 3
    assert all(gates(pod) == [GATE] for pod in scene.pods("waits"))
    scene.delete(PYTORCH_JOBS, "runs")
    scene.await_placed("waits", 3)
    scene.assert_never_above({"cpu": "3"}, queue)
