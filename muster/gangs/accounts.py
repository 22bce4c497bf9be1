"""The accounts of what gangs used: by UTC day, queue, namespace, owner and labels.

Held, idle and waited amounts are resources times seconds, in base units (cores, bytes, pieces). `waits` is a histogram
of the seconds from a gang's first pod, or from when it was queued again, to its admission.

The accounts are bounded: days older than 35 days go. Beyond the bounds on rows and bytes rows of a day are merged:
the smallest of the namespaces with most rows lose owners, or else labels; where that is not enough, namespaces, then
queues are lost. So no tenant crowds out others by writing names, and sums are never lost.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import floor, log, sqrt
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec

from muster.model.objects import decode
from muster.model.times import seconds_of, stamp_of

RETENTION_DAYS = 35
"""The number of days, counting today, that the accounts have."""
WAIT_FACTOR = 1.2
"""The factor between the bounds of a bucket of waits: a quantile is wrong by at most a tenth, or by a second."""
LABEL_KEYS = 4
"""The most labels by which gangs are accounted."""

Outcome = Literal["succeeded", "failed", "deleted", "suspended", "requeued", "evicted"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
"""How an admission ends; `requeued` and `evicted` gangs may be admitted again, `deleted` ones may have waited only."""

_DAY = 86400
_ROWS = 2500
# Of the steps of merging, with each new row beyond: a millisecond or two, and 300 rows too many until they are merged.
_AT_ONCE = 100
# Of these bounds, after merging: rows that come again are not merged one by one.
_PART_LEFT = 0.9
# Of the days; the rest is a few hundred bytes.
_LARGEST = 448_000
# 35 rows of so many resources with long names are below 450 kB. The last places are for the usual ones.
_RESOURCES = 16
_USUAL = ("cpu", "memory")
_MOST = 1e30
_NONE: Mapping[str, float] = {}
_NAME = 128
# The parts that rows lose, one after the other.
_OWNER, _LABELS, _NAMESPACE, _QUEUE = 1, 2, 3, 4
# Of rows that differ up to the first part alone, those that are too many lose the parts up to the second.
_MERGES = ((_LABELS, _OWNER), (_LABELS, _LABELS), (_NAMESPACE, _NAMESPACE), (_QUEUE, _QUEUE))
# Three years of waiting.
_BUCKETS = 100

_Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
_Name = Annotated[str, msgspec.Meta(max_length=_NAME)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
_Amounts = Annotated[dict[_Name, _Amount], msgspec.Meta(max_length=_RESOURCES)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
_Bucket = Annotated[int, msgspec.Meta(ge=0, lt=_BUCKETS)]
_Labels = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=LABEL_KEYS)]
# Another version may know other outcomes.
_Ends = Annotated[dict[_Name, _Count], msgspec.Meta(max_length=32)]
_Kept = tuple[_Name, _Name, _Name, _Labels, _Amounts, _Amounts, _Amounts, dict[_Bucket, _Count], _Ends]


class _KeptAccounts(msgspec.Struct):
    until: Annotated[float, msgspec.Meta(ge=0, le=1e11)]
    labels: _Labels
    days: Annotated[
        dict[_Day, Annotated[list[_Kept], msgspec.Meta(max_length=_ROWS)]], msgspec.Meta(max_length=2 * RETENTION_DAYS)
    ]


class Scope(NamedTuple):
    """The row to which an amount belongs.

    :ivar day: The UTC date, such as 2026-11-29.
    :ivar queue: The queue of the gang.
    :ivar namespace: Its namespace.
    :ivar owner: Kind/name of the object that made its workload, or else of the workload.
    :ivar labels: The values of the label keys of the accounts, in their order; "" for a label that is not there.

    A part by which the rows of the day were merged is "", and `labels` is ().
    """

    day: str
    queue: str
    namespace: str = ""
    owner: str = ""
    labels: tuple[str, ...] = ()

    def merged(self, lost: int) -> Scope:
        """Return the scope without its owner (1), labels (2), namespace (3) and queue (4)."""
        return Scope(
            self.day,
            self.queue if lost < _QUEUE else "",
            self.namespace if lost < _NAMESPACE else "",
            self.owner if lost < _OWNER else "",
            self.labels if lost < _LABELS else (),
        )

    def cut(self) -> Scope:
        """Return the scope with its parts as long as they may be."""
        queue, namespace, owner = (one[:_NAME] for one in (self.queue, self.namespace, self.owner))
        return Scope(self.day, queue, namespace, owner, tuple(one[:_NAME] for one in self.labels[:LABEL_KEYS]))


@dataclass(slots=True)
class Totals:
    """The sums of one row."""

    held: dict[str, float] = field(default_factory=dict)
    """By resource, what gangs held."""
    idle: dict[str, float] = field(default_factory=dict)
    """By resource, the part of that which they held while none of their pods ran."""
    waited: dict[str, float] = field(default_factory=dict)
    """By resource, what gangs needed while they waited."""
    waits: dict[int, int] = field(default_factory=dict)
    """By bucket (`wait_quantile`), the gangs that were admitted after such a wait."""
    ends: dict[str, int] = field(default_factory=dict)
    """By outcome, the gangs that ended."""

    def add(self, other: Totals, most: int = _RESOURCES) -> None:
        """Add the sums of another row, of so many resources at most."""
        for mine, more in ((self.held, other.held), (self.idle, other.idle), (self.waited, other.waited)):
            _add(mine, more, 1, most)
        for bucket, gangs in other.waits.items():
            self.waits[bucket] = self.waits.get(bucket, 0) + gangs
        for outcome, gangs in other.ends.items():
            self.ends[outcome] = self.ends.get(outcome, 0) + gangs


def wait_quantile(waits: Mapping[int, int], q: float) -> float:
    """Return the wait, in seconds, that the part `q` of the gangs did not exceed; 0 for no gangs.

    It is within a tenth of the true value, or a second for waits below one.
    """
    left = q * sum(waits.values())
    for bucket, gangs in sorted(waits.items()):
        left -= gangs
        if left <= 0:
            return WAIT_FACTOR**bucket / sqrt(WAIT_FACTOR) if bucket else 0.0
    return 0.0


class Accounts:
    """The rows of the last days."""

    def __init__(self, label_keys: Iterable[str] | None = None) -> None:
        """Start empty; with `label_keys` None the keys are those of the accounts that are read."""
        self._keys_given = label_keys is not None
        self.label_keys = tuple(label_keys or ())[:LABEL_KEYS]
        """The keys of the labels by which gangs are accounted."""
        self.until = 0.0
        """The time up to which the accounts count, in seconds of the wall clock; 0 for new accounts."""
        self.changed = False
        """True if anything was added since the caller last set it to False."""
        self._days: dict[str, dict[Scope, Totals]] = {}
        # What new rows of today lose, by what they have in common with rows that were merged.
        self._lost: dict[Scope, int] = {}
        # The days that have not changed, as they are stored.
        self._texts: dict[str, bytes] = {}
        self._rows = 0
        # The merging that is under way.
        self._shrinking: Iterator[None] = iter(())

    def rows(self) -> Iterator[tuple[Scope, Totals]]:
        """Return all rows, the oldest day first."""
        for day in sorted(self._days):
            yield from self._days[day].items()

    def add(
        self,
        scope: Scope,
        start: float,
        end: float,
        *,
        held: Mapping[str, float] = _NONE,
        waited: Mapping[str, float] = _NONE,
        idle: bool = False,
    ) -> None:
        """Add amounts that were held or waited for from `start` to `end`; the day of the scope does not count.

        What was held while no pod of the gang ran is `idle`, too.
        """
        while start < end and (held or waited):
            until = min((start // _DAY + 1) * _DAY, end)
            row = self._row(scope, start)
            for sums, amounts in ((row.held, held), (row.idle, held if idle else _NONE), (row.waited, waited)):
                _add(sums, amounts, until - start)
            start = until

    def add_wait(self, scope: Scope, seconds: float, now: float) -> None:
        """Add a gang that was admitted after so many seconds."""
        waits, bucket = self._row(scope, now).waits, _bucket(seconds)
        waits[bucket] = waits.get(bucket, 0) + 1

    def add_end(self, scope: Scope, outcome: Outcome, now: float) -> None:
        """Add a gang whose admission ended, or that was deleted while it waited."""
        ends = self._row(scope, now).ends
        ends[outcome] = ends.get(outcome, 0) + 1

    def encode(self) -> Iterator[None]:
        """Encode what has changed, a row in a step, and merge rows beyond the bounds: then `text` takes little."""
        while True:
            yield from self._shrinking
            for day in list(self._days):
                yield from self._encode(day)
            size = sum(map(len, self._texts.values()))
            if (size <= _LARGEST and self._rows <= _ROWS) or self._rows <= len(self._days):
                return
            most = min(_ROWS, self._rows * _LARGEST / max(size, _LARGEST))
            self._shrinking = self._shrink(min(self._rows - 1, int(most * _PART_LEFT)))

    def text(self) -> str:
        """Return the accounts as they are stored, below 450 kB."""
        for _ in self.encode():
            pass
        days = {day: msgspec.Raw(self._texts[day]) for day in sorted(self._days)}
        return msgspec.json.encode({"until": self.until, "labels": self.label_keys, "days": days}).decode()

    def read(self, text: str) -> None:
        """Add stored accounts. Raises InvalidObjectError for any other text.

        Values of labels that are not accounted any more are dropped.
        """
        kept, changed = decode(text, _KeptAccounts), self.changed
        self.label_keys = self.label_keys if self._keys_given else kept.labels
        self.until = max(self.until, kept.until)
        for day, stored in sorted(kept.days.items()):
            if (at := seconds_of(f"{day}T00:00:00Z")) is None:
                continue
            for queue, namespace, owner, values, held, idle, waited, waits, ends in stored:
                known = dict(zip(kept.labels, values, strict=False))
                labels = tuple(known.get(key, "") for key in self.label_keys) if values else ()
                self._row(Scope(day, queue, namespace, owner, labels), at).add(Totals(held, idle, waited, waits, ends))
        self.changed = changed

    def _encode(self, day: str) -> Iterator[None]:
        if self._texts.get(day) or day not in self._days:
            return
        # A row that changes between two steps takes the mark away.
        self._texts[day], rows = b"", []
        for scope, of in list(self._days[day].items()):
            rows.append((*scope[1:], *map(_rounded, (of.held, of.idle, of.waited)), of.waits, of.ends))
            yield
        if day in self._texts:
            self._texts[day] = msgspec.json.encode(rows)

    def _row(self, scope: Scope, at: float) -> Totals:
        day = stamp_of(at // _DAY * _DAY)[:10]
        self.changed = True
        self._texts.pop(day, None)
        rows = self._days.get(day)
        if rows is None:
            rows = self._days[day] = {}
            oldest = stamp_of((at // _DAY - RETENTION_DAYS + 1) * _DAY)[:10]
            for old in [one for one in self._days if one < oldest]:
                self._rows -= len(self._days.pop(old))
                self._texts.pop(old, None)
            self._lost.clear()
        scope = scope._replace(day=day).cut()
        if (row := rows.get(scope)) is not None:
            return row
        if self._rows >= _ROWS and not list(islice(self._shrinking, _AT_ONCE)):
            self._shrinking = self._shrink(int(_ROWS * _PART_LEFT))
        scope = scope.merged(max(self._lost.get(scope.merged(within), 0) for within, _ in _MERGES))
        self._rows += scope not in rows
        return rows.setdefault(scope, Totals())

    def _shrink(self, most: int) -> Iterator[None]:
        """Merge rows until there are `most`, with those that come in between, or one for each day; a row in a step."""
        excess = self._rows
        for within, lost in _MERGES:
            if (excess := min(excess, self._rows - most)) <= 0:
                return
            crowds: dict[Scope, list[Scope]] = {}
            for scope in (scope for rows in self._days.values() for scope in rows):
                crowds.setdefault(scope.merged(within), []).append(scope)
            places = _fair(map(len, crowds.values()), self._rows - excess)
            for crowd, scopes in crowds.items():
                if len(scopes) <= places:
                    continue
                small = (yield from self._smallest_first(crowd.day, scopes))[: len(scopes) - places + 1]
                if 2 * len({scope.merged(lost) for scope in small}) > len(small):
                    continue
                for scope in small:
                    excess -= self._merge(scope, scope.merged(lost))
                    yield
                if lost < _QUEUE:
                    self._lost[crowd] = max(lost, self._lost.get(crowd, 0))

    def _smallest_first(self, day: str, scopes: list[Scope]) -> Generator[None, None, list[Scope]]:
        """Rows of a day, by their greatest part of what all of them held or waited for of a resource."""
        known, whole, sizes = self._days.get(day, {}), Totals(), dict[Scope, float]()
        rows = {scope: known[scope] for scope in scopes if scope in known}
        for row in rows.values():
            whole.add(row)
            yield
        for scope, row in rows.items():
            pairs = (row.held, whole.held), (row.waited, whole.waited)
            parts = (one / of.get(name, one) for mine, of in pairs for name, one in mine.items())
            sizes[scope] = max(parts, default=0.0)
            yield
        return sorted(sizes, key=sizes.__getitem__)

    def _merge(self, scope: Scope, merged: Scope) -> bool:
        """True if there is a row less; the day may have gone."""
        rows = self._days.get(scope.day, {})
        if (totals := rows.pop(scope, None)) is None:
            return False
        self._texts.pop(scope.day, None)
        fewer = merged in rows
        self._rows -= fewer
        rows.setdefault(merged, Totals()).add(totals)
        return fewer


def _fair(counts: Iterable[int], most: int) -> int:
    """Return the most that each may keep so that all keep `most` in all; 1 at least."""
    left = sorted(counts)
    for number, count in enumerate(left):
        if count * (len(left) - number) > most:
            return max(most // (len(left) - number), 1)
        most -= count
    return max(left, default=1)


def _add(sums: dict[str, float], amounts: Mapping[str, float], times: float, most: int = _RESOURCES) -> None:
    for name, amount in amounts.items():
        places = most if name in _USUAL else most - len(_USUAL)
        if amount > 0 and (name in sums or (len(sums) < places and len(name) <= _NAME)):
            sums[name] = min(sums.get(name, 0.0) + amount * times, _MOST)


def _rounded(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(amount, 3) for name, amount in amounts.items()}


def _bucket(seconds: float) -> int:
    return min(1 + floor(log(seconds) / log(WAIT_FACTOR)), _BUCKETS - 1) if seconds >= 1 else 0
