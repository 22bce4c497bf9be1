"""The man pages are those of the commands that there are, and without a fault."""

import os
import subprocess

import pytest

from hack.man import FOLDER, pages
from hack.testbed.debian import Debian
from muster.cli.examples import EXAMPLES

PAGES = pages()


def test_the_pages_are_what_the_parser_says() -> None:
    """`MUSTER_REWRITE=1` writes them. A change of a command or an option changes its page."""
    if os.environ.get("MUSTER_REWRITE"):
        for path in FOLDER.iterdir():
            path.unlink()
        for name, text in PAGES.items():
            (FOLDER / name).write_text(text)
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == PAGES, "run this test with MUSTER_REWRITE=1"


def test_each_command_has_a_page_with_its_examples() -> None:
    assert set(PAGES) == {"muster.1", "kubectl-muster.1", *(f"muster-{name}.1" for name in EXAMPLES)}
    for name, examples in EXAMPLES.items():
        page = PAGES[f"muster-{name}.1"].replace("\\", "")
        assert [line for line in examples if line.replace("'", "(aq").replace("~", "(ti") not in page] == []


def test_they_are_the_same_however_wide_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert pages() == PAGES


@pytest.fixture(scope="module")
def mandoc() -> Debian:
    """The formatter that complains most."""
    tools = Debian(("mandoc",))
    tools.ensure(print)
    return tools


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"kubectl-muster.1"}))
def test_a_formatter_has_nothing_to_say(mandoc: Debian, name: str) -> None:
    """Beyond matters of style: blank lines, and that a page has no date."""
    done = subprocess.run(
        [mandoc.program("mandoc"), "-T", "lint", "-W", "warning", FOLDER / name],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert said == []
