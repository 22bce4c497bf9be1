"""What both processes do alike."""

import argparse
import asyncio
import os
import signal
import subprocess
import sys

import pytest

from hack.testbed.waiting import PATIENCE
from muster.process.lifecycle import Identity, add_common_arguments, identity, parse_args, stop_signal
from tests.support.cases import cases


def test_the_identity_comes_from_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "p")
    monkeypatch.setenv("POD_NAMESPACE", "n")
    assert identity() == Identity("p", "n")


@cases(
    "environment, missing",
    ("both", {}, "POD_NAME and POD_NAMESPACE"),
    ("namespace", {"POD_NAME": "p"}, "POD_NAMESPACE"),
    ("empty counts as missing", {"POD_NAME": "", "POD_NAMESPACE": "n"}, "POD_NAME"),
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
        async with asyncio.timeout(PATIENCE):
            await stop.wait()
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(each)


def test_elastic_quotas_need_a_scheduler_that_heeds_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    add_common_arguments(parser)
    monkeypatch.setattr(sys, "argv", ["muster", "--elastic-quotas", "--schedulers=volcano,coscheduling"])
    assert parse_args(parser).elastic_quotas
    monkeypatch.setattr(sys, "argv", ["muster", "--elastic-quotas"])
    with pytest.raises(SystemExit) as ended:
        parse_args(parser)
    assert ended.value.code == 2
    assert "no scheduler of --schedulers enforces ElasticQuotas; name coscheduling there" in capsys.readouterr().err


def test_an_unknown_log_level_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_common_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--log-level", "loud"])
    assert "invalid choice: 'loud'" in capsys.readouterr().err


async def test_a_second_signal_ends_the_process_at_once() -> None:
    """As Kubernetes' own processes do: who asks twice does not want to wait."""
    code = (
        "import asyncio\nfrom muster.process.lifecycle import stop_signal\n"
        "async def main():\n stop = stop_signal()\n print('ready', flush=True)\n await stop.wait()\n"
        " print('ending', flush=True)\n await asyncio.Event().wait()\nasyncio.run(main())"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    async with asyncio.timeout(PATIENCE):
        for word in (b"ready\n", b"ending\n"):
            assert await child.stdout.readline() == word
            child.terminate()
        assert await child.wait() == 128 + signal.SIGTERM


def test_the_cycle_collector_looks_once_at_what_comes_and_never_at_what_is_there() -> None:
    """Its look at fifty thousand gangs held up everything for more than a second."""
    ask = """
import gc
from muster.process.lifecycle import tune_gc
there = [[] for _ in range(100_000)]
tune_gc()
looks = [one["collections"] for one in gc.get_stats()]
came = [[] for _ in range(300_000)]
later = [one["collections"] for one in gc.get_stats()]
print(later[0] - looks[0], later[1:] == looks[1:], gc.get_freeze_count() > 380_000, len(gc.get_objects()) < 40_000)
class Ring: pass
def ring():
    one = Ring()
    one.itself = one
for _ in range(100_000):
    ring()
print(sum(isinstance(one, Ring) for one in gc.get_objects()) < 40_000, gc.get_freeze_count() < 500_000)
"""
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=PATIENCE)
    looks, *facts = said.stdout.split()
    assert 10 <= int(looks) <= 20
    assert facts == ["True"] * 5
