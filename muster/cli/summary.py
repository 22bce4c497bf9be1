"""A plan in short: a row for each workload, a line for all of them, and JUnit's XML for CI systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape  # of xml.sax.saxutils the import takes 15 ms
from typing import Any, TextIO

from muster.cli.columns import aligned
from muster.cli.table import amounts
from muster.cli.terminal import GREEN, RED, YELLOW, colours, painted
from muster.cli.words import counted
from muster.model.texts import printable
from muster.schedulers import spec_of

_HEAD = ("NAMESPACE", "KIND", "NAME", "VERDICT", "QUEUE", "PRIORITY", "PODS", "MIN", "MIN RESOURCES", "WARNINGS")


def print_wide(entries: Sequence[Mapping[str, Any]], out: TextIO) -> None:
    """Print a row for each entry, however wide the terminal is."""
    for line in aligned(_HEAD, [_row(entry) for entry in entries], right=(6, 7, 9)):
        print(line, file=out)


def _row(entry: Mapping[str, Any]) -> list[str]:
    workload, verdict, intent, group = (entry[key] for key in ("workload", "verdict", "intent", "podGroup"))
    gang = ["-", "-", "-", "-", "-"]
    if intent is not None:
        spec, pods = spec_of(group), sum(role["replicas"] for role in entry["roles"])
        needs = amounts(spec.min_resources)
        gang = [intent["queue"] or "-", intent["priorityClassName"] or "-", str(pods), str(spec.min_member), needs]
    names = [workload["namespace"] or "-", workload["kind"], workload["name"], _word(verdict)]
    return [*names, *gang, str(len(verdict["warnings"]))]


def _word(verdict: Mapping[str, Any]) -> str:
    if not verdict["allowed"]:
        return verdict["reason"] or "refused"
    return "allowed" if verdict["managed"] else "not managed"


def print_summary(entries: Sequence[Mapping[str, Any]], errors: Sequence[str], out: TextIO) -> None:
    """Print the last line: how many objects there are, and with which verdicts."""
    verdicts = [entry["verdict"] for entry in entries]
    refused = sum(not one["allowed"] for one in verdicts)
    unmanaged = sum(one["allowed"] and not one["managed"] for one in verdicts)
    warnings = sum(len(one["warnings"]) for one in verdicts)
    parts = [f"{len(verdicts) - refused - unmanaged} allowed", f"{refused} refused"]
    if unmanaged:
        parts.append(f"{unmanaged} not managed")
    if warnings:
        parts.append(counted(warnings, "warning"))
    if errors:
        parts.append(f"{len(errors)} could not be read")
    paint = RED if refused or errors else YELLOW if unmanaged or warnings else GREEN
    if entries:
        print(file=out)
    print(painted(f"{counted(len(verdicts), 'object')}: {', '.join(parts)}", paint, colour=colours(out)), file=out)


def print_junit(entries: Sequence[Mapping[str, Any]], errors: Sequence[str], out: TextIO, *, strict: bool) -> None:
    """Print a test case for each entry and for each part of the input that cannot be read, as CI systems show them.

    A refusal is a failure; with `strict` so is a workload that is not managed, or looks misspelled.
    """
    cases = [_case(entry, strict=strict) for entry in entries]
    failures = sum("<failure" in case for case in cases)
    cases += [
        f'  <testcase classname="input" name={_quoted(printable(text.partition(": ")[0]))}>'
        + "".join(f"<error message={_quoted(printable(line))}/>" for line in text.split("\n"))
        + "</testcase>"
        for text in errors
    ]
    print('<?xml version="1.0" encoding="UTF-8"?>', file=out)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{len(errors)}"'
    print(f'<testsuite name="muster plan" {counts}>', file=out)
    for case in cases:
        print(case, file=out)
    print("</testsuite>", file=out)


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'


def _case(entry: Mapping[str, Any], *, strict: bool) -> str:
    workload, verdict = entry["workload"], entry["verdict"]
    name = "/".join(part for part in (workload["namespace"], workload["name"]) if part)
    inside = [
        f"<failure type={_quoted(one['reason'])} message={_quoted(printable(one['message']))}/>"
        for one in verdict["refusals"]
    ]
    if strict and not inside and (not verdict["managed"] or verdict["misspelled"]):
        words = verdict["message"] or "; ".join(verdict["warnings"])
        inside.append(f'<failure type="NotManaged" message={_quoted(printable(words))}/>')
    if verdict["warnings"]:
        lines = "\n".join(printable(one) for one in verdict["warnings"])
        inside.append(f"<system-out>{escape(lines)}</system-out>")
    head = f"  <testcase classname={_quoted(printable(workload['kind']))} name={_quoted(printable(name))}"
    return f"{head}>{''.join(inside)}</testcase>" if inside else f"{head}/>"
