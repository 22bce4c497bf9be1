"""Numbers that documents state: how their marks are read, and where the programs have each number.

A mark stands right after a number, and a reader of the rendered page does not see it: `five minutes<!--=unplaced-->`.
`tests/support/pages/named_numbers.py` says what each name stands for. Where the unit is elsewhere in the sentence, the
mark has it: `12<!--=drain-soonest/h--> to 72 hours<!--=drain-latest-->`. A number is found at

- `controller.nudges:_SILENCE`: a name in a module, then fields with a default, parameters with one, attributes, keys;
- `values:webhook.timeoutSeconds`: a value of the chart;
- `flag:webhook/__main__.py --timeout`: the default of an option in argparse;
- `text:PATH /PATTERN/`: what the pattern's group finds in a file.
"""

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).parents[3]
MARK = re.compile(r"<!--=([\w.-]+)(?:/([\w%]+))?-->")
_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86400.0),
    "m": 1e-3,
    "%": 0.01,
    "kB": 1e3,
    "MB": 1e6,
    **dict.fromkeys(("Ki", "KiB"), 2.0**10),
    **dict.fromkeys(("Mi", "MiB"), 2.0**20),
    **dict.fromkeys(("Gi", "GiB"), 2.0**30),
}
_FAMILIES = (("days", "hours", "minutes", "seconds", "ms"), ("MB", "kB"), ("GiB", "MiB", "KiB"), ("Gi", "Mi", "Ki"))
_ONES = "no one two three four five six seven eight nine ten".split()  # noqa: SIM905 - in their order
_WORDS = {
    **dict.fromkeys(("", "a", "an"), 1.0),
    **{word: float(value) for value, word in enumerate(_ONES)},
    **dict.fromkeys(("half", "half a", "half an"), 0.5),
    **dict.fromkeys(("a quarter", "a quarter of an"), 0.25),
    "twice": 2.0,
    "twenty": 20.0,
    "a hundred": 100.0,
    "a sixteenth": 1 / 16,
    "last tenth": 0.1,
    "a tenth": 0.1,
    "four fifths": 0.8,
}
_NUMBER = re.compile(r"[\d,]*\.?\d+")
_LONGEST = 30


def amount(text: str) -> float:
    """The value of a number in words or digits, in seconds or bytes where it has a unit. Raises ValueError."""
    text = " ".join(text.split())
    if (number := _NUMBER.match(text)) is not None:
        value, unit = float(number[0].replace(",", "")), text[number.end() :].strip()
        if unit and unit not in _UNITS:
            raise ValueError(f"no unit: {text!r}")
        return value * _UNITS.get(unit, 1.0)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    words, _, unit = text.rpartition(" ")
    if words.lower() not in _WORDS or unit not in _UNITS:
        raise ValueError(f"no number: {text!r}")
    return _WORDS[words.lower()] * _UNITS[unit]


@cache
def prose(document: str) -> str:
    """The document without code blocks and marks, each run of blanks as one; comments of commands stay."""
    text = MARK.sub("", (CHECKOUT / document).read_text())
    text = re.sub(r"^```(.*?)\n(.*?)^```", _comments, text, flags=re.DOTALL | re.MULTILINE)
    return " ".join(text.split())


def _comments(code: re.Match[str]) -> str:
    language, lines = code.groups()
    return "\n".join(re.findall(r"^[^#\n]+ # (.*)$", lines, re.MULTILINE)) if language == "sh" else ""


def updated(text: str, numbers: Callable[[str], float]) -> str:
    """The page with the present value before each mark; a number that already has it keeps its words.

    `numbers` has the value of a name. Raises ValueError for a mark without a number before it.
    """
    parts, end = [], 0
    for mark in MARK.finditer(text):
        before, value = text[end : mark.start()], numbers(mark[1]) / _UNITS.get(mark[2], 1.0)
        closing = before[len(before.rstrip("`*")) :]
        before = before.removesuffix(closing)
        old = _last_number(before)
        same = abs(amount(old) - value) <= 1e-9 * abs(value) or (bool(closing) and _go_duration(old) == value)
        parts += [before.removesuffix(old), old if same else restated(value, old), closing, mark[0]]
        end = mark.end()
    return "".join([*parts, text[end:]])


