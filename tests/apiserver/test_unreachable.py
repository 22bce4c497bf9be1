"""A cluster that cannot be reached: every command that asks one says so in one line, and ends with 2."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.manifests.workloads import ray_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Nobody listens there.
_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: gone, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: nobody, user: {token: none}}]
contexts: [{name: gone, context: {cluster: gone, user: nobody}}]
current-context: gone
"""
_SAID = {
    "plan": r"muster plan: cannot list queues[^\n]*Unreachable: [^\n]*\n",
    "audit": r"muster audit: [^\n]*Unreachable[^\n]*\n",
    "doctor": r"muster doctor: [^\n]*Unreachable[^\n]*\n",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """The commands, side by side: each tries for some seconds."""
    folder: Path = tmp_path_factory.mktemp("unreachable")
    (folder / "config").write_text(_KUBECONFIG)
    (folder / "cluster.yaml").write_text(str(ray_cluster("c").manifest()))
    more = {"plan": ("--cluster", f"-f{folder}/cluster.yaml")}
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "muster.cli", name, f"--kubeconfig={folder}/config", *more.get(name, ())],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in _SAID
    }
    yield running
    for process in running.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("command", _SAID)
def test_said_in_one_line(answers: dict[str, subprocess.Popen[str]], command: str) -> None:
    out, err = answers[command].communicate(timeout=100)
    assert (answers[command].returncode, out) == (2, "")
    assert re.fullmatch(_SAID[command], err), err
