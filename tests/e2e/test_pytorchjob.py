"""A PyTorchJob that asks for its gang in `runPolicy.schedulingPolicy` (issue 3, 4.2)."""

from muster.model.names import GATE
from muster.model.resource import PODS
from tests.support.cluster.recorder import PYTORCH_JOBS
from tests.support.cluster.scene import Scene, admitted, gates, message, node_of
from tests.support.manifests.applied import pytorch_job


def test_policy_makes_a_gang_of_the_job(scene: Scene, urgent: str) -> None:
    """Queue, class and minAvailable are the PodGroup's; pods carry class and value; all start together and it ends."""
    queue = scene.queue(cpu="4", memory="6Gi")
    scene.apply(pytorch_job("train").workers(2).policy(queue=queue, priorityClass=urgent, minAvailable=3))
    pods = scene.await_running("train", 3)

    assert [(pod["spec"]["priorityClassName"], pod["spec"]["priority"]) for pod in pods] == [(urgent, 1000)] * 3
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    assert all(node_of(pod) and GATE not in gates(pod) for pod in pods)
    group, job = scene.pod_group("train"), scene.recorder.get(PYTORCH_JOBS, "train")
    assert job is not None
    spec = group["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (3, {"master": 1, "worker": 2})
    assert spec["minResources"] == {"cpu": "3", "memory": "3Gi"}
    assert (spec["queue"], spec["priorityClassName"]) == (queue, urgent)
    owner = group["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("PyTorchJob", job["metadata"]["uid"], True)
    assert admitted(group) == job["metadata"]["uid"]
    scene.assert_started_together("train", 3)

    scene.end("train")
    scene.await_ended("train")
    assert not admitted(scene.await_state("train", "Finished")), "an ended job still holds its place"


def test_a_job_without_policy_is_left_alone(scene: Scene) -> None:
    """No policy, no label: no gate, no PodGroup, the cluster's own scheduler."""
    scene.apply(pytorch_job("plain").workers(1).runs(2))
    scene.await_ended("plain")
    pods = scene.pods()
    assert [pod["spec"]["schedulerName"] for pod in pods] == ["default-scheduler"] * 2
    assert not any(gates(seen.object) for seen in scene.recorder.history(PODS))
    assert not scene.pod_group("plain")["metadata"]


def test_min_available_starts_with_fewer_pods_than_there_are(scene: Scene) -> None:
    """With minAvailable 2 of 4 in a queue for 3, three run: two as the gang, one more while there is room."""
    queue = scene.queue(cpu="3")
    scene.apply(pytorch_job("elastic").workers(3).policy(queue=queue, minAvailable=2))
    scene.wait("three to run", lambda: sum(bool(node_of(pod)) for pod in scene.pods("elastic")) == 3)
    scene.await_state("elastic", "Running")
    scene.wait("word of the surplus", lambda: "no room yet for cpu 1" in message(scene.pod_group("elastic")))
    held = [pod for pod in scene.pods("elastic") if gates(pod) == [GATE]]
    assert len(held) == 1
    assert scene.pod_group("elastic")["spec"]["minMember"] == 2
    scene.assert_started_together("elastic", 2)
    scene.assert_never_above({"cpu": "3"})
