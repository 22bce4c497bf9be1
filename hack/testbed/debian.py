"""Programs that Debian has, a node's above all: taken from its packages into the cache, never installed."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from hack.apt import apt
from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.paths import cache_root, locked

_NODE = ("containerd", "runc", "containernetworking-plugins", "nftables")
_RELEASE = Path("/etc/os-release")


class Debian:
    """A folder with what the machine lacks of these packages, dependencies too; what it has is used where it is."""

    def __init__(self, packages: tuple[str, ...] = _NODE) -> None:
        self._packages = packages
        facts = [*packages, _RELEASE.read_text() if _RELEASE.exists() else ""]
        digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
        self.root = cache_root() / "debian" / digest

    @property
    def path(self) -> str:
        """PATH with these programs first."""
        folders = (*(str(self.root / folder) for folder in ("usr/bin", "usr/sbin")), os.environ.get("PATH", ""))
        return ":".join((*folders, "/usr/sbin", "/usr/bin", "/sbin", "/bin"))

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a process finds these programs and their libraries."""
        libraries = sorted(str(folder.parent) for folder in self.root.glob("usr/lib/*/libnftables.so.1"))
        return {"PATH": self.path} | ({"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {})

    @property
    def cni(self) -> Path:
        """The folder of the CNI plugins."""
        own = self.root / "usr/lib/cni"
        return own if own.exists() else Path("/usr/lib/cni")

    def program(self, name: str) -> Path:
        """Return the path of one program. Raises TestbedError when it is nowhere."""
        found = shutil.which(name, path=self.path)
        if found is None:
            raise TestbedError(f"no {name} in {self.root} or on PATH: remove that folder and start again")
        return Path(found)

    def ensure(self, progress: Callable[[str], None]) -> None:
        """Download and unpack the packages when they are not there yet. Raises TestbedError."""
        if self._finished():
            return
        missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
        if missing:
            raise TestbedError(f"{missing[0]} is needed, to fetch {', '.join(self._packages)}: use Debian or the like")
        with locked(cache_root() / "debian.lock"):
            if not self._finished():
                progress(f"fetching {', '.join(self._packages)} from Debian")
                self._fill()

    def _finished(self) -> bool:
        return (self.root / ".finished").exists()

    def _fill(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        archives, lists = self.root / "archives", self.root / "lists"
        log = cache_root() / "logs" / "debian.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        known, fresh = apt("apt-get", self.root), apt("apt-get", self.root, lists=lists)
        fetch = ["--yes", "--download-only", "--no-install-recommends", "install", *self._packages]
        with log.open("w") as stream:
            # Or new lists, on a machine that has never asked what there is, or long ago.
            done = _call([*known, *fetch], stream) and (
                _call([*fresh, "update"], stream) or _call([*fresh, *fetch], stream)
            )
        if done:
            raise TestbedError(f"apt-get cannot download {', '.join(self._packages)}; {log_tail(log, 4)}")
        for package in sorted(archives.glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, self.root], check=True)
        shutil.rmtree(archives)
        shutil.rmtree(lists)
        (self.root / ".finished").touch()


def _call(command: list[str], log: TextIO) -> int:
    return subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False).returncode
