"""`muster queues --watch` and `muster watch`: follow the cluster until Ctrl-C, also after the connection was lost.

What is shown comes from the board of `muster.cli.page`. On a terminal it has a screen of its own, which leaves nothing
behind; elsewhere every change is printed below the last one.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from muster.cli.connecting import opened, reading
from muster.cli.page.board import Board
from muster.cli.page.state import PageState, page_state
from muster.cli.queues.changes import Changes, Happened
from muster.cli.queues.entries import tree_lines
from muster.cli.ui import aligned, clears
from muster.model.texts import printable
from muster.process.lifecycle import stop_signal

# Seconds between two looks whether something is new: a faster screen cannot be read.
_REDRAW = 0.5
# Lines about what has happened, after one look.
_MOST = 50


Show = Callable[[PageState, Changes], None]
"""What shows queues and gangs as they are known now."""


async def watch(arguments: argparse.Namespace) -> None:
    """Show the cluster until Ctrl-C. Raises an error of NO_ANSWER when it does not answer at the beginning."""
    history = Changes(time.time)
    async with opened(arguments) as (client, settings):
        reading(arguments.command, client)
        async with page_state(client, settings, arguments.namespace or client.namespace) as state:
            await _follow(state, history)


async def _follow(state: PageState, history: Changes) -> None:
    # Not before: until something is shown, Ctrl-C ends the wait for an apiserver that does not answer.
    stop = stop_signal()
    async with state.kept_up():
        with display() as show, _collecting_warnings(history):
            while not stop.is_set():
                history.seen(state)
                show(state, history)
                await _pause(stop)


async def _pause(stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_REDRAW):
            await stop.wait()
    except TimeoutError:
        pass


@contextmanager
def display() -> Iterator[Show]:
    """The display for the block: a screen on a terminal, or plain text."""
    if not clears(sys.stdout):
        yield PlainDisplay(sys.stdout).show
        return
    try:
        # Only for who looks at it: the import takes 40 ms, and muster's image has no rich.
        from muster.cli.queues.screen import full_screen  # noqa: PLC0415
    except ModuleNotFoundError:
        print("muster watch: plain text, for rich is not installed: pip install rich", file=sys.stderr)
        yield PlainDisplay(sys.stdout).show
        return
    with full_screen(sys.stdout) as show:
        yield show


@contextmanager
def _collecting_warnings(history: Changes) -> Iterator[None]:
    """Collect warnings of the log among the changes: on the terminal they would be written across the screen."""
    handler = _Handler(history)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, history: Changes) -> None:
        super().__init__(logging.WARNING)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        words = record.getMessage() if error is None else f"{record.getMessage()}: {error!r}"
        self._history.logged(getattr(record, "event", ""), words)


class PlainDisplay:
    """Prints to `out`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._revision = -1
        self._board: list[str] = []
        self._printed: Happened | None = None

    def show(self, state: PageState, history: Changes) -> None:
        """Print what has happened to the connection, and the queues and gangs where they are others than before."""
        board = self._board
        if state.revision != self._revision:
            self._revision = state.revision
            board = board_lines(state.board, state.visible.missing, self._out)
        events = self._new(history)
        if events or board != self._board:
            self._board = board
            print("\n" + "\n".join((*board, *map(printable, events))), file=self._out, flush=True)

    def _new(self, history: Changes) -> list[str]:
        """The changes since the last call, the oldest first."""
        found = []
        for one in history.last(_MOST):
            if one is self._printed:
                break
            found.append(f"({one.what})")
        self._printed = next(iter(history.last(1)), None)
        return found[::-1]


def board_lines(board: Board, missing: list[str], out: TextIO) -> list[str]:
    """The queue tree, the gangs that wait, in order, before those that hold, and what is not known."""
    gangs, lines = board.gangs, tree_lines(board.entries, out)
    # No ages: what has not changed is not printed again.
    rows = [
        [one.key.namespace, one.title, one.queue, str(one.position or "-"), one.state, one.message]
        for one in (*gangs.waiting, *gangs.others, *gangs.holding)
    ]
    if rows:
        lines += ["", *aligned(["NAMESPACE", "WORKLOAD", "QUEUE", "POSITION", "STATE", "MESSAGE"], rows, right=(3,))]
    return [*lines, *(printable(f"({one})") for one in missing)]
