"""The standard streams of a command, before anything is printed; a module of its own, for start-up to stay short."""

from __future__ import annotations

import io
import os
import sys


class UnwritableError(Exception):
    """The output cannot be written; the message says why."""


def prepare() -> None:
    """Have what is printed written as kubectl writes it: in UTF-8, but for a terminal that shows something else.

    A standard stream that is closed takes everything, and gives nothing.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=None if sys.stdout.isatty() else "utf-8", errors="backslashreplace")
