"""Single files of npm packages, kept in the cache: fetched by the machine's own npm, and checked by their checksum.

Nothing is installed, and no script of a package is run.
"""

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hack.testbed.errors import TestbedError
from hack.testbed.paths import cache_root, locked, write_atomically

_SECONDS = 300


@dataclass(frozen=True)
class Packaged:
    """A file of a package: `name@version`, the package's SHA-512 as the registry states it, the path inside."""

    package: str
    sha512: str
    path: str

    def ensured(self, progress: Callable[[str], None]) -> Path:
        """Return the file; its package is downloaded where it is not there yet. Raises TestbedError."""
        folder = cache_root() / "npm" / hashlib.sha256(self.sha512.encode()).hexdigest()[:16]
        file = folder / Path(self.path).name
        with locked(cache_root() / "npm.lock"):
            if not file.exists():
                progress(f"fetching {self.package} by npm")
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(file, self._fetched())
        return file

    def _fetched(self) -> str:
        npm = shutil.which("npm")
        if npm is None:
            raise TestbedError(f"npm is needed, to fetch {self.package}: install it")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [npm, "pack", "--silent", "--ignore-scripts", f"--pack-destination={folder}", self.package],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            packed = next(Path(folder).glob("*.tgz"), None)
            if done.returncode or packed is None:
                raise TestbedError(f"npm cannot fetch {self.package}: {done.stderr[-500:]}")
            digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
            if digest != self.sha512:
                raise TestbedError(f"{self.package} has the checksum {digest}, and {self.sha512} is expected")
            with tarfile.open(packed) as archive:
                try:
                    member = archive.extractfile(f"package/{self.path}")
                except KeyError:
                    member = None
                if member is None:
                    raise TestbedError(f"{self.package} has no {self.path}")
                return member.read().decode()


MERMAID = Packaged(
    "mermaid@12.3.0",
    "4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw==",
    "dist/mermaid.min.js",
)
"""Draws the diagrams of the documents in the browser."""
