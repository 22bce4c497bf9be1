"""Errors, each with the reason and the remedy in one line."""

from collections.abc import Sequence
from pathlib import Path

_TAIL_LINES = 12


class TestbedError(Exception):
    """The testbed cannot do what was asked; the text names the reason and the remedy."""

    __test__ = False  # pytest takes every Test* class for a test


class CommandError(TestbedError):
    """A command against the cluster failed or took too long."""

    def __init__(self, argv: Sequence[str], returncode: int | None, stderr: str) -> None:
        self.argv = tuple(argv)
        self.returncode = returncode
        self.stderr = stderr
        ending = "took too long" if returncode is None else f"exited with {returncode}"
        super().__init__(f"`{' '.join(argv)}` {ending}: {stderr.strip()}")


def log_tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """Return a log file's name and its last lines, as the end of an error message."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return f"log: {log} (empty)"
    tail = "\n".join(f"  {line}" for line in text.splitlines()[-lines:])
    return f"log: {log}\n{tail}" if tail else f"log: {log} (empty)"
