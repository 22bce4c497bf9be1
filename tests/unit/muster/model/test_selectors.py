"""Label selectors in kubectl's words."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.selectors import NOTHING, InvalidSelectorError, parse_selector
from tests.support.cases import cases

ML = {"team": "ml", "env": "dev", "example.com/cost-centre": "42", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("team=ml", True),
        ("team==ml", True),
        (" team = ml ", True),
        ("team=web", False),
        ("team!=web", True),
        ("team!=ml", False),
        ("owner!=web", True),
        ("team", True),
        ("owner", False),
        ("!owner", True),
        ("!team", False),
        ("! team", False),
        ("team in (web, ml)", True),
        ("team in (web)", False),
        ("team in(ml)", True),
        ("team notin (web,ml)", False),
        ("owner notin (web)", True),
        ("team=ml,env=dev", True),
        ("team=ml,env=prod", False),
        ("team in (web, ml),env in (dev, test),!legacy", True),
        ("example.com/cost-centre=42", True),
        ("empty=", True),
        ("team=", False),
        ("owner=", False),
        ("empty in ()", True),
        pytest.param(f"{'p' * 253}/team", False, id="the longest prefix"),
    ],
)
def test_what_is_selected(text: str, selected: bool) -> None:
    assert parse_selector(text).matches(ML) is selected


@cases(
    "text, words",
    ("empty", "", "it is empty"),
    ("blank", "  ", "it is empty"),
    ("a comma too many", "team=ml,", '"" is neither key'),
    ("a comma too early", ",team=ml", '"" is neither key'),
    ("an open set", "team in (ml", '"team in (ml" is neither key'),
    ("a set without parentheses", "team in ml", '"team in ml" is neither key'),
    ("two equal signs", "team=ml=web", '"team=ml=web" is neither key'),
    ("numbers", "cpus>4", '"cpus>4" is neither key'),
    ("no key", "=ml", '"=ml" is neither key'),
    ("a key that is none", "-team=ml", '"-team=ml" is neither key'),
    ("a prefix that is none", "Example.com/team=ml", "is neither key"),
    ("a prefix too long", f"{'p' * 254}/team", "is neither key"),
    ("an empty prefix", "/team=ml", "is neither key"),
    ("a key too long", f"{'k' * 64}=ml", "is neither key"),
    ("a value with a space", "team=m l", '"team=m l" is neither key'),
    ("a value that is none", "team=-ml", '"team=-ml" has a value that no label can have'),
    ("a value too long", f"team={'v' * 64}", "has a value that no label can have"),
    ("a value of a set", "team in (ml, -web)", "has a value that no label can have"),
    ("JSON", '{"matchLabels": {"team": "ml"}}', "is neither key"),
    ("too long", "a" * 5000, "longer than 4096 characters"),
)
def test_what_is_no_selector(text: str, words: str) -> None:
    with pytest.raises(InvalidSelectorError) as refused:
        parse_selector(text)
    assert words in str(refused.value)


@given(st.text(alphabet="ab=!,() /.-in", max_size=60))
def test_any_text_is_a_selector_or_none(text: str) -> None:
    """Nothing else ever comes of it."""
    with suppress(InvalidSelectorError):
        parse_selector(text).matches(ML)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_nothing_selects_nothing(labels: dict[str, str]) -> None:
    assert not NOTHING.matches(labels)
    assert not NOTHING.matches({**labels, "nothing": "nothing"})
