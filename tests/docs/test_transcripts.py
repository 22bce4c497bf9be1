"""What the pages show of commands that need no cluster is what these commands print."""

import os
import sys
from pathlib import Path

import pytest

from tests.docs.test_documents import CHECKOUT
from tests.support.pages.walkthrough import Shell, commands, follow

_DOCS = CHECKOUT / "docs"
_PAGES = {
    page: [command for command in commands((_DOCS / page).read_text()) if "muster plan " in command]
    for page in ("teams.md", "tutorial.md")
}


@pytest.mark.parametrize("page", _PAGES)
def test_the_plans_of_a_page_are_what_muster_plan_prints(page: str) -> None:
    """`MUSTER_REWRITE=1` writes them. The other commands of these pages are run on a cluster, by tests/e2e."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = Shell(CHECKOUT, {**os.environ, "PATH": path}, {})
    assert _PAGES[page]
    assert follow(_DOCS / page, lambda command: shell.run(command) if command in _PAGES[page] else None) == []
