"""What others build on stays: docs/stability.md, and the names of each version in tests/docs/stable/."""

import os
import re
from pathlib import Path

import pytest
import yaml

import muster
from hack.release.kept import kept
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


def unkept(changelog: str, releases: set[str], named: set[str]) -> list[str]:
    """The versions of a changelog of which chart and code, or the names, are not kept."""
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.MULTILINE)
    return [version for version in released if version not in releases & named]


def test_every_released_version_is_kept() -> None:
    """`make keep-release` keeps chart and code, from which tests/node/test_order.py upgrades."""
    changelog = (_ROOT / "CHANGELOG.md").read_text()
    assert unkept(changelog, {one.version for one in kept()}, set(_versions())) == []


def test_a_version_that_is_not_kept_is_found() -> None:
    changelog = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-02\n\n## [0.1.0] - 2026-12-01\n"
    assert unkept(changelog, {"0.1.0", "0.2.0"}, {"0.1.0", "0.2.0"}) == []
    assert unkept(changelog, {"0.1.0"}, {"0.1.0", "0.2.0"}) == ["0.2.0"]
    assert unkept(changelog, {"0.1.0", "0.2.0"}, {"0.2.0"}) == ["0.1.0"]


def test_what_has_gone_or_become_something_else_is_found() -> None:
    earlier = {"states": ["A", "B"], "metrics": {"m": "gauge", "n": "counter"}, "json": {"plan": ["x"]}}
    now = {"states": ["B", "C"], "metrics": {"m": "counter", "more": "gauge"}, "json": {"plan": ["x", "y"]}}
    assert gone(earlier, now) == ["states: A", "metrics: m: gauge", "metrics: n"]
    assert gone(now, now) == []


def test_explain_and_plan_have_one_name_for_what_both_say_of_a_role() -> None:
    """Beside it plan has how its pods are patched, and explain numbers of the pods that are there."""
    said = surface()["json"]
    plan, explain = (
        {path.removeprefix(_OF_A_ROLE) for path in said[command] if path.rpartition(".")[0] == _OF_A_ROLE[:-1]}
        for command in ("plan", "explain")
    )
    assert plan - {"patch", "getsGate"} == explain - {"there", "gated", "bound"}


def test_the_page_speaks_of_each_list() -> None:
    page = (_ROOT / "docs" / "stability.md").read_text()
    assert [name for name in surface() if f"| `{name}` |" not in page] == []
