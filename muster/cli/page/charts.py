"""Drawings as paths of SVG: the last hour of a queue and its next day, also in words, and amounts above each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from muster.cli.report.figures import Report, hours_of, in_hours
from muster.cli.ui import age, counted
from muster.model.times import minute_of, seconds_of

_SLOT, _WIDTH, _HEIGHT = 900, 96, 12
HEIGHT = 40
"""The height of the drawing; it is as wide as there are values."""
_FULL = 100


@dataclass(frozen=True, slots=True)
class Ahead:
    """A drawing with a unit for each quarter of an hour, and the same in words.

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


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing as paths of SVG in steps, and the same in words.

    :ivar used: the area below the usage, "" where that is unknown
    :ivar waiting: the line of the waiting gangs, "" when no gang waited
    :ivar width: the width of the drawing
    :ivar height: its height
    :ivar words: of each, with the lowest, the highest and the last value
    :ivar quiet: true if nothing was used and no gang waited
    """

    used: str
    waiting: str
    width: int
    height: int
    words: tuple[str, ...]
    quiet: bool = False


def chart(percents: Sequence[int | None], waiting: Sequence[int | None]) -> Chart:
    """Draw usage in percent and numbers of waiting gangs, of the same moments, the oldest first."""
    most = max((one for one in waiting if one is not None), default=0)
    area = "".join(_area(start, run, _FULL) for start, run in _runs(percents))
    line = "".join(_line(start, run, most) for start, run in _runs(waiting)) if most else ""
    words = (_words("used", percents, "%"), _words("waiting", waiting, ""))
    # Where the last value is unknown something may be wrong.
    quiet = waiting[-1:] != [None] and not any((*percents, *waiting))
    return Chart(area, line, len(percents), HEIGHT, tuple(filter(None, words)), quiet)


def weeks(report: Report) -> dict[str, Chart]:
    """Draw what each row held by day of the resource by which rows are in order; its words have the rest."""
    found = {}
    for row in report.rows:
        used = row.sums.held if any(row.sums.held.get(name) for name in report.order) else row.sums.waited
        resource = next((name for name in report.order if used.get(name)), "cpu")
        held = [in_hours(row.by_day.get(day, {}).get(resource, 0.0), resource) for day in report.days]
        path = "".join(stacked([held]))
        parts = [(row.hours("idle", resource), "idle"), (row.hours("waited", resource), "waited for")]
        hours = [f"{sum(held):,.0f} {hours_of(resource)}", *(f"{part:,.0f} {of}" for part, of in parts if round(part))]
        median, long = row.waits()
        waits = (
            f"half waited up to {age(median)}, 95% up to {age(long)}" if median is not None and long is not None else ""
        )
        words = ", ".join(hours), waits, row.ended()
        found[row.name] = Chart(path, "", len(held), HEIGHT, tuple(filter(None, words)))
    return found


def stacked(layers: Sequence[Sequence[float]]) -> list[str]:
    """Draw amounts above each other as areas, the lowest first; each hides a part of the next one.

    A drawing is as wide as a layer has amounts, and as high as the largest sum.
    """
    tops = list(accumulate(layers, lambda below, layer: [a + b for a, b in zip(below, layer, strict=True)]))
    most = max(tops[-1], default=0.0) if tops else 0.0
    return [_area(0, top, most) for top in tops] if most else []


def _runs(values: Sequence[int | None]) -> Iterator[tuple[int, list[int]]]:
    """The values without a gap, each run with the place of its first."""
    run: list[int] = []
    for place, value in enumerate((*values, None)):
        if value is not None:
            run.append(value)
        elif run:
            yield place - len(run), run
            run = []


def _area(start: int, run: Sequence[float], top: float) -> str:
    return f"M{start} {HEIGHT}{_steps(start, run, top)}V{HEIGHT}Z"


def _line(start: int, run: Sequence[int], top: int) -> str:
    # The pen is put down where the line begins, not on the ground.
    first, rest = _steps(start, run, top)[1:].split("H", 1)
    return f"M{start} {first}H{rest}"


def _steps(start: int, run: Sequence[float], top: float) -> str:
    """`V` to each value and `H` to where the next one begins; equal ones are one step."""
    path = ""
    for place, value in enumerate(run):
        if place and value == run[place - 1]:
            continue
        path += (f"H{start + place}" if place else "") + f"V{_height(value, top)}"
    return f"{path}H{start + len(run)}"


def _height(value: float, top: float) -> str:
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
