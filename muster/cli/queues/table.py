"""The queue tree as lines of text: a line for each resource of a queue, with a bar where the resource is limited.

Box and block characters are for terminals with colours; files, pipes and other terminals get plain ASCII.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from muster.cli.ui import GREEN, RED, YELLOW, elided, painted, rounded
from muster.model.gang_states import GangState
from muster.model.texts import printable
from muster.resources.quantity import parse_quantity

_HEAD = ("QUEUE", "STATE", "SHARE", "GANGS", "WAITING", "RESOURCE", "USED / LIMIT")
_SHARE_COLUMN, _RESOURCE_COLUMN = 2, 5
_SHORTEST_NAME = 10
_RIGHT = (2, 3, 4)
_LONGEST_BAR = 20
# A shorter one shows less than its percentage.
_SHORTEST_BAR = 5
# Two blanks before a bar, and " 100%" with a blank behind it.
_BESIDE_BAR = 8


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of the tree and of its bars.

    :ivar child: in front of a queue with siblings below it
    :ivar last: in front of the last child of a queue
    :ivar passing: the line from a queue to its next sibling
    :ivar full: the used part of a bar
    :ivar empty: the rest of a bar
    :ivar coloured: true if bars have colours
    """

    child: str
    last: str
    passing: str
    full: str
    empty: str
    coloured: bool


ASCII = Glyphs("|- ", "`- ", "|  ", "#", ".", coloured=False)
BLOCKS = Glyphs("├─ ", "└─ ", "│  ", "█", "░", coloured=True)


class Share(NamedTuple):
    """The used part of a limit, in billionths of the unit."""

    used: int
    limit: int

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 is full."""
        return 100 * self.used // self.limit


class _TreeRow(NamedTuple):
    cells: tuple[str, ...]
    share: Share | None = None


def queue_lines(
    entries: Sequence[Mapping[str, Any]], glyphs: Glyphs, columns: int, *, elide: bool = False
) -> list[str]:
    """The tree of the queues below its header; bars use what the other columns leave of `columns`, or are left out.

    With `elide` names are shortened where no line may be longer than that.
    """
    rows = [_TreeRow(_HEAD), *_rows(entries, glyphs)]
    if elide:
        rows = _fitted(rows, columns)
    widths = [max(len(row.cells[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    if not any(entry.get("share") for entry in entries):
        widths[_SHARE_COLUMN] = 0
    # Its header is above the bars as well.
    widths.append(max((len(row.cells[-1]) for row in rows[1:]), default=0))
    gaps = len(widths) - 1 if widths[_SHARE_COLUMN] else len(widths) - 2
    bar = min(_LONGEST_BAR, columns - sum(widths) - 2 * gaps - _BESIDE_BAR)
    return [_line(row, widths, bar, glyphs) for row in rows]


def _fitted(rows: Sequence[_TreeRow], columns: int) -> list[_TreeRow]:
    """The rows with names of queues, then of resources, shortened until percentages fit behind them."""
    for column in (0, _RESOURCE_COLUMN):
        widths = [max(len(row.cells[place]) for row in rows) for place in range(len(_HEAD))]
        too_wide = sum(widths) + 2 * (len(widths) - 1) + _BESIDE_BAR - 1 - columns
        width = max(_SHORTEST_NAME, widths[column] - max(0, too_wide))
        rows = [
            row._replace(cells=(*row.cells[:column], elided(row.cells[column], width), *row.cells[column + 1 :]))
            for row in rows
        ]
    return list(rows)


def _rows(entries: Sequence[Mapping[str, Any]], glyphs: Glyphs) -> Iterator[_TreeRow]:
    for entry, (branch, below) in zip(entries, _branches([entry["depth"] for entry in entries], glyphs), strict=True):
        limit, used = entry["limit"], entry["used"]
        name = branch + printable(entry["name"])
        state = GangState.ON_HOLD if entry.get("onHoldBy") else entry["state"] or "-"
        past = f" ({by_past} past)" if (by_past := entry.get("byPast")) else ""
        counts = (printable(str(state)), (entry.get("share") or "-") + past, str(entry["gangs"]), str(entry["waiting"]))
        if not (limit or used):
            yield _TreeRow((name, *counts, "-", "-"))
        for number, resource in enumerate(dict.fromkeys([*limit, *(used or {})])):
            has = "?" if used is None else used.get(resource, "0")
            most = limit.get(resource, "-")
            start = (below, "", "", "", "") if number else (name, *counts)
            room = f"{rounded(has)} / {rounded(most)}"
            yield _TreeRow((*start, printable(resource), room), share_of(has, most))


def _branches(depths: Sequence[int], glyphs: Glyphs) -> Iterator[tuple[str, str]]:
    """For each queue the characters in front of its name, and those of its further lines."""
    for number, depth in enumerate(depths):
        follows = [_comes_back(depths, number, level) for level in range(1, depth + 1)]
        above = "".join(glyphs.passing if more else " " * len(glyphs.passing) for more in follows[:-1])
        own = (glyphs.child if follows[-1] else glyphs.last) if follows else ""
        has_children = number + 1 < len(depths) and depths[number + 1] > depth
        line = (glyphs.passing if follows[-1] else " " * len(glyphs.passing)) if follows else ""
        yield above + own, above + line + (glyphs.passing.rstrip() if has_children else "")


def _comes_back(depths: Sequence[int], number: int, level: int) -> bool:
    """True if another queue of that level follows below the same parent."""
    following = next((depth for depth in depths[number + 1 :] if depth <= level), None)
    return following == level


def share_of(has: str, most: str) -> Share | None:
    """The used part of the limit; None if usage or limit are unknown, or the limit is zero."""
    if has == "?" or most == "-":
        return None
    limit = parse_quantity(most).nano
    return Share(parse_quantity(has).nano, limit) if limit > 0 else None


def _line(row: _TreeRow, widths: Sequence[int], bar: int, glyphs: Glyphs) -> str:
    cells = "  ".join(
        cell.rjust(width) if column in _RIGHT else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row.cells, widths, strict=True))
        if width or column != _SHARE_COLUMN
    )
    if row.share is None:
        return cells.rstrip()
    percent = f"{row.share.percent:>4}%"
    return f"{cells}  {_bar(row.share, bar, glyphs)} {percent}" if bar >= _SHORTEST_BAR else f"{cells}  {percent}"


def _bar(share: Share, width: int, glyphs: Glyphs) -> str:
    # All usage shows, and only a full bar looks full.
    length = max(1, share.used * width // share.limit) if share.used else 0
    full = glyphs.full * min(width, length)
    paint = RED if share.used > share.limit else YELLOW if share.used == share.limit else GREEN
    return painted(full, paint, colour=glyphs.coloured) + glyphs.empty * (width - len(full))
