"""Probes, metrics and the log level: a thread answers, and says what the event loop does."""

import asyncio
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hack.testbed.ports import free_port
from hack.testbed.waiting import PATIENCE
from muster.process.health import Pulse, is_loopback, serve_health
from tests.support.cases import cases


async def probe(path: str, checks: dict[str, str]) -> tuple[int, str]:
    port = free_port()
    async with (
        serve_health("127.0.0.1", port, ready=lambda: checks, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        return answer.status, await answer.text()


@cases(
    "checks, status, text",
    ("all hold", {"a": "", "b": ""}, 200, "a: ok\nb: ok\n"),
    ("one does not", {"a": "", "b": "not yet: x"}, 503, "a: ok\nb: not yet: x\n"),
    ("none asked", {}, 200, ""),
)
async def test_ready_when_every_condition_holds_and_says_which_does_not(
    checks: dict[str, str], status: int, text: str
) -> None:
    assert await probe("/readyz", checks) == (status, text)


async def test_alive_also_when_not_ready() -> None:
    """Else the kubelet would restart a process that only waits."""
    assert await probe("/healthz", {"a": "not yet"}) == (200, "ok\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(
            ("GET", path, 404)
            for path in ("/", "/debug/pprof", "/config", "/metrics/", "/metrics/../log-level/x", "/quit")
        ),
        *((method, "/metrics", 405) for method in ("POST", "PUT", "DELETE")),
        *((method, "/log-level", 405) for method in ("POST", "DELETE")),
    ],
)
async def test_whoever_reaches_the_port_reads_and_does_nothing_more(method: str, path: str, status: int) -> None:
    """It asks nobody who he is; profiles, settings and switches are none of what it has."""
    port = free_port()
    async with (
        serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
        session.request(method, f"http://127.0.0.1:{port}{path}") as answer,
    ):
        assert answer.status == status


def _asks(url: str) -> int:
    """The status that a client of another process would see, while this event loop is busy."""
    with suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - our own
        return int(answer.status)
    return 503


async def test_probes_are_answered_while_the_event_loop_is_busy() -> None:
    """Else a webhook that thinks for a second is taken off its Service, and killed when it does so for a minute."""
    port = free_port()
    answers: list[int] = []
    async with serve_health("127.0.0.1", port, ready=lambda: {"a": ""}, registry=CollectorRegistry()):
        asking = threading.Thread(
            target=lambda: answers.extend(_asks(f"http://127.0.0.1:{port}{path}") for path in ("/healthz", "/readyz"))
        )
        asking.start()
        # The loop stands still until both have their answers.
        asking.join(60)
    assert answers == [200, 200]


class Counted(Collector):
    """A metric that notes how often it was collected, and in which thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.threads: list[str] = []
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """One number, that takes some time."""
        self.threads.append(threading.current_thread().name)
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        yield GaugeMetricFamily("some", "Some.", value=1.0)


async def test_metrics_are_answered_while_the_event_loop_is_busy() -> None:
    port, registry = free_port(), CollectorRegistry()
    counted, answers = Counted(registry), list[int]()
    async with serve_health("127.0.0.1", port, ready=dict, registry=registry):
        asking = threading.Thread(target=lambda: answers.append(_asks(f"http://127.0.0.1:{port}/metrics")))
        asking.start()
        asking.join(60)
    assert answers == [200]
    assert set(counted.threads) == {"health"}


async def test_many_that_scrape_together_have_one_answer() -> None:
    """Else those that ask in a loop would have the processor for themselves."""
    port, registry = free_port(), CollectorRegistry()
    counted = Counted(registry)
    async with (
        serve_health("127.0.0.1", port, ready=dict, registry=registry),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=50)) as session,
    ):

        async def scrape() -> str:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                return await answer.text()

        before = len(counted.threads)
        texts = await asyncio.gather(*(scrape() for _ in range(50)))
    assert len(set(texts)) == 1
    # Those that came when one was being collected have the next.
    assert len(counted.threads) - before <= 5


async def closed(reader: asyncio.StreamReader) -> None:
    """Return when the server has closed the connection."""
    with suppress(ConnectionResetError):
        assert await reader.read() == b""


async def test_of_too_many_connections_the_oldest_go_and_a_probe_is_answered() -> None:
    """Which are the oldest the kernel says: where its queue is full, it takes connections in another order."""
    port = free_port()
    async with serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()):
        many = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                assert answer.status == 200
            left = {asyncio.create_task(closed(reader)) for reader, _ in many}
            async with asyncio.timeout(PATIENCE):
                while len(left) > 64:
                    _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            assert len(left) >= 32
            for one in left:
                one.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        finally:
            for _, writer in many:
                writer.close()


def test_a_loop_that_stands_still_is_first_not_ready_and_then_dead() -> None:
    """A probe that anything answers would keep a process that answers nobody."""
    pulse = Pulse()
    pulse.beat(100.0, {"a": ""})
    assert (pulse.dead(100.0), pulse.checks(100.0)) == ("", {"a": ""})
    assert (pulse.dead(106.0), pulse.checks(106.0)) == ("", {"a": "", "event loop": "has not turned for 6 s"})
    assert pulse.dead(111.0) == "has not turned for 11 s"
    pulse.beat(111.0, {"a": ""})
    assert (pulse.dead(111.0), pulse.checks(111.0)) == ("", {"a": ""})


async def test_what_is_ready_is_as_the_loop_said_it_last() -> None:
    port, missing = free_port(), {"a": "not yet"}
    async with (
        serve_health("127.0.0.1", port, ready=lambda: missing, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
    ):

        async def status() -> int:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                return answer.status

        assert await status() == 503
        missing["a"] = ""
        async with asyncio.timeout(PATIENCE):
            while await status() != 200:
                pass


async def test_a_port_that_is_taken_is_an_error() -> None:
    port = free_port()
    async with serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()):
        with pytest.raises(OSError, match="address already in use"):
            async with serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()):
                pass


async def test_the_port_is_free_again_afterwards() -> None:
    port = free_port()
    for _ in range(2):
        async with serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()):
            pass


@pytest.fixture
def level() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level
    root.setLevel("INFO")
    yield
    root.setLevel(before)


@asynccontextmanager
async def health() -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    port = free_port()
    async with (
        serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
    ):
        yield session, f"http://127.0.0.1:{port}/log-level"


@pytest.mark.usefixtures("level")
async def test_the_log_level_is_changed_while_the_process_runs() -> None:
    async with health() as (session, url):
        assert await (await session.get(url)).text() == "info\n"
        answer = await session.put(url, data="debug\n")
        assert (answer.status, await answer.text()) == (200, "debug\n")
        assert logging.getLogger().level == logging.DEBUG


@pytest.mark.usefixtures("level")
@cases(
    "method, data, status",
    ("no level", "PUT", b"loud", 400),
    ("nothing", "PUT", b"", 400),
    ("no text", "PUT", b"\xff", 400),
    ("too much", "PUT", b"x" * 100, 413),
    ("another method", "POST", b"debug", 405),
)
async def test_a_log_level_that_is_none_changes_nothing(method: str, data: bytes, status: int) -> None:
    async with health() as (session, url):
        assert (await session.request(method, url, data=data)).status == status
        assert logging.getLogger().level == logging.INFO


@pytest.mark.parametrize(
    ("remote", "within"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        (None, False),
    ],
)
def test_only_who_is_in_the_pod_may_change_it(remote: str | None, *, within: bool) -> None:
    """`kubectl port-forward` is, once RBAC has let it."""
    assert is_loopback(remote) is within
