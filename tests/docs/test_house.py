"""CONTRIBUTING.md and docs/architecture.md describe the house as it is: packages, arrows, files and words."""

import re
import tomllib
from pathlib import Path

import pytest

from muster.workloads import KINDS, MAKERS, Kind
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
    # A name without its folder leads nowhere.
    assert re.findall(r"`(\w+\.(?:py|yaml|md))`", recipes) == ["CHANGELOG.md"]
    called = re.findall(r"\b(tests/[\w/]+\.py)\b", recipes)
    assert [name for name in called if not (_ROOT / name).exists() and not any(one in name for one in _MADE_UP)] == []


def test_every_kind_has_a_family_for_the_laws_of_all_kinds() -> None:
    """But the pod, which has no template of its own."""
    known = {(f"{kind.group}/{kind.versions[0]}", kind.kind) for kind in KINDS if kind.kind != "Pod"}
    families = {(family.api_version, family.kind) for family in FAMILIES}
    assert families == known, "tests/support/manifests/families.py: a small manifest of each kind"


_GANGS = (_ROOT / "docs" / "gangs.md").read_text()
# The sections of docs/gangs.md about kinds, by their headings; the plain pod shares one with Jobs and StatefulSets.
_SECTIONS = {
    heading: text
    for heading, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", _GANGS, re.MULTILINE)
    if any(re.search(rf"\b{kind.kind}s?\b", heading) for kind in KINDS if kind.kind != "Pod")
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind} {kind.versions[0]}")
def test_every_kind_has_a_section_on_the_page_of_gangs(kind: Kind) -> None:
    named = re.compile(rf"\b{kind.kind}s?\b", re.IGNORECASE)
    assert [heading for heading in _SECTIONS if named.search(heading)], f"docs/gangs.md: no heading ## {kind.kind}"


@pytest.mark.parametrize("heading", _SECTIONS)
def test_a_section_about_a_kind_has_a_worked_example(heading: str) -> None:
    """tests/docs/test_documents.py compares its output with what `muster plan` prints."""
    example = re.search(r"```yaml\n.*?```\n\n```text\n.*?```", _SECTIONS[heading], re.DOTALL)
    assert example, "add a manifest and its plan"


@pytest.mark.parametrize("heading", _SECTIONS)
def test_a_section_about_a_kind_is_linked_in_the_index(heading: str) -> None:
    anchor = re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")
    assert f"](gangs.md#{anchor})" in (_ROOT / "docs" / "index.md").read_text()


def test_no_kind_is_said_not_to_be_supported() -> None:
    """The page names kinds that muster does not know, until it does."""
    said = [line for line in _GANGS.splitlines() if "not supported" in line]
    assert said
    assert [kind.kind for kind in KINDS if any(re.search(rf"^\| ?{kind.kind}s?\b", line) for line in said)] == []


def test_the_operators_whose_pods_the_webhook_sees_are_named_in_full() -> None:
    """`Kind.maker`, in the order of KINDS."""
    *first, last = MAKERS.values()
    pages = [(_ROOT / "docs" / f"{page}.md").read_text() for page in ("operations", "runbook", "limits", "install")]
    named = [
        one for text in pages for one in re.findall(r"\bRay, Kubeflow[\w ,]*? (?:and|or) \w+", " ".join(text.split()))
    ]
    assert len(named) > 3
    assert {*named} <= {f"{', '.join(first)} {word} {last}" for word in ("and", "or")}
