"""charts/muster/README.md shows every value with its default and its meaning."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.pages.chart_values import BEGIN, END, described, table, values


def test_the_table_is_what_values_yaml_says(chart: Path) -> None:
    page = chart / "README.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = before + table((chart / "values.yaml").read_text()) + after
    if os.environ.get("MUSTER_REWRITE"):
        page.write_text(expected)
    assert page.read_text() == expected, (
        "charts/muster/README.md is out of date: write it anew with MUSTER_REWRITE=1 pytest tests/chart/test_readme.py"
    )


def test_every_value_has_a_comment(chart: Path) -> None:
    """A key with others below it needs none."""
    text = (chart / "values.yaml").read_text()
    assert [value.path for value in described(text) if not value.comment and not value.below] == []


def test_every_value_is_read_as_yaml_has_it(chart: Path) -> None:
    """No key is missed, and no default is another's."""
    text = (chart / "values.yaml").read_text()
    assert list(_leaves(yaml.safe_load(text))) == [
        (value.path, yaml.safe_load("\n".join(value.default))) for value in list(values(text)) if not value.below
    ]


# What stands on one line, although it is a map.
_WHOLE = {"resources", "labels", "startup", "liveness", "readiness", "podSecurityContext", "securityContext"}


def _leaves(part: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        if isinstance(value, dict) and value and key not in _WHOLE:
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def test_a_line_that_is_no_value_is_named() -> None:
    with pytest.raises(ValueError, match="odd"):
        list(values("a: 1\n  ? odd\n"))
