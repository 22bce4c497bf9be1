"""Several stores of one type, read as one; each has its own watch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from muster.kube.store import Change, HasMetadata, Store

T = TypeVar("T", bound=HasMetadata)


class Stores(Generic[T]):
    """A store for each of these names; no object is in two of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._stores: dict[str, Store[T]] = {name: Store() for name in names}

    def __iter__(self) -> Iterator[T]:
        return (item for store in self._stores.values() for item in store)

    def of(self, name: str) -> Store[T]:
        """Return the store of that name; raises KeyError."""
        return self._stores[name]

    def values(self) -> list[T]:
        """Return all objects, as a list of their own that later changes leave alone."""
        return [item for store in self._stores.values() for item in store.values()]

    def index(self, name: str, key: Callable[[T], Iterable[Hashable]]) -> None:
        """Add the index to each of them, as `Store.index`."""
        for store in self._stores.values():
            store.index(name, key)

    def by_index(self, name: str, key: Hashable) -> list[T]:
        """Return the objects of all of them, as `Store.by_index`."""
        return [item for store in self._stores.values() for item in store.by_index(name, key)]

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call `handler` for every later change of one of them, as `Store.subscribe`."""
        for store in self._stores.values():
            store.subscribe(handler)

    def unsubscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call a handler no more."""
        for store in self._stores.values():
            store.unsubscribe(handler)
