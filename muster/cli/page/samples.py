"""The usage of each queue and its number of waiting gangs in the last hour, as long as the page has been running.

An hour has 120 slots. A slot keeps the highest numbers of its half minute, so that no peak is lost; one without a
look, because the machine slept or the apiserver did not answer, stays unknown. A queue takes half a kilobyte.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import NamedTuple

SLOT = 30.0
"""Seconds of a slot."""
SLOTS = 120
"""The number of slots."""

_UNKNOWN = 0xFFFF
_MOST = _UNKNOWN - 1


class Sample(NamedTuple):
    """The usage of a queue and its number of waiting gangs.

    :ivar percent: the usage of the limit that is used most, None where the queue has no limit, or usage is unknown
    :ivar waiting: how many gangs wait in it
    """

    percent: int | None
    waiting: int


def _unknown_hour() -> array[int]:
    return array("H", [_UNKNOWN]) * SLOTS


class Samples:
    """The last hour of every queue. Times are seconds of the wall clock; one that goes back counts as the last slot."""

    def __init__(self, began: float) -> None:
        self.began = began
        self._slot = int(began // SLOT)
        # By queue the slots of its usage, and those of its waiting gangs.
        self._rings: dict[str, tuple[array[int], array[int]]] = {}

    def __len__(self) -> int:
        """The number of queues."""
        return len(self._rings)

    def note(self, now: float, levels: Mapping[str, Sample]) -> None:
        """Keep the levels of these queues; others are forgotten."""
        self.pass_to(now)
        self._rings = {name: self._rings.get(name) or (_unknown_hour(), _unknown_hour()) for name in levels}
        place = self._slot % SLOTS
        for name, level in levels.items():
            for ring, value in zip(self._rings[name], level, strict=True):
                _raise(ring, place, value)

    def pass_to(self, now: float) -> None:
        """Go on to that time; what was not noted since is unknown."""
        slot = int(now // SLOT)
        for passed in range(max(self._slot + 1, slot - SLOTS + 1), slot + 1):
            for percents, waiting in self._rings.values():
                percents[passed % SLOTS] = waiting[passed % SLOTS] = _UNKNOWN
        self._slot = max(self._slot, slot)

    def hour(self, name: str) -> tuple[list[int | None], list[int | None]]:
        """The usage in each slot, the oldest first, and the number of waiting gangs; None where it is unknown."""
        percents, waiting = self._rings.get(name) or (_unknown_hour(), _unknown_hour())
        return self._in_order(percents), self._in_order(waiting)

    def _in_order(self, ring: array[int]) -> list[int | None]:
        first = (self._slot + 1) % SLOTS
        return [None if one == _UNKNOWN else one for one in (*ring[first:], *ring[:first])]


def _raise(ring: array[int], place: int, value: int | None) -> None:
    if value is not None:
        before = ring[place]
        ring[place] = max(min(value, _MOST), 0 if before == _UNKNOWN else before)
