"""docs/performance.md shows what the benchmarks print and plot, where that is the same in every run."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hack.bench.drain.model import report as drains
from hack.bench.siblings import plot, report, simulated

# Gangs a second, and parts of a hundred.
_ROUNDING = 2
_DOCS = Path(__file__).parents[2] / "docs"


def test_the_day_of_twenty_teams_is_what_the_simulation_makes_of_it() -> None:
    """Numbers and plot; `MUSTER_REWRITE=1` writes the plot."""
    days = simulated()
    picture = _DOCS / "images" / "siblings.svg"
    if os.environ.get("MUSTER_REWRITE"):
        picture.write_text(plot(days))
    assert picture.read_text() == plot(days), "run this test with MUSTER_REWRITE=1"
    assert "\n".join(report(days)) in (_DOCS / "performance.md").read_text()


def test_drains_are_as_quick_as_the_model_makes_them() -> None:
    """The calls exactly, the rates but for their rounding: how the work is sliced may move a call."""
    text = (_DOCS / "performance.md").read_text()
    title, *rows = drains()
    start = text.index(title)
    said = text[start:].splitlines()[1 : 1 + len(rows)]
    for row, of_document in zip(rows, said, strict=True):
        (where, rates, calls), (there, stated, asked) = map(_parts, (row, of_document))
        assert (where, calls) == (there, asked)
        assert all(abs(one - other) <= _ROUNDING for one, other in zip(rates, stated, strict=True)), row


def _parts(row: str) -> tuple[str, list[int], str]:
    found = re.fullmatch(r"(.{35}) +(\d+) +(\d+) +(\d+)%   (.*)", row)
    assert found is not None, row
    return found[1], [int(found[number]) for number in (2, 3, 4)], found[5]
