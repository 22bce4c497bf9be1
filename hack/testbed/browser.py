"""The browser of `tests/browser`, and axe-core, which looks for what keeps people from reading a page.

Debian's Chromium and its driver are unpacked into the cache, as a node's programs are; nothing is installed. axe-core
comes from npm's registry, by the machine's own npm, and is what its checksum says.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.testbed.debian import Debian
from hack.testbed.errors import TestbedError
from hack.testbed.paths import cache_root, locked, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Browser", "axe"]

_AXE = "axe-core@4.14.1"
_AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_NPM_SECONDS = 300
# The same letters on every machine, whatever else it has.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
<dir>{own}</dir>
<dir>/usr/share/fonts/truetype/dejavu</dir>
<cachedir>{cache}</cachedir>
<match target="pattern"><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
</fontconfig>
"""


@dataclass(frozen=True)
class Browser:
    """Chromium and its driver, as they are found on this machine."""

    program: Path
    driver: Path
    environment: dict[str, str]

    @classmethod
    def ensured(cls, progress: Callable[[str], None]) -> Browser:
        """Return the browser; it is downloaded where it is not there yet. Raises TestbedError."""
        debian = Debian(("chromium", "chromium-driver", "fonts-dejavu-core"))
        debian.ensure(progress)
        folders = {found.parent for found in debian.root.glob("usr/lib/*-linux-gnu/**/*.so*")}
        fonts = debian.root / "fonts.conf"
        own, cache = debian.root / "usr/share/fonts", debian.root / "font-cache"
        write_atomically(fonts, _FONTS.format(own=own, cache=cache))
        # Debian's own `chromium` is a script that begins at the root of the file system.
        unpacked = debian.root / "usr/lib/chromium/chromium"
        return cls(
            unpacked if unpacked.exists() else debian.program("chromium"),
            debian.program("chromedriver"),
            {
                "PATH": debian.path,
                "FONTCONFIG_FILE": str(fonts),
                "LD_LIBRARY_PATH": ":".join(map(str, sorted(folders))),
            },
        )


def axe(progress: Callable[[str], None]) -> str:
    """Return the source of axe-core; it is downloaded where it is not there yet. Raises TestbedError."""
    folder = cache_root() / "npm" / hashlib.sha256(_AXE_SHA512.encode()).hexdigest()[:16]
    script = folder / "axe.min.js"
    with locked(cache_root() / "npm.lock"):
        if not script.exists():
            progress(f"fetching {_AXE} by npm")
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(script, _fetched())
    return script.read_text()


def _fetched() -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise TestbedError(f"npm is needed, to fetch {_AXE}: install it")
    with tempfile.TemporaryDirectory() as folder:
        argv = [npm, "pack", "--silent", "--ignore-scripts", f"--pack-destination={folder}", _AXE]
        done = subprocess.run(
            argv,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_NPM_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        packed = next(Path(folder).glob("*.tgz"), None)
        if done.returncode or packed is None:
            raise TestbedError(f"npm cannot fetch {_AXE}: {done.stderr[-500:]}")
        digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if digest != _AXE_SHA512:
            raise TestbedError(f"{_AXE} has the checksum {digest}, and {_AXE_SHA512} is expected")
        with tarfile.open(packed) as archive:
            member = archive.extractfile("package/axe.min.js")
            if member is None:
                raise TestbedError(f"{_AXE} has no axe.min.js")
            return member.read().decode()
