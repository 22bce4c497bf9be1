"""The arguments of the functions that read a cluster: what they take, and what is refused before anything is asked."""

from pathlib import Path

import pytest

import muster
from tests.support.cli.connections import kubeconfig, silent_port

NAN = float("nan")


@pytest.mark.parametrize("seconds", [-1, NAN, "5", True])
def test_a_timeout_that_is_no_time_is_named(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"timeout: .* is neither a number of seconds, 0 or more, nor None"):
        muster.wait("raycluster/demo", timeout=seconds, kubeconfig="no-such")


@pytest.mark.parametrize("seconds", [0, -1, NAN, "2", None])
def test_an_interval_that_is_no_time_is_named(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"interval: .* is not a number of seconds above 0"):
        muster.wait("raycluster/demo", interval=seconds, kubeconfig="no-such")


def test_a_kubeconfig_may_be_a_path(tmp_path: Path) -> None:
    with pytest.raises(muster.ClusterError, match=r"config: no such file"):
        muster.queues(kubeconfig=tmp_path / "config")


def test_a_slow_connection_may_have_more_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the command, by the variable that its error names."""
    config = tmp_path / "config"
    monkeypatch.setenv("MUSTER_CONNECT_TIMEOUT", "0.05")
    with silent_port() as port:
        config.write_text(kubeconfig(port))
        with pytest.raises(muster.ClusterError, match=r"within 0\.05 s; .* set MUSTER_CONNECT_TIMEOUT"):
            muster.queues(kubeconfig=config)
    monkeypatch.setenv("MUSTER_CONNECT_TIMEOUT", "soon")
    with pytest.raises(muster.ClusterError, match=r"MUSTER_CONNECT_TIMEOUT: 'soon' is not"):
        muster.queues(kubeconfig=config)
