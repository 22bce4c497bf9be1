"""The last hour of a queue: an area for its usage, a line for the gangs that wait, and words for both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEIGHT = 40
"""The height of the drawing; it is as wide as there are values."""

_FULL = 100


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn, as paths of SVG in steps, and the same in words.

    :ivar used: the area below the usage, "" where that is unknown
    :ivar waiting: the line of the waiting gangs, "" where nobody waited
    :ivar width: the width of the drawing
    :ivar height: its height
    :ivar words: of each, with the lowest, the highest and the last value
    """

    used: str
    waiting: str
    width: int
    height: int
    words: tuple[str, ...]


def chart(percents: Sequence[int | None], waiting: Sequence[int | None]) -> Chart:
    """Draw usage in percent and numbers of waiting gangs, of the same moments, the oldest first."""
    most = max((one for one in waiting if one is not None), default=0)
    area = "".join(_area(start, run, _FULL) for start, run in _runs(percents))
    line = "".join(_line(start, run, most) for start, run in _runs(waiting)) if most else ""
    words = (_words("used", percents, " %"), _words("waiting", waiting, ""))
    return Chart(area, line, len(percents), HEIGHT, tuple(filter(None, words)))


def _runs(values: Sequence[int | None]) -> Iterator[tuple[int, list[int]]]:
    """The values without a gap, each run with the place of its first."""
    run: list[int] = []
    for place, value in enumerate((*values, None)):
        if value is not None:
            run.append(value)
        elif run:
            yield place - len(run), run
            run = []


def _area(start: int, run: Sequence[int], top: int) -> str:
    return f"M{start} {HEIGHT}{_steps(start, run, top)}V{HEIGHT}Z"


def _line(start: int, run: Sequence[int], top: int) -> str:
    # The pen is put down where the line begins, not on the ground.
    first, rest = _steps(start, run, top)[1:].split("H", 1)
    return f"M{start} {first}H{rest}"


def _steps(start: int, run: Sequence[int], top: int) -> str:
    """`V` to each value and `H` to where the next one begins; equal ones are one step."""
    path = ""
    for place, value in enumerate(run):
        if place and value == run[place - 1]:
            continue
        path += (f"H{start + place}" if place else "") + f"V{_height(value, top)}"
    return f"{path}H{start + len(run)}"


def _height(value: int, top: int) -> str:
    # A line is two units thick: it stays inside.
    return f"{HEIGHT - 1 - (HEIGHT - 2) * min(value, top) / top:.1f}".removesuffix(".0")


def _words(what: str, values: Sequence[int | None], unit: str) -> str:
    known = [one for one in values if one is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    between = f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
    now = values[-1]
    return f"{what} {between}, now {'unknown' if now is None else f'{now}{unit}'}"
