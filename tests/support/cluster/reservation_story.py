"""The story of a reservation, as each scheduler must tell it: who passes a large gang, and when that starts."""

import re
from collections.abc import Callable
from datetime import datetime

from muster.model.names import ADMITTED_AT, GANG, GANG_SIZE, QUEUE_LABEL, RUNS_AT_MOST
from muster.model.times import minute_of
from tests.support.cluster.objects import gates, message
from tests.support.cluster.recorder import JOBS, PYTORCH_JOBS, Manifest
from tests.support.cluster.scene import Scene
from tests.support.manifests.applied import RUN_SECONDS, pytorch_job


def limited_job(name: str, queue: str, cpu: int, *, limit: int | None, runs: int = 3600) -> Manifest:
    """A plain Job of one gang of so many pods of 1 cpu, which the Job controller ends after `limit` seconds."""
    labels, annotations = {GANG: name, QUEUE_LABEL: queue}, {GANG_SIZE: str(cpu), RUN_SECONDS: str(runs)}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": cpu,
            "completions": cpu,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            **({"activeDeadlineSeconds": limit} if limit is not None else {}),
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def reservation(scene: Scene, queue: str, placed: Callable[[str, int], object], new_leader: Callable[[], None]) -> None:
    """In a queue of 4 cpu without patience limited Jobs run in 3, and a large gang of 4 cpu waits for their ends."""
    for name, cpu in (("first", 2), ("passes", 1)):
        scene.create(limited_job(name, queue, cpu, limit=3600))
        placed(name, cpu)
        if name == "first":
            scene.apply(pytorch_job("large").policy(queue=queue).workers(3))
            scene.await_state("large", "WaitingForQuota")
    told = _told(scene)
    begun = datetime.fromisoformat(scene.pod_group("passes")["metadata"]["annotations"][ADMITTED_AT]).timestamp()
    # The limit began with the Job, before its gang; its pods have a minute and a half to be gone.
    assert told in {minute_of(begun + 3600 + seconds) for seconds in (30, 60, 90)}
    scene.create(limited_job("long", queue, 1, limit=7200))
    scene.await_state("long", "WaitingForQuota")
    assert f'reserves cpu for gang "large" from {told}, and this gang ends later' in message(scene.pod_group("long"))
    scene.create(limited_job("short", queue, 1, limit=60))
    placed("short", 1)
    new_leader()
    assert _told(scene) == told, "the new leader promises what the old one did"
    for name in ("first", "passes", "short"):
        scene.patch(JOBS, name, {"spec": {"activeDeadlineSeconds": 1}})
    placed("large", 4)
    assert all(gates(pod) for pod in scene.pods("long"))


def _told(scene: Scene) -> str:
    """The time by which the large gang is told to start."""
    said: list[str] = []

    def found() -> bool:
        said[:] = re.findall(r"starts by (.+) unless a gang before it starts first", message(scene.pod_group("large")))
        return bool(said)

    scene.wait("the time by which the large one starts", found)
    return said[0]


def longer_than_said(scene: Scene, queue: str, placed: Callable[[str, int], object]) -> None:
    """A gang says that it runs for two minutes, and runs on: what was planned by it is not planned any more."""
    scene.apply(pytorch_job("first").policy(queue=queue).annotate(RUNS_AT_MOST, "2m").workers(2))
    placed("first", 3)
    scene.apply(pytorch_job("large").policy(queue=queue).workers(3))
    scene.await_state("large", "WaitingForQuota")
    scene.create(limited_job("passes", queue, 1, limit=3600))
    scene.wait("the plan", lambda: "planned for " in message(scene.pod_group("large")))
    assert "2m" in scene.await_event("first", "RunsLonger")
    scene.wait("it to be taken back", lambda: "planned for " not in message(scene.pod_group("large")))
    scene.delete(PYTORCH_JOBS, "first")
    scene.patch(JOBS, "passes", {"spec": {"activeDeadlineSeconds": 1}})
    placed("large", 4)
