"""docs/seeds.md: what the tests of the stories saw, beside what the guides show, and why the two differ.

Every test of a story ends with `told`. It writes nothing, but fails where the committed page says something else than
what the test saw; MUSTER_REWRITE=1 puts the test's own section into the page instead.
"""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GATED", "LEDGER", "NO_PODS", "PAGE", "Point", "told"]

PAGE = Path(__file__).parents[3] / "docs" / "seeds.md"

GATED = "muster's gate holds them, so that no scheduler looks at them before the whole gang may start"
"""Why pods that wait are shown as SchedulingGated, and not as Pending."""

LEDGER = (
    "muster decides by its own ledger of the queue, in which gangs count that Volcano does not see behind their gates, "
    "and says with numbers what is missing, where its user looks"
)
"""Why the reason for waiting stands elsewhere."""

NO_PODS = (
    "with its gang flag the Training operator makes no pods before Volcano has enqueued the PodGroup; without it they "
    f"are made, and {GATED}"
)
"""Why a Kubeflow job that waits has pods."""

_SECTION = re.compile(r"^## (?P<title>.+)\n(?:(?!## ).*\n)*", re.MULTILINE)
_SAME = "the same"
_WIDTH = 120


@dataclass(frozen=True)
class Point:
    """One thing to look at: what the guide shows, what the test saw, and why that is not the same (if it is not)."""

    what: str
    guide: str
    seen: str
    why: str = ""

    @property
    def row(self) -> str:
        """The row of the table; raises AssertionError for a difference without a reason, and the other way round."""
        if self.seen == self.guide:
            assert not self.why, f"{self.what}: as in the guide, {self.seen!r}; nothing is left to explain"
            return f"| {self.what} | {self.guide} | {_SAME} | |\n"
        assert self.why, f"{self.what}: the guide shows {self.guide!r}, seen was {self.seen!r}; say why"
        return f"| {self.what} | {self.guide} | {self.seen} | {self.why} |\n"


def told(title: str, about: str, *points: Point) -> None:
    """Compare what this test saw with its section of docs/seeds.md; `title` begins with the number of the story."""
    # pytest's own word for the test that runs: `file::name[parameters] (call)`.
    test = re.sub(r"(\[.*\])? \(\w+\)$", "", os.environ["PYTEST_CURRENT_TEST"])
    rows = "".join(point.row for point in points)
    text = "\n\n".join(
        textwrap.fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)
        for paragraph in about.split("\n\n")
    )
    section = (
        f"## {title}\n\n{text}\n\n| | the guide | with muster | why |\n|---|---|---|---|\n{rows}\nTest: `{test}`\n\n"
    )
    if os.environ.get("MUSTER_REWRITE"):
        _put(title, section)
    committed = {found["title"]: found[0] for found in _SECTION.finditer(PAGE.read_text() + "\n")}
    assert committed.get(title) == section, (
        f"docs/seeds.md says something else of {title!r}: see what changed with MUSTER_REWRITE=1 pytest {test}"
    )


def _put(title: str, section: str) -> None:
    """Put a section where it belongs by its title, in place of the one that it had."""
    text = PAGE.read_text() + "\n"
    sections = {found["title"]: found[0] for found in _SECTION.finditer(text)} | {title: section}
    head = text[: found.start()] if (found := _SECTION.search(text)) else text
    told_by_all = "".join(sections[name] for name in sorted(sections))
    PAGE.write_text(f"{head.rstrip()}\n\n{told_by_all.rstrip()}\n")
