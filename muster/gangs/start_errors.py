"""The error of planned starts: the factor between the real and the planned wait by the first reservation.

Counted by factor and day, for the last week, for all queues together: no name of a gang or a queue is kept.
"""

from bisect import bisect_left
from typing import Annotated, NamedTuple

import msgspec

from muster.model.objects import decode
from muster.model.times import stamp_of

FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""The upper bounds of the buckets; larger factors are counted in one more bucket."""

_WEEK = 7 * 86400
# Shorter waits count as a minute: a start within seconds of the plan is right.
_SHORTEST = 60.0
_LEAST = 10

_Counts = Annotated[
    list[Annotated[int, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=len(FACTORS) + 1, max_length=len(FACTORS) + 1)
]
_Days = dict[Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d$")], _Counts]


class PlannedStart(NamedTuple):
    """The start of a gang by its reservations, in seconds of the wall clock.

    :ivar start: the start by its last reservation
    :ivar basis: the basis of that estimate
    :ivar first: the start by its first reservation
    :ivar since: the time of the first one
    """

    start: float
    basis: str
    first: float
    since: float


class StartError(NamedTuple):
    """The error of the last week: half of the gangs started within `factor` of the planned wait.

    `factor` is None when it is above the last of `FACTORS`.
    """

    gangs: int
    factor: float | None

    def __str__(self) -> str:
        """Return the error in words."""
        half = f"half within x{self.factor:g}" if self.factor is not None else f"half beyond x{FACTORS[-1]:g}"
        return f"expected starts of the last week: {half} ({self.gangs} gangs)"


class StartErrors:
    """The errors of the last week, in UTC days."""

    def __init__(self) -> None:
        self._days: dict[str, list[int]] = {}
        self.changed = False
        """True if gangs were recorded since the caller last set it to False."""

    def record(self, planned: PlannedStart, now: float) -> None:
        """Count a gang that starts now."""
        waits = max(planned.first - planned.since, _SHORTEST), max(now - planned.since, _SHORTEST)
        counts = self._days.setdefault(_day(now), [0] * (len(FACTORS) + 1))
        counts[bisect_left(FACTORS, max(waits) / min(waits))] += 1
        self._days = {day: counts for day, counts in self._days.items() if day >= _day(now - _WEEK)}
        self.changed = True

    def last_week(self, now: float) -> StartError | None:
        """Return the error of the week before `now`, or None when fewer than ten gangs had a reservation."""
        counts = [sum(column) for column in zip(*self._of_week(now), strict=True)]
        gangs = sum(counts)
        if gangs < _LEAST:
            return None
        within = (factor for place, factor in enumerate(FACTORS) if 2 * sum(counts[: place + 1]) >= gangs)
        return StartError(gangs, next(within, None))

    def _of_week(self, now: float) -> list[list[int]]:
        return [counts for day, counts in self._days.items() if _day(now - _WEEK) <= day <= _day(now)]

    def text(self) -> str:
        """Return the errors as they are stored: at most eight days, less than a kilobyte."""
        return msgspec.json.encode(self._days).decode()

    def read(self, text: str) -> None:
        """Add stored errors. Raises InvalidObjectError for any other text."""
        for day, stored in decode(text, _Days).items():
            since = self._days.get(day, [0] * (len(FACTORS) + 1))
            self._days[day] = [one + other for one, other in zip(stored, since, strict=True)]


def _day(now: float) -> str:
    return stamp_of(now)[:10]
