"""What it costs a leader to take office: `python -m hack.bench.takeover [--gangs 34000] [--queues 680]`.

Gangs of two pods, half of which are admitted and half of which wait in queues that are full, in stores that are filled
already: no apiserver is asked. Prints the CPU seconds of the whole, what it takes for a gang, and the most CPU that the
leader used between two turns of its event loop, in which its lease is renewed; and beside it, in the same process, the
same in one step, without turns.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import TYPE_CHECKING

from hack.bench.many import PODS, One, filled, leader, queue
from muster.kube.slices import in_slices
from muster.process.lifecycle import spare_collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.observe.cluster import Cluster


def _filled(gangs: int, queues: int) -> Cluster:
    ones = (
        One(number, f"q{number % queues}", 1000 * (1 + number % 6), admitted=number // queues % 2 == 0)
        for number in range(gangs)
    )
    return filled(ones, [queue(f"q{number}", "10") for number in range(queues)])


def _steps(cluster: Cluster) -> Iterator[None]:
    """The steps in which a leader takes office."""
    return leader(cluster).reconciler.prime(cluster.pod_groups.values())


async def _longest_turn(steps: Iterator[None]) -> tuple[float, float]:
    """CPU seconds of all of it, and the most between two turns."""
    begun = last = time.thread_time()
    longest = 0.0

    async def turns() -> None:
        nonlocal last, longest
        while True:
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    beside = asyncio.create_task(turns())
    await in_slices(steps)
    ended = time.thread_time()
    beside.cancel()
    return ended - begun, max(longest, ended - last)


async def _measure(gangs: int, queues: int) -> None:
    cluster = _filled(gangs, queues)
    spare_collector()
    used, longest = await _longest_turn(_steps(cluster))
    begun = time.thread_time()
    for _ in _steps(cluster):
        pass
    at_once = time.thread_time() - begun
    print(
        f"{gangs} gangs of {len(PODS)} in {queues} queues: {used:.1f} s of a core, {used / gangs * 1e6:.0f} us a gang"
        f"; at most {longest * 1e3:.0f} ms between two turns (in one step {at_once:.1f} s)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="hack.bench.takeover", description="What a new leader's first look costs.")
    parser.add_argument("--gangs", type=int, default=34_000)
    parser.add_argument("--queues", type=int, default=680)
    given = parser.parse_args()
    asyncio.run(_measure(given.gangs, given.queues))


if __name__ == "__main__":
    main()
