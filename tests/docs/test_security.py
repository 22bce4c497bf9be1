"""docs/security.md names for every threat the tests that show what stands in its way."""

import re

import pytest

from tests.docs.test_documents import CHECKOUT

PAGE = (CHECKOUT / "docs/security.md").read_text()
_ROWS = re.findall(r"^\| (\d+[a-z]?) \| (.+) \| (.+) \| (.*) ?\|$", PAGE, re.MULTILINE)
_NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


def test_every_threat_has_its_row() -> None:
    """In their order, none left out; those with a letter came later."""
    assert [int(number) for number, *_ in _ROWS if number.isdecimal()] == list(range(1, 36))
    letters = [
        "16a",
        "16b",
        "16c",
        "16d",
        "16e",
        "16f",
        "19a",
        "19b",
        "20a",
        "21a",
        "21b",
        "24a",
        "25a",
        "30a",
        "30b",
        "30c",
        "30d",
        "30e",
        "31a",
        "31b",
    ]
    assert [number for number, *_ in _ROWS if not number.isdecimal()] == letters


@pytest.mark.parametrize(("number", "tests"), [(number, tests) for number, _, _, tests in _ROWS])
def test_every_row_names_a_test(number: str, tests: str) -> None:
    assert "::test_" in tests, f"nothing shows row {number}"


@pytest.mark.parametrize(("path", "name"), _NAMED, ids=lambda word: word)
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    """`tests/` is left out on the page."""
    source = (CHECKOUT / "tests" / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"
