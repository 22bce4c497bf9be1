"""`muster test`: whether the queues of a file keep its promises under its load. It needs no cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from html import escape
from math import inf
from pathlib import Path
from typing import Any

from muster.cli.columns import aligned
from muster.cli.output import as_long_as_read, print_data
from muster.cli.parsing import InputError
from muster.cli.replay.engine import Replayed, replay
from muster.cli.replay.policy import Policy
from muster.cli.replay.policy_file import Expected, read_policy_file
from muster.cli.replay.table import percentile
from muster.model.texts import printable
from muster.model.times import duration_text
from muster.queueing.queue_tree import QueueTree

_FAILED, _UNREADABLE = 1, 2


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster test`: 1 when an expectation fails, 2 when the file cannot be read."""
    try:
        load, expected = read_policy_file(arguments.policy)
    except InputError as error:
        print(f"muster test: {printable(str(error))}", file=sys.stderr)
        return _UNREADABLE
    replayed, tree = replay(load, Policy(""), lambda _: None), QueueTree(load.queues)
    results = [_result(one, replayed, tree) for one in expected]
    with as_long_as_read():
        if not print_data(results, arguments.output, sys.stdout):
            rows = [[one["expected"], one["found"], "passed" if one["passed"] else "FAILED"] for one in results]
            print("\n".join(aligned(["EXPECTED", "FOUND", "RESULT"], rows)))
    if arguments.junit:
        try:
            Path(arguments.junit).write_text(_junit(arguments.policy, results))
        except OSError as error:
            print(f"muster test: {arguments.junit}: {error.strerror}", file=sys.stderr)
            return _UNREADABLE
    return 0 if all(one["passed"] for one in results) else _FAILED


def _result(expected: Expected, replayed: Replayed, tree: QueueTree) -> dict[str, Any]:
    """An expectation in words, what was found, and whether it holds."""
    if not (expected.queue or expected.gang):
        found, text = replayed.busy, f"{replayed.busy:.1%}"
        return {"expected": expected.words, "found": text, "value": found, "passed": found >= expected.limit}
    # A gang that has not started by the end has waited for longer than any that has.
    waits = [(one.gang, one.waited) for one in replayed.started] + [(gang, inf) for gang in replayed.never]
    if expected.gang:
        # Two gangs may have one name, in two namespaces.
        found = max(wait for gang, wait in waits if gang.name == expected.gang)
    else:
        found = _measured(expected.measure, [wait for gang, wait in waits if expected.queue in tree.path(gang.queue)])
    text = duration_text(found) if found < inf else "never"
    value = found if found < inf else None
    return {"expected": expected.words, "found": text, "value": value, "passed": found <= expected.limit}


def _measured(measure: str, waits: Sequence[float]) -> float:
    """A measure of waits; 0 where no gang came."""
    if measure == "mean":
        return sum(waits) / len(waits) if waits else 0.0
    return percentile(sorted(waits), 100 if measure == "max" else float(measure[1:])) or 0.0


def _junit(name: str, results: Sequence[dict[str, Any]]) -> str:
    failures = sum(not one["passed"] for one in results)
    counts = f'tests="{len(results)}" failures="{failures}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuite name="muster test" {counts}>']
    for one in results:
        head = f'  <testcase classname="{escape(printable(name))}" name="{escape(printable(one["expected"]))}"'
        lines.append(f"{head}/>" if one["passed"] else f'{head}><failure message="{one["found"]}"/></testcase>')
    return "\n".join([*lines, "</testsuite>", ""])
