"""All queues and gangs of the page at one moment, as plain values; the templates only lay it out.

Queues and gangs are those of `muster.cli.queues.entries`, so that the page and `muster queues` agree. The
rest of a row is worked out for the rows of one page alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from muster.cli.page.samples import Sample
from muster.cli.queues.entries import gang_entries, queue_entries, reported_state
from muster.cli.queues.table import share_of
from muster.cli.snapshot import LedgerSnapshot
from muster.cli.ui import amounts, rounded
from muster.cli.when import ExpectedStarts, expected_words
from muster.model.gang_states import GangState
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources, as_text, largest, minus
from muster.resources.quantity import ZERO

ROWS = 100
"""Rows of one table on one page."""

_AT_REST = (GangState.FINISHED, GangState.NOT_MANAGED, GangState.EXTERNAL)

T = TypeVar("T")


class Bar(NamedTuple):
    """The usage of one resource of a queue; `percent` is None where usage or limit are unknown."""

    resource: str
    used: str
    limit: str
    percent: int | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue as it is shown; `depth` counts from 0 at the top of the tree."""

    name: str
    depth: int
    state: str
    share: str
    gangs: int
    waiting: int
    bars: tuple[Bar, ...]
    problems: tuple[str, ...]
    reservation: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class GangRow:
    """A gang as it is shown.

    :ivar position: its place among those that wait in its queue, "" where it does not wait
    :ivar amounts: what it needs, or holds
    :ivar lacks: what its queue, or one above, lacks for it; "" when nothing is lacking, or it is not known
    :ivar expected: its expected start; "" where none has been worked out
    """

    namespace: str
    name: str
    queue: str
    position: str
    state: str
    message: str
    amounts: str = ""
    lacks: str = ""
    expected: str = ""


class Filter(NamedTuple):
    """Only gangs of this namespace and this queue; "" for any."""

    namespace: str = ""
    queue: str = ""

    def passes(self, entry: Mapping[str, Any]) -> bool:
        """True if the filter lets a gang pass."""
        return self.namespace in ("", entry["namespace"]) and self.queue in ("", entry["queue"])


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
    """The queues and gangs of a snapshot; `whole` is true if every namespace was read."""

    def __init__(self, snapshot: LedgerSnapshot, *, whole: bool) -> None:
        self.now = snapshot.now
        self._snapshot = snapshot
        self._whole = whole
        self._used: dict[str, Resources] = {}
        self._queues = queue_entries(snapshot, whole=whole)
        self._in_queue = {entry["name"]: entry["waiting"] for entry in self._queues}
        entries = gang_entries(snapshot)
        in_line = {(entry["namespace"], entry["name"]) for entry in entries}
        self._waiting = [entry for entry in entries if entry["position"] != "-"]
        self._holding = [entry for entry in entries if entry["position"] == "-"]
        self._others = [
            _out_of_line(key, view, *reported)
            for key, view in sorted(snapshot.views.items())
            if key not in in_line and view.intent is not None
            if (reported := reported_state(view, snapshot))[0] not in _AT_REST
        ]

    def levels(self) -> dict[str, Sample]:
        """The usage of each queue and its number of waiting gangs."""
        return {
            entry["name"]: Sample(
                max((one.percent for one in _bars(entry) if one.percent is not None), default=None), entry["waiting"]
            )
            for entry in self._queues
        }

    def queues(self, number: int = 1) -> Part[QueueRow]:
        """One page of the queues, parents before children."""
        return Part.of(self._queues, number, _queue_row)

    def waiting(self, only: Filter = EVERY, number: int = 1, *, starts: ExpectedStarts | None = None) -> Part[GangRow]:
        """One page of the gangs that wait, by queue, each queue in the order in which they start."""
        return Part.of(_passing(only, self._waiting), number, lambda entry: self._waiting_row(entry, starts))

    def holding(self, only: Filter = EVERY, number: int = 1) -> Part[GangRow]:
        """One page of the gangs that are admitted or run, by queue."""
        return Part.of(_passing(only, self._holding), number, self._holding_row)

    def others(self, only: Filter = EVERY, number: int = 1) -> Part[GangRow]:
        """One page of the gangs that neither wait in a queue nor hold anything: they assemble, or cannot start."""
        return Part.of(_passing(only, self._others), number, lambda entry: GangRow(**entry))

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

    def _waiting_row(self, entry: Mapping[str, Any], starts: ExpectedStarts | None) -> GangRow:
        key = GangKey(entry["namespace"], entry["name"])
        candidate = self._snapshot.ledger.candidate(key)
        return GangRow(
            namespace=entry["namespace"],
            name=entry["name"],
            queue=entry["queue"],
            position=f"{entry['position']} of {self._in_queue.get(entry['queue'], entry['position'])}",
            state=_known(entry["state"]),
            message=entry["message"],
            amounts=amounts(as_text(candidate.need)) if candidate else "",
            lacks=self.lacks(key),
            expected=expected_words(starts.when(key)) if starts is not None else "",
        )

    def _holding_row(self, entry: Mapping[str, Any]) -> GangRow:
        return GangRow(
            namespace=entry["namespace"],
            name=entry["name"],
            queue=entry["queue"],
            position="",
            state=_known(entry["state"]),
            message=entry["message"],
            amounts=amounts(entry["claim"] or {}),
        )


def _passing(only: Filter, entries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return [entry for entry in entries if only.passes(entry)] if any(only) else entries


def _queue_row(entry: Mapping[str, Any]) -> QueueRow:
    return QueueRow(
        name=entry["name"],
        depth=entry["depth"],
        state=GangState.ON_HOLD if entry["onHoldBy"] else entry["state"] or "-",
        share=entry["share"] or "",
        gangs=entry["gangs"],
        waiting=entry["waiting"],
        bars=tuple(_bars(entry)),
        problems=tuple(entry["problems"]),
        reservation=entry["reservation"],
    )


def _bars(entry: Mapping[str, Any]) -> Iterable[Bar]:
    limit, used = entry["limit"], entry["used"]
    for resource in dict.fromkeys([*limit, *(used or {})]):
        has = "?" if used is None else used.get(resource, "0")
        most = limit.get(resource, "-")
        share = share_of(has, most)
        yield Bar(resource, rounded(has), rounded(most), share.percent if share is not None else None)


def _known(state: str) -> str:
    return "not reported yet" if state in ("", "-") else state


def _out_of_line(key: GangKey, view: GangSnapshot, state: str, message: str) -> dict[str, str]:
    return {
        "namespace": key.namespace,
        "name": key.name,
        "queue": view.intent.queue if view.intent is not None else "",
        "position": "",
        "state": _known(state),
        "message": message,
    }
