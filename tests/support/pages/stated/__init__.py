"""Every number that a document states: beside the default that it comes from, or with the reason why none is there.

Whoever writes a number into a document, or changes a default, adds or changes a row here; `tests/docs/test_numbers.py`
compares them. The rows stand in the order of the pages: `operations`, `page`, `guides` (all other pages that users
read), `design` (docs/design-notes.md, CONTRIBUTING.md) and `benches` (hack/bench/README.md).
"""

from __future__ import annotations

from tests.support.pages.stated import benches, design, guides, operations, others, page

__all__ = ["ELSEWHERE", "ROWS"]

ROWS = (*operations.ROWS, *guides.ROWS, *page.ROWS, *design.ROWS, *benches.ROWS)
ELSEWHERE = (*others.ELSEWHERE, *page.ELSEWHERE, *design.ELSEWHERE, *benches.ELSEWHERE)
