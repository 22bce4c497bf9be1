"""The chart as one file, packed by helm: the same bytes for the same chart."""

import os
import shutil
import tempfile
from pathlib import Path

from hack.image.tree import EPOCH
from hack.release.programs import Programs


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
