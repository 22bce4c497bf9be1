"""Keeps a store equal to the apiserver, for ever: list in pages, watch from there, and after any fault list or resume.

Three levels: `run` waits between attempts and never ends; a session lists if it must and watches; the decoding turns
lines into objects. What cannot be decoded is skipped, counted and logged, and the last readable version of it stays, so
that one broken object neither stops the others nor looks like a deletion.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec

from muster.kube.backoff import Backoff
from muster.kube.errors import ApiError, Unreachable, error_from_response
from muster.kube.store import HasMetadata, Store
from muster.objects import InvalidObjectError, LocalObject, ObjectMeta, decode

if TYPE_CHECKING:
    from muster.kube.client import Client
    from muster.kube.resource import Resource
    from muster.kube.store import ChangeKind

__all__ = ["Reflector", "ReflectorStatistics"]

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)

_CHANGES: dict[str, ChangeKind] = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}
# After so many resumptions in vain the resource version itself is doubted (an etcd restored from a backup).
_RESUMPTIONS = 5
# A watch that ends sooner, in seconds, is a fault and must not be reopened in a busy loop.
_SHORTEST_WATCH = 1.0


class _ListMeta(LocalObject, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(LocalObject, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] | None = ()


class _Event(LocalObject, frozen=True):
    type: str
    object: msgspec.Raw


class _Bare(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class ReflectorStatistics(NamedTuple):
    """Numbers for metrics; all count up from the start but `absent`, which is true while the kind is not served."""

    lists: int
    watches: int
    events: int
    malformed: int
    failures: int
    absent: bool


class Reflector(Generic[T]):
    """Fills `store` with the objects of `resource`, decoded as `type_`.

    Times are in seconds: a watch is asked to last a random time within `watch_seconds`; `silence` without a byte, not
    even a bookmark (one a minute), ends it; a kind that is not served (its CRD is not installed) is asked for again
    every `absent_retry`, and meanwhile counts as synced with nothing in it. `backoff` spaces attempts after faults.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        type_: type[T],
        store: Store[T],
        *,
        label_selector: str = "",
        field_selector: str = "",
        namespace: str | None = None,
        page: int = 500,
        watch_seconds: tuple[float, float] = (300.0, 600.0),
        silence: float = 90.0,
        absent_retry: float = 30.0,
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._type = type_
        self._store = store
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._namespace = namespace
        self._page = page
        self._watch_seconds = watch_seconds
        self._silence = silence
        self._absent_retry = absent_retry
        self._backoff = backoff or Backoff(0.8, 30.0)
        self._resource_version = ""
        self._synced = asyncio.Event()
        self._lists = self._watches = self._events = self._malformed = self._failures = 0
        self._absences = 0
        self._expired = False

    @property
    def store(self) -> Store[T]:
        """The store that it fills."""
        return self._store

    @property
    def absent(self) -> bool:
        """Whether the apiserver did not serve this kind when last asked."""
        return self._absences > 0

    def statistics(self) -> ReflectorStatistics:
        """Numbers for metrics."""
        return ReflectorStatistics(
            self._lists, self._watches, self._events, self._malformed, self._failures, self.absent
        )

    async def wait_synced(self, timeout: float) -> None:  # noqa: ASYNC109 - the caller's patience, said once
        """Wait until the store has its first list. Raises TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            await self._synced.wait()

    async def run(self) -> None:
        """Keep the store up to date until cancelled. Raises nothing else: whatever goes wrong is tried again."""
        while True:
            delay = 0.0
            try:
                await self._session()
            except ApiError as error:
                delay = self._after(error)
            except Exception:
                # A mistake of ours or an answer nobody foresaw: the cache must survive it, and somebody must see it.
                self._failures += 1
                self._resource_version = ""
                delay = self._backoff.next()
                logger.exception("%s: unexpected; listing again in %.1f s", self._resource.full_name, delay)
            await asyncio.sleep(delay)

    def _after(self, error: ApiError) -> float:
        """Decide what an error means for the next session, and give the seconds until then."""
        name = self._resource.full_name
        if error.not_found and self._believed_absent():
            if not self._store.synced or len(self._store):
                logger.info("%s: not served here (%s); asking again every %g s", name, error, self._absent_retry)
            self._resource_version = ""
            self._backoff.reset()
            if len(self._store) or not self._store.synced:
                self._fill([])
            return self._absent_retry * (1 + 0.1 * random.random())  # noqa: S311 - not a secret
        self._failures += 1
        # Only an overloaded or unreachable server leaves our resource version as good as it was.
        resume = (error.overloaded or isinstance(error, Unreachable)) and self._backoff.failures < _RESUMPTIONS
        if error.gone or not resume:
            self._resource_version = ""
        delay = max(self._backoff.next(), error.retry_after or 0.0)
        if error.gone and not self._expired:
            # Usual after an outage: the server is back, and the store must not stay stale for the delay of the outage.
            self._expired = True
            delay = 0.0
        level = logging.INFO if error.gone else logging.WARNING
        then = "resuming" if self._resource_version else "listing again"
        logger.log(level, "%s: %s; %s in %.1f s", name, error, then, delay)
        return delay

    def _believed_absent(self) -> bool:
        # With objects at hand a single 404 may be a confused proxy; forgetting them all would be a costly mistake.
        self._absences += 1
        return self._absences > 1 or not len(self._store)

    async def _session(self) -> None:
        if not self._resource_version:
            await self._list()
        loop = asyncio.get_running_loop()
        started, events = loop.time(), self._events
        try:
            await self._watch()
        finally:
            if self._events > events or loop.time() - started >= _SHORTEST_WATCH:
                self._backoff.reset()
                self._expired = False
        if loop.time() - started < _SHORTEST_WATCH:
            raise Unreachable("the watch ended at once")

    async def _list(self) -> None:
        objects: list[T] = []
        continue_, limit = "", self._page
        while True:
            try:
                body = await self._client.list_page(
                    self._resource,
                    namespace=self._namespace,
                    label_selector=self._label_selector,
                    field_selector=self._field_selector,
                    limit=limit,
                    continue_=continue_,
                )
            except ApiError as error:
                if not (error.gone and continue_):
                    raise
                # The pages took longer than etcd keeps their revision (5 minutes): all at once, as client-go does.
                objects, continue_, limit = [], "", 0
                continue
            try:
                page = decode(body, _Page)
            except InvalidObjectError as error:
                raise Unreachable(f"not a list: {error}") from error
            objects += [item for item in map(self._item, page.items or ()) if item is not None]
            continue_ = page.metadata.continue_
            if not continue_:
                break
        self._lists += 1
        self._absences = 0
        self._resource_version = page.metadata.resource_version
        self._fill(objects)

    def _fill(self, objects: list[T]) -> None:
        self._store.replace_all(objects)
        self._synced.set()

    async def _watch(self) -> None:
        self._watches += 1
        seconds = max(1, round(random.uniform(*self._watch_seconds)))  # noqa: S311
        async with self._client.watch(
            self._resource,
            resource_version=self._resource_version,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_seconds=seconds,
            silence=self._silence,
        ) as lines:
            async for line in lines:
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            event = decode(line, _Event)
        except InvalidObjectError as error:
            raise ApiError(0, "NotAnEvent", f"a watch sent {line[:200]!r}: {error}") from error
        raw = bytes(event.object)
        if event.type == "ERROR":
            raise error_from_response(0, raw)
        self._events += 1
        kind = _CHANGES.get(event.type)
        if kind is not None:
            item = self._item(raw, deleted=kind == "deleted")
            if item is not None:
                self._store.apply(kind, item)
        # Also for what was skipped, and for bookmarks: resuming must not begin before it.
        self._resource_version = decode(raw, _Bare).metadata.resource_version or self._resource_version

    def _item(self, raw: bytes | msgspec.Raw, *, deleted: bool = False) -> T | None:
        """Decode one object; a malformed one gives its last readable version, or None."""
        data = bytes(raw)
        try:
            return decode(data, self._type)
        except InvalidObjectError as error:
            self._malformed += 1
            try:
                meta = decode(data, _Bare).metadata
            except InvalidObjectError:
                meta = ObjectMeta()
            what = "its last readable version is deleted" if deleted else "skipped"
            logger.warning("%s %s/%s: %s: %s", self._resource.full_name, meta.namespace, meta.name, what, error)
            return self._store.get(meta.namespace, meta.name)
