"""What `muster watch` prints where there is no terminal: everything again after each change, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from muster.cli.columns import aligned
from muster.cli.picture import LedgerSnapshot
from muster.cli.queues import gang_entries, queue_entries, tree_lines
from muster.model.texts import printable

if TYPE_CHECKING:
    from muster.cli.page.state import PageState
    from muster.cli.watch.history import Happened, History


# Lines about what has happened, after one look.
_MOST = 50


class PlainDisplay:
    """Prints to `out`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._revision = -1
        self._board: list[str] = []
        self._told: Happened | None = None

    def show(self, state: PageState, history: History) -> None:
        """Print what has happened to the connection, and the queues and gangs where they are others than before."""
        board = self._board
        if state.revision != self._revision:
            self._revision = state.revision
            board = board_lines(state.snapshot, state.picture.missing, self._out, whole=state.picture.whole)
        events = self._new(history)
        if events or board != self._board:
            self._board = board
            print("\n" + "\n".join((*board, *map(printable, events))), file=self._out, flush=True)

    def _new(self, history: History) -> list[str]:
        """What has happened since the last call, the oldest first."""
        found = []
        for one in history.last(_MOST):
            if one is self._told:
                break
            found.append(f"({one.what})")
        self._told = next(iter(history.last(1)), None)
        return found[::-1]


def board_lines(snapshot: LedgerSnapshot, missing: list[str], out: TextIO, *, whole: bool) -> list[str]:
    """The queue tree, the gangs that wait, in order, before those that hold, and what is not known."""
    rows = [
        [entry["queue"], entry["position"], f"{entry['namespace']}/{entry['name']}", entry["state"], entry["message"]]
        for entry in gang_entries(snapshot)
    ]
    lines = tree_lines(queue_entries(snapshot, whole=whole), out)
    if rows:
        lines += ["", *aligned(["QUEUE", "POSITION", "GANG", "STATE", "MESSAGE"], rows, right=(1,))]
    return [*lines, *(printable(f"({one})") for one in missing)]
