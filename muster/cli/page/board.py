"""All queues and gangs of the page at one moment, as plain values; the templates only lay it out.

Queues and gangs are those of `muster.cli.queues.entries`, so that the page and `muster queues` agree. The
rest of a row is worked out for the rows of one page alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from muster.cli.page.samples import Sample
from muster.cli.queues.entries import queue_entries
from muster.cli.queues.gangs import GangEntry, Gangs
from muster.cli.queues.table import share_of
from muster.cli.snapshot import LedgerSnapshot
from muster.cli.ui import amounts, rounded
from muster.cli.when import ExpectedStarts, expected_words
from muster.model.gang_states import GangState
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources, as_text, largest, minus
from muster.resources.quantity import ZERO

ROWS = 100
"""Rows of one table on one page."""

# Parts of a message that stand in columns of their own.
_NEEDS, _POSITION = re.compile(r"^needs [^;]+; "), re.compile(r"; position \d+ of \d+ waiting\b")

T = TypeVar("T")


class Bar(NamedTuple):
    """The usage of one resource of a queue; `percent` is None where usage or limit are unknown."""

    resource: str
    used: str
    limit: str
    percent: int | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as it is shown: its entry of `muster queues -o json`, and the usage of its resources."""

    entry: Mapping[str, Any]
    bars: tuple[Bar, ...]

    @property
    def state(self) -> str:
        """Its state, or that it is on hold."""
        return GangState.ON_HOLD if self.entry["onHoldBy"] else self.entry["state"] or "-"

    @property
    def limited(self) -> list[Bar]:
        """The resources with a limit that is more than nothing, or that is exceeded."""
        return [one for one in self.bars if one.limit != "-" and (one.used, one.limit) != ("0", "0")]

    @property
    def unlimited(self) -> str:
        """What is used of the other resources; "" for nothing."""
        used = [f"{one.resource} {one.used}" for one in self.bars if one.limit == "-" and one.used != "0"]
        return f"{', '.join(used)} used, no limit" if used else ""

    @property
    def idle(self) -> bool:
        """True if no gang runs or waits in it or below it."""
        return not (self.entry["gangs"] or self.entry["waiting"] or any(one.used != "0" for one in self.bars))

    @property
    def brief(self) -> str:
        """Its fullest limit and its waiting gangs in one line, for small screens."""
        known = [one for one in self.limited if one.percent is not None]
        fullest = max(known, key=lambda one: one.percent or 0, default=None)
        used = f"{fullest.percent}% of {fullest.resource}" if fullest and not self.idle else self.unlimited or "idle"
        waiting = self.entry["waiting"]
        waits = f", {waiting} {'waits' if waiting == 1 else 'wait'}" if waiting else ""
        state = f"{self.state}, " if self.state not in ("Open", "-") else ""
        return f"{state}{used}{waits}"


@dataclass(frozen=True, slots=True)
class GangRow:
    """A gang as it is shown.

    :ivar gang: the gang
    :ivar position: its place among those that wait in its queue, "" where it does not wait
    :ivar message: its message, without what other columns have
    :ivar amounts: what it needs, or holds
    :ivar lacks: what its queue, or one above, lacks for it; "" when nothing is lacking, or it is not known
    :ivar expected: its expected start; "" where none has been worked out
    """

    gang: GangEntry
    position: str = ""
    message: str = ""
    amounts: str = ""
    lacks: str = ""
    expected: str = ""


class Filter(NamedTuple):
    """Only gangs of this namespace and this queue; "" for any."""

    namespace: str = ""
    queue: str = ""

    def passes(self, gang: GangEntry) -> bool:
        """True if the filter lets a gang pass."""
        return self.namespace in ("", gang.key.namespace) and self.queue in ("", gang.queue)


