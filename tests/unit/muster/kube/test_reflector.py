import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from muster.kube.client import Client
from muster.kube.config import Connection
from muster.kube.reflector import Reflector, Watched, WatchTimes
from muster.kube.store import Store
from muster.model.pods import Pod
from muster.model.resource import PODS
from tests.support.cases import cases
from tests.support.faults.apiserver import (
    Answer,
    FaultyApiserver,
    event,
    eventually,
    failure,
    hang,
    html,
    listing,
    manifest,
    reply,
    reset,
    stream,
)
from tests.support.faults.loop_clock import LoopClock

GONE = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
FOREVER = stream(b"\n", then=hang)
# The apiserver waits for 3 s for a version that it does not know; one in trouble answers late whatever it is asked.
SLOW = pytest.mark.parametrize("seconds", [pytest.param(0, id="at once"), pytest.param(3, id="after 3 s")])


def late(clock: LoopClock, seconds: float, answer: Answer) -> Answer:
    """The same answer so many seconds later."""

    async def slow(request: web.Request) -> web.StreamResponse:
        clock.forward(seconds)
        return await answer(request)

    return slow


@asynccontextmanager
async def running(
    client: Client,
    *,
    silence: float = 30.0,
    absent: float = 0.05,
    retry: tuple[float, float] = (0.01, 0.1),
    selectors: tuple[str, str] = ("", ""),
) -> AsyncIterator[Reflector]:
    """Run a reflector of pods with short intervals until the test is over."""
    reflector = Reflector(
        client,
        Watched(PODS, Pod, Store(), label_selector=selectors[0], field_selector=selectors[1]),
        times=WatchTimes(silence=silence, absent=absent, retry=retry),
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        assert not task.done(), "a reflector never ends by itself"
    finally:
        task.cancel()
        await asyncio.wait({task})


def names(reflector: Reflector) -> set[str]:
    return {pod.metadata.name for pod in reflector.store}


def lists(server: FaultyApiserver) -> int:
    """How often the whole was asked for, and not only how far the apiserver is."""
    return sum(request.query["limit"] != "1" for request in server.seen("LIST"))


async def test_resumes_after_the_last_event_or_bookmark(server: FaultyApiserver, client: Client) -> None:
    """A broken watch goes on where it was, without another list."""
    server.on("LIST", reply(listing(5)), reply(listing(50)))
    server.on(
        "WATCH",
        stream(event("ADDED", manifest("a", 6)), then=reset),
        stream(event("BOOKMARK", {"metadata": {"resourceVersion": "40"}}), then=reset),
        FOREVER,
    )
    async with running(client):
        await eventually(lambda: len(server.seen("WATCH")) == 3)
    assert [request.query["resourceVersion"] for request in server.seen("WATCH")] == ["5", "6", "40"]
    assert lists(server) == 1


@cases(
    "expiry",
    ("410 on opening", failure(410, "Expired")),
    ("ERROR event", stream(GONE)),
    ("ERROR event without a Status", stream(event("ERROR", "no status"))),
    ("a line that is no event", stream(b"<html>not an event</html>\n")),
    ("400 on opening", failure(400, "BadRequest")),
)
async def test_lists_again_when_it_cannot_resume(server: FaultyApiserver, client: Client, expiry: Answer) -> None:
    """And a deletion of the meantime is a change like any other."""
    server.on("LIST", reply(listing(5, manifest("a", 1), manifest("b", 2))), reply(listing(9, manifest("b", 2))))
    server.on("WATCH", expiry, FOREVER)
    async with running(client) as reflector:
        changes: list[tuple[str, str]] = []
        reflector.store.subscribe(lambda change: changes.append((change.kind, change.object.metadata.name)))
        await eventually(lambda: len(server.seen("WATCH")) == 2)
        assert changes[-1] == ("deleted", "a")
    assert server.seen("WATCH")[1].query["resourceVersion"] == "9"


@cases(
    "fault",
    ("429", failure(429, "TooManyRequests")),
    ("502 from a load balancer", html(502)),
    ("reset", stream(b"\n", then=reset)),
    ("empty and ended at once", stream()),
    ("half a line", stream(event("ADDED", manifest("a", 6))[:20], then=reset)),
    ("ERROR event of 500", stream(event("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"}))),
)
async def test_resumes_with_growing_delay(server: FaultyApiserver, client: Client, fault: Answer) -> None:
    """A server in trouble is neither hammered nor asked for the whole list."""
    server.on("LIST", reply(listing(5)))
    server.on("WATCH", fault, fault, fault, FOREVER)
    async with running(client):
        await eventually(lambda: len(server.seen("WATCH")) == 4)
    watches = server.seen("WATCH")
    assert {request.query["resourceVersion"] for request in watches} == {"5"}
    assert lists(server) == 1
    for earlier, later, least in zip(watches, watches[1:], (0.01, 0.02, 0.04), strict=False):
        assert later.at - earlier.at >= least


@pytest.mark.parametrize("kind", ["LIST", "WATCH"])
async def test_what_failed_is_known_until_a_watch_is_given_again(
    server: FaultyApiserver, client: Client, kind: str
) -> None:
    """Such as for somebody who may list and not watch."""
    server.on("LIST", reply(listing(5)))
    server.on("WATCH", FOREVER)
    server.on(kind, failure(403, "Forbidden", "not yours"))
    async with running(client) as reflector:
        await eventually(lambda: reflector.fault is not None)
        assert (reflector.fault.status, reflector.fault.message) == (403, "not yours") if reflector.fault else False
        server.on("LIST", reply(listing(6)))
        server.on("WATCH", FOREVER)
        await eventually(lambda: reflector.fault is None)


