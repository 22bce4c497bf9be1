"""`muster replay`: the waits of a load under several policies, side by side. It needs no cluster."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muster.cli.parsing import InputError
from muster.cli.replay.engine import Replayed, parse_policy, replay
from muster.cli.replay.load import Load, read_load
from muster.cli.replay.results import drawing, expected_lines, figures, forecasts, table_lines
from muster.cli.ui import as_long_as_read, counted, print_data
from muster.model.texts import printable

_UNREADABLE = 2
# So many gangs are asked for their expected start, spread over the load: each costs a forecast.
_ASKED = 500
_POLICIES = {
    "strict": "queueing=strict",
    "no reservations": "patience=87600h",
    "drain at patience": "reserves=bounds,bounds=0",
    "bounds": "reserves=bounds",
    "estimates": "reserves=estimates,bounds=0",
}


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster replay`: 2 when the log cannot be read."""
    try:
        policies = {text: parse_policy(text) for text in arguments.policy or ()}
        load = read_load(arguments.log)
    except (InputError, ValueError) as error:
        print(f"muster replay: {printable(str(error))}", file=sys.stderr)
        return _UNREADABLE
    policies = policies or {name: parse_policy(text) for name, text in _POLICIES.items()}
    every = max(len(load.arrivals) // _ASKED, 1) if arguments.expected else 0
    results: dict[str, Replayed] = {}
    for name, policy in policies.items():
        with _progress(name, len(load.arrivals)) as progress:
            results[name] = replay(load, policy, progress, ask_every=every)
    rows = {name: figures(load, one) for name, one in results.items()}
    if arguments.expected:
        rows = {name: row | {"expected": forecasts(results[name])} for name, row in rows.items()}
    with as_long_as_read():
        if not print_data(_data(load, rows), arguments.output, sys.stdout):
            print("\n".join(_lines(load, rows)))
    return _draw(arguments.plot, results) if arguments.plot else 0


def _data(load: Load, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    policies = [{"policy": name, **row} for name, row in rows.items()]
    return {"gangs": len(load.arrivals), "leftOut": load.left_out, "resource": load.counted[0], "policies": policies}


def _lines(load: Load, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    large = next((row["large"]["gangs"] for row in rows.values()), 0)
    left_out = f", {load.left_out} entries left out" if load.left_out else ""
    yield f"{len(load.arrivals)} gangs, {large} of them large{left_out}; waits in minutes; USED: {load.counted[0]}"
    yield ""
    yield from table_lines(rows)
    if any("expected" in row for row in rows.values()):
        yield ""
        yield from expected_lines(rows)
    for name, row in rows.items():
        if row["neverStarted"]:
            yield f"{name}: {counted(row['neverStarted'], 'gang')} never started"


def _draw(path: str, results: Mapping[str, Replayed]) -> int:
    waited = {name: [one.waited for one in each.started] for name, each in results.items()}
    try:
        Path(path).write_text(drawing(waited))
    except OSError as error:
        print(f"muster replay: {path}: {error.strerror}", file=sys.stderr)
        return _UNREADABLE
    return 0


@contextmanager
def _progress(name: str, gangs: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far a policy is; a whole log takes a minute."""
    shown = [0]

    def progress(started: int) -> None:
        if sys.stderr.isatty() and started >= shown[0]:
            print(f"\r{name}: {100 * started // max(gangs, 1)} %", end="", file=sys.stderr, flush=True)
            shown[0] = started + gangs // 100 + 1

    yield progress
    if sys.stderr.isatty():
        print(f"\r{name}: done ", file=sys.stderr)
