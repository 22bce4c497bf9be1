"""docs/performance.md shows what the benchmarks print, where that is the same in every run."""

import re
from pathlib import Path

import pytest

from hack.bench.drain import report as drains
from hack.bench.memory import SHAPES, measured
from tests.support.pages.numbers import prose

# Gangs a second, and parts of a hundred.
_ROUNDING = 2
_DOCS = Path(__file__).parents[2] / "docs"


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


def test_the_longest_steps_are_below_what_the_changelog_says() -> None:
    """Of the table, which hack.bench.steps printed: CHANGELOG.md names no step that is longer."""
    text = (_DOCS / "performance.md").read_text()
    table = re.findall(r"^.{50,60} +(\d+\.\d) +(\d+\.\d)$", text[text.index("the longest step in ms") :], re.MULTILINE)
    assert len(table) > 20
    said = re.search(
        r"with 16,000 gangs no step of its event loop took (\d+) ms, with 50,000 none took (\d+) ms",
        prose("CHANGELOG.md"),
    )
    assert said is not None
    for column, most in enumerate(said.groups()):
        assert int(most) - 10 < max(float(row[column]) for row in table) < int(most)


@pytest.mark.parametrize("title", SHAPES)
def test_what_is_kept_of_a_workload_is_what_the_bench_counts(title: str) -> None:
    """The first row of each shape, in kB."""
    row = re.search(
        rf"^{title} +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) ", (_DOCS / "performance.md").read_text(), re.MULTILINE
    )
    assert row is not None
    counted = [size / 1000 for size in measured(SHAPES[title](100_000))]
    # What ran before in the process makes some hundred bytes.
    assert [float(one) for one in row.groups()] == pytest.approx(counted, rel=0.03, abs=0.8)


def _parts(row: str) -> tuple[str, list[int], str]:
    found = re.fullmatch(r"(.{35}) +(\d+) +(\d+) +(\d+)%   (.*)", row)
    assert found is not None, row
    return found[1], [int(found[number]) for number in (2, 3, 4)], found[5]
