"""What happens without muster, where an operator makes gangs by its own flag (issue 5, 6.2).

That muster stands back from an operator's own gangs is in test_brownfield.py.
"""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.resource import PODS
from tests.support.cluster.recorder import PYTORCH_JOBS, Manifest
from tests.support.cluster.scene import Scene, alive, open_scene, phase
from tests.support.manifests.applied import RUN_SECONDS, pytorch_job

pytestmark = pytest.mark.part("bare")

_CRASHES = 6


@pytest.fixture
def flagged(bare: Testbed) -> Iterator[Testbed]:
    """The testbed without muster, with a Training operator that makes gangs itself, until the test has ended."""
    bare.restart_part("training", extra_args=("--gang-scheduler-name=volcano",))
    yield bare
    bare.restart_part("training")


def test_without_muster_another_job_takes_the_place_of_crashed_members(flagged: Testbed) -> None:
    """The counter-proof of story C5: two workers of a running job die, and it stands half until the other has ended."""
    with open_scene(flagged, "without-muster", kinds=(PYTORCH_JOBS,)) as scene:
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
