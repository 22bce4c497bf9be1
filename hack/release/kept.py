"""Released versions, kept for the tests of upgrades: the chart as it was published, muster's wheel, its requirements.

The image of a kept version is built again of its wheel and its locked requirements, on Debian's packages of today: the
code is the released one, byte for byte, and takes no 30 MB of each version in the repository.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from hack.chart import CHART
from hack.image.build import CHECKOUT, Built, Source, build
from hack.image.errors import ImageError
from hack.image.wheels import muster_wheel
from hack.release.programs import Programs, packed_chart
from muster import __version__

RELEASES = CHECKOUT / "tests" / "releases"
"""A folder for each version that was released."""
_REQUIREMENTS = Path("requirements") / "runtime.txt"


@dataclass(frozen=True, slots=True)
class Kept:
    """A version, its packed chart, its wheel, and the folder with its locked requirements."""

    version: str
    chart: Path
    wheel: Path
    folder: Path

    def image(self, name: str) -> Built:
        """Build its image, known as `name:VERSION`."""
        return build(Source(self.folder, f"v{self.version}", 0, self.wheel), name=name, progress=print)


def kept(releases: Path = RELEASES) -> list[Kept]:
    """Return the versions that are kept, in order."""
    folders = [folder for folder in releases.glob("*") if folder.is_dir()]
    found = []
    for folder in sorted(folders, key=lambda one: [int(part) for part in one.name.split(".")]):
        (wheel,) = folder.glob("*.whl")
        found.append(Kept(folder.name, folder / f"muster-{folder.name}.tgz", wheel, folder))
    return found


def keep(tools: Programs, releases: Path = RELEASES) -> Path:
    """Keep this checkout's version in a folder of its own below `releases`, and return the folder.

    Raises ImageError where it is kept already: what was released does not change.
    """
    folder = releases / __version__
    if folder.exists():
        raise ImageError(f"{folder} is there already: a version is released once; remove it if this one never was")
    packed_chart(CHART, folder, tools)
    muster_wheel(CHECKOUT, folder)
    (folder / _REQUIREMENTS).parent.mkdir()
    shutil.copyfile(CHECKOUT / _REQUIREMENTS, folder / _REQUIREMENTS)
    return folder
