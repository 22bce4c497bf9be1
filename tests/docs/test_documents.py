"""What the documents say is what the programs do."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from muster.reasons import State

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md")])


def test_the_plan_in_the_readme_is_what_muster_plan_prints() -> None:
    """The tour of the README shows the command's real output, to the letter."""
    shown = re.search(r"\$ \.venv/bin/muster (plan .*)\n((?:.*\n)*?)```", (CHECKOUT / "README.md").read_text())
    assert shown, "the README shows no `muster plan`"
    done = subprocess.run(
        [sys.executable, "-m", "muster.cli", *shlex.split(shown[1])],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == shown[2]


@pytest.mark.parametrize("state", State)
def test_every_state_is_explained(state: State) -> None:
    """docs/reasons.md has a row for every state that a gang can be in."""
    assert f"| `{state}` |" in (CHECKOUT / "docs/reasons.md").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link of a document names a file of the repository."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_make_targets_named_in_documents_exist() -> None:
    """Whoever types a `make` command from the documents gets it."""
    known = set(re.findall(r"^([a-z0-9-]+):", (CHECKOUT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        name for path in DOCUMENTS for name in re.findall(r"`?make ([a-z][a-z0-9-]*)(?:`| +#| KEEP)", path.read_text())
    }
    assert named
    assert named <= known


_WORKED = re.findall(r"```yaml\n(.*?)```\n\n```text\n(.*?)```", (CHECKOUT / "docs/gangs.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("manifest", "shown"), _WORKED, ids=[shown.split(maxsplit=1)[0] for _, shown in _WORKED])
def test_the_worked_examples_are_what_muster_plan_says(manifest: str, shown: str) -> None:
    """docs/gangs.md shows of each kind the plan's lines, up to the patches."""
    done = subprocess.run(
        [sys.executable, "-m", "muster.cli", "plan", "-f", "-"],
        cwd=CHECKOUT,
        input=manifest,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if not line.startswith(("    ", "  patch of"))]
    assert said == shown.splitlines()


def test_every_family_has_a_worked_example() -> None:
    assert len(_WORKED) == 6
