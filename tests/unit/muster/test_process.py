"""What both processes do alike."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket

import aiohttp
import pytest

from muster.process import Identity, add_common_arguments, identity, serve_health, stop_signal


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def probe(path: str, checks: dict[str, bool]) -> tuple[int, str]:
    port = free_port()
    async with (
        serve_health("127.0.0.1", port, ready=lambda: checks),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("checks", "status", "text"),
    [
        pytest.param({"a": True, "b": True}, 200, "a: ok\nb: ok\n", id="all hold"),
        pytest.param({"a": True, "b": False}, 503, "a: ok\nb: not yet\n", id="one does not"),
        pytest.param({}, 200, "", id="none asked"),
    ],
)
async def test_ready_when_every_condition_holds_and_says_which_does_not(
    checks: dict[str, bool], status: int, text: str
) -> None:
    assert await probe("/readyz", checks) == (status, text)


async def test_alive_also_when_not_ready() -> None:
    """Else the kubelet would restart a process that only waits."""
    assert await probe("/healthz", {"a": False}) == (200, "ok\n")


async def test_the_port_is_free_again_afterwards() -> None:
    port = free_port()
    for _ in range(2):
        async with serve_health("127.0.0.1", port, ready=dict):
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
        async with asyncio.timeout(5):
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
