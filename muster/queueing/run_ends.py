"""The expected ends of claims, in order of time, and the first time at which enough of them have ended.

Thousands of gangs may run. They stand in blocks that know their sums, so that a question costs by blocks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from muster.queueing.entries import EndKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from muster.queueing.entries import End, EntryKey
    from muster.queueing.usage import Amounts

__all__ = ["RunEnds", "ended_by", "first_time"]

_MOST = 128
_KINDS = tuple(EndKind)


class _Ending(NamedTuple):
    at: float
    key: EntryKey
    end: End
    amounts: Amounts


class _Block:
    """Ends that follow each other, and the sums of each kind; None until somebody asks."""

    __slots__ = ("_sums", "endings")

    def __init__(self, endings: list[_Ending]) -> None:
        self.endings = endings
        self._sums: tuple[dict[str, int], ...] | None = None

    def changed(self) -> None:
        self._sums = None

    def sums(self, kind: EndKind) -> dict[str, int]:
        if self._sums is None:
            self._sums = tuple({} for _ in _KINDS)
            _add(self._sums, self.endings)
        return self._sums[kind]


class RunEnds:
    """The ends of the claims of one queue or namespace; those that are not known are not among them."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._at: dict[EntryKey, float] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def copy(self) -> RunEnds:
        """The same ends, to be changed by themselves."""
        other = RunEnds()
        other._blocks = [_Block(list(block.endings)) for block in self._blocks]
        other._at = dict(self._at)
        return other

    def add(self, key: EntryKey, end: End, amounts: Amounts) -> None:
        """Note the end of a claim of which nothing is noted."""
        self._insert(_Ending(end.start + end.seconds, key, end, amounts))

    def remove(self, key: EntryKey) -> None:
        """Forget the end of a claim, where one is noted."""
        at = self._at.pop(key, inf)
        if at < inf:
            where = self._block_of(at, key)
            block = self._blocks[where]
            del block.endings[bisect_left(block.endings, (at, key))]
            block.changed()
            if not block.endings:
                del self._blocks[where]

    def advance(self, now: float) -> float:
        """Have estimates that proved too short count as longer, and limits that were overrun as none.

        Gives the first end after `now`, infinity where none is known.
        """
        while self._blocks and (first := self._blocks[0].endings[0]).at <= now:
            self.remove(first.key)
            at = first.end.after(now)
            if at < inf:
                self._insert(first._replace(at=at))
        return self._blocks[0].endings[0].at if self._blocks else inf

    def _insert(self, ending: _Ending) -> None:
        self._at[ending.key] = ending.at
        if not self._blocks:
            self._blocks.append(_Block([ending]))
            return
        where = min(self._block_of(ending.at, ending.key), len(self._blocks) - 1)
        block = self._blocks[where]
        insort(block.endings, ending, key=_place)
        block.changed()
        if len(block.endings) > _MOST:
            half = _MOST // 2
            self._blocks.insert(where + 1, _Block(block.endings[half:]))
            del block.endings[half:]

    def _block_of(self, at: float, key: EntryKey) -> int:
        return bisect_left(self._blocks, (at, key), key=lambda block: _place(block.endings[-1]))

    def last_of_blocks(self) -> Iterator[float]:
        """Times of which it is enough to ask first."""
        for block in self._blocks:
            yield block.endings[-1].at

    def between(self, after: float, until: float) -> Iterator[float]:
        """The ends after one time and up to another one."""
        for block in self._blocks:
            if block.endings[-1].at > after:
                for ending in block.endings:
                    if ending.at > until:
                        return
                    if ending.at > after:
                        yield ending.at

    def add_ended(self, sums: dict[str, int], time: float, trust: EndKind) -> None:
        """Add the amounts of claims that end by then, as far as so unsure ends are trusted."""
        for block in self._blocks:
            if block.endings[-1].at <= time:
                for kind in _KINDS[: trust + 1]:
                    for name, amount in block.sums(kind).items():
                        sums[name] = sums.get(name, 0) + amount
            else:
                endings = block.endings[: bisect_right(block.endings, time, key=lambda ending: ending.at)]
                _add((sums,), (ending for ending in endings if ending.end.kind <= trust))
                return


def ended_by(several: Iterable[RunEnds], time: float, trust: EndKind) -> dict[str, int]:
    """The amounts of all claims that end by then, as far as so unsure ends are trusted."""
    sums: dict[str, int] = {}
    for ends in several:
        ends.add_ended(sums, time, trust)
    return sums


def first_time(several: Sequence[RunEnds], holds: Callable[[float], bool]) -> float:
    """The first end at which something holds, which holds from then on; infinity where it never does."""
    blocks = sorted({time for ends in several for time in ends.last_of_blocks()})
    where = bisect_left(blocks, True, key=holds)
    if where == len(blocks):
        return inf
    before = blocks[where - 1] if where else -inf
    times = sorted({time for ends in several for time in ends.between(before, blocks[where])})
    return times[bisect_left(times, True, key=holds)]


def _place(ending: _Ending) -> tuple[float, EntryKey]:
    return ending.at, ending.key


def _add(sums: Sequence[dict[str, int]], endings: Iterable[_Ending]) -> None:
    """Add up amounts by kind, or into one sum where there is only one."""
    for ending in endings:
        of_kind = sums[ending.end.kind] if len(sums) > 1 else sums[0]
        for name, amount in ending.amounts:
            of_kind[name] = of_kind.get(name, 0) + amount
