"""All that is malformed in one object, where a decoder and the rules stop at the first fault.

Fields of a wrong type are found by walking the value and its type side by side. What the rules refuse is left out, or
replaced by something plausible, in a copy, and the copy is judged once more.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from muster.cli.parsing import InputError
from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError, convert

T = TypeVar("T")
# Of one object; whoever has more has one cause for them.
_MOST = 20
_ABSENT = object()
# These do not depend on the amounts and counts of the object, which may have been mended.
_BY_THEMSELVES = {
    Reason.INVALID,
    Reason.QUEUE_CLOSED,
    Reason.QUEUE_NOT_FOUND,
    Reason.QUEUE_NOT_LEAF,
    Reason.UNKNOWN_PRIORITY_CLASS,
}


def unreadable(
    source: str,
    manifest: dict[str, Any],
    type_: type[T],
    judged: Callable[[T], Sequence[Finding]],
    known: Sequence[Finding] = (),
) -> InputError:
    """The error of an object that cannot be decoded as `type_`, or that `judged` refuses: a message for each fault.

    `known` faults come first; the manifest holds something valid in their place.
    """
    wrong: dict[str, str] = {}
    mended = _mended(manifest, type_, "", wrong)
    found = [*known, *(Finding(Reason.INVALID, path, f"{path}: {problem}") for path, problem in wrong.items())]
    found += further(mended, type_, judged, found)
    lines = [f"{source}: {one.message}" for one in found]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{source}: {len(lines) - _MOST} more faults"]
    return InputError(*lines)


def further(
    manifest: dict[str, Any], type_: type[T], judged: Callable[[T], Sequence[Finding]], known: Sequence[Finding]
) -> list[Finding]:
    """What else `judged` finds once the known faults are mended; nothing that a mended field may be the cause of."""
    mended = deepcopy(manifest)
    fields = [one.field for one in known if one.reason is Reason.INVALID]
    said = {one.message for one in known}
    found: list[Finding] = []
    now = _judged(mended, type_, judged)
    while len(found) < _MOST:
        more = [one for one in now if one.message not in said and not _caused(one, mended, fields)]
        found += [one for one in more if one.reason in _BY_THEMSELVES]
        said |= {one.message for one in more}
        fault = next((one.field for one in now if one.reason is Reason.INVALID), None)
        if fault is None:
            break
        fields.append(fault)
        after = _mend(mended, fault, lambda: judged(convert(mended, type_)), f"name-{len(fields)}")
        if after is None:
            break
        now = after
    return found


def _judged(manifest: dict[str, Any], type_: type[T], judged: Callable[[T], Sequence[Finding]]) -> Sequence[Finding]:
    try:
        return judged(convert(manifest, type_))
    except InvalidObjectError as error:
        return [Finding(Reason.INVALID, error.field, str(error))]


def _mend(
    manifest: dict[str, Any], field: str, again: Callable[[], Sequence[Finding]], name: str
) -> Sequence[Finding] | None:
    """What is found with another value at `field`, the first of several with which it has no fault; else None."""
    place = _place(manifest, field)
    if place is None:
        return None
    within, key = place
    for value in (_ABSENT, 1, "1", name, [{}]):
        if value is _ABSENT:
            within.pop(key, None)
        else:
            within[key] = value
        try:
            now = again()
        except InvalidObjectError:
            continue  # A wrong type there.
        if all(one.field != field for one in now if one.reason is Reason.INVALID):
            return now
    return None


def _caused(finding: Finding, manifest: dict[str, Any], mended: Sequence[str]) -> bool:
    """Whether a mended field may be the cause of what is found.

    A number above 0 has no fault by itself: it does not fit another one.
    """
    if any(finding.field == one or finding.field.startswith((f"{one}.", f"{one}[")) for one in mended):
        return True
    within, key = _place(manifest, finding.field) or ({}, "")
    number = str(within.get(key, ""))
    return bool(mended) and number.isdecimal() and number.strip("0") != ""


def _place(value: Any, path: str) -> tuple[dict[str, Any], str] | None:  # noqa: ANN401 - a manifest
    """The mapping and the key of a field, which may be absent there; keys may have dots in them."""
    if isinstance(value, list):
        index, _, rest = path.removeprefix("[").partition("]")
        return _place(value[int(index)], rest) if index.isdecimal() and int(index) < len(value) else None
    if not isinstance(value, dict):
        return None
    if path.startswith("["):
        key, _, rest = path[1:].partition("]")
        return _place(value[key], rest) if rest and key in value else (value, key)
    path = path.removeprefix(".")
    if not path:
        return None
    if path in value:
        return value, path
    for key in value:
        if path.startswith((f"{key}.", f"{key}[")):
            return _place(value[key], path[len(key) :])
    return None if "." in path or "[" in path else (value, path)


def _mended(value: Any, type_: Any, path: str, wrong: dict[str, str]) -> Any:  # noqa: ANN401 - a manifest and its type
    """The value with each part that has a wrong type made right or left out; `wrong` gets path and problem of each."""
    type_ = _one_type(type_)
    origin, arguments = get_origin(type_), get_args(type_)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct) and isinstance(value, dict):
        known = {one.encode_name: one.type for one in msgspec.structs.fields(type_)}
        return dict(_entries(((key, item, known.get(key, Any)) for key, item in value.items()), path, wrong))
    if origin is dict and isinstance(value, dict):
        return dict(_entries(((key, item, arguments[1]) for key, item in value.items()), path, wrong))
    if origin in (list, tuple) and isinstance(value, list):
        # As absent: null. What is left out would move the places of what stands behind it.
        items = [item for item in value if item is not None]
        parts = [_mended(item, arguments[0], f"{path}[{index}]", wrong) for index, item in enumerate(items)]
        return [{} if part is _ABSENT else part for part in parts]
    try:
        msgspec.convert(value, type=type_)
    except msgspec.ValidationError as error:
        problem = str(error)
        wrong[path] = problem[:1].lower() + problem[1:]
        return _meant(value, type_)
    return value


def _entries(entries: Iterator[tuple[str, Any, Any]], path: str, wrong: dict[str, str]) -> Iterator[tuple[str, Any]]:
    for key, item, type_ in entries:
        if item is None:
            continue  # As absent.
        below = f"{path}.{key}" if key.isidentifier() else f"{path}[{key}]"
        mended = _mended(item, type_, below.removeprefix("."), wrong)
        if mended is not _ABSENT:
            yield key, mended


def _one_type(type_: Any) -> Any:  # noqa: ANN401 - a type
    """`X` of `X | None`."""
    if get_origin(type_) in (Union, types.UnionType):
        others = [one for one in get_args(type_) if one is not types.NoneType]
        return others[0] if len(others) == 1 else type_
    return type_


def _meant(value: Any, type_: Any) -> Any:  # noqa: ANN401 - as above
    """What was meant by the number in quotes, or by the text without quotes; else nothing."""
    if type_ is str and isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    try:
        return msgspec.convert(value, type=type_, strict=False)
    except msgspec.ValidationError:
        return _ABSENT
