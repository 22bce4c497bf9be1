"""What can never run is refused by `kubectl apply`, in one line with numbers (issue 3, 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.kube.resource import POD_GROUPS, QUEUES
from muster.names import PRIORITY_CLASS_LABEL, QUEUE_LABEL, SCHEDULER_LABEL
from tests.support.cluster.propagation import await_accepted, await_said
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import gates, node_of
from tests.support.manifests.workloads import PyTorchJob, RayCluster, pytorch_job, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.cluster.scene import Scene

_DENIED = '{}: admission webhook "workloads.muster.dev" denied the request: {}'


@pytest.mark.parametrize(
    ("workload", "reason", "message"),
    [
        pytest.param(
            lambda queue: ray_cluster("big").label(QUEUE_LABEL, queue).workers(4, memory="1536Mi"),
            "ExceedsCapability",
            'metadata.labels[volcano.sh/queue-name]: gang "ray-big-pg" needs cpu 5 and memory 7Gi, queue "QUEUE" has '
            "capability cpu 4 and memory 6Gi; lower the replicas or use a larger queue",
            id="RayCluster above the capability in both",
        ),
        pytest.param(
            lambda queue: ray_cluster("big").label(QUEUE_LABEL, queue).workers(4, memory="1Gi"),
            "ExceedsCapability",
            'metadata.labels[volcano.sh/queue-name]: gang "ray-big-pg" needs cpu 5, queue "QUEUE" has '
            "capability cpu 4; lower the replicas or use a larger queue",
            id="RayCluster above the capability in cpu",
        ),
        pytest.param(
            lambda queue: pytorch_job("big").workers(4).policy(queue=queue),
            "ExceedsCapability",
            'spec.runPolicy.schedulingPolicy.queue: gang "big" needs cpu 5, queue "QUEUE" has capability cpu 4; '
            "lower the replicas or use a larger queue",
            id="PyTorchJob above the capability",
        ),
        pytest.param(
            lambda queue: ray_cluster("lost").label(QUEUE_LABEL, f"{queue}-not"),
            "QueueNotFound",
            'metadata.labels[volcano.sh/queue-name]: queue "QUEUE-not" does not exist; name an existing queue or '
            "create it first",
            id="queue missing",
        ),
        pytest.param(
            lambda queue: ray_cluster("odd").label(QUEUE_LABEL, queue).label(PRIORITY_CLASS_LABEL, "nobody-knows"),
            "UnknownPriorityClass",
            'metadata.labels[ray.io/priority-class-name]: PriorityClass "nobody-knows" does not exist; name an '
            "existing class or create it first",
            id="unknown PriorityClass in a label",
        ),
        pytest.param(
            lambda queue: pytorch_job("odd").policy(queue=queue, priorityClass="nobody-knows"),
            "UnknownPriorityClass",
            'spec.runPolicy.schedulingPolicy.priorityClass: PriorityClass "nobody-knows" does not exist; name an '
            "existing class or create it first",
            id="unknown PriorityClass in the policy",
        ),
    ],
)
def test_refused_in_one_line(
    scene: Scene, workload: Callable[[str], RayCluster | PyTorchJob], reason: str, message: str
) -> None:
    """The line names the field, what was found, the rule and what to do."""
    queue = scene.queue(cpu="4", memory="6Gi")
    said = scene.try_apply(workload(queue))
    assert said == _DENIED.format(reason, message.replace("QUEUE", queue))


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        pytest.param(
            lambda queue: ray_cluster("odd").label(QUEUE_LABEL, queue).head(cpu="-1"),
            'spec.headGroupSpec.template.spec.containers[0].resources.requests.cpu: "-1" is negative; a resource is '
            "0 or more",
            id="negative quantity, which the CRD lets pass",
        ),
        pytest.param(
            lambda queue: ray_cluster("odd").label(QUEUE_LABEL, queue).head(memory="1e0.5"),
            'spec.headGroupSpec.template.spec.containers[0].resources.requests.memory: "1e0.5" is not a quantity such '
            "as 500m, 2 or 1.5Gi",
            id="no quantity, which the CRD lets pass",
        ),
        pytest.param(
            lambda queue: pytorch_job("odd").workers(2).policy(queue=queue, minAvailable=4),
            "spec.runPolicy.schedulingPolicy.minAvailable: 4 is above the 3 pods that there are; lower it or raise the "
            "replicas",
            id="minAvailable above the replicas",
        ),
        pytest.param(
            lambda queue: pytorch_job("odd").policy(queue=queue, minAvailable=0),
            "spec.runPolicy.schedulingPolicy.minAvailable: 0 is below 1; a gang starts with at least one pod",
            id="minAvailable of none",
        ),
    ],
)
def test_numbers_that_make_no_gang_are_refused(
    scene: Scene, workload: Callable[[str], RayCluster | PyTorchJob], message: str
) -> None:
    """Bad input gets a clear error with the path of the field, said once."""
    queue = scene.queue(cpu="4", memory="6Gi")
    assert scene.try_apply(workload(queue)) == _DENIED.format("Invalid", message)


def test_a_text_that_is_no_quantity_is_refused_by_its_crd(scene: Scene) -> None:
    """What the CRD itself refuses keeps the apiserver's words."""
    queue = scene.queue(cpu="4")
    said = scene.try_apply(ray_cluster("odd").label(QUEUE_LABEL, queue).head(cpu="1x"))
    assert said.startswith(
        'Invalid: RayCluster.ray.io "odd" is invalid: spec.headGroupSpec.template.spec.containers[0].resources'
    )
    assert 'Invalid value: "1x"' in said


