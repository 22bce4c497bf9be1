"""The image's programs, run as a container runtime would, without one; it takes root."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.image.build import Built
from hack.image.errors import ImageError
from hack.image.tree import Tree
from hack.testbed.waiting import PATIENCE

# As a container of the chart: a mount namespace of its own, a root that cannot be written, /tmp in memory, no
# privileges to gain, and an unprivileged user. $1 is the root, $2 a folder to see at $3, the rest the program.
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
_SECRETS = "var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class Container:
    """The image's files in a folder, and its variables."""

    root: Path
    environment: Mapping[str, str]

    def command(self, *program: str, secrets: Path | None = None) -> list[str]:
        """Return what runs a program in it, with `secrets` where pods find their ServiceAccount."""
        where = (str(secrets), _SECRETS) if secrets else ("", "")
        enter = ("unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", _ENTER)
        return [*enter, "enter", str(self.root), *where, *program]

    def outside(self) -> dict[str, str]:
        """Return the image's variables, with the PATH that the programs need that enter it, too."""
        return {**self.environment, "PATH": f"{self.environment['PATH']}:/usr/sbin:/sbin:/bin"}

    def run(self, *program: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program in it to its end, with `text` as its input. Raises ImageError when it fails."""
        command = self.command(*program)
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE, env=self.outside()
        )
        if done.returncode:
            raise ImageError(f"{' '.join(program)} failed in the image ({done.returncode}): {done.stderr.strip()}")
        return done


def files(image: Built) -> Tree:
    """Return all files of an image, layer over layer."""
    tree = Tree()
    for one in image.layers:
        tree.entries.update(one.tree().entries)
    return tree


def unpacked(image: Built, tree: Tree, root: Path) -> Container:
    """Write an image's `files` into a folder that is not there yet, and below one that all users may enter."""
    root.mkdir()
    tree.write(root)
    # Container runtimes make the places of their mounts, too.
    for place in ("proc", _SECRETS):
        (root / place).mkdir(parents=True, exist_ok=True)
    return Container(root, dict(one.split("=", 1) for one in image.image.config["config"]["Env"]))
