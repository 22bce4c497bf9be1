"""The fields of one object that cannot be what they are: of a wrong type, missing, or a variable that is not filled in.

A decoder names the first of them, and a user wants all.
"""

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin

import msgspec

from muster.cli.faults import variable_hint
from muster.cli.parsing import InputError
from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError, fault_of

# Faults that are named of one object; more of them have one cause.
_MOST = 20
_LONGEST = 80
# A longer text is rather a block in the wrong place than a slip.
_SHORT = 40

# A status is not the user's, and annotations may hold any text.
_ANY_TEXT = ("annotations", "status")


def unreadable(
    source: str,
    manifest: dict[str, Any],
    type_: type[Any],
    error: InvalidObjectError | None,
    known: Sequence[Finding] = (),
) -> InputError:
    """The error of an object that cannot be decoded as `type_`: `known` faults, each field of a wrong type, or `error`.

    `error` is None for an object with known faults alone.
    """
    named = {one.field for one in known}
    wrong = [one.message for one in _wrong_fields(manifest, type_, "") if one.field not in named]
    found = [*(one.message for one in known), *(wrong or ([str(error)] if error else []))]
    lines = [f"{source}: {message}" for message in found]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{source}: {len(lines) - _MOST} more faults"]
    return InputError(*lines)


def unfilled(value: Any, type_: Any, path: str = "") -> Iterator[Finding]:  # noqa: ANN401 - a manifest and its type
    """The variables that are not filled in, in fields that are decoded: elsewhere, as in a command, they may be meant.

    Fields of a wrong type are `unreadable`'s.
    """
    type_ = _without_none(type_)
    if isinstance(value, str) and _takes_text(type_) and (hint := variable_hint(value)):
        yield Finding(Reason.INVALID, path, f"{path}: {hint}")
    for name, item, of in _below(value, type_):
        if hint := variable_hint(name):
            yield Finding(Reason.INVALID, path, f"{path}: the key {hint}")
        if name not in _ANY_TEXT:
            yield from unfilled(item, of, _joined(path, name))


def _takes_text(type_: Any) -> bool:  # noqa: ANN401 - a type
    return type_ is str or str in get_args(type_)


def _wrong_fields(value: Any, type_: Any, path: str) -> Iterator[Finding]:  # noqa: ANN401 - a manifest and its type
    """Each part of a value that has another type than the one at its place; null counts as absent."""
    type_ = _without_none(type_)
    if _is_of(value, type_):
        for name, item, of in _below(value, type_):
            yield from _wrong_fields(item, of, _joined(path, name))
        return
    try:
        msgspec.convert(value, type=type_)
    except msgspec.ValidationError as error:
        yield Finding(Reason.INVALID, path, f"{path}: {_words(value, type_, error)}")


def _words(value: Any, type_: Any, error: msgspec.ValidationError) -> str:  # noqa: ANN401 - a manifest and its type
    """What is wrong with a value of a wrong type, and how to write it."""
    return type_words(value, {type_}) or with_value(fault_of(error)[1], value)


def with_value(words: str, value: Any) -> str:  # noqa: ANN401 - any value of a manifest
    """The words on a value of a wrong type, with a text that is short."""
    if not isinstance(value, str) or len(value) > _SHORT:
        return words
    return re.sub(r"found a string$", lambda _: f'found the string "{value}"', words)


def type_words(value: Any, expected: set[Any]) -> str:  # noqa: ANN401 - any value of a manifest
    """What is wrong with a scalar that should have one of these types of Python; "" if there is no more to say."""
    if isinstance(value, str):
        if hint := variable_hint(value):
            return hint
        if bool in expected and value.lower() in ("true", "false"):
            return f'"{value}" is a string; write {value.lower()} without quotes'
        if expected & {int, float} and (number := _number_in(value)):
            return f'"{value[:_LONGEST]}" is a string; write {number} without quotes'
        return ""
    if str in expected and isinstance(value, int | float):
        if isinstance(value, bool):
            return f"{str(value).lower()} is a boolean, and a string is expected; write it in quotes"
        return f'{value} is a number, and a string is expected; write "{value}" in quotes'
    return ""


def fraction_words(value: float) -> str:
    """What is wrong with a number with a fraction where a quantity belongs."""
    return f'{value} is a number with a fraction, which the apiserver refuses here; write "{value}" in quotes'


def _number_in(text: str) -> str:
    return text.strip() if re.fullmatch(r"\s*-?\d{1,18}\s*", text) else ""


def _is_of(value: Any, type_: Any) -> bool:  # noqa: ANN401
    """True if a value has the form of a type, an object or a list, so that its parts can be looked at."""
    if isinstance(value, dict):
        return get_origin(type_) is dict or (isinstance(type_, type) and issubclass(type_, msgspec.Struct))
    return isinstance(value, list) and get_origin(type_) in (list, tuple)


def _below(value: Any, type_: Any) -> Iterable[tuple[str, Any, Any]]:  # noqa: ANN401
    """The name, the value and the type of each part of an object or a list; nothing for null."""
    parts: Iterable[tuple[str, Any, Any]] = ()
    if not _is_of(value, type_):
        return parts
    if isinstance(value, list):
        there = [item for item in value if item is not None]
        return [(f"[{index}]", item, get_args(type_)[0]) for index, item in enumerate(there)]
    if get_origin(type_) is dict:
        parts = ((key, item, get_args(type_)[1]) for key, item in value.items())
    else:
        known = fields_of(type_)
        parts = ((key, item, known.get(key, Any)) for key, item in value.items())
    return [part for part in parts if part[1] is not None]


@cache
def fields_of(type_: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The types of the fields of a struct, by their names in a manifest; kept, because they take long to find out."""
    return {one.encode_name: one.type for one in msgspec.structs.fields(type_)}


def _joined(path: str, key: str) -> str:
    if key.startswith("["):
        return f"{path}{key}"
    return f"{path}[{key}]" if not key.isidentifier() else f"{path}.{key}" if path else key


def _without_none(type_: Any) -> Any:  # noqa: ANN401 - a type
    """`X` of `X | None`."""
    if get_origin(type_) in (Union, types.UnionType):
        others = [one for one in get_args(type_) if one is not types.NoneType]
        return others[0] if len(others) == 1 else type_
    return type_
