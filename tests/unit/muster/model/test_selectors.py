"""Label selectors in kubectl's words."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.selectors import NOTHING, InvalidSelectorError, parse_selector

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
def test_what_is_selected(text: str, selected: bool) -> None:  # noqa: FBT001
    assert parse_selector(text).matches(ML) is selected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("  ", "it is empty", id="blank"),
        pytest.param("team=ml,", '"" is neither key', id="a comma too many"),
        pytest.param(",team=ml", '"" is neither key', id="a comma too early"),
        pytest.param("team in (ml", '"team in (ml" is neither key', id="an open set"),
        pytest.param("team in ml", '"team in ml" is neither key', id="a set without parentheses"),
        pytest.param("team=ml=web", '"team=ml=web" is neither key', id="two equal signs"),
        pytest.param("cpus>4", '"cpus>4" is neither key', id="numbers"),
        pytest.param("=ml", '"=ml" is neither key', id="no key"),
        pytest.param("-team=ml", '"-team=ml" is neither key', id="a key that is none"),
        pytest.param("Example.com/team=ml", "is neither key", id="a prefix that is none"),
        pytest.param(f"{'p' * 254}/team", "is neither key", id="a prefix too long"),
        pytest.param("/team=ml", "is neither key", id="an empty prefix"),
        pytest.param(f"{'k' * 64}=ml", "is neither key", id="a key too long"),
        pytest.param("team=m l", '"team=m l" is neither key', id="a value with a space"),
        pytest.param("team=-ml", '"team=-ml" has a value that no label can have', id="a value that is none"),
        pytest.param(f"team={'v' * 64}", "has a value that no label can have", id="a value too long"),
        pytest.param("team in (ml, -web)", "has a value that no label can have", id="a value of a set"),
        pytest.param('{"matchLabels": {"team": "ml"}}', "is neither key", id="JSON"),
        pytest.param("a" * 5000, "longer than 4096 characters", id="too long"),
    ],
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
