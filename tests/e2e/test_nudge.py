"""After a long outage of the webhook pods come in seconds: the operators' own delays have grown to minutes by then."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from hack.testbed import wait_for
from muster.kube.resource import EVENTS, PODS
from muster.names import NUDGE, QUEUE_LABEL
from tests.builders import pytorch_job, ray_cluster
from tests.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from hack.testbed.muster import MusterInstall
    from tests.scene import Scene

_GANGS = {RAY_CLUSTERS: ("ray", "ray-ray-pg"), PYTORCH_JOBS: ("train", "train")}
# Seconds. The operators' delays double from milliseconds: after so long the next attempt is up to 40 s away.
_OUTAGE = 45.0
# The controller waits 3 s between two nudges by then, and the operator makes a pod in less than one.
_SOON = 5.0


def _workloads(scene: Scene) -> list[Manifest]:
    found = [scene.recorder.get(kind, name) for kind, (name, _) in _GANGS.items()]
    return [item for item in found if item is not None]


def test_pods_come_soon_after_a_long_outage(
    scene: Scene,
    muster: MusterInstall,
    record_property: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The workloads are touched in their metadata only: no webhook is asked for that, and their pods stay."""
    queue = scene.queue(cpu="8")
    scene.apply(
        ray_cluster("ray").label(QUEUE_LABEL, queue).workers(1), pytorch_job("train").workers(1).policy(queue=queue)
    )
    kept = {}
    for _, gang in _GANGS.values():
        pods = scene.await_running(gang, 2)
        kept[gang] = next(pod["metadata"]["uid"] for pod in pods if "worker" not in pod["metadata"]["name"])
    assert not any(NUDGE in item["metadata"].get("annotations", {}) for item in _workloads(scene)), (
        "nothing was lacking"
    )
    generations = [item["metadata"]["generation"] for item in _workloads(scene)]

    muster.stop_webhooks()
    down = time.monotonic()
    for _, gang in _GANGS.values():
        worker = next(pod for pod in scene.pods(gang) if "worker" in pod["metadata"]["name"])
        scene.delete(PODS, worker["metadata"]["name"], wait=False)
    scene.wait("both operators to be refused", lambda: len(_refused(scene)) == len(_GANGS))
    scene.wait(
        "both workloads to be nudged while nobody answers",
        lambda: all(NUDGE in item["metadata"].get("annotations", {}) for item in _workloads(scene)),
    )
    wait_for("the outage to have lasted", lambda: time.monotonic() - down > _OUTAGE, _OUTAGE + 10)
    assert [len(scene.pods(gang)) for _, gang in _GANGS.values()] == [1, 1]

    muster.start_webhook()
    muster.wait_ready(90)
    back = time.monotonic()
    scene.wait("both to be whole", lambda: all(len(scene.pods(gang)) == 2 for _, gang in _GANGS.values()), 150)
    for _, gang in _GANGS.values():
        uids = {pod["metadata"]["uid"] for pod in scene.await_running(gang, 2)}
        assert kept[gang] in uids
        came = [
            seen.at for seen in scene.recorder.history(PODS) if seen.object["metadata"]["uid"] in uids - {kept[gang]}
        ]
        delay = round(min(came) - back, 1)
        record_property(f"seconds until {gang} was whole", delay)
        with capsys.disabled():
            sys.stdout.write(f" [{gang} was whole {delay} s after an outage of {back - down:.0f} s]")
        assert delay < _SOON
    assert [item["metadata"]["generation"] for item in _workloads(scene)] == generations


def _refused(scene: Scene) -> set[str]:
    """The kinds whose operator says in an event that a webhook did not answer."""
    return {
        event["regarding"]["kind"]
        for event in scene.recorder.now(EVENTS)
        if "failed calling webhook" in event.get("note", "")
    }
