"""What others build on stays: docs/stability.md, and the names of each version in tests/docs/stable/."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

import muster
from tests.support.pages.surface import gone, surface

_ROOT = Path(__file__).parents[2]
_STABLE = Path(__file__).parent / "stable"
_OF_A_ROLE = "[].roles[]."


def _versions() -> list[str]:
    return sorted(file.stem for file in _STABLE.glob("*.yaml"))


def test_the_names_of_this_version_are_written_down() -> None:
    """Whoever adds one, or takes one away that no version has yet, sees it in the change."""
    file = _STABLE / f"{muster.__version__}.yaml"
    text = yaml.safe_dump(surface(), sort_keys=False, width=120)
    if os.environ.get("MUSTER_REWRITE"):
        file.write_text(text)
    assert file.read_text() == text, (
        f"MUSTER_REWRITE=1 .venv/bin/pytest -n0 {Path(__file__).relative_to(_ROOT)} writes it"
    )


@pytest.mark.parametrize("version", _versions())
def test_nothing_of_a_version_has_gone(version: str) -> None:
    assert gone(yaml.safe_load((_STABLE / f"{version}.yaml").read_text()), surface()) == []


def test_what_has_gone_or_become_something_else_is_found() -> None:
    earlier = {"states": ["A", "B"], "metrics": {"m": "gauge", "n": "counter"}, "json": {"plan": ["x"]}}
    now = {"states": ["B", "C"], "metrics": {"m": "counter", "more": "gauge"}, "json": {"plan": ["x", "y"]}}
    assert gone(earlier, now) == ["states: A", "metrics: m: gauge", "metrics: n"]
    assert gone(now, now) == []


def test_explain_and_plan_have_one_name_for_what_both_say_of_a_role() -> None:
    """Beside it plan has the patch of its pods, and explain the pods that are there."""
    said = surface()["json"]
    plan, explain = (
        {path.removeprefix(_OF_A_ROLE) for path in said[command] if path.rpartition(".")[0] == _OF_A_ROLE[:-1]}
        for command in ("plan", "explain")
    )
    assert plan - {"patch"} == explain - {"there", "bound"}


def test_the_page_speaks_of_each_list() -> None:
    page = (_ROOT / "docs" / "stability.md").read_text()
    assert [name for name in surface() if f"| `{name}` |" not in page] == []
