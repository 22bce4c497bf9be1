"""The terminal that a command prints to: its width, and whether it shows colours.

Elsewhere, in a file or a pipe, lines have 80 columns and no colours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TextIO

WIDTH = 80
"""Columns where there is no terminal."""
RED, GREEN, YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
_NARROWEST = 40
_PLAIN = "\x1b[0m"


def colours(out: TextIO) -> bool:
    """Whether `out` shows colours: a terminal that is not dumb, unless `NO_COLOR` is set (https://no-color.org)."""
    return clears(out) and not os.environ.get("NO_COLOR")


def draws(out: TextIO) -> bool:
    """Whether `out` shows box and block characters: a terminal with colours whose text is UTF-8."""
    return colours(out) and (out.encoding or "").lower().replace("-", "") == "utf8"


def clears(out: TextIO) -> bool:
    """Whether `out` is a terminal that understands escape sequences."""
    return out.isatty() and os.environ.get("TERM") != "dumb"


def width(out: TextIO) -> int:
    """The columns of the terminal, at least 40; 80 without a terminal."""
    if not out.isatty():
        return WIDTH
    try:
        columns = os.get_terminal_size(out.fileno()).columns
    except OSError:
        return WIDTH
    return max(_NARROWEST, columns) if columns else WIDTH


def painted(text: str, paint: str, *, colour: bool) -> str:
    """The text in a colour, when colours are on."""
    return f"{paint}{text}{_PLAIN}" if colour and text else text


def wrapped(line: str, indent: int, columns: int) -> Iterator[str]:
    """The line, wrapped after a comma, else between words; continuation lines are indented."""
    pad, start = "", 0
    while len(pad) + len(line) - start > columns > indent:
        first, end = start or indent, start + columns - len(pad) + 1
        comma, blank = (line.rfind(mark, first, end) for mark in (", ", " "))
        # A comma keeps amounts together, unless it leaves half of the line empty.
        at = comma + 1 if comma > end - columns // 2 else blank if blank >= 0 else line.find(" ", end)
        if at < 0:
            break
        yield (pad + line[start:at]).rstrip()
        pad, start = " " * indent, at + 1
    yield pad + line[start:]
