"""The image as it was built, and its files in a folder, whose programs are run as a container runtime would."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from hack.image.build import CHECKOUT, Built, build, source
from hack.image.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Container", "container", "image", "image_tree"]

# As a container of the chart: a mount namespace of its own, a root that cannot be written, /tmp in memory, no
# privileges to gain, and nobody's user. $1 is the root, $2 a folder to see at $3, the rest the program.
_ENTER = """
set -e
root=$1; shown=$2; at=$3; shift 3
mount --bind "$root" "$root"
mount -t proc -o ro proc "$root/proc"
mount -t tmpfs -o size=16m,mode=1777 tmpfs "$root/tmp"
if [ -n "$shown" ]; then mount --bind -o ro "$shown" "$root/$at"; fi
mount -o remount,ro,bind "$root"
exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" "$@"
"""
SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Container:
    """The image's files in a folder."""

    root: Path
    environment: Mapping[str, str]

    def command(self, *program: str, secrets: Path | None = None) -> list[str]:
        """Return what runs a program in it, with `secrets` where pods find their ServiceAccount."""
        where = (str(secrets), SECRETS) if secrets else ("", "")
        enter = ("unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", _ENTER)
        return [*enter, "enter", str(self.root), *where, *program]

    def outside(self) -> dict[str, str]:
        """Return the image's variables, with the PATH that the programs need that enter it, too."""
        return {**self.environment, "PATH": f"{self.environment['PATH']}:/usr/sbin:/sbin:/bin"}

    def run(self, *program: str, text: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program in it to its end."""
        done = subprocess.run(
            self.command(*program),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=self.outside(),
        )
        assert not check or done.returncode == 0, done.stderr
        return done


@pytest.fixture(scope="session")
def image() -> Built:
    """The image of this checkout."""
    return build(source(CHECKOUT), name="muster", progress=print)


@pytest.fixture(scope="session")
def image_tree(image: Built) -> Tree:
    """All its files, layer over layer."""
    tree = Tree()
    for one in image.layers:
        tree.entries.update(one.tree().entries)
    return tree


@pytest.fixture(scope="session")
def container(image: Built, image_tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Container:
    """The image on disk. Mounting and entering it needs root."""
    if os.geteuid() != 0:
        pytest.fail("running the image needs root, for mount and chroot: run these tests as root")
    root = tmp_path_factory.mktemp("image") / "root"
    root.mkdir()
    root.parent.chmod(0o755)
    image_tree.write(root)
    # Container runtimes make the places of their mounts, too.
    for place in ("proc", SECRETS):
        (root / place).mkdir(parents=True, exist_ok=True)
    variables = dict(one.split("=", 1) for one in image.image.config["config"]["Env"])
    return Container(root, variables)
