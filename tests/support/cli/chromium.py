"""Chromium and its driver for `tests/browser`, and axe-core: kept in the cache, never installed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hack.testbed.debian import Debian
from hack.testbed.npm import Packaged
from hack.testbed.paths import write_atomically

AXE = Packaged(
    "axe-core@4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    "axe.min.js",
)
"""axe-core, which finds barriers to reading a page."""
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
    def ensured(cls, progress: Callable[[str], None]) -> Self:
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
