"""Asks before a command changes a cluster: on a terminal only, so that scripts and hooks go on."""

from __future__ import annotations

import sys

_YES = {"y", "yes"}


def asks(*, yes: bool, dry_run: bool) -> bool:
    """Whether there is a user to ask, by the options `--yes` and `--dry-run`."""
    return not (yes or dry_run) and sys.stdin.isatty() and (sys.stderr.isatty() or sys.stdout.isatty())


def confirmed(command: str, question: str) -> bool:
    """Whether the user agrees; says so when not."""
    # Where errors go to a file, the question would not be seen there.
    shown = sys.stderr if sys.stderr.isatty() else sys.stdout
    print(f"muster {command}: {question} [y/N] ", end="", file=shown, flush=True)
    if sys.stdin.readline().strip().lower() in _YES:
        return True
    print(f"muster {command}: canceled; nothing was changed", file=sys.stderr)
    return False
