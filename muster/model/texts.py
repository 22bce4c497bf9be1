"""Text that others wrote, in lines for people: a name or a value may hold anything, a line break or an escape too."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, without what would move a terminal's cursor or change its colours."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
