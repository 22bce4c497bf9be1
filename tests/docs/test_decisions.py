"""docs/design-notes.md: each section is a decision with a status, a date, a reason and a consequence."""

import re
from datetime import date
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "design-notes.md").read_text()
_SECTIONS = [section.split("\n", 3) for section in re.split(r"^## ", _PAGE, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize("section", _SECTIONS, ids=lambda section: section[0])
def test_a_decision_has_a_date_a_reason_and_a_consequence(section: list[str]) -> None:
    heading, blank, status, text = section
    accepted = re.fullmatch(r"Accepted, (\d{4}-\d\d-\d\d)\.", status)
    assert accepted, f'"{heading}" begins with {status!r}: write "Accepted, YEAR-MONTH-DAY." there'
    assert not blank
    assert date.fromisoformat(accepted[1]).isoformat() == accepted[1]
    assert re.findall(r"^- \*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Decision", "Reason", "Consequence"]


def test_the_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"`([\w/]+\.py)`", _PAGE)
    assert len(named) > 30
    assert [name for name in named if not (_ROOT / name).exists()] == []
