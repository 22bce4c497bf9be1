"""What tests of the command line share."""

from pathlib import Path

import pytest

from tests.support.cli.command import Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command, and a folder for its files."""
    return Command(tmp_path)
