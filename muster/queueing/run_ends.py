"""The expected ends of claims, in order of time, and the first time at which enough of them have ended.

Thousands of gangs may run. Their ends stand in blocks, and it is known what has ended before each block, so that a
question costs by the logarithm of their number, and one block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from muster.queueing.entries import Claim, End, EndKind, EntryKey
from muster.queueing.usage import Amounts, plus

_MOST = 128


class _Ending(NamedTuple):
    at: float
    key: EntryKey
    end: End
    amounts: Amounts

    @classmethod
    def of(cls, key: EntryKey, end: End, amounts: Amounts) -> _Ending:
        return cls(end.start + end.seconds, key, end, amounts)

    @property
    def place(self) -> tuple[float, EntryKey]:
        return self.at, self.key


class _Block:
    """Ends that follow each other, and their sums by how unsure ends are trusted; None until somebody asks."""

    __slots__ = ("endings", "sums")

    def __init__(self, endings: list[_Ending]) -> None:
        self.endings = endings
        self.sums: tuple[dict[str, int], ...] | None = None

    @property
    def last(self) -> _Ending:
        return self.endings[-1]


class RunEnds:
    """The ends of claims of one queue or namespace, as far as they are known."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        """Those of these claims."""
        endings = sorted(filter(None, map(_ending_of, claims)), key=lambda one: one.place)
        self._blocks = [_Block(endings[at : at + _MOST // 2]) for at in range(0, len(endings), _MOST // 2)]
        self._at = {one.key: one.at for one in endings}
        # When what is known of an end changes, by time and by claim; what is in the first and not in the second is old.
        self._change_of = {one.key: one.end.holds_until(one.end.start) for one in endings}
        self._changes = sorted((moment, key) for key, moment in self._change_of.items())
        # What has ended before a block; of as many blocks as is known.
        self._before: list[tuple[dict[str, int], ...]] = [tuple({} for _ in EndKind)]

    def add(self, key: EntryKey, end: End, amounts: Amounts) -> None:
        """Note the end of a claim of which nothing is noted."""
        self._note(_Ending.of(key, end, amounts), end.start)

    def remove(self, key: EntryKey) -> None:
        """Forget the end of a claim, where one is noted."""
        self._change_of.pop(key, None)
        self._take(key)

    def _take(self, key: EntryKey) -> _Ending | None:
        at = self._at.pop(key, inf)
        if at == inf:
            return None
        where = self._block_of(at, key)
        endings = self._blocks[where].endings
        ending = endings.pop(bisect_left(endings, (at, key), key=lambda one: one.place))
        self._changed(where)
        return ending

    def _note(self, ending: _Ending, now: float) -> None:
        self._insert(ending)
        moment = self._change_of[ending.key] = ending.end.holds_until(now)
        heappush(self._changes, (moment, ending.key))
        if len(self._changes) > 2 * len(self._change_of) + _MOST:
            # Claims come and go long before anything of them would change.
            self._changes = sorted((moment, key) for key, moment in self._change_of.items())

    def advance(self, now: float) -> float:
        """Estimate again what has run longer than some of its former runs; limits that were overrun are no known ends.

        Gives the first time after `now` at which that changes something, infinity for never.
        """
        while self._changes:
            moment, key = self._changes[0]
            current = self._change_of.get(key) == moment
            if current and moment > now:
                return moment
            heappop(self._changes)
            if current:
                del self._change_of[key]
                ending = self._take(key)
                if ending is not None and (at := ending.end.after(now)) < inf:
                    self._note(ending._replace(at=at), now)
        return inf

    def _insert(self, ending: _Ending) -> None:
        self._at[ending.key] = ending.at
        if not self._blocks:
            self._blocks.append(_Block([]))
            where = 0
        else:
            where = min(self._block_of(*ending.place), len(self._blocks) - 1)
        endings = self._blocks[where].endings
        insort(endings, ending, key=lambda one: one.place)
        if len(endings) > _MOST:
            self._blocks.insert(where + 1, _Block(endings[_MOST // 2 :]))
            del endings[_MOST // 2 :]
        self._changed(where)

    def _changed(self, where: int) -> None:
        self._blocks[where].sums = None
        del self._before[where + 1 :]
        if not self._blocks[where].endings:
            del self._blocks[where]

    def _block_of(self, at: float, key: EntryKey) -> int:
        return bisect_left(self._blocks, (at, key), key=lambda block: block.last.place)

    def last_of_blocks(self) -> Iterator[float]:
        """Times of which it is enough to ask first."""
        return (block.last.at for block in self._blocks)

    def between(self, after: float, until: float) -> Iterator[float]:
        """The ends after one time and up to another one."""
        for block in self._blocks[bisect_right(self._blocks, after, key=lambda block: block.last.at) :]:
            for ending in block.endings:
                if ending.at > until:
                    return
                if ending.at > after:
                    yield ending.at

    def ended(self, time: float, trust: EndKind) -> dict[str, int]:
        """The amounts of claims that end by then, as far as so unsure ends are trusted."""
        where = bisect_right(self._blocks, time, key=lambda block: block.last.at)
        for block in self._blocks[len(self._before) - 1 : where]:
            if block.sums is None:
                block.sums = tuple(_sum({}, block.endings, kind) for kind in EndKind)
            both = zip(self._before[-1], block.sums, strict=True)
            self._before.append(tuple(plus(before, more.items()) for before, more in both))
        ended = dict(self._before[where][trust])
        if where < len(self._blocks):
            endings = self._blocks[where].endings
            _sum(ended, endings[: bisect_right(endings, time, key=lambda ending: ending.at)], trust)
        return ended


class EndsByPlace:
    """The ends of claims in queues or namespaces: found when they are asked for, and kept up to date from then on."""

    def __init__(self) -> None:
        self._known: dict[str, RunEnds] = {}

    def enter(self, places: Iterable[str], claim: Claim, sign: int = 1) -> None:
        """A claim counts there, or with the sign -1 counts there no longer."""
        if (ending := _ending_of(claim)) is not None:
            for known in (self._known[one] for one in places if one in self._known):
                if sign > 0:
                    known.add(ending.key, ending.end, ending.amounts)
                else:
                    known.remove(ending.key)

    def at(self, place: str, claims: Callable[[], Iterable[Claim]]) -> RunEnds:
        """The ends there, where these claims count."""
        if place not in self._known:
            self._known[place] = RunEnds(claims())
        return self._known[place]

    def forget(self) -> None:
        """Other claims may count somewhere."""
        self._known.clear()


def ended_by(several: Iterable[RunEnds], time: float, trust: EndKind) -> dict[str, int]:
    """The amounts of all claims that end by then, as far as so unsure ends are trusted."""
    ended: dict[str, int] = {}
    for ends in several:
        ended = plus(ended, ends.ended(time, trust).items())
    return ended


def first_time(several: Sequence[RunEnds], holds: Callable[[float], bool]) -> float:
    """The first end at which something holds, which holds from then on; infinity where it never does."""
    blocks = sorted({time for ends in several for time in ends.last_of_blocks()})
    where = bisect_left(blocks, True, key=holds)
    if where == len(blocks):
        return inf
    before = blocks[where - 1] if where else -inf
    times = sorted({time for ends in several for time in ends.between(before, blocks[where])})
    return times[bisect_left(times, True, key=holds)]


def _ending_of(claim: Claim) -> _Ending | None:
    """What is noted of a claim: it gives back what counts wherever it does; its soft part may not."""
    if claim.end is None or claim.lasts:
        return None
    soft = dict(claim.soft_amounts)
    amounts = tuple((name, left) for name, amount in claim.amounts if (left := amount - soft.get(name, 0)))
    return _Ending.of(claim.key, claim.end, amounts)


def _sum(sums: dict[str, int], endings: Iterable[_Ending], trust: EndKind) -> dict[str, int]:
    for ending in endings:
        if ending.end.kind <= trust:
            for name, amount in ending.amounts:
                sums[name] = sums.get(name, 0) + amount
    return sums
