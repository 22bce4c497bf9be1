"""docs/backends.md shows which story runs on which scheduler, and names no test that is not there."""

import os
import re
from pathlib import Path

import pytest

from tests.support.pages.backends import BEGIN, END, ROWS, table

_CHECKOUT = Path(__file__).parents[2]
_PAGE = _CHECKOUT / "docs" / "backends.md"


def test_the_page_has_the_table() -> None:
    """`MUSTER_REWRITE=1` writes it."""
    before, _, rest = _PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = before + table() + after
    if os.environ.get("MUSTER_REWRITE"):
        _PAGE.write_text(expected)
    assert _PAGE.read_text() == expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.story)
def test_a_story_is_shown_by_tests_that_there_are(row: object) -> None:
    for cell in getattr(row, "cells"):  # noqa: B009 - the parameter is any object to pytest
        if "::" in cell:
            file, _, test = cell.rpartition(" ")[2].partition("::")
            name = test.partition("[")[0]
            text = (_CHECKOUT / "tests" / file).read_text()
            assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), cell
