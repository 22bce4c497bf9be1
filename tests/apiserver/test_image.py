"""The image's two processes against a real apiserver, as a kubelet would run them: become ready, and end in order."""

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import answers
from hack.testbed.muster import POD_NAME, MusterInstall, service_variables
from hack.testbed.ports import free_port
from hack.testbed.process import Process
from tests.support.cluster.desk import PATIENCE
from tests.support.image.container import Container


def _start(container: Container, installed: MusterInstall, component: str) -> tuple[Process, str]:
    """Start what a kubelet would start of the chart's Deployment; return it with the URL of its readiness."""
    testbed, program, health = installed.testbed, installed.programs[component], free_port()
    arguments = [*program.arguments, f"--health-port={health}", "--health-bind-address=127.0.0.1"]
    if component == "webhook":
        arguments += ["--bind-address=127.0.0.1", f"--port={free_port()}"]
    name = f"image-{component}"
    own = {key: value.replace(POD_NAME, name) for key, value in program.environment.items()}
    environment = {**container.outside(), **own, **service_variables(testbed.server)}
    command = container.command(f"muster-{component}", *arguments, secrets=program.account)
    return testbed.spawn(name, command, env=environment), f"http://127.0.0.1:{health}/readyz"


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_images_process_becomes_ready_and_ends_in_order(
    component: str, container: Container, bare: Testbed, webhook: MusterInstall
) -> None:
    """With a read-only root, as nobody, and the token of its ServiceAccount where pods have it."""
    process, url = _start(container, webhook, component)
    try:
        wait_for(f"{component} to be ready", lambda: not process.alive() or answers(url, bare.ca_file), PATIENCE)
        assert process.alive(), process.log.read_text()
        process.stop(grace=PATIENCE)
        assert "Traceback" not in process.log.read_text()
    finally:
        process.kill()
