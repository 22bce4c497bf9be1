"""What `make publish` brought to a registry, installed from there: helm reads the chart from it, the node the image."""

from pathlib import Path

import pytest

from hack.image.build import CHECKOUT, source
from hack.image.machine import this_machine
from hack.release.programs import programs
from hack.release.provenance import BUILDER
from hack.release.publish import Order, publish
from hack.testbed import Testbed, wait_for
from tests.support.cluster.admission_stream import admitted
from tests.support.cluster.helm_release import WITHIN, Release
from tests.support.cluster.registry import serving, serving_inside
from tests.support.cluster.scene import PATIENCE
from tests.support.pages.blocks import block

# It is published first, and signed.
pytestmark = pytest.mark.long


def test_chart_and_image_come_from_the_registry(
    real: Testbed, absent: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pods run the image that is signed, by its digest: the node has it from nowhere else.

    The registry is on loopback, of this machine for helm and of the node for its containerd.
    """
    tools = programs(print)
    monkeypatch.setenv("COSIGN_PASSWORD", "of a test")
    tools.cosign("generate-key-pair", f"--output-key-prefix={tmp_path / 'cosign'}")
    content = tmp_path / "registry"
    content.mkdir()
    with serving(content) as registry, serving_inside(real, registry):
        where = f"{registry.address}/team"
        key, folder = str(tmp_path / "cosign.key"), tmp_path / "release"
        order = Order(where, key, [this_machine().debian], BUILDER, folder, unfinished=True)
        digest = publish(order, source(CHECKOUT), tools, print).digests["image"]
        _, *words = block("docs/releasing.md", "helm install muster oci://").replace("REGISTRY", where).split()
        flags = (f"--set=image.digest={digest}", "--plain-http", "--wait", WITHIN)
        # Of a value that is set twice the last one counts: the page's own.
        real.helm(words[0], *Release.values, *words[1:], *flags)
        wait_for("gangs to be held", lambda: not admitted(real.api(), gang=True), PATIENCE)
        assert not admitted(real.api(), gang=False)
        pods = [*absent.pods("webhook"), *absent.pods("controller")]
        assert len(pods) == 4
        running = {status["imageID"] for pod in pods for status in pod["status"]["containerStatuses"]}
        assert {name.rpartition("@")[0] for name in running} == {f"{where}/muster"}
        assert absent.helm("uninstall", "--wait", WITHIN).returncode == 0
