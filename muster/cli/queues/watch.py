"""`muster queues --watch` and `muster watch`: follow the cluster until Ctrl-C, also after the connection was lost.

What is shown comes from the board of `muster.cli.page`. On a terminal it has a screen of its own, which leaves nothing
behind; elsewhere every change is printed below the last one.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TextIO

from muster.cli.connecting import opened, reading
from muster.cli.page.board import Board
from muster.cli.page.state import PageState, page_state
from muster.cli.queues.entries import reservations_of, tree_lines
from muster.cli.queues.gangs import workload_of
from muster.cli.snapshot import LedgerSnapshot
from muster.cli.ui import aligned, clears
from muster.model.names import STATE
from muster.model.texts import printable
from muster.process.lifecycle import stop_signal
from muster.queueing.verdicts import planned

# Changes that are kept.
_KEPT = 200
_RETRY = "watch.retry"
# Seconds between two looks whether something is new: a faster screen cannot be read.
_REDRAW = 0.5
# Lines about what has happened, after one look.
_MOST = 50


class Happened(NamedTuple):
    """Something that has happened: when (seconds of the wall clock), and what."""

    at: float
    what: str


class Changes:
    """The last things that have happened, the youngest first; `now` gives the wall clock.

    A lost connection is noted once, and its return once: the reflector of each kind notices both.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._happened: deque[Happened] = deque(maxlen=_KEPT)
        self._states: Mapping[str, str] | None = None
        self._snapshot: LedgerSnapshot | None = None
        self._silent = False
        self.lost = False

    def last(self, count: int) -> list[Happened]:
        """The youngest things, that many at most."""
        return [one for one, _ in zip(self._happened, range(count), strict=False)]

    def seen(self, state: PageState) -> None:
        """Note what is another than before."""
        if state.troubles:
            self._lose(state.troubles[0])
        elif self.lost:
            self.lost = False
            self._note("connected again")
        if bool(state.silent) != self._silent:
            self._silent = bool(state.silent)
            self._note(state.silent or "a controller of muster is alive again")
        if state.snapshot is not self._snapshot:
            self._snapshot = state.snapshot
            self._compare(_states(state.snapshot, whole=state.visible.whole))

    def logged(self, event: str, message: str) -> None:
        """Note a warning of the log."""
        if event == _RETRY:
            self._lose(message)
        else:
            self._note(message)

    def _lose(self, why: str) -> None:
        if not self.lost:
            self.lost = True
            self._note(f"connection lost: {why}")

    def _compare(self, now: Mapping[str, str]) -> None:
        before, self._states = self._states, now
        if before is None:
            return
        for gang in sorted({*before, *now}):
            old, new = before.get(gang), now.get(gang)
            if old != new:
                change = f"{new} (new)" if old is None else f"{old} -> {new}" if new is not None else "gone"
                self._note(f"{gang}: {change}")

    def _note(self, what: str) -> None:
        self._happened.appendleft(Happened(self._now(), what))


def _states(snapshot: LedgerSnapshot, *, whole: bool) -> dict[str, str]:
    """The reported state of each gang, and the start of its reservation, by its namespace and workload."""
    planned_starts = {one.order.key.gang: planned(one) for one in (reservations_of(snapshot) if whole else {}).values()}
    states = {}
    for key, view in snapshot.views.items():
        state = view.pod_group.metadata.annotations.get(STATE) if view.pod_group is not None else None
        if state:
            workload, start = workload_of(view) or f"podgroup/{key.name}", planned_starts.get(key)
            states[f"{key.namespace} {workload}"] = f"{state}, {start}" if start else state
    return states


Show = Callable[[PageState, Changes], None]
"""The function that draws queues and gangs as they are known now."""


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
