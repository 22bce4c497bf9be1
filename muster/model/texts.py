"""Text of users in lines for people: a name or a value may contain anything, even line breaks and escapes."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text on one line, without sequences that move a terminal's cursor or change its colours."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
