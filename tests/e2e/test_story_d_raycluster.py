"""Story D: two of KubeRay's own sample clusters in a queue that holds one of them (issue 3, 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from muster.kube.resource import POD_GROUPS, PODS
from muster.names import GANG, GATE, PRIORITY_CLASS_LABEL, SCHEDULER_LABEL
from tests.builders import ray_cluster
from tests.recorder import RAY_CLUSTERS, Manifest
from tests.scene import admitted, alive, gates, has_condition, message, node_of, phase, state

if TYPE_CHECKING:
    from hack.testbed import Testbed
    from tests.scene import Scene

_SAMPLE = "config/samples/ray-cluster.volcano-scheduler-queue.yaml"
_FIRST, _SECOND = "ray-test-cluster-0-pg", "ray-test-cluster-1-pg"


@pytest.fixture
def sample(testbed: Testbed) -> tuple[Manifest, Manifest]:
    """KubeRay's sample: its Queue and its RayCluster."""
    folder = testbed.module_dir("github.com/ray-project/kuberay/ray-operator")
    queue, cluster = yaml.load_all((folder / _SAMPLE).read_bytes(), yaml.CSafeLoader)
    return queue, cluster


def _named(cluster: Manifest, name: str) -> Manifest:
    return {**cluster, "metadata": {**cluster["metadata"], "name": name}}


def test_two_clusters_in_a_queue_for_one(scene: Scene, sample: tuple[Manifest, Manifest]) -> None:
    """D3 and D4: the first runs as a gang, the second waits whole and says why, and runs when the first is deleted."""
    queue, cluster = sample
    assert queue["spec"]["capability"] == {"cpu": "4", "memory": "6Gi"}
    scene.adopt_queue(queue["metadata"]["name"])

    # Both at once, as users do: a queue that is a moment old refuses nobody.
    scene.apply(queue, cluster)
    scene.await_running(_FIRST, 3)
    scene.wait("Volcano's word", lambda: has_condition(scene.pod_group(_FIRST), "Scheduled"))
    group, owner = scene.pod_group(_FIRST), scene.recorder.get(RAY_CLUSTERS, "test-cluster-0")
    assert owner is not None
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"] == {"cpu": "3", "memory": "4Gi"}
    assert group["spec"]["queue"] == "kuberay-test-queue"
    assert group["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "name": "test-cluster-0",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert group["status"]["phase"] == "Running"
    last = group["status"]["conditions"][-1]
    assert (last["type"], last["reason"]) == ("Scheduled", "tasks in gang are ready to be scheduled")

    scene.apply(_named(cluster, "test-cluster-1"))
    why = scene.await_event("test-cluster-1", "WaitingForQuota")
    assert why == (
        'needs cpu 3 and memory 4Gi; queue "kuberay-test-queue" has cpu 1 and memory 2Gi free of cpu 4 and memory 6Gi; '
        "position 1 of 1 waiting"
    )
    scene.await_gated(_SECOND, 3)
    group = scene.await_state(_SECOND, "WaitingForQuota")
    assert message(group) == why
    assert phase(group) != "Running"
    listed = scene.kubectl("get", "pods", "--selector=ray.io/cluster=test-cluster-1", "--no-headers").stdout
    assert [line.split()[2] for line in listed.splitlines()] == ["SchedulingGated"] * 3

    scene.delete(RAY_CLUSTERS, "test-cluster-0")
    scene.await_running(_SECOND, 3)
    gone = max(seen.version for seen in scene.recorder.history(RAY_CLUSTERS) if seen.gone)
    assert scene.first_bound(_SECOND) > gone, "the second started before the first was deleted"
    # Deleted is the RayCluster before its pods are: until then they use what they use.
    left = max(_end_of(scene, uid) for uid in _members(scene, _FIRST))
    mark = scene.recorder.first(
        POD_GROUPS, lambda group: group["metadata"]["name"] == _SECOND and bool(admitted(group))
    )
    assert mark.version > left, "admitted while pods of the first still ran"
    scene.assert_started_together(_FIRST, 3)
    scene.assert_started_together(_SECOND, 3)
    scene.assert_never_above({"cpu": "4", "memory": "6Gi"})
    scene.wait("the first PodGroup to go", lambda: scene.recorder.get(POD_GROUPS, _FIRST) is None)


def _members(scene: Scene, gang: str) -> set[str]:
    """The UIDs of all pods that the gang ever had."""
    seen = (seen.object["metadata"] for seen in scene.recorder.history(PODS))
    return {meta["uid"] for meta in seen if meta["labels"].get(GANG) == gang}


def _end_of(scene: Scene, uid: str) -> int:
    """The resource version from which a pod was finished or being deleted."""
    return scene.recorder.first(PODS, lambda pod: pod["metadata"]["uid"] == uid and not alive(pod), "its end").version


def test_raising_the_capability_lets_a_waiting_cluster_run(scene: Scene) -> None:
    """D5: the capability is raised while a cluster waits, and it runs."""
    queue = scene.queue(cpu="3")
    scene.apply(*(ray_cluster(name).label("volcano.sh/queue-name", queue).workers(1) for name in ("one", "two")))
    scene.wait("one to run", lambda: any(state(scene.pod_group(f"ray-{n}-pg")) == "Running" for n in ("one", "two")))
    scene.wait("one to wait", lambda: scene.events("one", "WaitingForQuota") or scene.events("two", "WaitingForQuota"))
    scene.kubectl("patch", "queue", queue, "--type=merge", '--patch={"spec": {"capability": {"cpu": "4"}}}')
    for gang in ("ray-one-pg", "ray-two-pg"):
        scene.await_running(gang, 2)


def test_scheduler_label_alone_means_the_default_queue(scene: Scene) -> None:
    """D1: a RayCluster with only `ray.io/scheduler-name: volcano` runs as a gang in queue `default`."""
    scene.apply(ray_cluster("plain").label(SCHEDULER_LABEL, "volcano").workers(2))
    pods = scene.await_running("ray-plain-pg", 3)
    assert scene.pod_group("ray-plain-pg")["spec"]["queue"] == "default"
    assert "priorityClassName" not in scene.pod_group("ray-plain-pg")["spec"]
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    scene.assert_started_together("ray-plain-pg", 3)


def test_priority_label_gives_pods_class_and_value(scene: Scene, urgent: str) -> None:
    """D1: with `ray.io/priority-class-name` the pods carry class and value, the PodGroup the class."""
    cluster = ray_cluster("pressing").label(SCHEDULER_LABEL, "volcano").label(PRIORITY_CLASS_LABEL, urgent).workers(1)
    scene.apply(cluster)
    pods = scene.await_running("ray-pressing-pg", 2)
    assert scene.pod_group("ray-pressing-pg")["spec"]["priorityClassName"] == urgent
    assert [(pod["spec"]["priorityClassName"], pod["spec"]["priority"]) for pod in pods] == [(urgent, 1000)] * 2
    assert all(node_of(pod) and GATE not in gates(pod) for pod in pods)
