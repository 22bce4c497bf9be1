"""CPU time of one look at a gang by the controller, by its pods.

The controller looks at a gang for every pod of it that comes or changes. Nothing has changed since the last look, so
that nothing is written and the whole cost is the looking. The goal is below 10 ms for 4,000 pods.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence

from hack.bench.harness import Table, options
from hack.bench.many import Client, One, filled, leader, queue
from muster.process.lifecycle import tune_gc

_ROUNDS = 20


async def _milliseconds(pods: int, *, runs: bool) -> list[float]:
    one = One(0, "q", 1000, runs, workers=pods - 1)
    cluster = filled([one], [queue("q", str(pods if runs else pods - 1))])
    reconciler = leader(cluster, Client(cluster, lambda write: write())).reconciler
    for _ in reconciler.prime():
        pass
    # The first looks write, and read each pod.
    for _ in range(2):
        await reconciler.reconcile(one.key)
    tune_gc()
    took = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        await reconciler.reconcile(one.key)
        took.append((time.process_time() - began) * 1e3)
    return took


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, pods=[500, 1000, 4000])
    table = Table("ms of CPU", "pods", "median", "least")
    for title, runs in (("a gang that runs", True), ("a gang that waits", False)):
        for pods in given.pods:
            took = asyncio.run(_milliseconds(pods, runs=runs))
            table.row(title, pods, statistics.median(took), min(took))
