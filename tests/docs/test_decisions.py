"""docs/design-notes.md: each decision has a status and a date, and what supersedes it is there."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

_PAGE = (Path(__file__).parents[2] / "docs" / "design-notes.md").read_text()
_SECTIONS = [section.split("\n", 3) for section in re.split(r"^## ", _PAGE, flags=re.MULTILINE)[1:]]
_STATUS = re.compile(r"(?:Accepted|Superseded by \[[^]]+\]\(#(?P<later>[\w-]+)\)), (?P<day>\d{4}-\d\d-\d\d)\.")


def _anchor(heading: str) -> str:
    """As GitHub makes it: lower case, spaces as hyphens, without punctuation."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _status(section: list[str]) -> re.Match[str]:
    heading, blank, status, _ = section
    found = _STATUS.fullmatch(status)
    assert found, f'"{heading}" begins with {status!r}: write "Accepted, YEAR-MONTH-DAY." there'
    assert not blank
    return found


@pytest.mark.parametrize("section", _SECTIONS, ids=lambda section: section[0])
def test_a_decision_has_a_status_and_a_date(section: list[str]) -> None:
    day = _status(section)["day"]
    assert date.fromisoformat(day).isoformat() == day


def test_what_supersedes_a_decision_is_there_and_not_older() -> None:
    days = {_anchor(section[0]): date.fromisoformat(_status(section)["day"]) for section in _SECTIONS}
    later = {_anchor(section[0]): _status(section)["later"] for section in _SECTIONS}
    superseded = {anchor: by for anchor, by in later.items() if by}
    assert superseded
    assert all(days[by] >= days[anchor] for anchor, by in superseded.items())
