"""`helm lint` of the chart: `python -m hack.chart`, as installed and with every part that is off by default.

helm is the testbed's: the first time it is built. The rendered chart is tested by tests/chart.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.testbed.build import binaries
from hack.testbed.parts import PARTS

CHART = Path(__file__).parents[1] / "charts" / "muster"
SETTINGS: Mapping[str, Sequence[str]] = {
    "as installed": (),
    "everything on": ("networkPolicy", "podMonitor", "prometheusRule", "grafanaDashboard", "certManager"),
}
"""The parts that are enabled, by a name for the whole."""


def complaints(chart: Path, parts: Sequence[str]) -> str:
    """Return helm's complaints about the chart with these parts enabled; empty if there are none."""
    settings = [f"--set={part}.enabled=true" for part in parts]
    done = subprocess.run(
        [binaries([PARTS["helm"]], print)["helm"], "lint", "--strict", chart, "--set=image.repository=r", *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode else ""


def main() -> None:
    """Lint the chart with all settings and exit, with 1 where helm complains."""
    found = [f"{name}: {found}" for name, parts in SETTINGS.items() if (found := complaints(CHART, parts))]
    print("\n".join(found) or f"helm finds no fault in the chart ({', '.join(SETTINGS)})")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
