"""Results that are good for as long as what they came from is there unchanged.

The same version of an object gives the same result, whether a watch or a read has shown it. What has no version is
frozen, and replaced as a whole when it changes: it has to be the very same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from muster.model.objects import ObjectMeta

T = TypeVar("T")


class _Very:
    """Equal to nothing but what holds the very same object."""

    __slots__ = ("_object",)

    def __init__(self, object_: object) -> None:
        self._object = object_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Very) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)


def version(source: object) -> Hashable:
    """By what a source is known again: UID and resourceVersion of an object, or of its metadata."""
    meta = source if isinstance(source, ObjectMeta) else getattr(source, "metadata", None)
    if isinstance(meta, ObjectMeta) and meta.uid and meta.resource_version:
        return meta.uid, meta.resource_version
    return _Very(source)


class Memo(Generic[T]):
    """The last result by key, `most` of them; the key that was not used for longest is forgotten first."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, tuple[tuple[Hashable, ...], T]] = OrderedDict()

    def of(self, key: Hashable, sources: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """The result that came from these versions; where there is none it is made, and kept unless that fails."""
        entry = self._entries.get(key)
        if entry is not None:
            known, result = entry
            if known == sources:
                self._entries.move_to_end(key)
                return result
        result = make()
        self._entries[key] = sources, result
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return result
