"""`helm uninstall` with gangs that run, gangs that wait, and pods that are created all the time.

No kubelet is here: the command of the chart's Job runs on this machine, with the Job's own ServiceAccount.
tests/node/test_order.py has helm and a kubelet do it.
"""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from hack.testbed import Testbed
from muster.model.names import GANG, GANG_SIZE, GATE, QUEUE_LABEL
from muster.model.resource import PODS, QUEUES
from tests.e2e.conftest import InstallOnBare
from tests.support.cluster.creations import Creations
from tests.support.cluster.recorder import RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, gates, open_scene, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("bare")


@pytest.fixture
def leaving(bare: Testbed) -> Iterator[Scene]:
    with open_scene(bare, "uninstall", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene


def _plain(name: str, gang: str, size: int) -> Manifest:
    pod = applied.pod(name)
    pod["metadata"].update(labels={GANG: gang}, annotations={GANG_SIZE: str(size)})
    return pod


def _runs(scene: Scene, labels: dict[str, str], pods: int) -> Callable[[], bool]:
    def run() -> bool:
        found = [pod for pod in scene.pods() if labels.items() <= pod["metadata"].get("labels", {}).items()]
        return [phase(pod) for pod in found] == ["Running"] * pods

    return run


def test_everything_that_was_held_runs_and_nothing_is_held_again(
    bare: Testbed, leaving: Scene, install_on_bare: InstallOnBare
) -> None:
    """With no controller at work: a gang that waits for room, one without a PodGroup, one of which half is there."""
    scene = leaving
    # The uninstall waits for as long as a review may take.
    muster = install_on_bare(webhook__timeoutSeconds="10")
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("holder").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-holder-pg", 2)
    scene.apply(ray_cluster("waiting").label(QUEUE_LABEL, queue).workers(1))
    scene.await_state("ray-waiting-pg", "WaitingForQuota")
    scene.apply(_plain("half-0", "half", 2))
    scene.await_state("half", "Assembling")
    muster.kill_controller()
    scene.apply(ray_cluster("orphan").label(QUEUE_LABEL, queue).workers(1))
    scene.await_gated("ray-orphan-pg", 2)

    for gang in ("ray-waiting-pg", "ray-orphan-pg"):
        scene.judge.excuse(gang, "what an uninstall finds held it opens, whatever room there is")
    with Creations(bare, scene.namespace, [_plain("", "stream", 1), applied.pod("")]) as creations:
        creations.go_on()
        said = muster.uninstall()
        creations.go_on()
    assert creations.failures() == []
    # What it opens is told by rounds, and what was opened without an answer in time by none.
    for gang in ("ray-waiting-pg", "ray-orphan-pg", "half"):
        assert re.search(f"^{scene.namespace}/{gang}: [12] pods? opened$", said, re.MULTILINE)
    assert f"{scene.namespace}/ray-orphan-pg: created the missing PodGroup of its pods\n" in said
    assert f"{scene.namespace}/half: some of its pods are missing; it starts with the existing ones\n" in said
    assert said.endswith("no pods are held by muster\n")

    scene.recorder.settle()
    assert [pod["metadata"]["name"] for pod in scene.pods() if GATE in gates(pod)] == []
    held_once = {seen.object["metadata"]["uid"] for seen in scene.recorder.history(PODS) if GATE in gates(seen.object)}
    streamed = {pod["metadata"]["uid"] for pod in scene.pods("stream")}
    assert held_once & streamed, "nothing was held while the uninstall began"
    assert streamed - held_once, "everything was held until the end"

    creations.remove()
    # Volcano knows the queue as well, and there is room for one gang of two pods only.
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "8"}}})
    for name in ("holder", "waiting", "orphan"):
        scene.wait(f"{name} to run", _runs(scene, {"ray.io/cluster": name}, 2))
    scene.apply(_plain("half-1", "half", 2))
    scene.wait("both halves to run", _runs(scene, {GANG: "half"}, 2))
    scene.apply(ray_cluster("afterwards").label(QUEUE_LABEL, queue).workers(1))
    scene.wait("what came afterwards to run", _runs(scene, {"ray.io/cluster": "afterwards"}, 2))
    after = [pod for pod in scene.pods() if pod["metadata"].get("labels", {}).get("ray.io/cluster") == "afterwards"]
    assert {pod["spec"]["schedulerName"] for pod in after} == {"default-scheduler"}
    assert GANG not in {key for pod in after for key in pod["metadata"]["labels"]}

    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings"
    policies = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    left = bare.kubectl(
        "get", f"{kinds},{policies}", "--selector=app.kubernetes.io/name=muster", "--output=json"
    ).stdout
    assert json.loads(left)["items"] == []
