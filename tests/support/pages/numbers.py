"""Numbers that documents state: how they are read, and where the programs have theirs.

A row quotes a sentence with its number in guillemets, and names the place of the same number in the programs:

- `controller.nudges:_SILENCE`: a name in a module, then fields with a default, parameters with one, attributes, keys;
- `values:webhook.timeoutSeconds`: a value of the chart;
- `flag:webhook/__main__.py --timeout`: what argparse takes where nothing is said;
- `text:PATH /PATTERN/`: what the pattern's group finds in a file.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CHECKOUT", "Elsewhere", "Row", "amount", "found", "measures", "prose", "spans", "stated"]

CHECKOUT = Path(__file__).parents[3]
_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds", "m"), 1e-3),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86400.0),
    "%": 0.01,
    "kB": 1e3,
    "MB": 1e6,
    "KiB": 2**10,
    "Ki": 2**10,
    "MiB": 2**20,
    "Mi": 2**20,
    "Gi": 2**30,
}
_ONES = "no one two three four five six seven eight nine ten".split()  # noqa: SIM905 - in their order
_WORDS = {
    **{word: float(value) for value, word in enumerate(_ONES)},
    **dict.fromkeys(("", "a", "an"), 1.0),
    **dict.fromkeys(("half", "half a", "half an"), 0.5),
    **dict.fromkeys(("a quarter", "a quarter of an"), 0.25),
    "twice": 2.0,
    "twenty": 20.0,
    "a hundred": 100.0,
    "a sixteenth": 1 / 16,
    "a tenth": 0.1,
    "four fifths": 0.8,
    "last tenth": 0.1,
}
_NUMBER = re.compile(r"[\d,]*\.?\d+")


@dataclass(frozen=True)
class Row:
    """A number that `document` states, and where it comes from.

    `rule` makes one of the numbers of several places; without one all of them are what is stated. `about` is the part
    by which what is stated may be rounded.
    """

    document: str
    quote: str
    places: tuple[str, ...]
    rule: Callable[..., float] | None = None
    about: float = 0.0


@dataclass(frozen=True)
class Elsewhere:
    """A number that `document` states and no default of muster's is behind; `why` says who has it, or holds it."""

    document: str
    quote: str
    why: str


def amount(text: str) -> float:
    """What a number in words or digits says, in seconds or bytes where it has a unit. Raises ValueError."""
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
    """The document without code that stands apart, each run of blanks as one; of commands there the comments stay."""
    text = re.sub(r"^```(.*?)\n(.*?)^```", _comments, (CHECKOUT / document).read_text(), flags=re.DOTALL | re.MULTILINE)
    return " ".join(text.split())


def _comments(code: re.Match[str]) -> str:
    language, lines = code.groups()
    return "\n".join(re.findall(r"^[^#\n]+ # (.*)$", lines, re.MULTILINE)) if language == "sh" else ""


_STATED = re.compile(
    r"""(?<![\w.,/:`-])(?<!\d\ )(?<!one\ )(?<!once\ )(?<!pods\ )(?:
        \d[\d,]*(?:\.\d+)?\ ?(?:ms|s|seconds?|minutes?|hours?|days?|times|characters)(?![\w`])
        | \d[\d,]*(?:\.\d+)?\ ?(?:%|k[bB]|[MG]B|[KMG]i|[KM]iB)(?![\w`])
        | \d[\d,]*(?=\ (?:\w+\ )?a\ second\b)
        | (?:half\ an?|half|a\ quarter\ of\ an|an?|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty)
          \ (?:milliseconds?|microseconds?|seconds|minutes?|hours?|days?|second(?=[,.;:]))
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def measures(document: str) -> list[tuple[int, int, str]]:
    """Where a document states an amount of time or bytes, a rate or a count of times, and with which words around."""
    text = prose(document)
    return [
        (match.start(), match.end(), text[max(0, match.start() - 60) : match.end() + 40])
        for match in _STATED.finditer(text)
    ]


def stated(row: Row | Elsewhere) -> list[float]:
    """The numbers in the row's guillemets."""
    return [amount(number) for number in re.findall("«(.*?)»", row.quote)]


def spans(row: Row | Elsewhere) -> list[tuple[int, int]]:
    """Where the row's numbers stand in its document, wherever the quotation does. Raises ValueError for nowhere."""
    parts = re.split("[«»]", " ".join(row.quote.split()))
    text, plain = prose(row.document), "".join(parts)
    places = [match.start() for match in re.finditer(re.escape(plain), text)]
    if not places or len(parts) == 1:
        raise ValueError(f"{row.document} does not say: {plain}")
    lengths = [0, *(len(part) for part in parts)]
    ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
    return [(place + ends[at], place + ends[at + 1]) for place in places for at in range(1, len(parts), 2)]


def found(place: str) -> float:
    """The number at a place."""
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
