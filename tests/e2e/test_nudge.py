"""After a long outage of the webhook pods come in seconds: the operators' own delays have grown to minutes by then."""

import pytest

from hack.testbed.muster import MusterInstall
from muster.model.names import NUDGE, QUEUE_LABEL
from muster.model.resource import PODS, Resource
from tests.support.cluster.nudges import assert_soon, assert_steady, nudges, version_now
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import PATIENCE, Scene
from tests.support.manifests.applied import pytorch_job, ray_cluster

pytestmark = pytest.mark.part("time")

_GANGS = {RAY_CLUSTERS: ("ray", "ray-ray-pg"), PYTORCH_JOBS: ("train", "train")}
# In vain, half a minute long. The operators' delays double from milliseconds with every attempt, nudged or not: by then
# the next one of their own is a quarter of an hour away.
_NUDGES = 12


def _workloads(scene: Scene) -> list[Manifest]:
    found = [scene.recorder.get(kind, name) for kind, (name, _) in _GANGS.items()]
    return [item for item in found if item is not None]


def test_pods_come_soon_after_a_long_outage(scene: Scene, muster: MusterInstall) -> None:
    """The workloads are touched in their metadata only: no webhook is asked for that, and their pods stay."""
    queue = scene.queue(cpu="8")
    scene.apply(
        ray_cluster("ray").label(QUEUE_LABEL, queue).workers(1), pytorch_job("train").workers(1).policy(queue=queue)
    )
    kept = {}
    for _, gang in _GANGS.values():
        pods = scene.await_running(gang, 2)
        kept[gang] = next(pod["metadata"]["uid"] for pod in pods if "worker" not in pod["metadata"]["name"])
    whole = max(seen.version for seen in scene.recorder.history(PODS))
    wanted = [_wanted(item) for item in _workloads(scene)]

    muster.stop_webhooks()
    scene.recorder.settle()
    down = version_now(scene)
    assert not [at for at in _all_nudges(scene) if whole < at <= down], "nothing was lacking"
    for _, gang in _GANGS.values():
        worker = next(pod for pod in scene.pods(gang) if "worker" in pod["metadata"]["name"])
        scene.delete(PODS, worker["metadata"]["name"], wait=False)
    scene.wait(
        "both workloads to be nudged while nobody answers",
        lambda: all(len(_since(scene, kind, name, down)) >= _NUDGES for kind, (name, _) in _GANGS.items()),
        2 * PATIENCE,
    )
    assert [len(scene.pods(gang)) for _, gang in _GANGS.values()] == [1, 1]

    muster.start_webhook()
    muster.wait_ready()
    back = version_now(scene)
    for kind, (name, gang) in _GANGS.items():
        uids = {pod["metadata"]["uid"] for pod in scene.await_running(gang, 2)}
        assert kept[gang] in uids
        assert_soon(scene, kind, name, back, uids - {kept[gang]}, long=True)
        assert_steady(scene, kind, name, down)
    assert [_wanted(item) for item in _workloads(scene)] == wanted


def _wanted(workload: Manifest) -> tuple[object, ...]:
    """What a workload is, but for the nudge."""
    meta = workload["metadata"]
    annotations = {name: value for name, value in meta.get("annotations", {}).items() if name != NUDGE}
    return workload["spec"], meta["generation"], meta.get("labels"), meta.get("finalizers"), annotations


def _since(scene: Scene, kind: Resource, name: str, version: int) -> list[int]:
    return [at for at in nudges(scene, kind, name).values() if at > version]


def _all_nudges(scene: Scene) -> list[int]:
    return [at for kind, (name, _) in _GANGS.items() for at in nudges(scene, kind, name).values()]
