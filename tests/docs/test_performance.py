"""docs/performance.md shows what the benchmarks print and plot, where that is the same in every run."""

from __future__ import annotations

import os
from pathlib import Path

from hack.bench.siblings import plot, report, simulated

_DOCS = Path(__file__).parents[2] / "docs"


def test_the_day_of_twenty_teams_is_what_the_simulation_makes_of_it() -> None:
    """Numbers and plot; `MUSTER_REWRITE=1` writes the plot."""
    days = simulated()
    picture = _DOCS / "images" / "siblings.svg"
    if os.environ.get("MUSTER_REWRITE"):
        picture.write_text(plot(days))
    assert picture.read_text() == plot(days), "run this test with MUSTER_REWRITE=1"
    assert "\n".join(report(days)) in (_DOCS / "performance.md").read_text()
