"""The command on a real terminal, a pseudo terminal, with an answer to its question."""

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Mapping
from typing import NamedTuple


class Shown(NamedTuple):
    """The exit code of the command, and what the terminal showed, with the answer that was typed."""

    code: int
    text: str


def on_terminal(
    *arguments: str, typed: str = "", columns: int = 80, environment: Mapping[str, str] | None = None
) -> Shown:
    """Run `muster` with these arguments on a terminal of so many columns, on which somebody types this."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    argv = [sys.executable, "-m", "muster.cli", *arguments]
    told = {"TERM": "xterm", **{name: value for name, value in os.environ.items() if name != "NO_COLOR"}} | dict(
        environment or {}
    )
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=told) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        text = _read(ours)
        return Shown(process.wait(), text)


def _read(descriptor: int) -> str:
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:
        # A terminal says so that no process writes to it any more.
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts).decode().replace("\r\n", "\n")