def _last_number(text: str) -> str:
    for start in range(max(0, len(text) - _LONGEST), len(text)):
        if text[start].isspace() or (start and re.match(r"[\w.,]", text[start - 1])):
            continue
        try:
            amount(text[start:])
        except ValueError:
            continue
        return text[start:]
    raise ValueError(f"no number before the mark: …{text[-60:]}")


def _go_duration(text: str) -> float | None:
    return float(text[:-1]) * 60 if re.fullmatch(r"\d+m", text) else None


def restated(value: float, old: str) -> str:
    """The value as `old` is written: in digits or words, in its unit or the largest that leaves a whole number."""
    unit = next((unit for unit in sorted(_UNITS, key=len, reverse=True) if re.search(rf"(?:^|[\d ]){unit}$", old)), "")
    if unit and not (value / _UNITS[unit]).is_integer():
        family = next((family for family in _FAMILIES if f"{unit.removesuffix('s')}s" in family or unit in family), ())
        unit = next((other for other in family if (value / _UNITS[other]).is_integer()), unit)
    number = value / _UNITS.get(unit, 1.0)
    if len(unit) > len("min"):
        unit = unit.removesuffix("s") + ("" if number == 1 else "s")
    words = next((word for word, known in _WORDS.items() if word and known == number), None)
    if words is None or re.search(r"\d", old):
        words = f"{number:,.10g}"
    elif number == 1 and unit:
        words = "an" if unit == "hour" else "a"
    blank = " " if unit and (" " in old or not old[0].isdigit()) else ""
    return (words.capitalize() if old[0].isupper() else words) + blank + unit


def found(place: str) -> float:
    """The number at a place, in seconds or bytes where it has a unit."""
    if scaled := re.fullmatch(r"(.*) \* ([\d.]+)", place):
        return found(scaled[1]) * float(scaled[2])
    kind, _, rest = place.partition(":")
    if kind == "values":
        value: Any = _values()
        for key in rest.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
    elif kind == "flag":
        value = _flag(*rest.split())
    elif kind == "text":
        path, _, pattern = rest.partition(" ")
        matches = set(re.findall(pattern.strip("/"), (CHECKOUT / path).read_text()))
        assert len(matches) == 1, f"{place}: {matches}"
        value = matches.pop()
    else:
        value = importlib.import_module(kind)
        for name in rest.split("."):
            value = _below(value, name)
    return _plain(value)


@cache
def _values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CHECKOUT / "charts/muster/values.yaml").read_text())
    return values


@cache
def _parsed(path: str) -> ast.Module:
    return ast.parse((CHECKOUT / path).read_text())


def _flag(path: str, flag: str) -> object:
    calls = [node for node in ast.walk(_parsed(path)) if isinstance(node, ast.Call)]
    (call,) = [
        call
        for call in calls
        if any(isinstance(argument, ast.Constant) and argument.value == flag for argument in call.args)
    ]
    (default,) = [keyword.value for keyword in call.keywords if keyword.arg == "default"]
    return ast.literal_eval(default)


def _below(value: Any, name: str) -> Any:  # noqa: ANN401 - any part of a module
    if isinstance(value, dict):
        return value[name]
    if name.isdigit():
        return value[int(name)]
    if inspect.isclass(value) and dataclasses.is_dataclass(value):
        return next(field.default for field in dataclasses.fields(value) if field.name == name)
    if inspect.isfunction(value):
        return inspect.signature(value).parameters[name].default
    return getattr(value, name)


def _plain(value: object) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):
        return float(".".join(map(str, value)))
    return amount(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type] # a number, or it raises
