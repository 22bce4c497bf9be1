"""What one look at a gang of many pods costs; test_pace.py has how often it is looked at."""

import sys
from types import FrameType
from typing import Any

from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import KEY, queue, ray_cluster, ray_pod, workers

FEW, MANY = 100, 300
# Instructions of the interpreter for each pod more: 230 and 172, in Python 3.11; each pod is looked at for its cooldown
# by Volcano, and for whether it runs. With 316 and 308 a gang of 4,000 held the loop for 15 ms.
MOST_STEPS = 235


class _Steps:
    """Counts the interpreter's instructions while it is entered, within comprehensions as well."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._entered)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _entered(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401 - as sys.settrace has it
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, _frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401 - as above
        self.count += event == "opcode"
        return self._step


async def _steps(count: int, *, runs: bool) -> int:
    pods = [ray_pod("head", "headgroup"), *(ray_pod(f"worker-{number:03}") for number in range(count - 1))]
    room = queue(cpu=str(count if runs else 1), memory="1Ti")
    harness = await Harness(workloads=[ray_cluster(workers(replicas=count - 1))], pods=pods, queues=[room]).settled()
    assert len(harness.open_pods()) == (count if runs else 0)
    for pod in harness.client.pods.values() if runs else ():
        pod["spec"]["nodeName"] = "node"
    await harness.catch_up()
    # It is left alone for a moment after a look.
    await harness.reconciler.reconcile(KEY)
    steps = _Steps()
    with steps:
        await harness.reconciler.reconcile(KEY)
    return steps.count


@cases("runs", ("runs", True), ("waits", False))
async def test_a_look_at_a_gang_takes_few_steps_for_each_of_its_pods(*, runs: bool) -> None:
    few, many = await _steps(FEW, runs=runs), await _steps(MANY, runs=runs)
    assert (many - few) / (MANY - FEW) <= MOST_STEPS
