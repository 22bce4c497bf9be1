"""The programs that publish, built from their released Go modules as the testbed's are, and how they are called."""

import ipaddress
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.image.errors import ImageError, run
from hack.image.tree import EPOCH
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS

_NAMES = ("crane", "helm", "cosign")
_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Programs:
    """crane pushes images, helm the chart, cosign signs and verifies. Each raises ImageError with their last words."""

    places: dict[str, Path]

    def crane(self, *words: str | Path) -> str:
        """Run crane and return what it prints. It speaks HTTP with loopback addresses by itself."""
        return self._run("crane", *words)

    def login(self, host: str, user: str, password: str) -> None:
        """Log in where docker does, for all three; the password is on no command line. Raises ImageError."""
        argv: list[str | Path] = [self.places["crane"], "auth", "login", host, "--username", user, "--password-stdin"]
        done = subprocess.run(argv, input=password, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if done.returncode:
            raise ImageError(f"no login to {host}: {done.stderr.strip()}")

    def helm(self, *words: str | Path) -> str:
        """Run helm and return what it prints."""
        return self._run("helm", *words)

    def cosign(self, *words: str | Path) -> str:
        """Run cosign and return what it prints; a key's password comes from COSIGN_PASSWORD."""
        return self._run("cosign", *words)

    def _run(self, name: str, *words: str | Path) -> str:
        return run([self.places[name], *words], env=os.environ, seconds=_SECONDS).decode()


def programs(progress: Callable[[str], None], names: Sequence[str] = _NAMES) -> Programs:
    """Return the programs, built where they are not there yet. Raises ImageError."""
    return Programs(binaries([PARTS[name] for name in names], progress))


def is_loopback(registry: str) -> bool:
    """True if a registry is on this machine, where it may speak HTTP; elsewhere it needs TLS."""
    host = registry.partition("/")[0].rpartition(":")[0] or registry.partition("/")[0]
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def packed_chart(chart: Path, output: Path, programs: Programs) -> Path:
    """Pack a chart into a folder and return the file, whose name is helm's own: `muster-VERSION.tgz`."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / chart.name
        shutil.copytree(chart, copy)
        # Files carry the time at which they were written, and the archive says it.
        for path in (copy, *copy.rglob("*")):
            os.utime(path, (EPOCH, EPOCH))
            path.chmod(0o755 if path.is_dir() else 0o644)
        made = Path(folder) / "made"
        programs.helm("package", copy, "--destination", made)
        (packed,) = made.glob("*.tgz")
        output.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copyfile(packed, output / packed.name))
