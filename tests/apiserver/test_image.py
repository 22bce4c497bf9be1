"""The image's two processes against a real apiserver, as a kubelet would run them: become ready, and end in order."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from hack.testbed import wait_for
from hack.testbed.api import answers
from hack.testbed.ports import free_port
from tests.apiserver.desk import PATIENCE

if TYPE_CHECKING:
    from hack.testbed import Testbed
    from hack.testbed.muster import MusterInstall
    from tests.image_fixtures import Container


@dataclass(frozen=True, slots=True)
class Mounted:
    """What a kubelet mounts for a ServiceAccount, and the variables that lead to the apiserver."""

    folder: Path
    environment: dict[str, str]


def mounted(kubeconfig: Path, folder: Path, namespace: str, testbed: Testbed) -> Mounted:
    """The same credentials as those of a kubeconfig."""
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    for name, text in (("token", token), ("namespace", namespace), ("ca.crt", testbed.ca_file.read_text())):
        (folder / name).write_text(text)
        (folder / name).chmod(0o444)
    folder.chmod(0o755)
    host, _, port = testbed.server.removeprefix("https://").partition(":")
    return Mounted(folder, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port})


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_images_process_becomes_ready_and_ends_in_order(
    component: str, container: Container, bare: Testbed, webhook: MusterInstall, tmp_path: Path
) -> None:
    """With a read-only root, as nobody, and the token of its ServiceAccount where pods have it."""
    program = webhook.programs[component]
    pod = mounted(program.kubeconfig, tmp_path, webhook.namespace, bare)
    health = free_port()
    arguments = [*program.arguments, f"--health-port={health}", "--health-bind-address=127.0.0.1"]
    if component == "webhook":
        arguments += ["--bind-address=127.0.0.1", f"--port={free_port()}"]
    name = f"image-{component}"
    variables = {key: value.replace("<pod name>", name) for key, value in program.environment.items()}
    started = time.monotonic()
    process = bare.spawn(
        name,
        container.command(f"muster-{component}", *arguments, secrets=pod.folder),
        env={**container.outside(), **variables, **pod.environment},
    )
    try:
        url = f"http://127.0.0.1:{health}/readyz"
        wait_for(f"{name} to be ready", lambda: not process.alive() or answers(url, bare.ca_file), PATIENCE)
        assert process.alive(), process.log.read_text()
        # Shown with -s; on a busy machine it says nothing.
        seconds = time.monotonic() - started
        sys.stdout.write(f"{name}: ready {seconds:.2f} s after its start, {cpu_seconds(process.pid):.2f} s of CPU\n")
        process.stop(grace=PATIENCE)
        assert "Traceback" not in process.log.read_text()
    finally:
        process.kill()