EVERY = Filter()
"""All gangs."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One page of a table: its rows, its number from 1 to `pages`, and the number of rows of all pages."""

    rows: tuple[T, ...]
    number: int
    pages: int
    total: int

    @classmethod
    def of(cls, whole: Sequence[Any], number: int, row: Callable[[Any], T]) -> Part[T]:
        """The page of that number, or the nearest one that there is."""
        pages = max(1, -(-len(whole) // ROWS))
        number = min(max(1, number), pages)
        start = (number - 1) * ROWS
        return cls(tuple(map(row, whole[start : start + ROWS])), number, pages, len(whole))


class Board:
    """The queues and gangs of a snapshot; `whole` is true if every namespace was read.

    :ivar entries: the queues as `muster queues` shows them
    :ivar gangs: the gangs as `muster gangs` lists them
    """

    def __init__(self, snapshot: LedgerSnapshot, *, whole: bool) -> None:
        self.now = snapshot.now
        self._snapshot = snapshot
        self._whole = whole
        self._used: dict[str, Resources] = {}
        self.entries = queue_entries(snapshot, whole=whole)
        self._in_queue = {entry["name"]: entry["waiting"] for entry in self.entries}
        self.gangs = Gangs.of(snapshot)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that have gangs."""
        return sorted({one.key.namespace for one in self._every})

    @property
    def queue_names(self) -> list[str]:
        """The names of the queues, and of those that do not exist and have gangs."""
        return sorted({*self._in_queue, *(one.queue for one in self._every if one.queue)})

    @property
    def _every(self) -> Iterator[GangEntry]:
        return chain(self.gangs.waiting, self.gangs.holding, self.gangs.others)

    @property
    def totals(self) -> tuple[int, int, int]:
        """The numbers of gangs that wait in a queue, that do not queue, and that hold something."""
        return len(self.gangs.waiting), len(self.gangs.others), len(self.gangs.holding)

    def gang(self, key: GangKey) -> GangEntry | None:
        """The entry of a gang; None for one that has ended, or is not managed."""
        return next((one for one in self._every if one.key == key), None)

    def title(self, key: GangKey) -> str:
        """The workload of a gang; its PodGroup where it has no entry."""
        gang = self.gang(key)
        return gang.title if gang is not None else f"podgroup/{key.name}"

    def levels(self) -> dict[str, Sample]:
        """The usage of each queue and its number of waiting gangs."""
        return {
            entry["name"]: Sample(
                max((one.percent for one in _bars(entry) if one.percent is not None), default=None), entry["waiting"]
            )
            for entry in self.entries
        }

    def queues(self, number: int = 1, only: str = "") -> Part[QueueRow]:
        """One page of the queues, parents before children; `only` a queue with those above and below it."""
        entries = self.entries
        if only and only in self._in_queue:
            tree = self._snapshot.ledger.tree
            near = {*tree.path(only), *tree.with_below(only)}
            entries = [entry for entry in entries if entry["name"] in near]
        return Part.of(entries, number, lambda entry: QueueRow(entry, tuple(_bars(entry))))

    def waiting(self, only: Filter = EVERY, number: int = 1, *, starts: ExpectedStarts | None = None) -> Part[GangRow]:
        """One page of the gangs that wait, by queue, each queue in the order in which they start."""
        return Part.of(_passing(only, self.gangs.waiting), number, lambda gang: self._waiting_row(gang, starts))

    def holding(self, only: Filter = EVERY, number: int = 1) -> Part[GangRow]:
        """One page of the gangs that are admitted or run, by queue."""
        return Part.of(
            _passing(only, self.gangs.holding),
            number,
            lambda gang: GangRow(gang, message=gang.message, amounts=amounts(as_text(gang.holds or {}))),
        )

    def others(self, only: Filter = EVERY, number: int = 1) -> Part[GangRow]:
        """One page of the gangs that neither wait in a queue nor hold anything: they assemble, or cannot start."""
        return Part.of(_passing(only, self.gangs.others), number, lambda gang: GangRow(gang, message=gang.message))

    def lacks(self, key: GangKey) -> str:
        """The amounts that are not free for the gang: of each resource the most that its queue or one above lacks."""
        ledger = self._snapshot.ledger
        candidate = ledger.candidate(key)
        place = ledger.tree.place(candidate.queue, self._snapshot.views[key].namespace) if candidate else None
        if candidate is None or place is None or not self._whole:
            return ""
        lacks: Resources = {}
        for level in place.levels:
            if level.queue not in self._used:
                self._used[level.queue] = ledger.used(level.queue)
            free = minus(level.limit, self._used[level.queue])
            limited = {name: amount for name, amount in candidate.need.items() if name in free}
            lacks = largest(lacks, minus(limited, free))
        lacking = {name: amount for name, amount in lacks.items() if amount > ZERO}
        return amounts(as_text(lacking)) if lacking else ""

    def _waiting_row(self, gang: GangEntry, starts: ExpectedStarts | None) -> GangRow:
        return GangRow(
            gang,
            position=f"{gang.position} of {self._in_queue.get(gang.queue, gang.position)}",
            message=_POSITION.sub("", _NEEDS.sub("", gang.message)),
            amounts=amounts(as_text(gang.needs or {})),
            lacks=self.lacks(gang.key),
            expected=expected_words(starts.when(gang.key)) if starts is not None else "",
        )


def _passing(only: Filter, gangs: Sequence[GangEntry]) -> Sequence[GangEntry]:
    return [gang for gang in gangs if only.passes(gang)] if any(only) else gangs


def _bars(entry: Mapping[str, Any]) -> Iterable[Bar]:
    limit, used = entry["limit"], entry["used"]
    for resource in dict.fromkeys([*limit, *(used or {})]):
        has = "?" if used is None else used.get(resource, "0")
        most = limit.get(resource, "-")
        share = share_of(has, most)
        yield Bar(resource, rounded(has), rounded(most), share.percent if share is not None else None)
