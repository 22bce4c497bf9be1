"""Durations and lists in plain words."""

from __future__ import annotations

from collections.abc import Sequence

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# A unit is used from two of it on: `90 minutes`, then `2 hours`.
_FEW = 2


def lasting(seconds: float) -> str:
    """A duration in one unit: `3 days`."""
    for length, unit in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes")):
        if abs(seconds) >= _FEW * length:
            return f"{abs(seconds) / length:.0f} {unit}"
    return counted(round(abs(seconds)), "second")


def ago(seconds: float) -> str:
    """`3 days ago`; `in 3 days` for a negative number; `just now` for less than half a second."""
    if round(seconds) == 0:
        return "just now"
    return f"in {lasting(seconds)}" if seconds < 0 else f"{lasting(seconds)} ago"


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def listed(words: Sequence[str], most: int = 10) -> str:
    """The first words, separated by commas, and how many more there are."""
    rest = len(words) - most
    return ", ".join(words[:most]) + (f" and {rest} more" if rest > 0 else "")
