"""Times and lists as people say them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ago", "lasting", "listed"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Two of a unit are needed before it is the one to count in.
_FEW = 2


def lasting(seconds: float) -> str:
    """How long it is, in one unit: `3 days`."""
    for length, unit in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes")):
        if abs(seconds) >= _FEW * length:
            return f"{abs(seconds) / length:.0f} {unit}"
    return f"{abs(seconds):.0f} seconds"


def ago(seconds: float) -> str:
    """How long ago it was; a negative time is to come."""
    return f"in {lasting(seconds)}" if seconds < 0 else f"{lasting(seconds)} ago"


def listed(words: Sequence[str], most: int = 10) -> str:
    """The words behind each other, and how many more there are."""
    rest = len(words) - most
    return ", ".join(words[:most]) + (f" and {rest} more" if rest > 0 else "")
