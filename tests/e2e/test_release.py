"""`muster release` while nobody of muster's is at work, and what muster makes of it when it is back."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from muster.kube.resource import QUEUES
from muster.model.names import QUEUE_LABEL
from tests.support.cluster.scene import PATIENCE, admitted, gates, message, phase, state
from tests.support.manifests.applied import ray_cluster

if TYPE_CHECKING:
    from hack.testbed import Testbed
    from hack.testbed.muster import MusterInstall
    from tests.support.cluster.scene import Scene


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

    command = (sys.executable, "-m", "muster.cli", "release", f"--kubeconfig={testbed.kubeconfig}")
    done = subprocess.run(
        [*command, "-n", scene.namespace, "ray-waiting-pg"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, f"{scene.namespace}/ray-waiting-pg: 2 pods opened\n"), done.stderr
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
