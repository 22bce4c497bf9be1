"""The command on a real terminal, a pseudo terminal, with an answer to its question."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import NamedTuple

__all__ = ["Shown", "on_terminal"]


class Shown(NamedTuple):
    """The exit code of the command, and what the terminal showed, with the answer that was typed."""

    code: int
    text: str


def on_terminal(*arguments: str, typed: str = "", environment: dict[str, str] | None = None) -> Shown:
    """Run `muster` with these arguments on a terminal, on which somebody types this."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "muster.cli", *arguments]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
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
