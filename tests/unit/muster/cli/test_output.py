"""What a command prints, and who reads it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from muster.cli.output import as_long_as_read
with as_long_as_read():
    for _ in range({lines}):
        print("a line")
sys.exit(3)
"""


@pytest.mark.parametrize("lines", [1, 100_000], ids=["kept until the end", "more than is kept"])
def test_who_stops_reading_gets_the_exit_code_and_no_traceback(lines: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(lines=lines)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 3)
