"""`muster completion`: prints the completion script of a shell, which shtab writes from the options of the commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from muster.cli.ui import as_long_as_read


def script(shell: str) -> Path:
    """The file with the completion script of `bash`, `zsh` or `fish`."""
    return Path(__file__).with_name(f"muster.{shell}")


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster completion`."""
    with as_long_as_read():
        sys.stdout.write(script(arguments.shell).read_text())
    return 0
