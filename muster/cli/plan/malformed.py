"""The fields of a wrong type in one object: a decoder names the first of them, and a user wants all."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union, get_args, get_origin

import msgspec

from muster.cli.parsing import InputError
from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError

# Faults that are named of one object; more of them have one cause.
_MOST = 20


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
    found = [*known, *_wrong_fields(manifest, type_, "")]
    lines = [f"{source}: {one.message}" for one in found] or [f"{source}: {error}"]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{source}: {len(lines) - _MOST} more faults"]
    return InputError(*lines)


def _wrong_fields(value: Any, type_: Any, path: str) -> Iterator[Finding]:  # noqa: ANN401 - a manifest and its type
    """Each part of a value that has another type than the one at its place; null counts as absent."""
    type_ = _without_none(type_)
    origin, arguments = get_origin(type_), get_args(type_)
    below: Iterable[tuple[str, Any, Any]]
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct) and isinstance(value, dict):
        known = {one.encode_name: one.type for one in msgspec.structs.fields(type_)}
        below = ((_joined(path, key), item, known.get(key, Any)) for key, item in value.items())
    elif origin is dict and isinstance(value, dict):
        below = ((_joined(path, key), item, arguments[1]) for key, item in value.items())
    elif origin in (list, tuple) and isinstance(value, list):
        there = [item for item in value if item is not None]
        below = ((f"{path}[{index}]", item, arguments[0]) for index, item in enumerate(there))
    else:
        try:
            msgspec.convert(value, type=type_)
        except msgspec.ValidationError as error:
            problem = str(error)
            yield Finding(Reason.INVALID, path, f"{path}: {problem[:1].lower()}{problem[1:]}")
        return
    for place, item, of in below:
        if item is not None:
            yield from _wrong_fields(item, of, place)


def _joined(path: str, key: str) -> str:
    return f"{path}[{key}]" if not key.isidentifier() else f"{path}.{key}" if path else key


def _without_none(type_: Any) -> Any:  # noqa: ANN401 - a type
    """`X` of `X | None`."""
    if get_origin(type_) in (Union, types.UnionType):
        others = [one for one in get_args(type_) if one is not types.NoneType]
        return others[0] if len(others) == 1 else type_
    return type_
