"""The screen of `muster watch`, drawn by rich: the tree with bars, who waits and why, who runs, what changed last.

Text of the cluster is never markup: it goes into `rich.text.Text`, without control characters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from muster.cli.page.board import GangRow
from muster.cli.page.state import PageState
from muster.cli.queues.changes import Changes
from muster.cli.queues.entries import queue_entries, tree_lines
from muster.cli.ui import colours
from muster.model.gang_states import GangState
from muster.model.texts import printable

_LAST = 5
# Of the rows that the rest leaves: what the tree may take, then the waiting gangs.
_TREE, _WAITING = 0.4, 0.6
# A blank line, the heading, and above a table its header.
_HEADING, _HEADINGS = 2, 3


class Screen:
    """The screen of a console; the tree is drawn in characters that `out` can show."""

    def __init__(self, console: Console, out: TextIO) -> None:
        self._console = console
        self._out = out
        self._revision = -1
        self._tree: list[str] = []

    def of(self, state: PageState, history: Changes) -> Group:
        """The whole screen, in as many rows as the console has."""
        if state.revision != self._revision:
            self._revision = state.revision
            entries = queue_entries(state.snapshot, whole=state.visible.whole)
            self._tree = tree_lines(entries, self._out)
        notes = [_plain(f"({one})", "dim") for one in state.visible.missing]
        last = [_plain(f"{_clock(one.at)} {one.what}", "dim") for one in history.last(_LAST)]
        left = self._console.height - 1 - len(notes) - (len(last) + _HEADING if last else 0)
        tree = self._tree[: max(2, int(left * _TREE))]
        drawn = [Text.from_ansi(line, no_wrap=True, overflow="crop") for line in tree]
        parts: list[RenderableType] = [self._status(state, history), *drawn]
        if hidden := len(self._tree) - len(tree):
            parts[-1] = _plain(f"and {hidden + 1} more lines: muster queues", "dim")
        left -= len(tree)
        board = state.board
        waiting, others, holding = board.waiting(), board.others(), board.holding()
        room = max(1, int(left * _WAITING))
        shown = min(len(waiting.rows) + len(others.rows), room - _HEADINGS)
        parts += self._gangs("WAITING", (*waiting.rows, *others.rows), waiting.total + others.total, shown)
        room = left - (shown + _HEADINGS if waiting.total + others.total else 0)
        parts += self._gangs("RUNNING", holding.rows, holding.total, room - _HEADINGS)
        if last:
            parts += [Text(""), Text("LAST CHANGES", "bold"), *last]
        return Group(*parts, *notes)

    def _status(self, state: PageState, history: Changes) -> Text:
        words = Text.assemble(("muster watch", "bold"), f"  {_clock(state.as_of)}  {printable(state.client.server)}")
        if history.lost or state.troubles:
            why = state.troubles[0] if state.troubles else "the connection was lost"
            words.append_text(_plain(f"  not up to date, connecting again: {why}", "bold red"))
        words.no_wrap, words.overflow = True, "ellipsis"
        return words

    def _gangs(self, title: str, rows: Sequence[GangRow], total: int, most: int) -> list[RenderableType]:
        """A table of these gangs, as many as there is room for."""
        most = min(most, len(rows))  # a board has no more rows than those of one page
        if not total or most < 1:
            return []
        heading = f"{title}  {most} of {total}" if total > most else title
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=True, header_style="dim")
        table.add_column("GANG", no_wrap=True, ratio=3)
        table.add_column("QUEUE", no_wrap=True, ratio=2)
        if in_line := any(row.position for row in rows):
            table.add_column("POSITION", no_wrap=True, min_width=len("POSITION"))
        table.add_column("STATE", no_wrap=True, min_width=len(GangState.WAITING_FOR_QUOTA))
        table.add_column("WHY", no_wrap=True, ratio=6)
        for row in rows[:most]:
            place = (row.position,) if in_line else ()
            cells = (f"{row.namespace}/{row.name}", row.queue, *place, row.state, row.message or row.amounts)
            table.add_row(*(_plain(cell) for cell in cells))
        return [Text(""), Text(heading, "bold"), table]


def _plain(text: str, style: str = "") -> Text:
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


class _Display:
    def __init__(self, live: Live, screen: Screen) -> None:
        self._live = live
        self._screen = screen

    def show(self, state: PageState, history: Changes) -> None:
        """Draw what is known now."""
        self._live.update(self._screen.of(state, history), refresh=True)


@contextmanager
def full_screen(out: TextIO) -> Iterator[_Display]:
    """A screen of its own in the block; what was on the terminal before comes back."""
    console = Console(file=out, no_color=not colours(out), highlight=False, markup=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield _Display(live, Screen(console, out))
