"""Parses YAML as kubectl reads it, and JSON, in one pass each, and refuses dangerous input.

It refuses excessive nesting, aliases that multiply, numbers that JSON cannot express, and tags beyond plain values. Of
a duplicate key the last value counts, as for kubectl, and the document says so. Time and memory stay proportional to
the text, and each message names the line.
"""

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import yaml

from muster.cli.faults import json_words, variable_hint, yaml_fault
from muster.model.texts import printable

# Real manifests have a handful of levels and thousands of values, not millions.
_DEEPEST = 100
_MOST_VALUES = 2_000_000
# More of one document have one cause.
_MOST_DUPLICATES = 20

_TAG = "tag:yaml.org,2002:"
_SCALARS = {f"{_TAG}{name}" for name in ("bool", "float", "int", "null", "str")}
_NUMBERS = (f"{_TAG}float", f"{_TAG}int")
_LONGEST_NUMBER = 400
_EXACT = 2.0**53  # from here on a float may differ from the integer in the text
_UNTAGGED = (None, "!")
_TEMPLATE = re.compile(r"\{\{.*?\}\}")
# What kubectl's parser takes for a truth or a number, and PyYAML for text: `y`, `08`, `1e3`, a hash such as 12345e6.
_LETTERS = {"y": True, "Y": True, "n": False, "N": False}
_SIGNS = tuple("+-0123456789")
_GO_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_COLLECTIONS = (*_UNTAGGED, f"{_TAG}map", f"{_TAG}seq")


class Parsed(NamedTuple):
    """A document of a text.

    :ivar source: the file, the number of the document and its line, in words
    :ivar value: its value
    :ivar line: the line in which it begins, counted from 1
    :ivar duplicates: each key that occurs again in one mapping, with the line where it does
    """

    source: str
    value: Any
    line: int = 1
    duplicates: tuple[tuple[str, int], ...] = ()


class InputError(Exception):
    """The input cannot be read; each line of the message names the file and the place in it.

    From line `resume` on, counted from 0, the next document may begin; None when the rest of the file is not read.
    """

    def __init__(self, *lines: str, resume: int | None = None) -> None:
        super().__init__("\n".join(map(printable, lines)))
        self.resume = resume


class _UnplacedError(InputError):
    """An InputError whose message does not name the line."""


