"""docs/tutorial.md, as a reader follows it: `make demo KEEP=1`, and then every command, with what it prints."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.testbed import PATIENCE
from hack.testbed.process import marked
from tests.support.pages.blocks import whole
from tests.support.pages.walkthrough import Shell, commands, follow

# Pages, step by step, on a cluster of their own.
pytestmark = [pytest.mark.long, pytest.mark.part("time")]
_CHECKOUT = Path(__file__).parents[2]
_TUTORIAL, _TEAMS = whole("docs/tutorial.md"), whole("docs/teams.md")
_BLOCKS = re.findall(r"```sh\n(.*?)\n```", _TUTORIAL.read_text(), re.DOTALL)
# What a make around these tests tells the makes that it starts.
_MAKES = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


@pytest.fixture(scope="module")
def reader() -> Iterator[Shell]:
    """A reader's shell after the first block of the tutorial; the last one ends everything, wherever he got stuck."""
    start, end = _BLOCKS
    environment = {name: value for name, value in os.environ.items() if name not in _MAKES}
    done = subprocess.run(
        ["bash", "-c", start],
        cwd=_CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (state,) = re.findall(r"^starting at \S+, state in (.*)$", done.stdout, re.MULTILINE)
    shell = Shell(_CHECKOUT, environment, {"STATE": state})
    try:
        yield shell
    finally:
        said = shell.run(end)
    assert "nothing runs any more" in said
    assert marked(Path(state)) == []


def test_every_command_of_the_tutorial_prints_what_it_shows(reader: Shell) -> None:
    """With MUSTER_REWRITE=1 it writes what it saw."""
    assert len(commands(_TUTORIAL.read_text())) > 20
    assert follow(_TUTORIAL, reader.run) == []


def test_the_queues_for_teams_are_made_as_their_page_says(reader: Shell) -> None:
    """docs/teams.md, on the same cluster."""
    assert follow(_TEAMS, reader.run) == []
