"""The output of `muster audit`, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from muster.cli.output import print_data
from muster.cli.terminal import GREEN, RED, YELLOW, colours, painted, width, wrapped
from muster.model.findings import Severity
from muster.model.texts import printable

_WORDS = {Severity.DENY: ("  refused", RED), Severity.WARN: ("  warning", YELLOW)}


def print_audit(report: Mapping[str, Any], form: str, out: TextIO) -> None:
    """Print a report: as json, as yaml, or as text with a summary at the end."""
    if not print_data(report, form, out):
        colour = colours(out)
        for entry in (*report["queues"], *report["podGroups"], *report["workloads"]):
            _print_entry(entry, out, colour=colour)
        paint = RED if report["refused"] else YELLOW if report["warned"] else GREEN
        print(painted(_sum(report), paint, colour=colour), file=out)


def _print_entry(entry: Mapping[str, Any], out: TextIO, *, colour: bool) -> None:
    goes_on = entry["running"] and entry["findings"][0]["severity"] == Severity.DENY
    place = f"{entry['namespace']}/" if entry["namespace"] else ""
    name = printable(f"{entry['kind']} {place}{entry['name']}")
    print(name + (" (running; it keeps running)" if goes_on else ""), file=out)
    for found in entry["findings"]:
        word, paint = _WORDS[Severity(found["severity"])]
        words = f"{word} ({found['reason']})"
        first, *more = wrapped(f"{words}: {printable(found['message'])}", 4, width(out))
        print(painted(words, paint, colour=colour) + first[len(words) :], file=out)
        for line in more:
            print(line, file=out)
    print(file=out)


def _sum(report: Mapping[str, Any]) -> str:
    looked = report["lookedAt"]
    counted = [
        f"{looked[key]} {one if looked[key] == 1 else more}"
        for key, one, more in (
            ("workloads", "workload", "workloads"),
            ("queues", "Queue", "Queues"),
            ("podGroups", "PodGroup", "PodGroups"),
        )
        if looked[key] or key == "workloads"
    ]
    words = f"{', '.join(counted[:-1])} and {counted[-1]}" if counted[1:] else counted[0]
    return f"{words} checked: {report['refused']} would be refused, {report['warned']} with warnings"
