"""Gangs that were started by half, from what a watch showed of their pods.

A gang is held by half while some of its pods, and not all, have a node. Every gang is for a moment: pods are bound one
after the other. It counts as half-started when that lasts longer than `LIMIT`, which is far longer than a burst of
bindings takes here, or when it is so at the end of the watch and nothing has changed for that long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LIMIT", "Placed", "half_started", "longest_half"]

LIMIT = 10.0
"""Seconds."""


@dataclass(slots=True)
class Placed:
    """How many pods of a gang of `size` had a node, from each moment (seconds) on, in order; `end` closes the watch."""

    size: int
    changes: list[tuple[float, int]] = field(default_factory=list)
    end: float | None = None

    def note(self, at: float, placed: int) -> None:
        """So many have a node from now on; nothing is noted after the end."""
        if self.end is None and (not self.changes or self.changes[-1][1] != placed):
            self.changes.append((at, placed))

    def close(self, at: float) -> None:
        """What comes now is its removal."""
        if self.end is None:
            self.end = at


def longest_half(gang: Placed) -> float:
    """For how many seconds on end it was held by half; 0.0 for a gang that never was."""
    if gang.end is None:
        raise ValueError("the watch of the gang has not ended")
    longest, since = 0.0, None
    for at, placed in [*gang.changes, (gang.end, 0)]:
        if since is not None:
            longest = max(longest, at - since)
        by_half = 0 < placed < gang.size
        since = (since if since is not None else at) if by_half else None
    return longest


def half_started(gangs: Iterable[Placed], limit: float = LIMIT) -> int:
    """How many of them were held by half for longer than so many seconds."""
    return sum(longest_half(gang) > limit for gang in gangs)
