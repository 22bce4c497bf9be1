"""What a fleet is made of: queues of three levels, gangs of which no two ask for the same, and when there was room."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["LARGEST", "One", "QueueOf", "Room", "gangs", "needed_nodes", "teams_of", "tree"]

_MOST_PODS = 20
_LEAST_MILLI, _MILLIS = 100, 1000
LARGEST = _MOST_PODS * (_LEAST_MILLI + _MILLIS)
"""The milli-cores of the largest gang, all of which a team may hold."""
_TEAMS, _DEPARTMENTS = 5, 4
# What a department may hold of what its teams may, and an organisation of what its departments may: each level limits.
_OF_TEAMS, _OF_DEPARTMENTS = 0.6, 0.8
# Nodes are never what is waited for: gangs are packed into them pod by pod.
_SPARE = 1.25


class QueueOf(NamedTuple):
    """A queue, the one above it, and the milli-cores of its capability."""

    name: str
    parent: str
    milli: int


@dataclass(frozen=True, slots=True)
class One:
    """A gang: its number, its queue, its pods, the milli-cores of each pod, and the seconds for which it runs."""

    number: int
    queue: str
    pods: int
    milli: int
    seconds: int

    @property
    def name(self) -> str:
        """The name of the gang."""
        return f"gang-{self.number:06}"

    @property
    def need(self) -> int:
        """The milli-cores of the whole gang."""
        return self.pods * self.milli

    @property
    def members(self) -> Iterator[str]:
        """The names of its pods."""
        return (f"{self.name}-{member}" for member in range(self.pods))


def tree(teams: int) -> list[QueueOf]:
    """So many teams in departments of five in organisations of four; those above others come first.

    A team may hold what the largest gang needs, and there is always one level above it that is full before its teams.
    Raises ValueError for less than one team.
    """
    if teams < 1:
        raise ValueError(f"{teams} queues have no gangs")
    of_department = [min(_TEAMS, teams - first) for first in range(0, teams, _TEAMS)]
    below = [max(LARGEST, round(_OF_TEAMS * number * LARGEST)) for number in of_department]
    found: list[QueueOf] = []
    for organisation, first in enumerate(range(0, len(below), _DEPARTMENTS)):
        of_all = sum(below[first : first + _DEPARTMENTS])
        found.append(QueueOf(f"org-{organisation}", "root", max(LARGEST, round(_OF_DEPARTMENTS * of_all))))
    for department, milli in enumerate(below):
        found.append(QueueOf(f"dep-{department:02}", f"org-{department // _DEPARTMENTS}", milli))
    found += [QueueOf(f"team-{team:03}", f"dep-{team // _TEAMS:02}", LARGEST) for team in range(teams)]
    return found


def teams_of(queues: Sequence[QueueOf]) -> list[str]:
    """The queues that gangs may name: those with none below them."""
    above = {queue.parent for queue in queues}
    return [queue.name for queue in queues if queue.name not in above]


def needed_nodes(queues: Sequence[QueueOf], cpu: int) -> int:
    """How many nodes of so many cores hold all that these queues let start."""
    return -(-round(_SPARE * sum(queue.milli for queue in queues if queue.parent == "root")) // (1000 * cpu))


def gangs(teams: Sequence[str], seed: int, seconds: tuple[int, int] = (0, 0)) -> Iterator[One]:
    """Gangs without end, the same for the same seed; of the first 15,000 no two ask for the same.

    Every team is as often named as the others. A gang runs for a time between the two `seconds`.
    """
    chance = random.Random(seed)  # noqa: S311 - the same gangs in every run
    millis = {pods: [*range(_LEAST_MILLI, _LEAST_MILLI + _MILLIS)] for pods in range(1, _MOST_PODS + 1)}
    for of_size in millis.values():
        chance.shuffle(of_size)
    made: dict[int, int] = defaultdict(int)
    order: list[str] = []
    number = 0
    while True:
        if not order:
            order = chance.sample(teams, len(teams))
        pods = chance.randint(1, _MOST_PODS)
        milli = millis[pods][made[pods] % _MILLIS]
        made[pods] += 1
        yield One(number, order.pop(), pods, milli, chance.randint(*seconds))
        number += 1


class _Level:
    """How much of one queue is free, and until when less was."""

    def __init__(self, milli: int) -> None:
        self.free = milli
        # What was free, and until when: each is more than those before it, for what is older and not less is never
        # the last that was too little.
        self._less: list[tuple[int, float]] = []

    def change(self, milli: int, now: float) -> None:
        """So much more is free, or less."""
        while self._less and self._less[-1][0] >= self.free:
            self._less.pop()
        self._less.append((self.free, now))
        self.free += milli

    def since(self, milli: int) -> float:
        """Since when so much has been free without a break; 0.0 for ever."""
        before = bisect_left(self._less, milli, key=lambda one: one[0])
        return self._less[before - 1][1] if before else 0.0


class Room:
    """Since when there was room for a gang, as somebody knows it who sees only gangs start and end.

    There is room from the moment at which no level above the gang has less free than it needs, until it starts. A gang
    that the ledger has let start takes room here when its first gate is seen open. So the room of the next is never
    seen late: what is measured from it is not too short.
    """

    def __init__(self, queues: Sequence[QueueOf]) -> None:
        self._parents: Mapping[str, str] = {queue.name: queue.parent for queue in queues}
        self._levels = {queue.name: _Level(queue.milli) for queue in queues}

    def _above(self, queue: str) -> Iterator[_Level]:
        while queue in self._levels:
            yield self._levels[queue]
            queue = self._parents[queue]

    def free(self, queue: str, milli: int, now: float) -> None:
        """So much is free again in this queue, and so in all above it."""
        for level in self._above(queue):
            level.change(milli, now)

    def take(self, queue: str, milli: int, now: float) -> float | None:
        """Take so much; gives since when it was free, None where that was not seen yet."""
        levels = [*self._above(queue)]
        moment = max(level.since(milli) for level in levels) if all(one.free >= milli for one in levels) else None
        for level in levels:
            level.change(-milli, now)
        return moment
