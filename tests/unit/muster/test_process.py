"""What both processes do alike."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from hack.testbed.ports import free_port
from muster.process import Identity, add_common_arguments, identity, is_loopback, serve_health, stop_signal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


async def probe(path: str, checks: dict[str, str]) -> tuple[int, str]:
    port = free_port()
    async with (
        serve_health("127.0.0.1", port, ready=lambda: checks, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("checks", "status", "text"),
    [
        pytest.param({"a": "", "b": ""}, 200, "a: ok\nb: ok\n", id="all hold"),
        pytest.param({"a": "", "b": "not yet: x"}, 503, "a: ok\nb: not yet: x\n", id="one does not"),
        pytest.param({}, 200, "", id="none asked"),
    ],
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


async def test_the_port_is_free_again_afterwards() -> None:
    port = free_port()
    for _ in range(2):
        async with serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()):
            pass


def test_the_identity_comes_from_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "p")
    monkeypatch.setenv("POD_NAMESPACE", "n")
    assert identity() == Identity("p", "n")


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        pytest.param({}, "POD_NAME and POD_NAMESPACE", id="both"),
        pytest.param({"POD_NAME": "p"}, "POD_NAMESPACE", id="namespace"),
        pytest.param({"POD_NAME": "", "POD_NAMESPACE": "n"}, "POD_NAME", id="empty counts as missing"),
    ],
)
def test_without_an_identity_one_line_says_what_is_missing(
    environment: dict[str, str], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POD_NAME", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        identity()
    assert ended.value.code == f"muster: {missing} must be set; the chart takes them from the pod's own metadata"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_end_is_an_event(number: signal.Signals) -> None:
    stop = stop_signal()
    try:
        os.kill(os.getpid(), number)
        async with asyncio.timeout(60):
            await stop.wait()
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(each)


def test_an_unknown_log_level_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_common_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--log-level", "loud"])
    assert "invalid choice: 'loud'" in capsys.readouterr().err


async def test_a_second_signal_ends_the_process_at_once() -> None:
    """As Kubernetes' own processes do: who asks twice does not want to wait."""
    code = (
        "import asyncio\nfrom muster.process import stop_signal\n"
        "async def main():\n stop = stop_signal()\n print('ready', flush=True)\n await stop.wait()\n"
        " print('ending', flush=True)\n await asyncio.Event().wait()\nasyncio.run(main())"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    async with asyncio.timeout(60):
        for word in (b"ready\n", b"ending\n"):
            assert await child.stdout.readline() == word
            child.terminate()
        assert await child.wait() == 128 + signal.SIGTERM


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
@pytest.mark.parametrize(
    ("method", "data", "status"),
    [
        pytest.param("PUT", b"loud", 400, id="no level"),
        pytest.param("PUT", b"", 400, id="nothing"),
        pytest.param("PUT", b"\xff", 400, id="no text"),
        pytest.param("PUT", b"x" * 100, 413, id="too much"),
        pytest.param("POST", b"debug", 405, id="another method"),
    ],
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
