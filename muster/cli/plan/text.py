"""The output of `muster plan` and `muster audit`: as text, as a table, and as JUnit's XML for CI systems."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape  # of xml.sax.saxutils the import takes 15 ms
from typing import Any, TextIO

from muster.cli.plan.entry import PlanEntry
from muster.cli.ui import GREEN, RED, YELLOW, aligned, amounts, colours, counted, painted, placement, print_wrapped
from muster.model.texts import printable
from muster.schedulers import spec_of

# The indent of a line that is never wrapped.
_WHOLE = 10_000
_HEAD = ("NAMESPACE", "KIND", "NAME", "VERDICT", "QUEUE", "PRIORITY", "PODS", "MIN", "MIN RESOURCES", "WARNINGS")


# A line: the indent of its continuation lines, a colour, the coloured words, and the rest.
_Line = tuple[int, str, str, str]


def print_entries(entries: Sequence[PlanEntry], out: TextIO, *, patches: bool = False) -> None:
    """Print every entry, with or without the patches of its pods."""
    several = _several(entries)
    for number, entry in enumerate(entries):
        if number:
            print(file=out)
        for indent, paint, words, rest in _lines(entry, patches=patches, placed=several):
            print_wrapped(words + printable(rest), indent, out, paint, len(words))


def _several(entries: Iterable[PlanEntry]) -> bool:
    """True if the entries come from more than one file, so that each names its own."""
    return len({entry.file for entry in entries}) > 1


def _lines(entry: PlanEntry, *, patches: bool, placed: bool) -> Iterator[_Line]:
    goes_on = " (running; it keeps running)" if entry.running and entry.refusals else ""
    place = ", ".join(filter(None, (entry.within, entry.place if placed else "")))
    place = f"  ({place})" if place else ""
    yield _WHOLE, "", "", f"{entry.kind} {entry.namespace}/{entry.name}".replace(" /", " ", 1) + goes_on + place
    for refusal in entry.refusals:
        yield 4, RED, f"  refused ({refusal.reason})", f": {refusal.message}"
    if not entry.managed:
        yield 4, YELLOW, "  not managed", f": {entry.note}"
    elif not entry.refusals:
        yield 4, GREEN, "  allowed", f": {entry.note}" if entry.note else ""
    for warning in entry.warnings:
        if warning.message not in entry.note:
            yield 4, YELLOW, f"  warning ({warning.reason})", f": {warning.message}"
    for indent, line in _details(entry, patches=patches):
        yield indent, "", "", line


def _details(entry: PlanEntry, *, patches: bool) -> Iterator[tuple[int, str]]:
    """Each line about its gang, and the indent of its continuation lines."""
    intent, group = entry.intent, entry.pod_group
    if intent is None or group is None:
        return
    yield from ((13, line) for line in placement(intent))
    spec = spec_of(group)
    needs = f"minMember {spec.min_member}, minResources {amounts(spec.min_resources)}"
    yield 13, f"  {'PodGroup':<10} {group['metadata']['name']}: {needs}"
    width = max([4, *(len(role["name"]) for role in entry.roles)])
    yield _WHOLE, f"  {'ROLE':<{width}}  PODS  MIN  REQUESTS PER POD"
    for role in entry.roles:
        each = amounts(role["requests"])
        yield width + 15, f"  {role['name']:<{width}}  {role['replicas']:>4}  {role['minMember']:>3}  {each}"
    for role in entry.roles if patches else ():
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


def print_wide(entries: Sequence[PlanEntry], out: TextIO) -> None:
    """Print a row for each entry, however wide the terminal is."""
    head: Sequence[str] = _HEAD
    rows = [_row(entry) for entry in entries]
    if _several(entries):
        head, rows = (*head, "FILE"), [[*row, entry.place] for row, entry in zip(rows, entries, strict=True)]
    for line in aligned(head, rows, right=(6, 7, 9)):
        print(line, file=out)


def _row(entry: PlanEntry) -> list[str]:
    gang = ["-", "-", "-", "-", "-"]
    if entry.intent is not None and entry.pod_group is not None:
        spec, pods = spec_of(entry.pod_group), sum(role["replicas"] for role in entry.roles)
        named = [entry.intent["queue"] or "-", entry.intent["priorityClassName"] or "-"]
        gang = [*named, str(pods), str(spec.min_member), amounts(spec.min_resources)]
    answer = str(entry.refusals[0].reason) if entry.refusals else "allowed" if entry.managed else "not managed"
    return [entry.namespace or "-", entry.kind, entry.name, answer, *gang, str(len(entry.warnings))]


def print_summary(entries: Sequence[PlanEntry], errors: Sequence[str], out: TextIO) -> None:
    """Print the last line: how many objects there are, and with which answers."""
    refused = sum(not one.allowed for one in entries)
    unmanaged = sum(one.allowed and not one.managed for one in entries)
    warnings = sum(len(one.warnings) for one in entries)
    parts = [f"{len(entries) - refused - unmanaged} allowed", f"{refused} refused"]
    if unmanaged:
        parts.append(f"{unmanaged} not managed")
    if warnings:
        parts.append(counted(warnings, "warning"))
    if errors:
        parts.append(f"{len(errors)} could not be read")
    paint = RED if refused or errors else YELLOW if unmanaged or warnings else GREEN
    if entries:
        print(file=out)
    print(painted(f"{counted(len(entries), 'object')}: {', '.join(parts)}", paint, colour=colours(out)), file=out)


def print_junit(entries: Sequence[PlanEntry], errors: Sequence[str], out: TextIO, *, strict: bool) -> None:
    """Print a test case for each entry and for each part of the input that cannot be read, as CI systems show them.

    A refusal is a failure; with `strict` so is a workload that is not managed, or looks misspelled.
    """
    cases = [_case(entry, strict=strict) for entry in entries]
    failures = sum("<failure" in case for case in cases)
    cases += [
        f'  <testcase classname="input" name={_quoted(printable(text.partition(": ")[0]))}'
        f" file={_quoted(printable(text.partition(': ')[0].partition(', ')[0]))}>"
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


def _case(entry: PlanEntry, *, strict: bool) -> str:
    name = "/".join(part for part in (entry.namespace, entry.name) if part)
    inside = [_failure(str(one.reason), one.message) for one in entry.refusals]
    if strict and not inside and entry.slips:
        inside.append(_failure("NotManaged", entry.message or "; ".join(one.message for one in entry.warnings)))
    if entry.warnings:
        lines = "\n".join(printable(one.message) for one in entry.warnings)
        inside.append(f"<system-out>{escape(lines)}</system-out>")
    head = f"  <testcase classname={_quoted(printable(entry.kind))} name={_quoted(printable(name))}"
    head += f' file={_quoted(printable(entry.file))} line="{entry.line}"'
    return f"{head}>{''.join(inside)}</testcase>" if inside else f"{head}/>"


def _failure(reason: str, message: str) -> str:
    return f"<failure type={_quoted(reason)} message={_quoted(printable(message))}/>"


def print_audit_summary(report: Mapping[str, Any], out: TextIO) -> None:
    """Print the last line of an audit: how many objects were checked, and how many have findings."""
    looked = report["lookedAt"]
    parts = [
        counted(looked[key], noun)
        for key, noun in (("workloads", "workload"), ("queues", "Queue"), ("podGroups", "PodGroup"))
        if looked[key] or key == "workloads"
    ]
    words = f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else parts[0]
    paint = RED if report["refused"] else YELLOW if report["warned"] else GREEN
    line = f"{words} checked: {report['refused']} would be refused, {report['warned']} with warnings"
    print(painted(line, paint, colour=colours(out)), file=out)
