"""How soon a large gang is looked at again.

To look at a gang takes as long as it has pods, and each of its pods changes some times on its way: a gang of 4,000
would be looked at 20,000 times, for minutes of a core. So a large one is left alone for a moment after each look,
unless the pod has come that makes it complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.queueing.ledger import GangKey

__all__ = ["Pace"]

# Pods of a gang that is looked at whenever something changes.
_SMALL = 50
# Seconds for each pod, some twenty times what it adds to a look; and at most.
_EACH, _LONGEST = 0.0002, 0.5


class _Looked(NamedTuple):
    until: float
    needed: int


class Pace:
    """For how long changes of gangs can wait; `pods` gives how many a gang has now, `clock` never goes back."""

    def __init__(self, pods: Callable[[GangKey], int], clock: Callable[[], float]) -> None:
        self._pods = pods
        self._clock = clock
        self._looked: dict[GangKey, _Looked] = {}

    @property
    def gangs(self) -> int:
        """Of how many gangs something is remembered."""
        return len(self._looked)

    def looked(self, key: GangKey, pods: int, *, needed: int = 0) -> None:
        """Note a look at a gang with so many pods; `needed` is how many it waits for, 0 where it waits for none."""
        if max(pods, needed) < _SMALL:
            self._looked.pop(key, None)
        else:
            self._looked[key] = _Looked(self._clock() + min(pods * _EACH, _LONGEST), needed)

    def wait(self, key: GangKey) -> float:
        """The seconds for which a change of the gang can wait."""
        last = self._looked.get(key)
        if last is None or (last.needed and self._pods(key) >= last.needed):
            return 0.0
        return max(0.0, last.until - self._clock())

    def forget(self, key: GangKey) -> None:
        """Drop what is remembered of a gang that is gone."""
        self._looked.pop(key, None)
