"""What queues have held so far: for each a moving average, in which an hour counts half as much after each half-life.

It is kept for the queues whose parent sets a half-life, by resource and with all queues below. What is held at one
moment stands for the time since the moment before, so that a new leader, which reads the averages, goes on from there.
Of the stored form no more is kept than `_LONGEST` bytes: what is left out begins again with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec

from muster.model.names import LONGEST_NAME
from muster.model.objects import decode

EVERY = 60.0
"""Seconds from one advance to the next, at least."""

_NANO = 10**9
_LONGEST = 96_000
_NOTHING: Mapping[str, int] = MappingProxyType({})
# The leaf of a queue's own gangs has one more character.
_Queue = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME + 1)]
_Resource = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME + 64)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
_Averages = dict[_Queue, Annotated[dict[_Resource, _Amount], msgspec.Meta(max_length=32)]]


class _Stored(msgspec.Struct):
    until: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    queues: Annotated[_Averages, msgspec.Meta(max_length=_LONGEST // 8)]


class PastUse:
    """The averages, in billionths of the units."""

    def __init__(self) -> None:
        self._until: float | None = None
        self._averages: dict[str, dict[str, int]] = {}
        # Those that were read after the first advance, as of the last one: to be added at the next one.
        self._former: dict[str, dict[str, int]] = {}
        # As of the last advance.
        self._half_lives: dict[str, float] = {}
        self.changed = False
        """True if anything has changed since the caller last set it to False."""

    def __bool__(self) -> bool:
        return bool(self._averages)

    def copy(self) -> PastUse:
        """The same averages, to be advanced by themselves."""
        other = PastUse()
        other._until, other._averages = self._until, dict(self._averages)
        return other

    def of(self, queue: str) -> Mapping[str, int]:
        """The averages of a queue, by resource; they are not changed."""
        return self._averages.get(queue, _NOTHING)

    def due(self, now: float) -> bool:
        """True if they are to be advanced: for the first time, after `EVERY`, or because the clock was put back."""
        return self._until is None or not 0 <= now - self._until < EVERY

    def advance(self, now: float, held: Iterable[tuple[str, float, Mapping[str, int]]]) -> list[str]:
        """Go on until `now` (seconds of the wall clock) with the half-life of each queue, and what it holds.

        Queues that are not among these are dropped. Gives the queues whose averages have changed.
        """
        begun = now if self._until is None else self._until
        passed, self._until = max(now - begun, 0.0), now
        before, self._averages = self._averages, {}
        former, self._former, self._half_lives = self._former, {}, {}
        for queue, half_life, holds in held:
            kept, self._half_lives[queue] = 2 ** -(passed / half_life), half_life
            old = _sum(before.get(queue, _NOTHING), former.get(queue, _NOTHING))
            new = {name: round(old.get(name, 0) * kept + holds.get(name, 0) * (1 - kept)) for name in {*old, *holds}}
            if any(new.values()):
                self._averages[queue] = {name: amount for name, amount in new.items() if amount}
        changed = [one for one in {*before, *self._averages} if before.get(one) != self._averages.get(one)]
        self.changed |= bool(changed)
        return changed

    def text(self) -> str:
        """The averages as they are stored, to six digits."""
        stored, size = _Stored(self._until or 0.0, {}), 0
        for queue in self._averages | self._former:
            amounts = _sum(self.of(queue), self._former.get(queue, _NOTHING))
            entry = {name: float(f"{amount / _NANO:.6g}") for name, amount in amounts.items()}
            size += len(msgspec.json.encode({queue: entry}))
            if entry and size <= _LONGEST:
                stored.queues[queue] = entry
        return msgspec.json.encode(stored).decode()

    def read(self, text: str) -> None:
        """Go on from stored averages, with what was held since. Raises InvalidObjectError for any other text."""
        stored = decode(text, _Stored)
        averages = {
            queue: {name: round(amount * _NANO) for name, amount in amounts.items()}
            for queue, amounts in stored.queues.items()
        }
        if self._until is None:
            self._until, self._averages = stored.until or None, averages
        else:
            passed = max(self._until - stored.until, 0.0)
            for queue, half_life in self._half_lives.items():
                kept, amounts = 2 ** -(passed / half_life), averages.get(queue, _NOTHING)
                self._former[queue] = {name: round(amount * kept) for name, amount in amounts.items()}


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}} if other else one
