"""Large objects, decoded as types that hold no more than is kept, in bounded time and memory.

Everything else is skipped as fast as JSON is scanned, and lists and maps end after a bound. That must not reduce the
requests of an object. So a pod that holds too much is kept with more containers than muster reads (`check_size`), and
the `Stubbed` part of a workload with such templates is marked as too large.
"""

import re
import sys
from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, structs

from muster.model.keep import TEXT_MAPS, Keep, Stubbed, copied, entries, shared_template
from muster.model.names import MANAGED, MUSTER, READ_KEYS
from muster.model.objects import (
    InvalidObjectError,
    ManagedFields,
    OwnedFields,
    OwnerReference,
    decode,
    fault_of,
    not_json,
)
from muster.model.pods import Container, PodResourceClaim, PodSpec, PodTemplate, ResourceRequirements, SchedulingGate

T = TypeVar("T")

MOST_CONTAINERS = 64
"""Containers of one pod that are read, and as many init containers, gates and claims."""
MOST_ITEMS = 256
"""Items of any other list, and entries of a map, that are read of a large object."""
# Items of lists in the templates of one workload: more than `muster.workloads.bounds` lets them hold.
_MOST_IN_TEMPLATES = 1_500
# Lists whose further items add nothing, lists of names, and lists in a pod have other bounds.
_FEW = {"finalizers": 1, "conditions": 12, "required": 64, "preferred": 64}
_MOST_OF = {str: 1_024} | dict.fromkeys((Container, SchedulingGate, PodResourceClaim), MOST_CONTAINERS)
_MOST_AMOUNTS = 128
# Most entries of one pod, as `entries` counts them, and most labels or annotations of one object.
_MOST_OF_POD, _MOST_TEXTS = 5_000, 1_000
# Bytes of JSON of the fields that muster applied to one object.
_MOST_APPLIED = 2_048
# Most bytes, as Python keeps them, of a text, and of all annotations that are read, or all keys of a map; and the
# characters that are left of longer texts: no name is as long.
_TEXT, _TEXTS, _CUT = 1_100, 32_768, 254

Value = Any  # any part of a decoded object, or a type of one
_TOP = ("metadata", *TEXT_MAPS)
_ABSENT = Raw()
_READ_STRINGS = msgspec.json.Decoder(dict[str, str | None])
_LABEL_OWNED = f'"f:{MANAGED}"'.encode()
# Objects in a map of objects, those that are not read included.
_MOST_OBJECTS = 32_768
_NATIVE = ("cpu", "memory")
_NATIVE_PAIR = re.compile(rb'"(?:cpu|memory)"\s*:\s*(?:"[^"\\]*"|[^\s,}"]+)')
# One entry of a map of scalars, in JSON.
_PAIR = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}\]]+)')


class _TooMuch(Exception):  # noqa: N818 - never leaves this module
    """A list or a map goes on after its bound; `cut` is the part of it, or of its parent, that was read."""

    def __init__(self, cut: object) -> None:
        super().__init__()
        self.cut = cut


class _Wire(NamedTuple):
    """The decoding of a field: its type, its default, and the function that makes the field's value of the result."""

    type: Any
    default: Raw | None
    build: Callable[[Any], Any]


