"""The expected ends of claims, in order of time, and the first time at which enough of them have ended.

Thousands of gangs may run. Their ends stand in blocks, and it is known what has ended before each block, so that a
question costs by the logarithm of their number, and one block.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from muster.queueing.blocks import Blocks
from muster.queueing.entries import Claim, End, EndKind, EntryKey
from muster.queueing.usage import Amounts, plus

# So many moments of claims that have gone stay in their heap until it is made again.
_STALE = 128
_Place = tuple[float, EntryKey]
_Sums = tuple[dict[str, int], ...]
"""By how unsure ends are trusted."""


class _Ending(NamedTuple):
    end: End
    amounts: Amounts


class RunEnds(Blocks[_Place, _Ending, _Sums]):
    """The ends of claims of one queue or namespace, by time, as far as they are known."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        """Collect the ends of these claims."""
        endings = {claim.key: ending for claim in claims if (ending := _ending_of(claim)) is not None}
        self._at = {key: end.start + end.seconds for key, (end, _) in endings.items()}
        super().__init__(((self._at[key], key), ending) for key, ending in endings.items())
        # When what is known of an end changes, by time and by claim; what is in the first and not in the second is old.
        self._change_of = {key: end.holds_until(end.start) for key, (end, _) in endings.items()}
        self._changes = sorted((moment, key) for key, moment in self._change_of.items())
        # What has ended before a block; of as many blocks as is known.
        self._before: list[_Sums] = [tuple({} for _ in EndKind)]

    def summarize(self, values: Sequence[_Ending]) -> _Sums:
        """The sums of what ends."""
        return tuple(_sum({}, values, kind) for kind in EndKind)

    def changed(self, where: int) -> None:
        """A block has changed."""
        super().changed(where)
        del self._before[where + 1 :]

    def enter(self, claim: Claim, sign: int = 1) -> None:
        """Note the end of a claim, or with the sign -1 forget it."""
        if sign < 0:
            self._change_of.pop(claim.key, None)
            self._take(claim.key)
        elif (ending := _ending_of(claim)) is not None:
            self._note(claim.key, ending, ending.end.start + ending.end.seconds, ending.end.start)

    def _take(self, key: EntryKey) -> _Ending | None:
        at = self._at.pop(key, None)
        return None if at is None else self.remove((at, key))

    def _note(self, key: EntryKey, ending: _Ending, at: float, now: float) -> None:
        self._at[key] = at
        self.add((at, key), ending)
        moment = self._change_of[key] = ending.end.holds_until(now)
        heappush(self._changes, (moment, key))
        if len(self._changes) > 2 * len(self._change_of) + _STALE:
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
                    self._note(key, ending, at, now)
        return inf

    def last_of_blocks(self) -> Iterator[float]:
        """The last end of each block: times to ask about first."""
        return (block.keys[-1][0] for block in self.blocks)

    def between(self, after: float, until: float) -> Iterator[float]:
        """The ends after one time and up to another one."""
        for block in self.blocks[self._ended_blocks(after) :]:
            yield from (at for at, _ in block.keys if after < at <= until)
            if block.keys[-1][0] > until:
                return

    def ended(self, time: float, trust: EndKind) -> dict[str, int]:
        """The amounts of claims that end by then, as far as so unsure ends are trusted."""
        where = self._ended_blocks(time)
        for block in self.blocks[len(self._before) - 1 : where]:
            both = zip(self._before[-1], self.summary(block), strict=True)
            self._before.append(tuple(plus(before, more.items()) for before, more in both))
        ended = dict(self._before[where][trust])
        if where < len(self.blocks):
            block = self.blocks[where]
            _sum(ended, block.values[: bisect_right(block.keys, time, key=lambda place: place[0])], trust)
        return ended

    def _ended_blocks(self, time: float) -> int:
        return bisect_right(self.blocks, time, key=lambda block: block.keys[-1][0])


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
    """The end of a claim, and the amounts given back then, without its soft part; None if it has no end."""
    if claim.end is None or claim.lasts:
        return None
    soft = dict(claim.soft_amounts)
    amounts = tuple((name, left) for name, amount in claim.amounts if (left := amount - soft.get(name, 0)))
    return _Ending(claim.end, amounts)


def _sum(sums: dict[str, int], endings: Iterable[_Ending], trust: EndKind) -> dict[str, int]:
    for end, amounts in endings:
        if end.kind <= trust:
            for name, amount in amounts:
                sums[name] = sums.get(name, 0) + amount
    return sums
