"""Commands that ask a cluster which nobody serves: each tries for ten seconds, and says so in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.manifests.applied import ray_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["COMMANDS", "asking"]

# Nobody listens at port 1 of the loopback.
_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: gone, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: nobody, user: {token: none}}]
contexts: [{name: gone, context: {cluster: gone, user: nobody}}]
current-context: gone
"""
COMMANDS = ("plan", "audit", "doctor")


@contextmanager
def asking(folder: Path) -> Iterator[Mapping[str, subprocess.Popen[str]]]:
    """Run them side by side."""
    (folder / "config").write_text(_KUBECONFIG)
    (folder / "cluster.json").write_text(json.dumps(ray_cluster("c").manifest()))
    more = {"plan": ("--cluster", f"--filename={folder}/cluster.json")}
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "muster.cli", name, f"--kubeconfig={folder}/config", *more.get(name, ())],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in COMMANDS
    }
    yield running
    for process in running.values():
        process.kill()
        process.communicate()
