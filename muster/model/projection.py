"""The parts of an object that stores keep, decoded in bounded time and memory, whatever a tenant writes into it.

Labels and annotations with keys of `read_key` stay, and with `Keep.COPIED` those that muster copies to a PodGroup; of
`managedFields` those of muster. A small object is decoded as a whole, and the rest is removed; from a large one
`LargeObjects` decodes only these parts.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar, get_origin

from msgspec import structs

from muster.model.keep import TEXT_MAPS, Keep, copied, shared_template
from muster.model.large_objects import LargeObjects, struct_in
from muster.model.names import MUSTER, READ_KEYS
from muster.model.objects import ManagedFields, decode
from muster.model.pods import Pod, PodTemplate

T = TypeVar("T")
Value = Any  # any part of a decoded object, or a type of one

# Most bytes of an object that is decoded as a whole. One byte of JSON may take forty in memory.
_SMALL, _SMALL_POD = 8_192, 16_384


class Projection(Generic[T]):
    """Decodes objects of one type to the parts that are kept of them."""

    def __init__(self, type_: type[T], keep: Keep = Keep.READ) -> None:
        self._type = type_
        self._keep = keep
        self._small = _SMALL_POD if type_ is Pod else _SMALL
        self._trim = _nothing if keep is Keep.ALL else _trimmer(type_, keep)

    def decode(self, raw: bytes) -> T:
        """Decode one object. Raises InvalidObjectError as `muster.model.objects.decode` does."""
        if len(raw) > self._small:
            return self._large.read(raw)
        item = decode(raw, self._type)
        self._trim(item)
        return item

    @cached_property
    def _large(self) -> LargeObjects[T]:
        return LargeObjects(self._type, self._keep)


def _trimmer(type_: Value, keep: Keep, *, top: bool = True) -> Callable[[Any], None]:
    """Return the function that removes labels and annotations that are not kept from a value of this type, in place."""
    found = ((one.name, _trimming(one, keep, top=top)) for one in structs.fields(type_))
    steps = [(name, step) for name, step in found if step is not None]
    if not steps:
        return _nothing

    def trim(value: Value) -> None:
        for name, step in steps:
            found = getattr(value, name)
            if found:
                left = step(found)
                if left is not found:
                    structs.force_setattr(value, name, left)

    return trim


def _trimming(field: structs.FieldInfo, keep: Keep, *, top: bool) -> Callable[[Any], Any] | None:
    """Return the function that reduces a field; None if all of it is kept."""
    name, inner = field.name, struct_in(field.type)
    if field.type == dict[str, str] and name in TEXT_MAPS:
        return _copying if top and keep is Keep.COPIED and name == "annotations" else _known
    if inner is ManagedFields:
        return _applied
    trim = _nothing if inner is None else _trimmer(inner, keep, top=top and name == "metadata")
    if trim is _nothing:
        return None
    origin = get_origin(field.type)

    def step(found: Value) -> Value:
        for item in found if origin is tuple else found.values() if origin is dict else (found,):
            trim(item)
        return shared_template(found) if inner is PodTemplate else found

    return step


def _nothing(_: object) -> None:
    pass


def _known(texts: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key in READ_KEYS}


def _copying(texts: dict[str, str]) -> dict[str, str]:
    return copied(texts) | _known(texts)


def _applied(found: tuple[ManagedFields, ...]) -> tuple[ManagedFields, ...]:
    return tuple(one for one in found if (one.manager, one.operation) == (MUSTER, "Apply"))
