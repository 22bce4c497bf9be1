"""docs/seeds.md: what the tests of the stories saw, what the guides show, and why the two differ.

Every test of a story ends with `told`. It writes nothing, but fails where the committed page says something else than
what the test saw; MUSTER_REWRITE=1 puts the test's own section into the page instead.
"""

import os
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "seeds.md"

GATED = "muster's gate holds them"
"""Why pods that wait are shown as SchedulingGated, and not as Pending."""

LEDGER = "muster's own ledger decides, and reports with numbers what is missing"
"""Why the reason for waiting is in another place."""

_SECTION = re.compile(r"^## (?P<title>.+)\n(?:(?!## ).*\n)*", re.MULTILINE)
_WIDTH = 120


@dataclass(frozen=True)
class Point:
    """One thing to look at: what the guide shows, what the test saw, and why that is not the same (if it is not)."""

    what: str
    guide: str
    seen: str
    why: str = ""

    @property
    def differs(self) -> bool:
        """True if the test saw something else, which needs a reason `why`. Raises AssertionError."""
        if self.seen == self.guide:
            assert not self.why, f"{self.what}: as in the guide, {self.seen!r}; nothing is left to explain"
        else:
            assert self.why, f"{self.what}: the guide shows {self.guide!r}, seen was {self.seen!r}; say why"
        return self.seen != self.guide

    @property
    def text(self) -> str:
        """A row of the table of differences, or what is as in the guide."""
        if self.differs:
            return f"| {self.what} | {self.guide} | {self.seen} | {self.why} |\n"
        return f"{self.what} ({self.guide})"


def section(title: str, about: str, points: tuple[Point, ...], test: str) -> str:
    """The section of a story."""
    same = "; ".join(point.text for point in points if not point.differs)
    rows = "".join(point.text for point in points if point.differs)
    paragraphs = [*about.split("\n\n"), *([f"As in the guide: {same}."] if same else [])]
    text = "\n\n".join(
        textwrap.fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False) for paragraph in paragraphs
    )
    table = f"| | the guide | with muster | why |\n|---|---|---|---|\n{rows}\n" if rows else ""
    return f"## {title}\n\n{text}\n\n{table}Test: `{test}`\n\n"


def told(title: str, about: str, *points: Point) -> None:
    """Compare what this test saw with its section of docs/seeds.md; `title` begins with the number of the story."""
    # pytest's own word for the test that runs: `file::name[parameters] (call)`.
    test = re.sub(r"(\[.*\])? \(\w+\)$", "", os.environ["PYTEST_CURRENT_TEST"])
    text = section(title, about, points, test)
    if os.environ.get("MUSTER_REWRITE"):
        _put(title, text)
    committed = {found["title"]: found[0] for found in _SECTION.finditer(PAGE.read_text() + "\n")}
    assert committed.get(title) == text, (
        f"docs/seeds.md says something else of {title!r}: see what changed with MUSTER_REWRITE=1 pytest {test}"
    )


def _put(title: str, section: str) -> None:
    """Put a section where it belongs by its title, in place of the one that it had."""
    text = PAGE.read_text() + "\n"
    sections = {found["title"]: found[0] for found in _SECTION.finditer(text)} | {title: section}
    head = text[: found.start()] if (found := _SECTION.search(text)) else text
    told_by_all = "".join(sections[name] for name in sorted(sections))
    PAGE.write_text(f"{head.rstrip()}\n\n{told_by_all.rstrip()}\n")
