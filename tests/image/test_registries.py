"""The archive and the layout, read by a tool that is not ours and pushed to a real registry, as docs/image.md says."""

import io
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.image.build import Built
from hack.release.__main__ import main
from hack.testbed import wait_for
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS
from tests.support.cluster.scene import PATIENCE
from tests.support.pages.blocks import block

_LAST_LAYER = 2_200_000


@pytest.fixture(scope="module")
def crane() -> Path:
    return binaries([PARTS["crane"]], print)["crane"]


@pytest.fixture(scope="module")
def dist(image: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make image` leaves in dist/image."""
    folder = tmp_path_factory.mktemp("dist")
    image.write(folder)
    return folder


@pytest.fixture(scope="module")
def registry(crane: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry on this machine."""
    log = tmp_path_factory.mktemp("registry") / "log"
    with log.open("wb") as output:
        served: list[str | Path] = [crane, "registry", "serve", "--address", "127.0.0.1:0"]
        with subprocess.Popen(served, stdout=output, stderr=subprocess.STDOUT) as process:
            try:
                pattern = re.compile(r"serving on port (\d+)")
                wait_for("the registry", lambda: pattern.search(log.read_text()), PATIENCE)
                port = pattern.search(log.read_text())
                assert port
                yield f"127.0.0.1:{port[1]}"
            finally:
                process.terminate()


def run(*command: str | Path, cwd: Path) -> bytes:
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False, timeout=3 * PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_the_documented_push_brings_the_very_digest(crane: Path, dist: Path, registry: str, image: Built) -> None:
    shown = shlex.split(block("docs/image.md", "crane push"))
    words = [word.replace("dist/image", str(dist)).replace("REGISTRY", registry) for word in shown]
    run(crane, *words[1:], cwd=dist)
    assert run(crane, "digest", words[-1], cwd=dist).decode().strip() == image.image.digest
    run(crane, "validate", "--remote", words[-1], cwd=dist)


def test_make_push_brings_the_very_digest(
    crane: Path, dist: Path, registry: str, image: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["push", f"{registry}/team", "--layout", str(dist / "nothing")]) == 1
    assert "run make image first" in capsys.readouterr().err
    assert main(["push", f"{registry}/team", "--layout", str(dist / "oci")]) == 0
    _, name = capsys.readouterr().out.split("pushed ")
    assert run(crane, "digest", name.strip(), cwd=dist).decode().strip() == image.image.digest


def test_the_archive_is_one_that_docker_loads(crane: Path, dist: Path, registry: str, image: Built) -> None:
    """Every digest in it is recomputed, and its files are the image's, last layer last."""
    (archive,) = dist.glob("muster-*.tar")
    run(crane, "validate", "--tarball", archive, cwd=dist)
    name = f"{registry}/from-archive:1"
    run(crane, "push", archive, name, cwd=dist)
    with tarfile.open(fileobj=io.BytesIO(run(crane, "export", name, "-", cwd=dist))) as exported:
        files = {member.name: exported.extractfile(member) for member in exported if member.isreg()}
        read = {name: content.read() for name, content in files.items() if content}
    assert read == dict(image_files(image))


def image_files(image: Built) -> Iterator[tuple[str, bytes]]:
    for layer in image.layers:
        yield from layer.tree().files()


def test_an_upgrade_ships_only_the_last_layer(image: Built) -> None:
    """The layers below have nothing of muster in them, and the last is as small as docs/image.md says."""
    for layer in image.layers[:2]:
        assert not any("/muster" in path for path in layer.tree().entries)
    assert len(image.layers[2].data) < _LAST_LAYER
