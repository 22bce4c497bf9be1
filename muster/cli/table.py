"""The text output of a plan: aligned, in the columns of the terminal where the names fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from muster.cli.terminal import GREEN, RED, YELLOW, colours, painted, width, wrapped
from muster.model.texts import printable
from muster.schedulers import spec_of

# An indent that says: never wrap this line.
_WHOLE = 10_000
# No count of devices or cpus is as large; bytes are.
_LARGE = 2**20
_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def print_table(entries: Sequence[Mapping[str, Any]], out: TextIO, *, patches: bool) -> None:
    """Print every entry of a plan, with or without the patches of its pods."""
    colour, columns = colours(out), width(out)
    for number, entry in enumerate(entries):
        if number:
            print(file=out)
        for indent, paint, words, rest in _lines(entry, patches=patches):
            first, *more = wrapped(words + printable(rest), indent, columns)
            print(painted(words, paint, colour=colour) + first[len(words) :], file=out)
            for line in more:
                print(line, file=out)


def _lines(entry: Mapping[str, Any], *, patches: bool) -> Iterator[tuple[int, str, str, str]]:
    """Each line: the indent of its continuation lines, a colour, the coloured words, and the rest."""
    workload, verdict = entry["workload"], entry["verdict"]
    where = f"{workload['namespace']}/" if workload["namespace"] else ""
    yield _WHOLE, "", "", f"{workload['kind']} {where}{workload['name']}"
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
        said = intent["from"].get(field, "default")
        yield 13, f"  {title:<10} {intent[field] or '-'}" + (f"  ({said})" if intent[field] else "")
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


def amounts(resources: Mapping[str, str | int | float]) -> str:
    """The quantities on one line; bytes rounded to three digits or so, which `-o yaml` and `-o json` do not do."""
    return ", ".join(f"{name} {rounded(str(amount))}" for name, amount in resources.items()) or "nothing"


def rounded(amount: str) -> str:
    """A large number without a unit, such as 3536870912, in binary units: 3.3Gi."""
    if not amount.isdecimal() or int(amount) < _LARGE:
        return amount
    power = min((int(amount).bit_length() - 1) // 10, len(_UNITS))
    return f"{int(amount) / 1024**power:.1f}".removesuffix(".0") + _UNITS[power - 1]


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)
