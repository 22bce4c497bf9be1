"""The delay before a changed gang is reconciled.

To look at a gang takes as long as it has pods, and each of its pods changes some times on its way: a gang of 4,000
would be looked at 20,000 times, for minutes of a core. So a large one is left alone for a moment after each look,
unless the pod has come that makes it complete. And whatever the size, objects that are changed without end get
some looks in a row and then few in a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from muster.cluster.cluster import Cluster
from muster.queueing.ledger import GangKey

# Pods of a gang that is looked at whenever something changes.
_SMALL = 50
# Seconds for each pod, some twenty times what it adds to a look; and at most.
_EACH, _LONGEST = 0.0002, 0.5
# Seconds between the looks at a gang that changes all the time, after so many in a row.
_BETWEEN, _IN_A_ROW = 0.2, 100
# As many gangs are remembered before those are forgotten that were not looked at for so long.
_REMEMBERED = 1_000


class _Looked(NamedTuple):
    until: float
    needed: int


class Pace:
    """For how long changes of gangs can wait; `clock` never goes back."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._looked: dict[GangKey, _Looked] = {}
        # When each would be at rest, had its looks come one by one.
        self._at_rest: dict[GangKey, float] = {}

    @property
    def gangs(self) -> int:
        """Of how many large gangs something is remembered."""
        return len(self._looked)

    def record(self, key: GangKey, pods: int, *, needed: int = 0) -> None:
        """Note a look at a gang with so many pods; `needed` is how many it waits for, 0 where it waits for none."""
        now = self._clock()
        if len(self._at_rest) >= _REMEMBERED:
            self._at_rest = {one: rest for one, rest in self._at_rest.items() if rest > now}
        self._at_rest[key] = max(self._at_rest.get(key, now), now) + _BETWEEN
        if max(pods, needed) < _SMALL:
            self._looked.pop(key, None)
        else:
            self._looked[key] = _Looked(now + min(pods * _EACH, _LONGEST), needed)

    def delay(self, key: GangKey) -> float:
        """The seconds for which a change of the gang can wait."""
        now, last = self._clock(), self._looked.get(key)
        busy = self._at_rest.get(key, now) - now - _BETWEEN * _IN_A_ROW
        if last is None or (last.needed and len(self._cluster.pods_of(key)) >= last.needed):
            return max(0.0, busy)
        return max(0.0, last.until - now, busy)

    def forget(self, key: GangKey) -> None:
        """Drop what is remembered of a gang that is gone; how often it was looked at may be another's of its name."""
        self._looked.pop(key, None)
