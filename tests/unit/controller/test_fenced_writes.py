"""Writes of a leader, whose lease may end while one of them is on its way."""

import asyncio

import pytest

from controller.apiserver import NotLeaderError, Writer
from muster.kube.errors import ApiError
from muster.model.resource import PODS


class SlowClient:
    """An apiserver that answers a write when it is told to."""

    def __init__(self) -> None:
        self.begun, self.answers = asyncio.Event(), asyncio.Event()
        self.fails = False
        self.cut_off = False

    async def create(self, *_: object, deadline: float) -> bytes:
        """Answer late."""
        assert deadline > 0
        self.begun.set()
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.cut_off = True
            raise
        if self.fails:
            raise ApiError(500, "", "broken")
        return b"{}"


async def writing(client: SlowClient, writer: Writer) -> asyncio.Task[bytes]:
    """A write that has begun."""
    task = asyncio.create_task(writer.create(PODS, {"metadata": {"namespace": "team"}}))
    await client.begun.wait()
    return task


@pytest.mark.parametrize("fails", [False, True])
async def test_work_that_is_cancelled_ends_after_the_write_that_it_had_begun(*, fails: bool) -> None:
    """A request that is cut off may still be done: the lease must not be given back before."""
    client = SlowClient()
    client.fails = fails
    task = await writing(client, Writer(client, lambda: 5.0))  # type: ignore[arg-type]
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    client.answers.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not client.cut_off


async def test_a_write_is_cut_off_where_the_lease_is_lost_already() -> None:
    """Its deadline has seen to it that it ends before another leads."""
    client, left = SlowClient(), [5.0]
    task = await writing(client, Writer(client, lambda: left[0]))  # type: ignore[arg-type]
    left[0] = 0.0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert client.cut_off


async def test_no_write_begins_without_the_lease() -> None:
    client = SlowClient()
    with pytest.raises(NotLeaderError):
        await Writer(client, lambda: 0.0).create(PODS, {"metadata": {"namespace": "team"}})  # type: ignore[arg-type]
    assert not client.begun.is_set()


async def test_a_write_that_waited_for_its_turn_until_the_lease_was_lost_does_not_begin() -> None:
    """A process may be stopped in between, and wake when another leads."""
    client, left = SlowClient(), [5.0]
    client.answers.set()
    writer = Writer(client, lambda: left[0])  # type: ignore[arg-type]
    task = asyncio.create_task(writer.create(PODS, {"metadata": {"namespace": "team"}}))
    await asyncio.sleep(0)
    assert not client.begun.is_set()
    left[0] = 0.0
    with pytest.raises(NotLeaderError):
        await task
    assert not client.begun.is_set()