def test_accepted_in_a_larger_queue(scene: Scene) -> None:
    """What one queue refuses, a larger one takes."""
    small, large = scene.queue("-small", cpu="4"), scene.queue("-large", cpu="5")
    cluster = ray_cluster("big").workers(4)
    assert "needs cpu 5" in scene.try_apply(cluster.label(QUEUE_LABEL, small))
    scene.apply(cluster.label(QUEUE_LABEL, large))
    scene.await_running("ray-big-pg", 5)


def test_closed_queue_refuses_new_work_and_keeps_what_runs(scene: Scene) -> None:
    """A queue that Volcano closed takes nobody new; when it is opened again it does."""
    queue = scene.queue(cpu="4")
    scene.operate_queue(queue, "CloseQueue")
    scene.await_queue(queue, "Closed")
    cluster = ray_cluster("late").label(QUEUE_LABEL, queue)
    await_said(scene, cluster, f'queue "{queue}" is Closed')
    said = scene.try_apply(cluster)
    assert said == _DENIED.format(
        "QueueClosed",
        f'metadata.labels[volcano.sh/queue-name]: queue "{queue}" is Closed and takes no new work; '
        "use an open queue or have this one opened",
    )
    scene.operate_queue(queue, "OpenQueue")
    scene.await_queue(queue)
    await_accepted(scene, cluster)
    scene.apply(cluster)
    scene.await_running("ray-late-pg", 1)


def test_queue_closed_while_a_gang_waits(scene: Scene) -> None:
    """The gang keeps waiting, says QueueClosed, and goes on when the queue is opened."""
    queue = scene.queue(cpu="1")
    for name in ("one", "two"):
        scene.apply(ray_cluster(name).label(QUEUE_LABEL, queue))
        scene.await_event(name, {"one": "Running", "two": "WaitingForQuota"}[name])
    scene.operate_queue(queue, "CloseQueue")
    scene.await_state("ray-two-pg", "QueueClosed")
    assert scene.await_event("two", "QueueClosed") == f'queue "{queue}" is Closing and takes no new work'
    scene.delete(RAY_CLUSTERS, "one")
    scene.wait("its pod to go", lambda: not scene.pods("ray-one-pg"))
    # There is room now; the queue stays Closing for as long as a PodGroup names it.
    assert all(not node_of(pod) for pod in scene.await_gated("ray-two-pg", 1))
    scene.operate_queue(queue, "OpenQueue")
    scene.await_running("ray-two-pg", 1)


