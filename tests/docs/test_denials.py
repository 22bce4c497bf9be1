"""docs/denials.md shows every refusal and warning as the programs say them."""

import os
from pathlib import Path

import pytest

from muster.model.findings import Reason
from tests.support.pages.causes import ABOUT
from tests.support.pages.denials import EXAMPLES, page

_PAGE = Path(__file__).parents[2] / "docs" / "denials.md"


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_an_example_that_the_rules_find(reason: Reason) -> None:
    assert reason in EXAMPLES, f"tests/support/pages/denials.py lacks an example of {reason}: add a line to EXAMPLES"
    found = [one for one in EXAMPLES[reason]() if one.reason is reason]
    assert found, f"the example of {reason} in tests/support/pages/denials.py is not found by the rules"
    first = found[0]
    assert first.message.startswith(f"{first.field}: "), "a line begins with its field"
    assert "\n" not in first.message


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_its_cause_in_sentences(reason: Reason) -> None:
    assert reason in ABOUT, f"tests/support/pages/causes.py lacks the cause of {reason}"
    for text in filter(None, ABOUT[reason]):
        assert text.endswith("."), text
        assert "  " not in text


def test_the_page_is_what_the_programs_say() -> None:
    if os.environ.get("MUSTER_REWRITE"):
        _PAGE.write_text(page())
    assert _PAGE.read_text() == page(), (
        "docs/denials.md is out of date: see what changed with MUSTER_REWRITE=1 pytest tests/docs/test_denials.py"
    )
