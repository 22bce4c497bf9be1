"""What a failed call leaves is freed by its reference count: the cycle collector never looks at what it saw alive."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controller.apiserver import Writer
from muster.kube.client import Client
from muster.kube.concurrency import burst
from muster.kube.config import Connection
from muster.kube.errors import ApiError, Unreachable, WatchIdle
from muster.kube.reflector import Reflector, Watched, WatchTimes
from muster.kube.store import Store
from muster.model.pods import Pod
from muster.model.resource import PODS
from tests.support.faults.apiserver import (
    FaultyApiserver,
    eventually,
    failure,
    hang,
    listing,
    manifest,
    reply,
    reset,
    stream,
)


@contextmanager
def no_collector() -> Iterator[None]:
    """References alone keep what is there."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def left_by(call: Callable[[], Awaitable[Any]], kind: type[ApiError]) -> list[str]:
    """What is still there of the error with which the call ends, and of what it came from."""
    with no_collector():
        left: list[weakref.ref[BaseException]] = []
        try:
            await call()
        except kind as error:
            one: BaseException | None = error
            while one is not None:
                if type(one).__module__ != "builtins":  # those have no weak references
                    left.append(weakref.ref(one))
                one = one.__cause__ if one.__cause__ is not None else one.__context__
        assert left, "it did not fail so"
        # Whoever awaits a future goes on in the next turn of the loop.
        for _ in range(5):
            await asyncio.sleep(0)
        return [repr(there) for ref in left if (there := ref()) is not None]


async def watched(client: Client) -> None:
    async with client.watch(PODS, resource_version="1", silence=0.1) as lines:
        async for _ in lines:
            pass


@pytest.mark.parametrize("fault", [failure(500, "InternalError"), failure(404, "NotFound"), reset])
async def test_a_failed_call_leaves_nothing(server: FaultyApiserver, client: Client, fault: object) -> None:
    """After attempts for as long as there is time, too: 16 workers fail so for as long as a webhook is away."""
    server.on("PATCH", fault)  # type: ignore[arg-type]
    assert await left_by(lambda: client.merge_patch(PODS, "p", {}, "ns", deadline=0.3), ApiError) == []


async def test_an_error_before_a_success_leaves_nothing(server: FaultyApiserver, client: Client) -> None:
    refused: list[weakref.ref[ApiError]] = []

    def noted(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as ApiError takes them
        made(*arguments, **options)
        refused.append(weakref.ref(arguments[0]))

    made = ApiError.__init__
    server.on("GET", failure(503, "ServiceUnavailable"), reply({}))
    with pytest.MonkeyPatch.context() as patched, no_collector():
        patched.setattr(ApiError, "__init__", noted)
        await client.get(PODS, "p", "ns")
        assert [ref() for ref in refused] == [None]


async def test_a_silent_watch_leaves_nothing(server: FaultyApiserver, client: Client) -> None:
    """Each of a quiet kind ends so every 90 s, and lives for longer than the collector waits."""
    server.on("WATCH", stream(then=hang))
    assert await left_by(lambda: watched(client), WatchIdle) == []


async def test_a_broken_watch_leaves_nothing(server: FaultyApiserver, client: Client) -> None:
    server.on("WATCH", stream(then=reset))
    assert await left_by(lambda: watched(client), Unreachable) == []


async def test_an_apiserver_that_is_away_leaves_nothing() -> None:
    async with Client(Connection("http://127.0.0.1:1"), user_agent="test") as away:
        assert await left_by(lambda: away.get(PODS, "p", "ns", deadline=0.3), Unreachable) == []
        assert await left_by(lambda: watched(away), Unreachable) == []


async def test_a_failed_write_of_a_leader_leaves_nothing(server: FaultyApiserver, client: Client) -> None:
    """One by one, or many at once."""
    server.on("PATCH", failure(422, "Invalid"))
    writer = Writer(client, lambda: 5.0)

    async def write(name: str) -> bytes:
        return await writer.patch(PODS, name, "ns", {})

    assert await left_by(lambda: write("p"), ApiError) == []
    assert await left_by(lambda: burst(write, ["p", "q"]), ApiError) == []


async def test_half_a_list_is_not_kept_until_the_next_one_is_whole(server: FaultyApiserver, client: Client) -> None:
    """It may be most of a cluster, and the next attempt lists it once more."""
    server.on("LIST", reply(listing(5, manifest("half-a-list", 1), continue_="c")), failure(403, "Forbidden"))
    reflector = Reflector(client, Watched(PODS, Pod, Store()), times=WatchTimes(retry=(600, 600)))
    running = asyncio.create_task(reflector.run())
    try:
        await eventually(lambda: reflector.fault is not None)
        pods = [one for one in gc.get_objects() if isinstance(one, Pod)]
        assert [pod for pod in pods if pod.metadata.name == "half-a-list"] == []
    finally:
        running.cancel()
        await asyncio.wait({running})
