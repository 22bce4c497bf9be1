"""The workflow that releases calls commands that there are, with the variables that they read, and code that is pinned.

No forge runs it here; `make publish` itself is run against a real registry (`tests/image/test_publish.py`).
"""

import re
from pathlib import Path
from typing import Any

import yaml

from hack.release.__main__ import parser

_ROOT = Path(__file__).parents[2]
_FILE = _ROOT / ".github" / "workflows" / "release.yml"
_MAKEFILE = (_ROOT / "Makefile").read_text()
_PAGE = (_ROOT / "docs" / "releasing.md").read_text()


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(_FILE.read_text())
    return found


def steps() -> list[dict[str, Any]]:
    return [step for job in workflow()["jobs"].values() for step in job["steps"]]


def recipe(target: str) -> str:
    """The lines of a target of the Makefile; of one that is not there, none."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", _MAKEFILE, re.MULTILINE)
    return found[1] if found else ""


def made() -> dict[str, dict[str, Any]]:
    """The steps that call make, by the target."""
    return {found[1]: step for step in steps() if (found := re.match(r"make ([a-z-]+)", step.get("run", "")))}


def test_every_command_is_in_the_makefile() -> None:
    assert list(made()) == ["login", "publish", "verify"]
    assert [target for target in made() if "hack.release" not in recipe(target)] == []


def test_every_variable_that_it_gives_a_command_is_read_there() -> None:
    """By make, by the program that make calls, or by cosign as what KEY names."""
    for target, step in made().items():
        given = {*re.findall(r"\b([A-Z_]+)=", step["run"])}
        assert [name for name in given if f"$({name})" not in recipe(target)] == [], target
        keys = {*re.findall(r"env://([A-Z_]+)", step["run"])}
        said = {*step["env"], *workflow()["jobs"]["publish"]["env"]}
        assert keys <= said
        known = f"{recipe(target)} {parser().format_help()} {_PAGE}"
        assert [name for name in said if name not in known] == [], target


def test_a_maintainer_finds_every_variable_and_secret_in_the_page() -> None:
    used = set(re.findall(r"\$\{\{ (?:vars|secrets)\.(\w+) \}\}", _FILE.read_text()))
    assert len(used) == 6
    assert [name for name in used if f"`{name}`" not in _PAGE] == []


def test_code_of_others_is_pinned_by_its_commit_and_says_which_version_that_is() -> None:
    lines = re.findall(r"uses: (.*)", _FILE.read_text())
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_it_names_no_host_and_may_change_nothing_of_the_repository() -> None:
    assert re.findall(r"\b[\w-]+\.(?:com|io|dev|org|net)\b", _FILE.read_text()) == []
    assert workflow()["permissions"] == {"contents": "read"}
