"""The event loop's own account of its turns; the clock is the test's."""

import asyncio
import gc
import weakref

import pytest
from prometheus_client import CollectorRegistry

from muster.process.event_loop import Turns, run_measured
from muster.process.metrics import LoopTurns


class Clock:
    """Time that passes only by what the callbacks say they take."""

    now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def measured(*steps: float) -> CollectorRegistry:
    """The metric of a process that has a turn for each of these steps, and takes so many seconds for it."""
    clock, registry = Clock(), CollectorRegistry()

    async def process(turns: Turns) -> None:
        LoopTurns(turns, registry)
        for seconds in steps:
            await asyncio.sleep(0)
            clock.now += seconds
        await asyncio.sleep(0)

    run_measured(process, clock)
    return registry


def buckets(registry: CollectorRegistry) -> dict[str, float]:
    """How many turns took longer than a bucket's end."""
    samples = [sample for family in registry.collect() for sample in family.samples]
    whole = next(sample.value for sample in samples if sample.name.endswith("_count"))
    return {sample.labels["le"]: whole - sample.value for sample in samples if sample.name.endswith("_bucket")}


def test_each_turn_counts_by_how_long_it_took() -> None:
    longer = buckets(measured(0.02, 0.3, 3.0, 20.0))
    most = ("0.001", "0.01", "0.025", "0.25", "0.5", "2.5", "5.0", "10.0", "+Inf")
    assert [longer[end] for end in most] == [4, 4, 3, 3, 2, 2, 1, 1, 0]


def test_what_runs_in_one_turn_counts_together() -> None:
    """For as long as all of it takes the loop looks at nothing."""
    clock, registry = Clock(), CollectorRegistry()

    async def step() -> None:
        clock.now += 0.4

    async def process(turns: Turns) -> None:
        LoopTurns(turns, registry)
        await asyncio.gather(step(), step(), step())

    run_measured(process, clock)
    assert buckets(registry)["1.0"] == 1


def test_tasks_are_counted_until_they_are_done() -> None:
    registry = CollectorRegistry()

    def tasks() -> float | None:
        return registry.get_sample_value("muster_event_loop_tasks")

    async def process(turns: Turns) -> None:
        LoopTurns(turns, registry)
        assert tasks() == 1
        begun = [asyncio.create_task(asyncio.Event().wait()) for _ in range(2)]
        assert tasks() == 3
        begun[0].cancel()
        await asyncio.wait(begun[:1])
        assert tasks() == 2
        begun[1].cancel()

    run_measured(process)


class Waiting(Clock):
    """An hour passes each time the loop waits: it reads the clock when it begins to work, and when it ends."""

    asked = 0

    def __call__(self) -> float:
        """The time."""
        self.asked += 1
        self.now += 3600 * (self.asked % 2)
        return self.now


def test_to_wait_is_no_turn() -> None:
    """Neither for a timer nor for a connection."""
    clock, registry = Waiting(), CollectorRegistry()

    async def process(turns: Turns) -> None:
        LoopTurns(turns, registry)
        for _ in range(3):
            await asyncio.sleep(0.001)

    run_measured(process, clock)
    assert clock.asked > 3
    assert buckets(registry)["0.001"] == 0


def test_the_sum_is_of_seconds() -> None:
    assert measured(0.25, 0.5).get_sample_value("muster_event_loop_turn_seconds_sum") == 0.75


class _Ring:
    """Something that its reference count does not free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(("seconds", "looks"), [(0.01, True), (0.002, False)])
def test_the_collector_looks_at_what_a_long_turn_made(*, seconds: float, looks: bool) -> None:
    """Else it would look at all of it at once, when by its own numbers it is time."""
    clock, gone = Clock(), []

    async def process(turns: Turns) -> None:
        del turns
        await asyncio.sleep(0)
        ring = weakref.ref(_Ring())
        clock.now += seconds
        await asyncio.sleep(0)
        gone.append(ring() is None)

    gc.disable()
    try:
        run_measured(process, clock)
    finally:
        gc.enable()
    assert gone == [looks]
