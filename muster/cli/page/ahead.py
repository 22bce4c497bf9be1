"""The next day of a queue: from when its room is reserved, the starts that are expected there, and words for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.cli.words import counted
from muster.model.times import minute_of, seconds_of

_SLOT, _WIDTH, _HEIGHT = 900, 96, 12


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is drawn, a unit for each quarter of an hour, and the same in words.

    :ivar starts: a stroke for each quarter of an hour in which a gang is expected to start, as a path of SVG
    :ivar reserved: where the room begins that is reserved; None where none is in that day
    :ivar width: the width of the drawing
    :ivar height: its height
    :ivar words: the reservation, and how many starts are expected
    """

    starts: str
    reserved: int | None
    width: int
    height: int
    words: tuple[str, ...]


def ahead(now: float, reservation: Mapping[str, Any] | None, starts: Iterable[float]) -> Ahead:
    """Draw a reservation as `muster queues -o json` has it, and the times of expected starts."""
    soon = [place for at in starts if 0 <= (place := int(at - now) // _SLOT) < _WIDTH]
    words = []
    reserved = None
    if reservation is not None:
        start = seconds_of(reservation["startsBy"] or "")
        words.append(f"reserved for {reservation['gang']} from {'now on' if start is None else minute_of(start)}")
        place = 0 if start is None else max(0, int(start - now) // _SLOT)
        reserved = place if place < _WIDTH else None
    if soon:
        words.append(f"{counted(len(soon), 'start')} expected")
    strokes = "".join(f"M{place}.5 0V{_HEIGHT}" for place in sorted(set(soon)))
    return Ahead(strokes, reserved, _WIDTH, _HEIGHT, tuple(words))
