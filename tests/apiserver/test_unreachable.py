"""A cluster that cannot be reached: every command that asks one says so in one line, and ends with 2."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.cli.nobody_there import COMMANDS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

_WITHOUT = {"plan": "cannot list queues"}


@pytest.mark.parametrize("command", COMMANDS)
def test_said_in_one_line(asked_in_vain: Mapping[str, subprocess.Popen[str]], command: str) -> None:
    process = asked_in_vain[command]
    out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (2, "")
    assert re.fullmatch(rf"muster {command}: {_WITHOUT.get(command, '')}[^\n]*Unreachable: [^\n]*\n", err), err
