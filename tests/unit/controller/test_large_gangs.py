"""What one look at a gang of many pods costs: it is looked at for every pod of it that comes or changes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.controller.recording_client import Harness
from tests.support.manifests.observed import KEY, queue, ray_cluster, ray_pod, workers

if TYPE_CHECKING:
    from types import FrameType

COUNT = 400
# Calls of functions written in Python, for each pod. With 43, a gang of 4,000 held the loop for 40 ms.
_MOST_CALLS = 6


class _Calls:
    """Counts calls of functions written in Python while it is entered."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        sys.setprofile(self._note)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _note(self, _frame: FrameType, event: str, _arg: object) -> None:
        self.count += event == "call"


async def test_a_look_at_a_running_gang_takes_few_steps_for_each_of_its_pods() -> None:
    pods = [ray_pod("head", "headgroup"), *(ray_pod(f"worker-{number:03}") for number in range(COUNT - 1))]
    harness = Harness(
        workloads=[ray_cluster(workers(replicas=COUNT - 1))], pods=pods, queues=[queue(cpu=str(COUNT), memory="1Ti")]
    )
    await harness.settle()
    assert len(harness.open_pods()) == COUNT
    for pod in harness.client.pods.values():
        pod["spec"]["nodeName"] = "node"
    harness.watch()
    await harness.settle()
    calls = _Calls()
    with calls:
        await harness.reconciler.reconcile(KEY)

    assert calls.count <= _MOST_CALLS * COUNT
