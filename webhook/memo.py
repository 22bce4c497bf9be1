"""Results that are good for as long as what they came from is there unchanged.

Whatever a store holds is frozen, and replaced as a whole when it changes: the very same objects give the same result.
"""

from __future__ import annotations

from collections import OrderedDict
from operator import is_
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Memo"]

T = TypeVar("T")


class Memo(Generic[T]):
    """The last result by key, `most` of them; the key that was not used for longest is forgotten first."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, tuple[tuple[object, ...], T]] = OrderedDict()

    def of(self, key: Hashable, sources: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result that came from these very objects; where there is none it is made, and kept unless that fails."""
        entry = self._entries.get(key)
        if entry is not None:
            known, result = entry
            if len(known) == len(sources) and all(map(is_, known, sources)):
                self._entries.move_to_end(key)
                return result
        result = make()
        self._entries[key] = sources, result
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return result
