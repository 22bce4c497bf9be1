"""`muster release` while muster is at work and while it is not, and what muster makes of it when it is back."""

import subprocess
import sys

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall
from muster.model.names import QUEUE_LABEL
from muster.model.resource import QUEUES
from tests.support.cluster.scene import PATIENCE, Scene, admitted, gates, message, phase, state
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("time")

BY_HAND = "`muster release` opens it, whatever room there is"


def release(testbed: Testbed, scene: Scene, gang: str, pods: int) -> None:
    """Have `muster release` open so many pods of a gang."""
    command = (sys.executable, "-m", "muster.cli", "release", f"--kubeconfig={testbed.kubeconfig}")
    done = subprocess.run(
        [*command, "-n", scene.namespace, gang],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, f"{scene.namespace}/{gang}: {pods} pods opened\n"), done.stderr


def test_while_muster_is_at_work_a_released_gang_starts_as_a_whole(testbed: Testbed, scene: Scene) -> None:
    """Its pods are opened one after the other, and there is room for a part of them: none of them runs."""
    queue = scene.queue(cpu="3")
    scene.apply(ray_cluster("holder").label(QUEUE_LABEL, queue).workers(0))
    scene.await_running("ray-holder-pg", 1)
    scene.apply(ray_cluster("waiting").label(QUEUE_LABEL, queue).workers(2))
    scene.await_event("waiting", "WaitingForQuota")
    scene.judge.excuse("ray-waiting-pg", BY_HAND)
    release(testbed, scene, "ray-waiting-pg", pods=3)
    scene.wait("it to be admitted", lambda: admitted(scene.pod_group("ray-waiting-pg")))
    assert scene.pod_group("ray-waiting-pg")["spec"]["minMember"] == 3
    scene.wait("Volcano to look at it", lambda: scene.pod_group("ray-waiting-pg").get("status", {}).get("conditions"))
    assert [phase(pod) for pod in scene.pods("ray-waiting-pg")] == ["Pending"] * 3
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "4"}}})
    scene.wait("it to run", lambda: [phase(pod) for pod in scene.pods("ray-waiting-pg")] == ["Running"] * 3)


def test_released_gangs_run_and_stay_released(testbed: Testbed, muster: MusterInstall, scene: Scene) -> None:
    """Webhook and controller are down; Volcano places what was opened, and muster, back, takes it for admitted."""
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("holder").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-holder-pg", 2)
    for name in ("waiting", "other"):
        scene.apply(ray_cluster(name).label(QUEUE_LABEL, queue).workers(1))
        scene.await_event(name, "WaitingForQuota")
    muster.stop_webhooks()
    while muster.controllers:
        muster.kill_controller()

    scene.judge.excuse("ray-waiting-pg", BY_HAND)
    release(testbed, scene, "ray-waiting-pg", pods=2)
    # Volcano knows the queue's capability as well; whoever releases a gang is to see to its room.
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "4"}}})
    scene.wait("it to run", lambda: [phase(pod) for pod in scene.pods("ray-waiting-pg")] == ["Running", "Running"])

    muster.free_lease()
    muster.start_webhook()
    muster.start_controller()
    muster.wait_ready()
    group = scene.await_state("ray-waiting-pg", "Running")
    assert admitted(group)
    assert [gates(pod) for pod in scene.pods("ray-waiting-pg")] == [[], []]
    scene.wait("word of that", lambda: "cpu 0 free of cpu 4" in message(scene.pod_group("ray-other-pg")))
    assert state(scene.pod_group("ray-other-pg")) == "WaitingForQuota"