class LargeObjects(Generic[T]):
    """Reads large objects of one type, in time and memory that do not depend on their other content."""

    def __init__(self, type_: type[T], keep: Keep) -> None:
        self._keep = keep
        self._keys = sorted(READ_KEYS)
        named = ((f"at{at}", str | None, msgspec.field(default=None, name=key)) for at, key in enumerate(self._keys))
        self._texts = msgspec.defstruct("Texts", named)
        self._structs: dict[tuple[Any, bool, bool], _Wire] = {}
        self._read_texts = msgspec.json.Decoder(self._texts)
        self._left = 0
        wire = self._struct(type_, strict=False, top=True)
        self._decoder = msgspec.json.Decoder(wire.type)
        self._build = wire.build

    def read(self, raw: bytes) -> T:
        """Decode one object, as `Projection.decode`."""
        try:
            self._left = _MOST_IN_TEMPLATES
            made: T = self._build(self._decoder.decode(raw))
        except msgspec.ValidationError as error:
            raise InvalidObjectError(*fault_of(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidObjectError("", not_json(error)) from error
        return made

    def _wire(self, type_: Value, name: str, *, strict: bool, top: bool) -> _Wire:
        origin: Any
        origin, struct = get_origin(type_), struct_in(type_)
        if origin in (UnionType, Union):
            kinds = [one for one in get_args(type_) if one is not NoneType]
            if len(kinds) == 1:
                return self._wire(kinds[0], name, strict=strict, top=top)
        elif type_ == dict[str, str] and name in TEXT_MAPS:
            return self._text_map(name, top=top)
        elif type_ in (Any, OwnedFields):
            return _Wire(Raw, _ABSENT, bool if type_ is Any else self._owned)
        elif origin is tuple and struct is None and get_args(type_)[0] is Any:
            return _Wire(Raw, _ABSENT, lambda raw: () if raw.strip() == b"[]" else (None,))
        elif origin is tuple:
            return self._list(get_args(type_)[0], name, strict=strict)
        elif origin is dict and struct is not None:
            inner = self._struct(struct, strict=strict, top=False)
            return _Wire(Raw, _ABSENT, _struct_map(_map_decoder(inner.type), inner.build))
        elif origin is dict:
            return _Wire(
                Raw,
                _ABSENT,
                _scalar_map(_map_decoder(get_args(type_)[1] | None), _MOST_AMOUNTS if strict else MOST_ITEMS),
            )
        elif struct is not None:
            return self._struct(struct, strict=strict, top=top)
        return _Wire(type_ | None, None, _short)

    def _struct(self, type_: Value, *, strict: bool, top: bool) -> _Wire:
        known = self._structs.get((type_, strict, top))
        if known is not None:
            return known
        inside = strict or issubclass(type_, PodSpec | Stubbed)
        fields, steps = [], []
        for one in structs.fields(type_):
            # muster's own notes of an object are no part of its manifest.
            if not one.encode_name.startswith("muster.dev/"):
                wire = self._wire(one.type, one.name, strict=inside, top=top and one.name in _TOP)
                fields.append((one.name, wire.type, msgspec.field(default=wire.default, name=one.encode_name)))
                steps.append((one.name, wire.build))

        def build(decoded: Value) -> Value:
            given, over = _built(decoded, steps)
            made: Any = type_(**given)
            if type_ is PodTemplate and not over:
                return shared_template(made)
            if isinstance(made, PodSpec) and (over or entries(made) > _MOST_OF_POD):
                made, over = _stubbed(made), True
            if over and isinstance(made, Stubbed):
                made.stub()
            elif over and strict:
                raise _TooMuch(made)
            return made

        whole = _Wire(msgspec.defstruct(type_.__name__, fields) | None, None, build)
        self._structs[type_, strict, top] = whole
        return whole

    def _list(self, inner: Value, name: str, *, strict: bool) -> _Wire:
        item = self._wire(inner, "", strict=strict, top=False)
        most = _FEW.get(name) or _MOST_OF.get(inner, MOST_ITEMS)
        # An array of that many items: the decoder skips the items after them.
        places = [(f"at{at}", item.type, None) for at in range(most + 1)]
        wire = msgspec.defstruct("Items", places, array_like=True) | None
        if inner in (OwnerReference, ManagedFields):
            asked = self._asked if inner is ManagedFields else attrgetter("controller")
            return _Wire(wire, None, lambda found: tuple(item.build(one) for one in _items(found) if asked(one)))

        def build(decoded: Value) -> tuple[Any, ...]:
            made, over = [], False
            items = _items(decoded)
            if strict and name not in _FEW:
                self._left -= len(items)
                if self._left < 0:
                    raise _TooMuch(())
            for one in items[:most]:
                try:
                    made.append(item.build(one))
                except _TooMuch as error:
                    made.append(error.cut)
                    over = True
            if over or (name not in _FEW and len(items) > most):
                raise _TooMuch(tuple(made))
            return tuple(made)

        return _Wire(wire, None, build)

    def _text_map(self, name: str, *, top: bool) -> _Wire:
        if not top or self._keep is Keep.READ or (self._keep is Keep.COPIED and name == "labels"):
            return _Wire(self._texts | None, None, self._known)

        def build(raw: bytes) -> dict[str, str]:
            known = self._known(self._read_texts.decode(raw))
            if _count(raw) > _MOST_TEXTS:
                return known
            found = {key: text for key, text in _READ_STRINGS.decode(raw).items() if text is not None}
            if self._keep is Keep.ALL:
                return {key: _short(text) for key, text in found.items()}
            return copied(found) | known

        return _Wire(Raw, _ABSENT, build)

    def _known(self, decoded: Value) -> dict[str, str]:
        found = {key: text for key, text in zip(self._keys, structs.astuple(decoded), strict=True) if text is not None}
        if sum(map(sys.getsizeof, found.values())) > _TEXTS:
            found = {key: text[:_CUT] for key, text in found.items()}
        return found

    def _asked(self, decoded: Value) -> bool:
        if self._keep is Keep.ALL:
            return _LABEL_OWNED in bytes(decoded.fields)
        return (decoded.manager, decoded.operation) == (MUSTER, "Apply")

    def _owned(self, raw: bytes) -> OwnedFields:
        if self._keep is Keep.ALL:
            return OwnedFields(metadata={"f:labels": {f"f:{MANAGED}": {}}})
        return decode(raw, OwnedFields) if len(raw) <= _MOST_APPLIED else OwnedFields()


def struct_in(type_: Value) -> type[Struct] | None:
    """Return the type of the objects in a field of this type; None if these are no objects."""
    if isinstance(type_, type) and issubclass(type_, Struct):
        return type_
    return next((found for one in get_args(type_) if (found := struct_in(one)) is not None), None)


def _built(decoded: Value, steps: list[tuple[str, Callable[[Any], Any]]]) -> tuple[dict[str, Any], bool]:
    """Return the fields that are present, and True if one of them was cut."""
    given: dict[str, Any] = {}
    over = False
    for name, step in steps:
        found = getattr(decoded, name)
        if type(found) is Raw:
            found = bytes(found)
        if found is None or found in (b"", b"null"):
            continue
        try:
            given[name] = step(found)
        except _TooMuch as error:
            given[name], over = error.cut, True
        except msgspec.ValidationError as error:
            raise InvalidObjectError(name, fault_of(error)[1]) from error
    return given, over


def _stubbed(spec: PodSpec) -> PodSpec:
    """Return a pod with more containers than muster reads; its requests of Kubernetes' own resources still count."""
    containers = tuple(map(_native, spec.containers[:MOST_CONTAINERS]))
    containers += (Container(),) * (MOST_CONTAINERS + 1 - len(containers))
    init = tuple(map(_native, spec.init_containers[:MOST_CONTAINERS]))
    resources = _native(Container(resources=spec.resources)).resources
    return structs.replace(
        spec, containers=containers, init_containers=init, resources=resources, overhead={}, resource_claims=()
    )


def _native(container: Container) -> Container:
    asked = container.resources
    requests, limits = (
        {key: one for key, one in found.items() if key in _NATIVE} for found in (asked.requests, asked.limits)
    )
    return Container(
        restart_policy=container.restart_policy, resources=ResourceRequirements(requests=requests, limits=limits)
    )


def _items(decoded: Value) -> tuple[Any, ...]:
    places = structs.astuple(decoded)
    empty = places.count(None)
    # A null in a list is no item; as a rule all None come after its end.
    end = places.index(None) if empty else len(places)
    return places[:end] if end + empty == len(places) else tuple(one for one in places if one is not None)


def _count(raw: bytes) -> int:
    """Return the number of entries of a map of scalars: within a text each quote is behind a backslash."""
    return raw.count(b'":') - raw.count(b'\\":')


def _map_decoder(of: Value) -> msgspec.json.Decoder[dict[str, Any]]:
    return msgspec.json.Decoder(dict.__class_getitem__((str, of)))


def _scalar_map(decoder: msgspec.json.Decoder[dict[str, Any]], most: int) -> Callable[[bytes], dict[str, Any]]:
    def build(raw: bytes) -> dict[str, Any]:
        over = _count(raw) > most
        if over:
            pairs = (*islice(_PAIR.finditer(raw), most), *_NATIVE_PAIR.finditer(raw))
            raw = b"{" + b",".join(pair[0] for pair in pairs) + b"}"
        made: dict[str, Any] = {}
        size = 0
        for key, value in decoder.decode(raw).items():
            size += sys.getsizeof(key)
            if size > _TEXTS:
                over = True
                break
            if value is not None:
                made[key] = _short(value)
        if over:
            raise _TooMuch(made)
        return made

    return build


def _struct_map(
    decoder: msgspec.json.Decoder[dict[str, Any]], build_one: Callable[[Any], Any]
) -> Callable[[bytes], dict[str, Any]]:
    def build(raw: bytes) -> dict[str, Any]:
        if raw.count(b"{") > _MOST_OBJECTS:
            raise _TooMuch({})
        made: dict[str, Any] = {}
        over = False
        for key, one in decoder.decode(raw).items():
            if len(made) == MOST_ITEMS:
                over = True
                break
            if one is None:
                continue
            try:
                made[_short(key)] = build_one(one)
            except _TooMuch as error:
                made[_short(key)], over = error.cut, True
        if over:
            raise _TooMuch(made)
        return made

    return build


def _short(value: Value) -> Value:
    return value[:_CUT] if isinstance(value, str) and sys.getsizeof(value) > _TEXT else value
