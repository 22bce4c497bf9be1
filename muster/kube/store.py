"""A copy of the cluster, a moment old: objects by name, with indices and a stream of changes.

Pure and synchronous. A relist is compared with the objects of the store, so a deletion that happened between two
watches still becomes a change, and an object deleted and recreated under its name (another UID) is seen as both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Literal, TypeVar

from muster.model.objects import HasMetadata

logger = logging.getLogger(__name__)

ChangeKind = Literal["added", "modified", "deleted"]


T = TypeVar("T", bound=HasMetadata)
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One step from one state of the store to the next; `old` is None when added, `new` is None when deleted."""

    kind: ChangeKind
    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """The object as it is now, or as it was last when deleted."""
        found = self.new if self.new is not None else self.old
        if found is None:
            raise AssertionError("a change of nothing")
        return found


class Store(Generic[T]):
    """Objects of one kind by namespace and name.

    :ivar synced: False until the first list is in: before that, an absent object may exist
    :ivar handler_errors: how often a handler failed
    """

    def __init__(self) -> None:
        self.synced = False
        self._objects: dict[_Key, T] = {}
        self._key_functions: dict[str, Callable[[T], Iterable[Hashable]]] = {}
        self._indices: dict[str, dict[Hashable, dict[_Key, T]]] = {}
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._when_synced: list[Callable[[], None]] = []
        self.handler_errors = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, namespace: str, name: str) -> T | None:
        """Return the object of that name, or None; `namespace` is "" for cluster-scoped kinds."""
        return self._objects.get((namespace, name))

    def index(self, name: str, key: Callable[[T], Iterable[Hashable]]) -> None:
        """Keep objects findable by every value that `key` returns for them.

        `key` must depend on the object alone and never raise.
        """
        self._key_functions[name] = key
        self._indices[name] = {}
        for place, item in self._objects.items():
            for value in key(item):
                self._indices[name].setdefault(value, {})[place] = item

    def by_index(self, name: str, key: Hashable) -> list[T]:
        """Return the objects with that value of `key` in the index. Raises KeyError when there is no such index."""
        found = self._indices[name].get(key)
        return list(found.values()) if found else []

    def subscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call `handler` for every later change, synchronously, when the store already has the new state.

        During a relist the store has the state after all of its changes. A handler must not change the store; one that
        raises is logged and counted, and the others are still called.
        """
        self._handlers.append(handler)

    def when_synced(self, handler: Callable[[], None]) -> None:
        """Call `handler` once, when the first list is in; never where it is already."""
        self._when_synced.append(handler)

    def unsubscribe(self, handler: Callable[[Change[T]], None]) -> None:
        """Call a handler no more."""
        self._handlers.remove(handler)

    def replace_all(self, objects: Iterable[T]) -> None:
        """Take a whole list as the new state; handlers get the difference, deletions first. Sets `synced`."""
        relist = self.relist()
        relist.extend(objects)
        relist.end()

    def relist(self) -> Relist[T]:
        """Return a whole list that comes in parts; nothing is changed before its end."""
        return Relist(self)

    def apply(self, kind: ChangeKind, object: T) -> None:  # noqa: A002 - the word of a watch event
        """Take one watch event, compared with the store's own objects: a repeated event is no change."""
        self._tell(self._remove(_key(object)) if kind == "deleted" else self._put(object))

    def _replace(self, places: set[_Key], news: Iterable[T]) -> Iterator[None]:
        first = not self.synced
        changes: list[Change[T]] = []
        for place in sorted(self._objects.keys() - places):
            changes += self._remove(place)
        for item in news:
            changes += self._put(item)
            if first:
                # Not synced, so it is not relied on yet.
                self._tell(changes)
                changes.clear()
                yield
        self.synced = True
        for handler in self._when_synced if first else ():
            handler()
        for change in changes:
            self._tell([change])
            yield

    def _put(self, item: T) -> list[Change[T]]:
        place = _key(item)
        old = self._objects.get(place)
        if old is None:
            self._set(place, item)
            return [Change("added", None, item)]
        if old.metadata.uid != item.metadata.uid:
            removed = self._remove(place)
            self._set(place, item)
            return [*removed, Change("added", None, item)]
        if is_version(old, item) or old == item:
            return []
        self._unindex(place, old)
        self._set(place, item)
        return [Change("modified", old, item)]

    def _set(self, place: _Key, item: T) -> None:
        self._objects[place] = item
        for name, key in self._key_functions.items():
            for value in key(item):
                self._indices[name].setdefault(value, {})[place] = item

    def _remove(self, place: _Key) -> list[Change[T]]:
        old = self._objects.pop(place, None)
        if old is None:
            return []
        self._unindex(place, old)
        return [Change("deleted", old, None)]

    def _unindex(self, place: _Key, item: T) -> None:
        for name, key in self._key_functions.items():
            index = self._indices[name]
            for value in key(item):
                members = index.get(value)
                if members is not None:
                    members.pop(place, None)
                    if not members:
                        del index[value]

    def _tell(self, changes: list[Change[T]]) -> None:
        for change in changes:
            for handler in self._handlers:
                try:
                    handler(change)
                except Exception:
                    self.handler_errors += 1
                    logger.exception(
                        "internal error: a handler failed on %s %s",
                        change.kind,
                        _key(change.object),
                        extra={"event": "watch.handler"},
                    )


class Relist(Generic[T]):
    """A list that becomes the new state of a store, part by part, so that others may have their turn between.

    Only the name is kept of an object that the store has in that version already: else a relist would hold a cluster
    twice.
    """

    def __init__(self, store: Store[T]) -> None:
        self._store = store
        self._listed: set[_Key] = set()
        self._news: dict[_Key, T] = {}

    def extend(self, objects: Iterable[T], /) -> None:
        """Take a part. No handler is called before the end."""
        known = self._store._objects  # noqa: SLF001 - its own
        for item in objects:
            place = _key(item)
            self._listed.add(place)
            old = known.get(place)
            if old is None or not is_version(old, item):
                self._news[place] = item
            else:
                self._news.pop(place, None)

    def end(self) -> None:
        """Take all parts as the store's new state, as `Store.replace_all` does."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Take all parts as `end` does, step by step; a store that was never listed is `synced` at the end.

        A store that was listed before changes in the first step, for a gang whose pods are replaced must not look as if
        it had none; its handlers are called in the others.
        """
        return self._store._replace(self._listed, self._news.values())


def is_version(old: HasMetadata, new: HasMetadata) -> bool:
    """True if the apiserver calls both the same version of the same object, so that they are equal."""
    if old is new:
        return True
    known, came = old.metadata, new.metadata
    return bool(came.resource_version) and known.resource_version == came.resource_version and known.uid == came.uid


def _key(item: HasMetadata) -> _Key:
    return item.metadata.namespace, item.metadata.name


class Stores(Generic[T]):
    """A store for each of these names; no object is in two of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._stores: dict[str, Store[T]] = {name: Store() for name in names}

    def __iter__(self) -> Iterator[T]:
        # Without a step of Python for each: a cluster has hundreds of thousands.
        return chain.from_iterable(self._stores.values())

    def of(self, name: str) -> Store[T]:
        """Return the store of that name; raises KeyError."""
        return self._stores[name]

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
