"""The plan for people: aligned, in 80 columns where the names allow it, coloured on a terminal only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["print_table"]

_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def print_table(entries: Sequence[Mapping[str, Any]], out: TextIO) -> None:
    """Print every entry of a plan."""
    colour = out.isatty()
    for number, entry in enumerate(entries):
        if number:
            print(file=out)
        for line in _lines(entry, colour=colour):
            print(line, file=out)


def _lines(entry: Mapping[str, Any], *, colour: bool) -> Iterator[str]:
    workload, verdict = entry["workload"], entry["verdict"]
    yield f"{workload['kind']} {workload['namespace']}/{workload['name']}"
    word, paint = ("allowed", _GREEN) if verdict["allowed"] else (f"refused ({verdict['reason']})", _RED)
    yield f"  {_painted(word, paint, colour=colour)}" + (f": {verdict['message']}" if verdict["message"] else "")
    for warning in verdict["warnings"]:
        yield f"  {_painted('warning', _YELLOW, colour=colour)}: {warning}"
    intent, group = entry["intent"], entry["podGroup"]
    if intent is None:
        return
    for title, field in (("scheduler", "scheduler"), ("queue", "queue"), ("priority", "priorityClassName")):
        said = intent["from"].get(field, "default")
        yield f"  {title:<10} {intent[field] or '-'}" + (f"  ({said})" if intent[field] else "")
    spec = group["spec"]
    resources = ", ".join(f"{name} {amount}" for name, amount in spec["minResources"].items()) or "nothing"
    yield f"  {'PodGroup':<10} {group['metadata']['name']}: minMember {spec['minMember']}, minResources {resources}"
    width = max([4, *(len(role["name"]) for role in entry["roles"])])
    yield f"  {'ROLE':<{width}}  PODS  MIN  EACH POD ASKS FOR"
    for role in entry["roles"]:
        each = ", ".join(f"{name} {amount}" for name, amount in role["requests"].items()) or "nothing"
        yield f"  {role['name']:<{width}}  {role['replicas']:>4}  {role['minMember']:>3}  {each}"
    for role in entry["roles"]:
        yield f"  patch of a {role['name']} pod" + (":" if role["patch"] else ": none, it is left alone")
        for operation in role["patch"]:
            value = operation.get("value")
            # As people write it; JSON escapes the slashes within a key.
            path = operation["path"].replace("~1", "/").replace("~0", "~")
            yield f"    {operation['op']:<6} {path}" + ("" if value is None else f" = {_short(value)}")


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_short(item) for item in value)
    return str(value)


def _painted(text: str, paint: str, *, colour: bool) -> str:
    return f"{paint}{text}{_PLAIN}" if colour else text
