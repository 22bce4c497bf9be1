"""docs/seeds.md is whole: each test of a story compares its own section; here, that none is missing or left over."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.pages.seeds import PAGE, Point

_CHECKOUT = Path(__file__).parents[2]
_STORIES = {"A1", "A2", "B", "C1", "C2", "C3", "C4", "C5", "D1", "D2", "D3", "D4", "D5"}


def test_every_story_has_a_section() -> None:
    titles = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
    assert {title.partition(".")[0] for title in titles} == _STORIES
    assert titles == sorted(titles)


def test_every_section_is_the_work_of_a_test_that_exists() -> None:
    """One that nobody writes any more has to go."""
    text = PAGE.read_text()
    named = re.findall(r"^Test: `(.+)::(.+)`$", text, re.MULTILINE)
    assert len(named) == len(re.findall(r"^## ", text, re.MULTILINE))
    titles = dict(zip(re.findall(r"^## (.+)$", text, re.MULTILINE), named, strict=True))
    for title, (file, test) in titles.items():
        source = (_CHECKOUT / file).read_text()
        functions = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
        assert test in functions, f"{title}: {file} has no {test}"
        assert title in source, f"{title}: {file} tells nothing of that title"


def test_a_difference_needs_a_reason_and_nothing_else_has_one() -> None:
    assert Point("pods", "Pending", "Pending").text == "pods (Pending)"
    assert Point("pods", "Pending", "gated", "of the gate").text == "| pods | Pending | gated | of the gate |\n"
    with pytest.raises(AssertionError, match="pods: the guide shows 'Pending', seen was 'gated'; say why"):
        _ = Point("pods", "Pending", "gated").text
    with pytest.raises(AssertionError, match="nothing is left to explain"):
        _ = Point("pods", "Pending", "Pending", "of the gate").text
