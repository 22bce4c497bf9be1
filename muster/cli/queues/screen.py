"""The screen of `muster watch`, drawn by rich: the tree with bars, who waits and why, who runs, what changed last.

Text of the cluster is never markup: it goes into `rich.text.Text`, without control characters.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from muster.cli.page.board import GangRow
from muster.cli.page.state import PageState
from muster.cli.queues.entries import tree_lines
from muster.cli.queues.watch import Changes
from muster.cli.ui import age, colours, elided
from muster.model.texts import printable

_LAST = 5
# Of the rows that the rest leaves: what each part may take while another one lacks rows.
_TREE, _WAITING, _RUNNING = 0.4, 0.36, 0.24
# A blank line, the heading, and above a table its header.
_HEADING, _HEADINGS = 2, 3
_SEPARATION = 2
# Of the columns that position, state and age leave: names of gangs, then of queues.
_NAMES, _QUEUES = 0.4, 0.2


class Screen:
    """The screen of a console; the tree is drawn in characters that `out` can show."""

    def __init__(self, console: Console, out: TextIO) -> None:
        self._console = console
        self._out = out

    def of(self, state: PageState, history: Changes) -> Group:
        """The whole screen, in as many rows as the console has."""
        notes = [_plain(f"({one})", "dim") for one in state.visible.missing]
        last = [_plain(f"{_clock(one.at)} {one.what}", "dim") for one in history.last(_LAST)]
        board = state.board
        waiting, others, holding = board.waiting(), board.others(), board.holding()
        held_back, total = (*waiting.rows, *others.rows), waiting.total + others.total
        whole = tree_lines(board.entries, self._out, elide=True)
        first, second = (len(rows) + _HEADINGS if rows else 0 for rows in (held_back, holding.rows))
        left = self._console.height - 1 - len(notes) - (len(last) + _HEADING if last else 0)
        tree, first, second = divided(left, (len(whole), first, second))
        parts: list[RenderableType] = [self._status(state, history), *self._tree(board.entries, whole, max(2, tree))]
        now = state.as_of
        parts += self._gangs("WAITING", held_back, total, first - _HEADINGS, now)
        parts += self._gangs("RUNNING", holding.rows, holding.total, second - _HEADINGS, now)
        if last:
            parts += [Text(""), Text("LAST CHANGES", "bold"), *last]
        return Group(*parts, *notes)

    def _status(self, state: PageState, history: Changes) -> Text:
        words = Text.assemble(("muster watch", "bold"), f"  {_clock(state.as_of)}  {printable(state.cluster_name)}")
        if history.lost or state.troubles:
            why = state.troubles[0] if state.troubles else "the connection was lost"
            words.append_text(_plain(f"  not up to date, connecting again: {why}", "bold red"))
        elif state.silent:
            words.append_text(_plain(f"  {state.silent}", "bold red"))
        words.no_wrap, words.overflow = True, "ellipsis"
        return words

    def _tree(self, entries: Sequence[Mapping[str, Any]], whole: list[str], rows: int) -> list[RenderableType]:
        """The tree of the queues; where it is cut, queues in which gangs wait come before others."""
        lines = whole
        if len(whole) > rows:
            # The header and the line that says what is missing take two.
            lines = tree_lines(_fitting(entries, rows - 2), self._out, elide=True)[: rows - 1]
        drawn: list[RenderableType] = [Text.from_ansi(line, no_wrap=True, overflow="crop") for line in lines]
        if hidden := len(whole) - len(lines):
            drawn.append(_plain(f"and {hidden} more lines: muster queues", "dim"))
        return drawn

    def _gangs(self, title: str, rows: Sequence[GangRow], total: int, most: int, now: float) -> list[RenderableType]:
        """A table of these gangs, as many as there is room for."""
        most = min(most, len(rows))  # a board has no more rows than those of one page
        if not total or most < 1:
            return []
        shown = rows[:most]
        heading = f"{title}  {most} of {total}" if total > most else title
        one_namespace = len({row.gang.key.namespace for row in rows}) == 1
        names = [row.gang.title if one_namespace else f"{row.gang.key.namespace} {row.gang.title}" for row in shown]
        if one_namespace:
            heading += f"  in namespace {printable(rows[0].gang.key.namespace)}"
        ages = [age(now - row.gang.since) if row.gang.since is not None else "-" for row in shown]
        queues = [row.gang.queue for row in shown]
        positions = [row.position for row in shown]
        fixed = [("POSITION", positions)] if any(positions) else []
        fixed += [("STATE", [row.gang.state for row in shown]), ("AGE", ages)]
        widths = [_widest(column) for column in fixed]
        free = self._console.width - sum(widths) - _SEPARATION * (len(fixed) + 2)
        widths = [
            min(_widest(("GANG", names)), int(free * _NAMES)),
            min(_widest(("QUEUE", queues)), int(free * _QUEUES)),
            *widths,
        ]
        table = Table(box=None, padding=(0, _SEPARATION, 0, 0), pad_edge=False, header_style="dim")
        for (name, _), width in zip((("GANG", ()), ("QUEUE", ()), *fixed), widths, strict=True):
            table.add_column(name, no_wrap=True, width=max(1, width))
        table.add_column("WHY", no_wrap=True, width=max(1, free - sum(widths[:2])))
        for place, row in enumerate(shown):
            first = elided(names[place], widths[0]), elided(queues[place], widths[1])
            cells = (*first, *(column[place] for _, column in fixed), row.message or row.amounts)
            table.add_row(*map(_plain, cells))
        return [Text(""), _plain(heading, "bold"), table]


def _widest(column: tuple[str, Sequence[str]]) -> int:
    return max(map(len, (column[0], *column[1])))


def divided(rows: int, wanted: tuple[int, int, int]) -> tuple[int, int, int]:
    """The rows of the tree, the waiting and the running gangs: a part that wants fewer leaves them to the others."""
    given = [min(want, int(rows * part)) for want, part in zip(wanted, (_TREE, _WAITING, _RUNNING), strict=True)]
    for place in (1, 0, 2):
        given[place] += max(0, min(wanted[place] - given[place], rows - sum(given)))
    return given[0], given[1], given[2]


def _fitting(entries: Sequence[Mapping[str, Any]], rows: int) -> list[Mapping[str, Any]]:
    """The queues that fit into so many rows: first those in which gangs wait, each with the queues above it."""
    above: list[Mapping[str, Any]] = []
    first: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        above[entry["depth"] :] = [entry]
        if entry["waiting"]:
            first |= {one["name"]: one for one in above}
    chosen: set[str] = set()
    for entry in (*first.values(), *entries):
        lines = max(1, len({*entry["limit"], *(entry["used"] or {})}))
        if entry["name"] not in chosen and lines <= rows:
            chosen.add(entry["name"])
            rows -= lines
    # No reservations below a tree that is cut.
    return [{**entry, "reservation": None} for entry in entries if entry["name"] in chosen]


def _plain(text: str, style: str = "") -> Text:
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


@contextmanager
def full_screen(out: TextIO) -> Iterator[Callable[[PageState, Changes], None]]:
    """A screen of its own in the block, and what draws on it; what was on the terminal before comes back."""
    console = Console(file=out, no_color=not colours(out), highlight=False, markup=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        screen = Screen(console, out)
        yield lambda state, history: live.update(screen.of(state, history), refresh=True)
