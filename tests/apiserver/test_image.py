"""The image's two processes against a real apiserver, as a kubelet would run them: become ready, and end in order."""

import pytest

from hack.image.container import Container
from hack.testbed import Testbed, wait_for
from hack.testbed.api import answers
from hack.testbed.from_image import Pod
from hack.testbed.muster import MusterInstall
from tests.support.cluster.desk import PATIENCE


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_images_process_becomes_ready_and_ends_in_order(
    component: str, container: Container, bare: Testbed, webhook: MusterInstall
) -> None:
    """With a read-only root, as nobody, and the token of its ServiceAccount where pods have it."""
    process, url = Pod(container, webhook, component).start()
    try:
        wait_for(f"{component} to be ready", lambda: not process.alive() or answers(url, bare.ca_file), PATIENCE)
        assert process.alive(), process.log.read_text()
        process.stop(grace=PATIENCE)
        assert "Traceback" not in process.log.read_text()
    finally:
        process.kill()
