"""What one event brings for all gangs, done later and step by step."""

import asyncio
from collections.abc import Iterator

import pytest

from controller.admission_queue import Sweeps
from hack.testbed.waiting import PATIENCE


def noting(taken: list[str], what: str, count: int) -> Iterator[None]:
    for number in range(count):
        taken.append(f"{what} {number}")
        yield


def test_sweeps_are_done_in_the_order_in_which_they_came() -> None:
    sweeps = Sweeps()
    taken: list[str] = []
    assert not sweeps.under_way
    sweeps.add("a", noting(taken, "a", 2))
    sweeps.add("b", noting(taken, "b", 1))
    assert (taken, sweeps.under_way) == ([], True)
    for _ in sweeps.steps():
        pass
    assert (taken, sweeps.under_way) == (["a 0", "a 1", "b 0"], False)


def test_the_same_sweep_is_done_once_where_it_has_not_begun() -> None:
    """One that has begun may have passed by what has changed since."""
    sweeps = Sweeps()
    taken: list[str] = []
    sweeps.add("a", noting(taken, "first", 2))
    sweeps.add("a", noting(taken, "second", 2))
    steps = sweeps.steps()
    next(steps)
    sweeps.add("a", noting(taken, "third", 1))
    sweeps.add("a", noting(taken, "fourth", 1))
    for _ in steps:
        pass
    assert taken == ["first 0", "first 1", "third 0"]


def test_a_sweep_that_fails_keeps_no_other_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Iterator[None]:
        yield
        raise ValueError("no")

    sweeps = Sweeps()
    taken: list[str] = []
    sweeps.add("a", failing())
    sweeps.add("b", noting(taken, "b", 1))
    for _ in sweeps.steps():
        pass
    assert taken == ["b 0"]
    assert "a sweep failed" in caplog.text
    assert not sweeps.under_way


async def test_what_comes_while_nothing_is_to_be_done_is_done_soon() -> None:
    sweeps, done = Sweeps(), asyncio.Event()

    def last() -> Iterator[None]:
        yield
        done.set()

    running = asyncio.create_task(sweeps.run())
    for _ in range(2):
        done.clear()
        sweeps.add("last", last())
        async with asyncio.timeout(PATIENCE):
            await done.wait()
    running.cancel()
    await asyncio.wait({running})
