"""What tests of the command line share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cli.command import Command

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command, and a folder for its files."""
    return Command(tmp_path)
