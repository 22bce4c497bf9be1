"""When to refresh the messages of waiting gangs.

Whatever happens in a queue changes the words for all who wait there: positions, and what is free. Each telling may be a
write, and a write of words takes from the apiserver what the starting of gangs needs: so many a second, and no more.
Those at the head of a line are told first, for they look; the thousands behind them in rounds, queue after queue.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from muster.queueing.ledger import GangKey

__all__ = ["StatusUpdateSchedule"]

_HEAD = 10  # gangs of a queue
_HEADS_AT_ONCE = 100  # gangs of all queues; whole heads always
_BEHIND_AT_ONCE = 20  # gangs of all queues
_ROUND = 30.0  # seconds from the begin of one round of a queue to the begin of the next


class StatusUpdateSchedule:
    """The queues in which something happened since everybody there was told. Times are seconds of one clock."""

    def __init__(self) -> None:
        # Those who have waited longest for being told are first.
        self._heads: dict[str, None] = {}
        self._rests: dict[str, None] = {}
        self._behind: deque[GangKey] = deque()
        self._next_round: dict[str, float] = {}

    def touch(self, queues: Iterable[str]) -> None:
        """Something happened in these queues."""
        touched = dict.fromkeys(queues)
        self._heads |= touched
        self._rests |= touched

    def due(self, now: float, line: Callable[[str, int, int | None], Sequence[GangKey]]) -> list[GangKey]:
        """The gangs whose message is to be refreshed now; called about every second.

        `line` gives those who wait in a queue from one place in its order up to another, all with None.
        """
        heads: list[GangKey] = []
        for queue in list(self._heads):
            if len(heads) >= _HEADS_AT_ONCE:
                break
            del self._heads[queue]
            heads += line(queue, 0, _HEAD)
        for queue in [queue for queue in self._rests if self._next_round.get(queue, now) <= now]:
            if len(self._behind) >= _BEHIND_AT_ONCE:
                break
            del self._rests[queue]
            self._behind += line(queue, _HEAD, None)
            self._next_round[queue] = now + _ROUND
        if not self._rests:
            self._next_round = {queue: when for queue, when in self._next_round.items() if when > now}
        return heads + [self._behind.popleft() for _ in range(min(_BEHIND_AT_ONCE, len(self._behind)))]
