"""Long work on the event loop."""

import asyncio
from collections.abc import Iterator

from muster.kube.concurrency import SLICE, TimeSlice, in_slices


async def test_others_have_their_turn_whenever_a_slice_is_used_up() -> None:
    taken: list[str] = []
    used = 0.0

    def steps() -> Iterator[None]:
        nonlocal used
        for number in range(4):
            taken.append(str(number))
            used += 0.6 * SLICE
            yield

    async def other() -> None:
        while len(taken) < 6:
            taken.append("other")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(in_slices(steps(), lambda: used))
        tasks.create_task(other())
    assert taken == ["0", "1", "other", "2", "3", "other"]


async def test_whoever_has_used_less_than_a_slice_keeps_the_turn() -> None:
    used, others = 0.0, 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    slice_ = TimeSlice(lambda: used)
    had = []
    for _ in range(6):
        used += 0.4 * SLICE
        await slice_.rest()
        had.append(others)
    task.cancel()
    assert had == [0, 0, 1, 1, 1, 2]


async def test_those_who_share_a_slice_use_no_more_than_one_in_a_turn() -> None:
    """Sixteen workers may each have a gang to look at."""
    used, turn = 0.0, 0
    in_turn: dict[int, int] = {}
    slice_ = TimeSlice(lambda: used)

    async def worker() -> None:
        nonlocal used
        for _ in range(3):
            await slice_.rest()
            in_turn[turn] = in_turn.get(turn, 0) + 1
            used += 0.6 * SLICE
            await asyncio.sleep(0)

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(worker())
    counting.cancel()
    assert sum(in_turn.values()) == 24
    assert max(in_turn.values()) == 2


async def test_work_that_is_cancelled_ends_between_two_steps() -> None:
    taken: list[int] = []

    def steps() -> Iterator[None]:
        while True:
            taken.append(len(taken))
            yield

    task = asyncio.create_task(in_slices(steps(), lambda: float(len(taken))))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), taken) == (True, [0])
