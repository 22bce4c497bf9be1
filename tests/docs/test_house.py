"""CONTRIBUTING.md and docs/architecture.md describe the house as it is: packages, arrows, files and words."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from muster.workloads import KINDS
from tests.support.manifests.generators import KINDS as FAMILIES

_ROOT = Path(__file__).parents[2]
_CONTRIBUTING = (_ROOT / "CONTRIBUTING.md").read_text()
_ARCHITECTURE = (_ROOT / "docs" / "architecture.md").read_text()
_LAYERS, _PACKAGES = (
    contract["layers"]
    for contract in tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
)
# What a recipe makes up.
_MADE_UP = ("flux", "flock", "…")


def _names(layer: str) -> list[str]:
    return re.split(r" [|:] ", layer)


def test_the_arrows_are_those_of_import_linter() -> None:
    block = re.search(r"where a comma stands between them:\n\n```\n(.*?)```", _CONTRIBUTING, re.DOTALL)
    assert block
    shown = [re.sub(r" +\(.*", "", line) for line in block[1].splitlines()]
    top, *_ = _LAYERS
    below = [re.sub(r"\w+", r"muster.\g<0>", layer).replace(" : ", ", ") for layer in _PACKAGES[1:]]
    assert shown == [top, *below]


def test_every_package_has_its_row() -> None:
    described = re.findall(r"^\| `muster/(\w+)/` \|", _CONTRIBUTING, re.MULTILINE)
    assert sorted(described) == sorted(name for layer in _PACKAGES for name in _names(layer))


def test_the_files_of_the_two_diagrams_are_there() -> None:
    diagrams = re.findall(r"```\n(.*?)```", _ARCHITECTURE, re.DOTALL)
    assert len(diagrams) == 2
    named = re.findall(r"[\w/]+\.py", "".join(diagrams))
    files = [
        str(path.relative_to(_ROOT))
        for top in ("muster", "webhook", "controller")
        for path in (_ROOT / top).rglob("*.py")
    ]
    assert len(named) > 20
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)] == []


def test_the_glossary_has_at_most_25_words() -> None:
    _, _, words = _ARCHITECTURE.partition("## Words")
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", words, re.MULTILINE)[1:]
    assert 0 < len(rows) <= 25
    assert rows == sorted(rows)


def test_the_files_of_the_recipes_are_there() -> None:
    _, _, recipes = _CONTRIBUTING.partition("\n## Add a workload kind\n")
    recipes, _, _ = recipes.partition("\n## Mutants\n")
    named = re.findall(r"`((?:muster|webhook|controller|charts|hack|tests|docs)/[^` ]*)`", recipes)
    assert len(named) > 15
    assert [name for name in named if not (_ROOT / name).exists() and not any(one in name for one in _MADE_UP)] == []


def test_every_kind_has_a_family_for_the_laws_of_all_kinds() -> None:
    """But the pod, which has no template of its own."""
    known = {(f"{kind.group}/{kind.versions[0]}", kind.kind) for kind in KINDS if kind.kind != "Pod"}
    assert {(family.api_version, family.kind) for family in FAMILIES} == known


def test_every_kind_is_on_the_page_of_gangs() -> None:
    page = (_ROOT / "docs" / "gangs.md").read_text()
    assert [kind.kind for kind in KINDS if not re.search(rf"\b{kind.kind}s?\b", page)] == []
