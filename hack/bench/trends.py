"""What is made of many numbers of a bench: percentiles, and whether a number that was sampled for long grows."""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Trend", "percentile", "trend"]

_QUARTERS = 4
_SHARE = 0.05
# Of the second quarter's standard deviation. A line that grows from the second quarter to the last has within a quarter
# a seventh of that as its own, so that it never hides behind this.
_SPREADS = 2.0


def percentile(numbers: Sequence[float], part: float) -> float:
    """The number below which this part (0 to 1) of the sorted `numbers` is; not a number where there are none."""
    return numbers[min(int(part * len(numbers)), len(numbers) - 1)] if numbers else float("nan")


class Trend(NamedTuple):
    """The means of the second and the last quarter of the time, and by how much they may differ and still be flat."""

    second: float
    last: float
    hours: float
    """From the middle of the one to the middle of the other."""
    allowed: float

    @property
    def grown(self) -> float:
        """By how much the last quarter is above the second."""
        return self.last - self.second

    @property
    def slope(self) -> float:
        """Growth for an hour."""
        return self.grown / self.hours

    @property
    def flat(self) -> bool:
        """Whether it does not grow: what falls is flat, too."""
        return self.grown <= self.allowed


def trend(points: Sequence[tuple[float, float]], least: float) -> Trend | None:
    """The trend of points of seconds and numbers, in order; None where a quarter has none.

    The first quarter is left out: a process that has just started has not seen everything yet. Allowed are `least`, a
    twentieth of the second quarter's mean, or twice its standard deviation, whichever is most.
    """
    if not points:
        return None
    begun, quarter = points[0][0], (points[-1][0] - points[0][0]) / _QUARTERS
    second = [number for at, number in points if quarter <= at - begun < 2 * quarter]
    last = [number for at, number in points if at - begun >= (_QUARTERS - 1) * quarter]
    if not second or not last or not quarter:
        return None
    mean = fmean(second)
    allowed = max(least, _SHARE * mean, _SPREADS * pstdev(second))
    return Trend(mean, fmean(last), 2 * quarter / 3600, allowed)
