"""A queue that is kept for some namespaces, on the real Volcano: opened and closed while gangs wait and run."""

import pytest

from hack.testbed.api import Answer
from muster.model.names import NAMESPACE_SELECTOR, QUEUE_LABEL
from muster.model.resource import NAMESPACES, QUEUES
from muster.queueing.verdicts import no_such_queue
from tests.support.cluster.grants import grant, on, revoke, user
from tests.support.cluster.propagation import await_accepted, await_said
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, gates, message, phase, state
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("bare")


def test_closed_to_a_namespace_its_gangs_wait_and_go_on_when_it_is_open_again(scene: Scene) -> None:
    """By the namespace's labels and by the queue's annotation; what runs there runs on, and nobody is told more."""
    name = scene.namespace
    queue = scene.queue(cpu="2")
    scene.label(NAMESPACES, name, team="ml")
    scene.annotate(QUEUES, queue, **{NAMESPACE_SELECTOR: "team in (ml, vision)"})
    holder = ray_cluster("holder").label(QUEUE_LABEL, queue).workers(1)
    await_accepted(scene, holder)
    scene.apply(holder)
    scene.await_running("ray-holder-pg", 2)
    scene.apply(ray_cluster("waiter").label(QUEUE_LABEL, queue).workers(1))
    scene.await_state("ray-waiter-pg", "WaitingForQuota")

    scene.label(NAMESPACES, name, team="web")
    group = scene.await_state("ray-waiter-pg", "QueueNotFound")
    assert message(group) == no_such_queue(queue, scene.namespace)
    late, lost = (ray_cluster("late").label(QUEUE_LABEL, to).workers(1) for to in (queue, f"{queue}-none"))
    await_said(scene, late, "does not exist")
    assert scene.refused(late) == scene.refused(lost).replace(f"{queue}-none", queue)
    assert state(scene.pod_group("ray-holder-pg")) == "Running"
    assert {phase(pod) for pod in scene.pods("ray-holder-pg")} == {"Running"}

    # It has all the room now, and does not take it.
    scene.delete(RAY_CLUSTERS, "holder")
    scene.wait("the holder to be gone", lambda: not scene.pods("ray-holder-pg"))
    assert [gates(pod) for pod in scene.pods("ray-waiter-pg")] == [["muster.dev/gang"]] * 2
    assert state(scene.pod_group("ray-waiter-pg")) == "QueueNotFound"
    scene.annotate(QUEUES, queue, **{NAMESPACE_SELECTOR: "team"})
    scene.await_running("ray-waiter-pg", 2)
    scene.assert_never_open_above()


def test_nobody_without_rights_on_queues_opens_one(scene: Scene) -> None:
    """Its status, which others may write, carries no annotations."""
    queue = scene.queue(cpu="2")
    kept = {"metadata": {"annotations": {NAMESPACE_SELECTOR: "team=ml"}}}
    scene.patch(QUEUES, queue, kept)
    status = on(QUEUES, "get", "patch", "update", subresource="status")
    grant(scene.api, queue, [status], user("tenant"))

    def opened(subresource: str | None = None) -> Answer:
        patch = {"metadata": {"annotations": {NAMESPACE_SELECTOR: None}}}
        return scene.api("PATCH", scene.path(QUEUES, queue, subresource), patch, patch="merge", user="tenant")

    scene.wait("the role to count", lambda: opened("status").ok)
    assert opened().body["reason"] == "Forbidden"
    there = scene.api.get(QUEUES.path(name=queue))
    assert there["metadata"]["annotations"][NAMESPACE_SELECTOR] == "team=ml"
    revoke(scene.api, queue)