class _DuplicateKeyError(_UnplacedError):
    """JSON in which an object has a key twice; read as YAML it is no error, and the line is known."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads YAML with libyaml when it is available; a timestamp stays text, as for kubectl."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def parse(source: str, text: str) -> Iterator[Parsed]:
    """Every non-empty document of a text; raises InputError.

    A source named `.json` is JSON. Other text that starts like JSON is parsed as JSON first, which is far faster;
    everything else is YAML. What comes before an error is read.
    """
    named = source.endswith(".json")
    if not named and not re.match(r"(?:\s|---\s)*\{", text):
        yield from _yaml(source, text)
        return
    documents, error = _until_error(_json(source, text))
    if error and (not named or isinstance(error, _UnplacedError)):
        # The YAML parser also reads JSON and knows the line; the text may also be YAML in flow style.
        as_yaml, other = _until_error(_yaml(source, text, json_only=named))
        if other is None:
            strict = named and not isinstance(error, _DuplicateKeyError)
            documents, error = (documents, error) if strict else (as_yaml, None)
        elif len(as_yaml) > len(documents) or not documents or "\n---" in text:
            documents, error = as_yaml, other
    yield from documents
    if error:
        raise error


def stays_text(text: str) -> bool:
    """True if kubectl reads this text without quotes as text."""
    try:
        return bool(_plain(text) == text)
    except ValueError:  # no number of JSON
        return False


def _until_error(parsed: Iterator[Parsed]) -> tuple[list[Parsed], InputError | None]:
    """The documents before the first error, and that error."""
    documents: list[Parsed] = []
    try:
        for document in parsed:
            documents.append(document)  # noqa: PERF402 - those before an error are kept
    except InputError as error:
        return documents, error
    return documents, None


def _yaml(source: str, text: str, *, json_only: bool = False) -> Iterator[Parsed]:
    loader = _Loader(text)
    index = 0
    try:
        while loader.check_event():
            if not isinstance(loader.get_event(), yaml.DocumentStartEvent):
                continue
            index += 1
            where = f"{source}, document {index}"
            document = _Document(loader, where, text, json_only=json_only)
            value = document.read()
            if value is not None:
                line = document.line
                yield Parsed(f"{where}, line {line}", value, line, tuple(document.duplicates))
    except yaml.YAMLError as error:
        mark, (line, words) = getattr(error, "problem_mark", None), yaml_fault(error, text)
        at = f", line {line}" if line else ""
        raise InputError(f"{source}{at}: {words}", resume=mark.line if mark else None) from error
    finally:
        loader.dispose()


class _Document:
    """One YAML document, built from parser events: half the time of the nodes and constructors of PyYAML.

    :ivar duplicates: as in `Parsed`
    """

    def __init__(self, loader: Any, where: str, text: str, *, json_only: bool) -> None:  # noqa: ANN401 - PyYAML has no types for C
        self._next = loader.get_event
        self._text = text
        self._plain = _number_or_word if json_only else _plain
        self._where = where
        # Each anchor's value and its number of values; None while the value is incomplete.
        self._named: dict[str, tuple[Any, int] | None] = {}
        self._values = 0
        self.line = 0
        self.duplicates: list[tuple[str, int]] = []

    def read(self) -> Any:  # noqa: ANN401 - any value of a document
        """The value of the document, after its start event; raises InputError."""
        event = self._next()
        self.line = event.start_mark.line + 1
        return self._value(event, 0)

    def _refusal(self, event: Any, problem: str, *, excess: bool = False) -> InputError:  # noqa: ANN401
        line = event.start_mark.line + 1
        return InputError(f"{self._where}, line {line}: {problem}", resume=None if excess else line)

    def _value(self, event: Any, depth: int) -> Any:  # noqa: ANN401
        kind = type(event)
        if kind is yaml.AliasEvent:
            value, size = self._alias(event)
            self._count(event, size)
            return value
        before = self._values
        self._count(event, 1)
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
        else:
            if depth == _DEEPEST:
                raise self._refusal(event, f"nested more than {_DEEPEST} deep", excess=True)
            if event.tag not in _COLLECTIONS:
                raise self._refusal(event, f"tag {event.tag.replace(_TAG, '!!')[:80]} is not allowed in a manifest")
            if event.anchor is not None:
                self._named[event.anchor] = None
            value = (self._mapping if kind is yaml.MappingStartEvent else self._sequence)(depth + 1)
        if event.anchor is not None:
            self._named[event.anchor] = value, self._values - before
        return value

    def _count(self, event: Any, size: int) -> None:  # noqa: ANN401
        self._values += size
        if self._values > _MOST_VALUES:
            raise self._refusal(event, f"more than {_MOST_VALUES} values, with aliases expanded", excess=True)

    def _alias(self, event: Any) -> tuple[Any, int]:  # noqa: ANN401
        try:
            named = self._named[event.anchor]
        except KeyError:
            raise self._refusal(event, f'unknown alias "{event.anchor[:80]}"') from None
        if named is None:
            raise self._refusal(event, f'alias "{event.anchor[:80]}" refers to a value that contains it')
        return named

    def _scalar(self, event: Any) -> Any:  # noqa: ANN401
        try:
            if event.implicit[0]:
                return self._plain(event.value)
            if event.tag in _SCALARS:
                return _constructed(event.tag, event.value)
        except ValueError as error:
            raise self._refusal(event, str(error)) from error
        if event.tag not in _UNTAGGED:
            raise self._refusal(event, f"tag {event.tag.replace(_TAG, '!!')[:80]} is not allowed in a manifest")
        return event.value

    def _sequence(self, depth: int) -> list[Any]:
        values: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            values.append(self._value(event, depth))
        return values

    def _mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._value(event, depth)
            if key == "<<" and type(event) is yaml.ScalarEvent and event.implicit[0]:
                # The key << may be repeated.
                merged += self._mappings(event, self._value(self._next(), depth))
                continue
            if type(key) is not str:
                key = self._key(event, key)
            if key in values and len(self.duplicates) < _MOST_DUPLICATES:
                self.duplicates.append((key[:80], event.start_mark.line + 1))
            values[key] = self._value(self._next(), depth)
        # Own keys override merged keys, and earlier merges override later ones.
        base: dict[str, Any] = {}
        for one in reversed(merged):
            base |= one
        return base | values if base else values

    def _key(self, event: Any, key: Any) -> str:  # noqa: ANN401
        """A key that is not a string, converted as kubectl does: `1` and `true` become strings."""
        if type(key) is bool:
            return "true" if key else "false"
        if type(key) in (int, float):
            return str(key)
        # In YAML `{{ name }}` is an object whose one key is an object.
        mark = event.start_mark
        line = next(islice(self._text.splitlines(), mark.line, None), "")
        if (template := _TEMPLATE.match(line, max(mark.column - 1, 0))) is not None:
            raise self._refusal(event, variable_hint(template[0]))
        raise self._refusal(event, "a key that is not a string")

    def _mappings(self, event: Any, value: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        found = value if type(value) is list else [value]
        if not all(type(one) is dict for one in found):
            raise self._refusal(event, "<< needs mappings")
        return found


@lru_cache(maxsize=4096)
def _plain(text: str) -> Any:  # noqa: ANN401 - text, a number, true, false or nothing
    """The value of a scalar without quotes."""
    for tag, pattern in _Loader.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            return _constructed(tag, text)
    if text in _LETTERS:
        return _LETTERS[text]
    number = text.replace("_", "") if text[:1] in _SIGNS else text
    # Beyond what a float can be it stays text.
    if _GO_NUMBER.fullmatch(number) and len(number) <= _LONGEST_NUMBER and math.isfinite(float(number)):
        return _whole(float(number))
    return text


def _constructed(tag: str, text: str) -> Any:  # noqa: ANN401
    # YAML 1.2 has no numbers to base 60, and kubectl reads them as text.
    if tag not in _SCALARS or (tag in _NUMBERS and ":" in text):
        return text
    if tag in _NUMBERS and len(text) > _LONGEST_NUMBER:
        raise ValueError(f"{text[:20]}... is too long for a number")
    value = _Loader.yaml_constructors[tag](yaml.constructor.SafeConstructor(), yaml.ScalarNode(tag, text))
    if type(value) is not float:
        return value
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a JSON number")
    return _whole(value)


def _number_or_word(text: str) -> Any:  # noqa: ANN401
    """The value of a JSON scalar without quotes."""
    return _DECODER.decode(text)


_BETWEEN = re.compile(r"(?:\s|^---[ \t]*(?=\r?$))*", re.MULTILINE)
# Half of a surrogate pair is not a character and cannot be printed.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _json(source: str, text: str) -> Iterator[Parsed]:
    position = index = counted = 0
    line = 1
    while (position := _BETWEEN.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        index += 1
        where = f"{source}, document {index}"
        start = position
        try:
            value, position = _DECODER.raw_decode(text, position)
            if _SURROGATE.search(text, start, position):
                json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            raise InputError(f"{source}, line {error.lineno}: {json_words(error)}") from error
        except RecursionError:
            raise _UnplacedError(f"{where}: nested more than {_DEEPEST} deep") from None
        except UnicodeEncodeError:
            raise _UnplacedError(f"{where}: half of a surrogate pair is not valid text") from None
        except ValueError as error:
            raise _UnplacedError(f"{where}: {error}") from error
        _check_depth(where, value)
        line += text.count("\n", counted, start)
        counted = start
        yield Parsed(f"{where}, line {line}", value, line)


def _check_depth(where: str, value: Any) -> None:  # noqa: ANN401
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [
            child
            for one in level
            for child in (one.values() if type(one) is dict else one if type(one) is list else ())
            if type(child) in (dict, list)
        ]
        if not level:
            return
    raise _UnplacedError(f"{where}: nested more than {_DEEPEST} deep")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _DuplicateKeyError(f'duplicate key "{twice[:80]}"')
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:80]} is not a JSON number")
    return _whole(value)


def _whole(value: float) -> float:
    """The number as kubectl sends it: `1.0` becomes 1, and is valid for an integer field."""
    return int(value) if abs(value) < _EXACT and value.is_integer() else value


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"{text[:20]}... is too long for a number")
    return int(text)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_integer, parse_constant=_no_number
)
