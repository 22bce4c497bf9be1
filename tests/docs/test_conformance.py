"""docs/conformance.md is written by tests/conformance; an edit of its words is to be made there."""

from pathlib import Path

from tests.conformance.document import beginning

_PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_what_is_not_of_a_run_is_as_the_tests_have_it() -> None:
    assert _PAGE.read_text().startswith(beginning())
