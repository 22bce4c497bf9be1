"""What somebody may have meant who wrote a word that nobody knows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

# From 0, nothing in common, to 1: one wrong, missing or additional letter in five.
_ALIKE = 0.8
# Letters that two words must share where one of them is cut off.
_STEM = 4


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one, "" where none is.

    Letter case, dashes and the like count for nothing; a word that is cut off, or goes on, is like the whole one.
    """
    plain = {_plain(one): one for one in known}
    asked = _plain(word)
    if asked in plain:
        return plain[asked]
    if alike := get_close_matches(asked, plain, n=1, cutoff=_ALIKE):
        return plain[alike[0]]
    cut = [one for one in plain if min(len(one), len(asked)) >= _STEM and (one + " ").startswith(asked)]
    cut += [one for one in plain if len(one) >= _STEM and asked.startswith(one)]
    return plain[min(cut, key=len)] if cut else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: "; did you mean X?", or nothing."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def _plain(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())
