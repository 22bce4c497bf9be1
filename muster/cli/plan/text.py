"""The output of `muster plan` and `muster audit`: as text, as a table, and as JUnit's XML for CI systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape  # of xml.sax.saxutils the import takes 15 ms
from typing import Any, TextIO

from muster.cli.ui import GREEN, RED, YELLOW, aligned, amounts, colours, counted, painted, print_data, width, wrapped
from muster.model.findings import Severity
from muster.model.texts import printable
from muster.schedulers import spec_of

# The indent of a line that is never wrapped.
_WHOLE = 10_000
_HEAD = ("NAMESPACE", "KIND", "NAME", "VERDICT", "QUEUE", "PRIORITY", "PODS", "MIN", "MIN RESOURCES", "WARNINGS")
_WORDS = {Severity.DENY: ("  refused", RED), Severity.WARN: ("  warning", YELLOW)}


# A line: the indent of its continuation lines, a colour, the coloured words, and the rest.
_Line = tuple[int, str, str, str]


def print_table(entries: Sequence[Mapping[str, Any]], out: TextIO, *, patches: bool) -> None:
    """Print every entry of a plan, with or without the patches of its pods."""
    for number, entry in enumerate(entries):
        if number:
            print(file=out)
        _print_lines(_lines(entry, patches=patches), out)


def _print_lines(lines: Iterable[_Line], out: TextIO) -> None:
    colour, columns = colours(out), width(out)
    for indent, paint, words, rest in lines:
        first, *more = wrapped(words + printable(rest), indent, columns)
        print(painted(words, paint, colour=colour) + first[len(words) :], file=out)
        for line in more:
            print(line, file=out)


def _title(named: Mapping[str, Any]) -> str:
    return f"{named['kind']} {named['namespace']}/{named['name']}".replace(" /", " ", 1)


def _lines(entry: Mapping[str, Any], *, patches: bool) -> Iterator[_Line]:
    verdict = entry["verdict"]
    yield _WHOLE, "", "", _title(entry["workload"])
    for refusal in verdict["refusals"]:
        yield 4, RED, f"  refused ({refusal['reason']})", f": {refusal['message']}"
    if verdict["refusals"]:
        pass
    elif verdict["managed"]:
        yield 4, GREEN, "  allowed", f": {verdict['message']}" if verdict["message"] else ""
    else:
        yield 4, YELLOW, "  not managed", verdict["message"].removeprefix("not managed")
    for warning in verdict["warnings"]:
        if warning in verdict["message"]:
            continue
        yield 4, YELLOW, "  warning", f": {warning}"
    if entry["intent"] is not None:
        for indent, line in _details(entry, patches=patches):
            yield indent, "", "", line


def _details(entry: Mapping[str, Any], *, patches: bool) -> Iterator[tuple[int, str]]:
    """Each line, and the indent of its continuation lines."""
    intent, group = entry["intent"], entry["podGroup"]
    for title, field in (("scheduler", "scheduler"), ("queue", "queue"), ("priority", "priorityClassName")):
        where = intent["from"].get(field, "default")
        yield 13, f"  {title:<10} {intent[field] or '-'}" + (f"  ({where})" if intent[field] else "")
    if intent["admitter"] != "ledger":
        yield 13, f"  {'admitter':<10} {intent['admitter']}"
    spec = spec_of(group)
    needs = f"minMember {spec.min_member}, minResources {amounts(spec.min_resources)}"
    yield 13, f"  {'PodGroup':<10} {group['metadata']['name']}: {needs}"
    width = max([4, *(len(role["name"]) for role in entry["roles"])])
    yield _WHOLE, f"  {'ROLE':<{width}}  PODS  MIN  REQUESTS PER POD"
    for role in entry["roles"]:
        each = amounts(role["requests"])
        yield width + 15, f"  {role['name']:<{width}}  {role['replicas']:>4}  {role['minMember']:>3}  {each}"
    for role in entry["roles"] if patches else ():
        yield 4, f"  patch of a {role['name']} pod" + (":" if role["patch"] else ": none")
        for operation in role["patch"]:
            value = operation.get("value")
            # Without the escapes of JSON Patch for slashes within a key.
            path = operation["path"].replace("~1", "/").replace("~0", "~")
            yield 11, f"    {operation['op']:<6} {path}" + ("" if value is None else f" = {_short(value)}")


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)


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


def print_audit(report: Mapping[str, Any], form: str, out: TextIO) -> None:
    """Print a report: as json, as yaml, or as text with a summary at the end."""
    if not print_data(report, form, out):
        for entry in (*report["queues"], *report["podGroups"], *report["workloads"]):
            _print_lines(_audit_lines(entry), out)
            print(file=out)
        paint = RED if report["refused"] else YELLOW if report["warned"] else GREEN
        print(painted(_sum(report), paint, colour=colours(out)), file=out)


def _audit_lines(entry: Mapping[str, Any]) -> Iterator[_Line]:
    goes_on = entry["running"] and entry["findings"][0]["severity"] == Severity.DENY
    yield _WHOLE, "", "", _title(entry) + (" (running; it keeps running)" if goes_on else "")
    for found in entry["findings"]:
        words, paint = _WORDS[Severity(found["severity"])]
        yield 4, paint, f"{words} ({found['reason']})", f": {found['message']}"


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
