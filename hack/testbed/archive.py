"""Images without a registry: packed as an archive that containerd imports, and imported."""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hack.testbed.debian import Debian
from hack.testbed.enclosure import enter_argv
from hack.testbed.errors import CommandError
from hack.testbed.site import Site
from hack.testbed.waiting import PATIENCE

PAUSE = "testbed.muster.dev/pause:1"


def pack(archive: Path, name: str, layer: bytes, config: Mapping[str, Any]) -> None:
    """Write an archive, as `docker save` would, of an image of one layer (a tar file) with this configuration."""
    digest = hashlib.sha256(layer).hexdigest()
    image = json.dumps(
        {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    image_name = f"{hashlib.sha256(image).hexdigest()}.json"
    manifest = json.dumps([{"Config": image_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]).encode()
    with tarfile.open(archive, "w") as tar:
        for path, content in ((image_name, image), (f"{digest}/layer.tar", layer), ("manifest.json", manifest)):
            _add(tar, path, content, 0o644)


def pause_archive(program: Path, archive: Path) -> None:
    """Pack the image of sandboxes: one static program."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        _add(tar, "pause", program.read_bytes(), 0o755)
    pack(archive, PAUSE, layer.getvalue(), {"Entrypoint": ["/pause"], "User": "65535:65535"})


def import_image(site: Site, archive: Path) -> None:
    """Give containerd the images of an archive (docker-archive or OCI). Raises CommandError."""
    debian = Debian()
    argv = ["ctr", "--namespace=k8s.io", "images", "import", str(archive)]
    inside = [*enter_argv(site, wholly=True), str(debian.program("ctr")), *argv[1:]]
    try:
        subprocess.run(inside, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except subprocess.TimeoutExpired as error:
        raise CommandError(argv, None, f"after {PATIENCE:g} s") from error
    except subprocess.CalledProcessError as error:
        raise CommandError(argv, error.returncode, error.stderr) from error


def _add(tar: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