@SLOW
async def test_an_expiry_after_an_outage_is_listed_at_once(
    server: FaultyApiserver, client: Client, seconds: float
) -> None:
    """The delay that the outage grew to does not keep the store stale when the server is back; a second one waits."""
    clock = LoopClock()
    expired = late(clock, seconds, failure(410, "Expired"))
    server.on("LIST", reply(listing(5)))
    server.on("WATCH", html(502), expired, expired, FOREVER)
    async with running(client, retry=(500, 500)) as reflector:
        await eventually(lambda: reflector.statistics.failures == 1)
        clock.forward(750)
        # The first of the expired ones makes it wait for nothing.
        await eventually(lambda: reflector.statistics.failures == 3)
        clock.forward(750)
        await eventually(lambda: len(server.seen("WATCH")) == 4)
    _, first, second, third = server.seen("WATCH")
    assert second.at - first.at < 500 <= third.at - second.at


async def test_a_silent_watch_of_the_future_is_listed_again(server: FaultyApiserver, client: Client) -> None:
    """After an etcd restore our version lies ahead of the cluster's, and the apiserver only keeps silent about it."""
    server.on("LIST", reply(listing(50, manifest("a", 40))), reply(listing(30)))
    server.on("WATCH", FOREVER)
    async with running(client, silence=0.1) as reflector:
        await eventually(lambda: reflector.store.synced and not names(reflector))
    assert [request.query["limit"] for request in server.seen("LIST")][:3] == ["500", "1", "25"]


async def test_it_asks_for_what_it_may_read_and_for_nothing_else(server: FaultyApiserver, client: Client) -> None:
    """Also when it only compares versions: who may read one Secret, by its name, is refused the others."""
    server.on("LIST", reply(listing(5)))
    server.on("WATCH", FOREVER)
    async with running(client, silence=0.1, selectors=("kind=own", "metadata.name=own")):
        await eventually(lambda: len(server.seen("LIST")) > 1)
    selectors = {(one.query.get("fieldSelector"), one.query.get("labelSelector")) for one in server.requests}
    assert selectors == {("metadata.name=own", "kind=own")}


class Opened(Client):
    """Counts its watches that are open."""

    opened = 0

    @asynccontextmanager
    async def watch(self, *args: Any, **options: Any) -> AsyncIterator[AsyncIterator[bytes]]:  # noqa: ANN401
        """As its parent does."""
        async with super().watch(*args, **options) as lines:
            self.opened += 1
            yield lines


async def test_a_quiet_kind_is_neither_listed_again_nor_a_fault(
    server: FaultyApiserver, caplog: pytest.LogCaptureFixture
) -> None:
    """The apiserver sends no bookmark of a kind in which nothing happens: that is everyday life."""
    server.on("LIST", reply(listing(50, manifest("a", 40))))
    server.on("WATCH", FOREVER)
    clock = LoopClock()
    with caplog.at_level(logging.INFO):
        async with Opened(Connection(server.url), user_agent="t") as client, running(client, silence=90) as reflector:
            await eventually(lambda: client.opened == 1)
            clock.forward(91)
            await eventually(lambda: client.opened == 2)
            clock.forward(91)
            await eventually(lambda: len(server.seen("WATCH")) == 3)
            assert (reflector.statistics.lists, reflector.statistics.failures) == (1, 0)
    assert {request.query["resourceVersion"] for request in server.seen("WATCH")} == {"50"}
    assert caplog.records == []


async def test_a_relist_keeps_what_it_knows(server: FaultyApiserver, client: Client) -> None:
    """An unchanged object is not held twice, however large the cluster is."""
    server.on("LIST", reply(listing(5, manifest("a", 1))), reply(listing(9, manifest("a", 1), manifest("b", 8))))
    server.on("WATCH", stream(GONE), FOREVER)
    async with running(client) as reflector:
        await reflector.wait_synced(60)
        known = reflector.store.get("ns", "a")
        await eventually(lambda: names(reflector) == {"a", "b"})
        assert reflector.store.get("ns", "a") is known


async def test_a_malformed_object_stops_nobody(
    server: FaultyApiserver, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """It is skipped, counted and logged; its last readable version stays until it is really deleted."""
    server.on(
        "LIST",
        reply(listing(5, manifest("a", 1), manifest("b", 2))),
        reply(
            listing(9, manifest("a", 8, status={"phase": 5}), manifest("new", 9, status={"phase": 5}), manifest("c", 3))
        ),
    )
    server.on(
        "WATCH",
        stream(event("MODIFIED", manifest("b", 6, status={"phase": 5})), event("ADDED", manifest("c", 7)), GONE),
        stream(event("DELETED", manifest("a", 10, status={"phase": 5})), then=hang),
    )
    with caplog.at_level(logging.WARNING):
        async with running(client) as reflector:
            seen: list[tuple[str, str]] = []
            reflector.store.subscribe(lambda change: seen.append((change.kind, change.object.metadata.name)))
            await eventually(lambda: ("deleted", "a") in seen)
            assert names(reflector) == {"c"}
            assert reflector.statistics.malformed == 4
    assert "pods ns/b: skipped: status.phase" in caplog.text
    assert ("modified", "b") not in seen