def test_unknown_scheduler_is_left_alone_with_a_warning(scene: Scene) -> None:
    """A label value that muster does not know may be somebody else's: accepted, said, untouched."""
    cluster = ray_cluster("theirs").label(SCHEDULER_LABEL, "my-own").workers(1)
    said = 'muster is not configured for scheduler "my-own" (volcano); it leaves this alone'
    assert scene.apply(cluster) == [f"metadata.labels[{SCHEDULER_LABEL}]: {said}"]
    scene.wait("its pods", lambda: sum(bool(node_of(pod)) for pod in scene.pods()) == 2)
    for pod in scene.pods():
        assert (gates(pod), pod["spec"]["schedulerName"]) == ([], "default-scheduler")
    assert not scene.recorder.now(POD_GROUPS)


def test_what_became_invalid_can_be_mended_in_steps_and_deleted(scene: Scene) -> None:
    """A queue shrinks under a waiting cluster: what was wrong already may stay wrong in an update, nothing new may."""
    queue = scene.queue(cpu="8")
    cluster = ray_cluster("shrinking").label(QUEUE_LABEL, queue).workers(3).head(cpu="5")
    scene.apply(cluster)
    scene.await_running("ray-shrinking-pg", 4)
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "4"}}})
    await_said(scene, ray_cluster("probe").label(QUEUE_LABEL, queue).head(cpu="5"), "has capability cpu 4")

    # From 8 cpu to 7: still above 4, but better than it was.
    said = scene.apply(cluster.workers(2))
    assert f'metadata.labels[volcano.sh/queue-name]: gang "ray-shrinking-pg" needs cpu 7, queue "{queue}"' in said[0]
    assert "nobody-knows" in scene.try_apply(cluster.workers(2).label(PRIORITY_CLASS_LABEL, "nobody-knows"))
    scene.delete(RAY_CLUSTERS, "shrinking")
    scene.wait("its pods to go", lambda: not scene.pods())


def test_valid_cannot_become_invalid(scene: Scene) -> None:
    """An update that makes a running cluster larger than its queue is refused, and the cluster runs on."""
    queue = scene.queue(cpu="4")
    cluster = ray_cluster("steady").label(QUEUE_LABEL, queue).workers(1)
    scene.apply(cluster)
    scene.await_running("ray-steady-pg", 2)
    assert 'gang "ray-steady-pg" needs cpu 5' in scene.try_apply(cluster.workers(4))
    scene.await_running("ray-steady-pg", 2)


def test_who_will_wait_for_room_is_told_what_the_queue_holds(scene: Scene) -> None:
    """As Volcano counts it, and who waits there; the position is told as soon as the gang waits."""
    queue = scene.queue(cpu="4")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
    scene.await_running("ray-first-pg", 3)
    second, third = (ray_cluster(name).label(QUEUE_LABEL, queue).workers(1) for name in ("second", "third"))

    def told(workload: RayCluster, who_waits: str) -> bool:
        name = workload.manifest()["metadata"]["name"]
        line = (
            f'metadata.labels[{QUEUE_LABEL}]: gang "ray-{name}-pg" needs cpu 2, and queue "{queue}" holds '
            f"cpu 3 of 4 (75 %); {who_waits}; it waits until there is room, and its event WaitingForQuota says its "
            "position"
        )
        return line in scene.told(workload)

    scene.wait("the warning", lambda: told(second, f'no gang waits in queue "{queue}" yet'))
    scene.apply(second)
    assert scene.await_event("second", "WaitingForQuota").endswith("position 1 of 1 waiting")
    before = f'1 gang waits in queue "{queue}", 1 before it by priority and age'
    scene.wait("the warning of those who wait", lambda: told(third, before))
