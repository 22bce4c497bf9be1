"""values.yaml explains every value, and charts/muster/README.md shows those to decide on."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.pages.chart_values import described, values


def test_the_choices_are_values_with_their_defaults(chart: Path) -> None:
    """`all` stands for an empty selector; an empty default is left out."""
    rows = re.findall(r"^\| (`.+?`) \| (.*?) ?\| .+ \|$", (chart / "README.md").read_text(), re.MULTILINE)
    known = {value.path: value.default for value in values((chart / "values.yaml").read_text())}
    default = {name: shown.strip("`") for names, shown in rows for name in re.findall(r"`(.+?)`", names)}
    assert len(default) > 10
    assert default == {name: _shown(known[name]) for name in default}


def _shown(default: list[str]) -> str:
    return {'""': "", "{}": "all"}.get(default[0], default[0])


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
