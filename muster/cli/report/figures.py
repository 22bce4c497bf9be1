"""The figures of a report: the records since a day, summed by queue, namespace, owner or label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from muster.gangs.accounts import OUTCOMES, RETENTION_DAYS, Accounts, Scope, Totals, wait_quantile
from muster.model.texts import did_you_mean
from muster.model.times import duration_of, stamp_of

MEASURES = ("held", "idle", "waited")
"""What is summed of each resource, in the order of all outputs; `idle` is the part of `held` while no pod ran."""
_OF_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_USUAL = ("cpu", "memory")
_MOST_RESOURCES = 1000
_DAYS = re.compile(r"(\d{1,4})d", re.ASCII)
_LABEL = "label="
_MEDIAN, _LONG = 0.5, 0.95


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one queue, namespace, owner or label value.

    :ivar name: its name; "" for records that do not have it
    :ivar sums: the sum of its records
    :ivar by_day: what it held of each resource, by day
    """

    name: str
    sums: Totals = field(default_factory=Totals)
    by_day: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, day: str, one: Totals) -> None:
        """Add a record of that day."""
        self.sums.add(one, _MOST_RESOURCES)
        of_day = self.by_day.setdefault(day, {})
        for resource, amount in one.held.items():
            of_day[resource] = of_day.get(resource, 0.0) + amount

    def hours(self, measure: str, resource: str) -> float:
        """The hours of a resource: of bytes in GiB."""
        return in_hours(getattr(self.sums, measure).get(resource, 0.0), resource)

    def waits(self) -> tuple[float | None, float | None]:
        """The median of the seconds that gangs waited, and the 95th percentile; None where no gang was admitted."""
        waits = self.sums.waits
        return (wait_quantile(waits, _MEDIAN), wait_quantile(waits, _LONG)) if sum(waits.values()) else (None, None)

    def ended(self) -> str:
        """The gangs that ended, by how, in words; "" for none."""
        return ", ".join(f"{how} {gangs}" for how in OUTCOMES if (gangs := self.sums.ends.get(how)))

    @property
    def data(self) -> dict[str, Any]:
        """The row for programs, in base units times seconds."""
        median, long = self.waits()
        return {
            "name": self.name,
            **{measure: dict(getattr(self.sums, measure)) for measure in MEASURES},
            "wait": {"gangs": sum(self.sums.waits.values()), "p50": median, "p95": long},
            "ended": {outcome: self.sums.ends.get(outcome, 0) for outcome in OUTCOMES},
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of all rows.

    :ivar by: what a row is for: queue, namespace, owner or label=KEY
    :ivar since: the first day that counts (UTC): the one that was asked for, or the first one with records
    :ivar until: the time until which the records count, in seconds of the wall clock
    :ivar rows: the rows, first those that held most: of devices, then of cpu
    :ivar total: the sum of all rows
    :ivar resources: the resources of the records: cpu and memory, then the others by name
    :ivar order: those by which the rows are in order: devices, then cpu and memory
    """

    by: str
    since: date
    until: float
    rows: Sequence[Row]
    total: Row
    resources: Sequence[str]
    order: Sequence[str]

    @classmethod
    def of(cls, accounts: Accounts, by: str, since: date, queue: str | None = None) -> Report:
        """The report of these records; of one queue alone, if one is given.

        Raises ValueError for a label or a queue that is not recorded.
        """
        place = _label_place(accounts, by)
        rows: dict[str, Row] = {}
        total = Row("total")
        records = list(accounts.rows())
        queues = {scope.queue for scope, _ in records}
        last = datetime.fromtimestamp(accounts.until, UTC).date()
        begin = min((scope.day for scope, _ in records), default=since.isoformat())
        since = max(since, date.fromisoformat(begin), last - timedelta(days=RETENTION_DAYS - 1))
        if queue is not None and queue not in queues:
            raise ValueError(f'nothing is recorded of a queue "{queue}"{did_you_mean(queue, sorted(queues))}')
        for scope, sums in records:
            if since.isoformat() <= scope.day <= last.isoformat() and queue in (None, scope.queue):
                name = getattr(scope, by) if place is None else _label(scope, place)
                name = f"{scope.namespace}/{name}" if by == "owner" and name else name
                for row in (rows.setdefault(name, Row(name)), total):
                    row.add(scope.day, sums)
        others = {name for measure in MEASURES for name in getattr(total.sums, measure)} - set(_USUAL)
        resources = (*_USUAL, *sorted(others))
        order = [name for name in resources if name not in _USUAL and not _of_bytes(name)] + list(_USUAL)
        return cls(
            by=by,
            since=since,
            until=accounts.until,
            rows=sorted(rows.values(), key=lambda row: ([-row.sums.held.get(one, 0.0) for one in order], row.name)),
            total=total,
            resources=resources,
            order=order,
        )

    @property
    def days(self) -> list[str]:
        """The days that count, the first one first."""
        last = datetime.fromtimestamp(self.until, UTC).date()
        return [(self.since + timedelta(days=number)).isoformat() for number in range((last - self.since).days + 1)]

    @property
    def data(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "by": self.by,
            "since": f"{self.since.isoformat()}T00:00:00Z",
            "until": stamp_of(self.until),
            "rows": [row.data for row in self.rows],
            "total": self.total.data,
        }


def first_day(text: str, now: float) -> date:
    """The first day that counts: the day of that date, or of the time so long before `now`. Raises ValueError."""
    days = _DAYS.fullmatch(text)
    before = 86400.0 * int(days[1]) if days else duration_of(text)
    today = datetime.fromtimestamp(now, UTC).date()
    try:
        day = date.fromisoformat(text) if before is None else datetime.fromtimestamp(now - before, UTC).date()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f'"{text}" is neither a duration, such as 7d or 12h, nor a date, such as 2026-11-01') from None
    if day > today:
        raise ValueError(f"{text} is in the future; in UTC it is {today.isoformat()}")
    return day


def hours_of(resource: str) -> str:
    """The hours of a resource in words: `memory GiB-hours`."""
    return f"{' '.join(filter(None, (resource, unit(resource))))}-hours"


def unit(resource: str) -> str:
    """The unit in which people read hours of a resource: `GiB` for bytes, "" for cores and devices."""
    return "GiB" if _of_bytes(resource) else ""


def in_hours(amount: float, resource: str) -> float:
    """Base units times seconds of a resource as hours in the unit that people read."""
    return amount / 3600 / (2**30 if _of_bytes(resource) else 1)


def _of_bytes(resource: str) -> bool:
    return resource.startswith(_OF_BYTES)


def _label_place(accounts: Accounts, by: str) -> int | None:
    """The place of a label in the records; None where rows are not by a label. Raises ValueError."""
    if not by.startswith(_LABEL):
        return None
    key, known = by.removeprefix(_LABEL), list(accounts.label_keys)
    if key not in known:
        named = f"the chart value history.labels names those that are: {', '.join(known) or 'none'}"
        raise ValueError(f'the label "{key}" is not recorded; {named}')
    return known.index(key)


def _label(scope: Scope, place: int) -> str:
    return scope.labels[place] if place < len(scope.labels) else ""
