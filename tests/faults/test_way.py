"""What goes wrong between muster and the apiserver: the store is whole afterwards, and has heard of everything."""

import asyncio
import gc
from collections.abc import Callable, Iterator

import pytest

from hack.testbed import PATIENCE, Testbed
from hack.testbed.api import Api
from muster.kube.errors import Unreachable
from tests.support.cases import cases
from tests.support.faults.apiserver import (
    Answer,
    FaultyApiserver,
    crumbs,
    cut,
    eventually,
    failure,
    hang,
    html,
    nothing,
    paused,
    reset,
)
from tests.support.faults.things import THINGS, Things, through, watching

# The proxy cuts connections wherever they are, in the middle of a handshake of TLS too: what asyncio leaves of one then
# is for the garbage collector, and no fault of what is tested.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*(_SelectorTransport|socket):pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What is left of connections goes here, and not in somebody else's test."""
    yield
    gc.collect()


async def test_pages_are_one_list_and_the_watch_begins_there(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """Seven objects in pages of three, none lost and none told twice, and no gap before the watch."""
    things.make(*"abcdefg")
    async with through(proxy, cluster) as client, watching(client, things, page=3) as watched:
        await eventually(lambda: len(proxy.seen("WATCH")) >= 1)
        assert watched.changes == [("added", name) for name in "abcdefg"]
        things.make("h")
        await eventually(lambda: "h" in watched.sizes)
    assert [request.query["limit"] for request in proxy.seen("LIST")] == ["3", "3", "3"]
    assert watched.reflector.statistics.lists == 1


async def test_nothing_counts_before_the_last_page(cluster: Testbed, proxy: FaultyApiserver, things: Things) -> None:
    """While a page is missing the store is not synced and tells nobody anything."""
    things.make(*"abc")
    release = asyncio.Event()
    proxy.on("LIST", proxy.forward, proxy.spoiled(paused(release)))
    async with through(proxy, cluster) as client, watching(client, things, page=2) as watched:
        await eventually(lambda: len(proxy.seen("LIST")) == 2)
        assert not watched.reflector.store.synced
        assert watched.changes == []
        release.set()
        await watched.reflector.wait_synced(PATIENCE)
        assert set(watched.sizes) == set("abc")


async def test_a_page_that_the_apiserver_might_compress_is_read(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """It does so from 128 KiB on, for whoever does not say that he wants none of it."""
    things.make("large", load="x" * 200_000)
    async with through(proxy, cluster) as client, watching(client, things) as watched:
        await eventually(lambda: watched.sizes == {"large": 1})


@cases(
    "fault, silence",
    ("connection reset", lambda _: reset, 90),
    ("502 of a load balancer", lambda _: html(502), 90),
    ("503", lambda _: failure(503, "ServiceUnavailable"), 90),
    ("429 with Retry-After", lambda _: failure(429, "TooManyRequests", Retry_After="1"), 90),
    ("half a line", lambda proxy: proxy.spoiled(cut(0)), 90),
    ("one line and a half", lambda proxy: proxy.spoiled(cut(1)), 90),
    ("silent connection", lambda proxy: proxy.spoiled(nothing), 2),
    ("a byte at a time", lambda proxy: proxy.spoiled(crumbs(1)), 90),
)
async def test_a_spoiled_watch_goes_on_without_a_list(
    cluster: Testbed,
    proxy: FaultyApiserver,
    things: Things,
    fault: Callable[[FaultyApiserver], Answer],
    silence: float,
) -> None:
    """Every change of the time of the fault is told once, in order, and the whole list is not asked for again."""
    things.make(*"abc")
    bad = fault(proxy)
    proxy.on("WATCH", bad, bad, proxy.forward)
    async with through(proxy, cluster) as client, watching(client, things, silence=silence) as watched:
        await eventually(lambda: watched.reflector.statistics.watches >= 1)
        things.make("d")
        things.resize("b", 7)
        things.delete(THINGS, "a")
        await eventually(lambda: watched.sizes == {"b": 7, "c": 1, "d": 1})
        assert watched.changes[3:] == [("added", "d"), ("modified", "b"), ("deleted", "a")]
        assert watched.reflector.statistics.lists == 1


@cases(
    "fault",
    ("connection reset", lambda _: reset),
    ("502 of a load balancer", lambda _: html(502)),
    ("429 with Retry-After", lambda _: failure(429, "TooManyRequests", Retry_After="1")),
    ("seven bytes at a time", lambda proxy: proxy.spoiled(crumbs(7))),
)
async def test_a_spoiled_list_is_no_short_list(
    cluster: Testbed, proxy: FaultyApiserver, things: Things, fault: Callable[[FaultyApiserver], Answer]
) -> None:
    """A page that does not come whole is asked for again, and nothing is taken for deleted."""
    things.make(*"abc")
    bad = fault(proxy)
    proxy.on("LIST", bad, proxy.forward, bad, proxy.forward)
    async with through(proxy, cluster) as client, watching(client, things, page=2) as watched:
        await eventually(lambda: watched.changes == [("added", name) for name in "abc"])


async def test_a_server_that_accepts_and_is_silent_is_left(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """A request that nobody answers ends by its deadline, and the next one is tried."""
    async with through(proxy, cluster) as client:
        proxy.on("GET", hang)
        with pytest.raises(Unreachable, match=r"no answer in 0\.3 s"):
            await client.get(THINGS, "a", things.namespace, deadline=0.3)
        proxy.on("GET")
        things.make("a")
        assert await client.get(THINGS, "a", things.namespace)


async def test_resumes_from_a_bookmark(cluster: Testbed, proxy: FaultyApiserver, things: Things) -> None:
    """The apiserver tells how far it is although nothing happens here; the next watch begins there, without a list."""
    async with through(proxy, cluster) as client, watching(client, things, watch_seconds=4) as watched:
        await eventually(lambda: proxy.seen("WATCH"))
        first = proxy.seen("WATCH")[0].query["resourceVersion"]
        elsewhere = Things(things.api, "default")
        elsewhere.make(f"of-{things.namespace}")
        # The bookmark comes two seconds before the watch ends: if not of this one, then of a later one.
        await eventually(lambda: int(proxy.seen("WATCH")[-1].query["resourceVersion"]) > int(first))
        assert watched.changes == []
        assert watched.reflector.statistics.lists == 1


async def test_a_reader_that_is_too_slow_catches_up(cluster: Testbed, proxy: FaultyApiserver, things: Things) -> None:
    """The apiserver ends the watch of whoever does not read; what was missed meanwhile is not lost."""
    things.make("first")
    release = asyncio.Event()
    proxy.on("WATCH", proxy.spoiled(paused(release)), proxy.forward)
    async with through(proxy, cluster) as client, watching(client, things) as watched:
        await eventually(lambda: len(proxy.seen("WATCH")) == 1)
        # How much the way holds depends on the apiserver's history and on the kernel: until it has ended the watch.
        many: list[str] = []
        load = "x" * 200_000
        before = _ended_watches(things.api)
        while _ended_watches(things.api) == before:
            assert len(many) < 1000, "the apiserver never ends the watch"
            more = [f"big-{number}" for number in range(len(many), len(many) + 50)]
            await asyncio.to_thread(things.api.each, lambda name: things.make(name, load=load), more)
            many += more
        things.delete(THINGS, "first")
        release.set()
        await eventually(lambda: set(watched.sizes) == set(many))
        await eventually(lambda: len(proxy.seen("WATCH")) >= 2)
        assert ("deleted", "first") in watched.changes
        assert len(watched.changes) == len(set(watched.changes)), "nothing is told twice"


def _ended_watches(calls: Api) -> float:
    """How many watches of Things the apiserver ended because nobody read them."""
    counted = f'apiserver_terminated_watchers_total{{group="{THINGS.group}",resource="{THINGS.plural}"}} '
    lines = calls("GET", "/metrics").message.splitlines()
    return sum(float(line.removeprefix(counted)) for line in lines if line.startswith(counted))
