"""Operators with their own gang flags: muster stands back (issue 3, 4.7). And what happens without muster (5, 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import install
from muster.kube.resource import PODS
from muster.names import ADMITTED, GANG, GROUP_NAME, MANAGED_BY, QUEUE_LABEL, STATE
from tests.e2e.conftest import VALUES
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.scene import alive, gates, open_scene, phase
from tests.support.manifests.workloads import RUN_SECONDS, pytorch_job, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.cluster.recorder import Manifest
    from tests.support.cluster.scene import Scene

_CRASHES = 6


@pytest.fixture(scope="module")
def flags() -> Iterator[Testbed]:
    """A testbed whose operators make gangs themselves."""
    with Testbed.start(progress=print) as testbed:
        testbed.restart_part("kuberay", extra_args=("--batch-scheduler=volcano",))
        testbed.restart_part("training", extra_args=("--gang-scheduler-name=volcano",))
        yield testbed


@pytest.fixture
def flagged(flags: Testbed) -> Iterator[Scene]:
    """The same with muster installed."""
    muster = install(flags, values=VALUES)
    muster.wait_ready()
    with open_scene(flags, "flagged", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene
    muster.uninstall(hooks=False)


def test_without_muster_another_job_takes_the_place_of_crashed_members(flags: Testbed) -> None:
    """The counter-proof of story C5: two workers of a running job die, and it stands half until the other has ended."""
    with open_scene(flags, "without-muster", kinds=(PYTORCH_JOBS,)) as scene:
        queue = scene.queue(cpu="6")
        scene.apply(pytorch_job("first").workers(3).policy(queue=queue))
        scene.wait("the first to run", lambda: len(_running(scene, "first")) == 4)
        scene.apply(pytorch_job("second").workers(3).policy(queue=queue))
        scene.wait("the second to wait", lambda: phase(scene.pod_group("second")) == "Pending")
        # The first time Volcano enqueues the second, but has no pods of it yet; the next time it has.
        for _ in range(_CRASHES):
            lost = [pod for pod in _running(scene, "first") if "worker" in pod["metadata"]["name"]][:2]
            gone = _uids(lost)
            scene.delete(PODS, *(pod["metadata"]["name"] for pod in lost))
            # Their successors have their names.
            scene.wait("the crash to be seen", lambda gone=gone: not gone & _uids(scene.pods()))  # type: ignore[misc]
            scene.wait("either to be whole", lambda: {4} & {len(_running(scene, job)) for job in ("first", "second")})
            if _running(scene, "second"):
                break
        assert [len(_running(scene, job)) for job in ("first", "second")] == [2, 4]

        takers = _running(scene, "second")
        scene.annotate(PODS, *(pod["metadata"]["name"] for pod in takers), **{RUN_SECONDS: "0"})
        scene.wait("the first to be whole", lambda: len(_running(scene, "first")) == 4)
        scene.recorder.settle()
        first, second = _uids(_running(scene, "first")), _uids(takers)
        history = [(seen, seen.object["metadata"]["uid"]) for seen in reversed(scene.recorder.history(PODS))]
        ran = {uid: seen.version for seen, uid in history if uid in first and phase(seen.object) == "Running"}
        ended = [seen.version for seen, uid in history if uid in second and not alive(seen.object)]
        assert max(ran.values()) > min(ended), "the first was whole while the second ran"


def _uids(pods: list[Manifest]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def _running(scene: Scene, job: str) -> list[Manifest]:
    pods = [pod for pod in scene.pods() if pod["metadata"]["name"].startswith(f"{job}-")]
    return [pod for pod in pods if alive(pod) and phase(pod) == "Running"]


def test_operators_own_gangs_are_left_to_it(flagged: Scene) -> None:
    """No PodGroup and no gate of muster's, the cluster runs; what can never fit is refused all the same."""
    scene = flagged
    queue = scene.queue(cpu="4", memory="6Gi")
    cluster = ray_cluster("own").label(QUEUE_LABEL, queue).label("ray.io/scheduler-name", "volcano").workers(2)
    scene.apply(cluster)
    scene.wait("its pods to run", lambda: [phase(pod) for pod in scene.pods()] == ["Running"] * 3)
    group = scene.pod_group("ray-own-pg")
    assert phase(group) in {"Inqueue", "Running"}
    assert MANAGED_BY not in (group["metadata"].get("labels") or {})
    assert not {ADMITTED, STATE} & set(group["metadata"].get("annotations") or {})
    scene.recorder.settle()
    for seen in scene.recorder.history(PODS):
        assert gates(seen.object) == []
        assert GANG not in seen.object["metadata"]["labels"]
        assert seen.object["metadata"]["annotations"][GROUP_NAME] == "ray-own-pg"

    said = scene.try_apply(ray_cluster("big").label(QUEUE_LABEL, queue).workers(4))
    assert f'gang "ray-big-pg" needs cpu 5, queue "{queue}" has capability cpu 4' in said
