"""Keeps a store equal to the apiserver, for ever: list in pages, watch from there, and after any fault list or resume.

Three levels: `run` waits between attempts and never ends; a session lists if it must and watches; the decoding turns
lines into objects. An object that cannot be decoded is skipped, counted and logged, and its last readable version
stays, so that one malformed object neither stops the others nor looks like a deletion. `Progress` decides about faults.
"""

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from muster.kube.backoff import Backoff
from muster.kube.client import Client, Selection
from muster.kube.concurrency import TimeSlice, in_slices
from muster.kube.errors import ApiError, Unreachable, WatchIdle, error_from_response
from muster.kube.listing import Pages, list_into
from muster.kube.progress import Progress
from muster.kube.store import ChangeKind, Store
from muster.model.keep import Keep
from muster.model.objects import HasMetadata, InvalidObjectError, LocalObject, decode
from muster.model.projection import Projection
from muster.model.resource import Resource

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)

_CHANGES: dict[str, ChangeKind] = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}


class _Event(LocalObject, frozen=True):
    type: str
    object: msgspec.Raw


class _Name(LocalObject, frozen=True):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _Named(LocalObject, frozen=True):
    metadata: _Name = _Name()


@dataclass(slots=True)
class ReflectorStatistics:
    """Numbers for metrics; all count up from the start."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    malformed: int = 0
    failures: int = 0


class Watched(NamedTuple):
    """A store and the objects that a watch keeps in it.

    :ivar resource: their kind
    :ivar type: the type that they are decoded as, or the parts of it that a `Projection` keeps
    :ivar store: the store
    :ivar field_selector: a selector of their fields; "" for all
    :ivar label_selector: a selector of their labels; "" for all
    :ivar keep: the labels and annotations that are kept
    :ivar namespace: their namespace; None for all
    """

    resource: Resource
    type: type[Any]
    store: Store[Any]
    field_selector: str = ""
    label_selector: str = ""
    keep: Keep = Keep.READ
    namespace: str | None = None

    @property
    def selection(self) -> Selection:
        """The objects to list and watch."""
        return {
            "namespace": self.namespace,
            "label_selector": self.label_selector,
            "field_selector": self.field_selector,
        }


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """Times of a reflector, in seconds.

    :ivar watch: the shortest and the longest time that a watch is asked to last
    :ivar silence: the time without a byte after which a watch is reopened, for a kind without changes (the apiserver
        then sends no bookmarks) looks like a dead connection
    :ivar absent: the time after which a kind that is not served (its CRD is not installed) is asked for again; it
        counts as synced and empty until then
    :ivar retry: the first and the longest delay after a fault, before jitter
    """

    watch: tuple[float, float] = (300.0, 600.0)
    silence: float = 90.0
    absent: float = 30.0
    retry: tuple[float, float] = (0.8, 30.0)


_TIMES = WatchTimes()


class Reflector:
    """Keeps the objects of `watched` in its store; lists ask for `page` objects at once.

    :ivar resource: the kind that it lists and watches
    :ivar store: the store that it fills
    :ivar fault: the last failure, so that the store may be behind, until the apiserver opens a watch again
    """

    def __init__(self, client: Client, watched: Watched, *, times: WatchTimes = _TIMES, page: int = 500) -> None:
        self._client = client
        self.resource = watched.resource
        self._selection = watched.selection
        self._projection = Projection(watched.type, watched.keep)
        self.store = watched.store
        self._pages = Pages(page)
        self._times = times
        self._progress = Progress(Backoff(*times.retry), times.absent)
        self._synced = asyncio.Event()
        self.fault: ApiError | None = None
        self.statistics = ReflectorStatistics()

    @property
    def absent(self) -> bool:
        """True if the apiserver did not serve this kind when last asked."""
        return self._progress.absent

    async def wait_synced(self, timeout: float) -> None:  # noqa: ASYNC109 - the caller's patience
        """Wait until the store has its first list. Raises TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            await self._synced.wait()

    async def run(self) -> None:
        """Keep the store up to date until cancelled. Raises nothing else: any failure is tried again."""
        name = self.resource.full_name
        while True:
            delay = 0.0
            try:
                await self._session()
            except ApiError as error:
                delay = await self._after(error)
            except Exception as error:
                # A mistake of ours or an unforeseen answer: the cache must survive it, and the log must show it.
                self.statistics.failures += 1
                self.fault = ApiError(0, "Unexpected", str(error))
                delay = self._progress.failed(self.fault)
                logger.exception(
                    "%s: internal error; listing again in %.1f s", name, delay, extra={"event": "watch.failed"}
                )
            await asyncio.sleep(delay)

    async def _after(self, error: ApiError) -> float:
        name = self.resource.full_name
        if error.not_found and (wait := self._progress.missing(len(self.store))) is not None:
            if len(self.store) or not self.store.synced:
                logger.info(
                    "%s: not served by this cluster (%s); asking again every %.0f s",
                    name,
                    error,
                    wait,
                    extra={"event": "watch.absent"},
                )
                await in_slices(self.store.relist().steps())
                self._synced.set()
            self.fault = None
            return wait
        self.statistics.failures += 1
        # Its frames hold the objects listed so far, whose memory the next attempt needs.
        self.fault = error.with_traceback(None)
        delay = self._progress.failed(error)
        level = logging.INFO if error.gone else logging.WARNING
        then = "resuming" if self._progress.resource_version else "listing again"
        logger.log(level, "%s: %s; %s in %.1f s", name, error, then, delay, extra={"event": "watch.retry"})
        return delay

    async def _session(self) -> None:
        if self._progress.resource_version and self._progress.doubtful:
            await self._compare_versions()
        if not self._progress.resource_version:
            await self._list()
        await self._watch()

    async def _list(self) -> None:
        relist, resource_version = await list_into(
            self.store.relist,
            self._client,
            self.resource,
            self._item,
            gently=self.store.synced,
            page=self._pages,
            **self._selection,
        )
        self.statistics.lists += 1
        await in_slices(relist.steps())
        self._progress.listed(resource_version)
        self._synced.set()

    async def _watch(self) -> None:
        self.statistics.watches += 1
        clock = asyncio.get_running_loop().time
        seconds = max(1, round(random.uniform(*self._times.watch)))  # noqa: S311 - not a secret
        async with self._client.watch(
            self.resource,
            resource_version=self._progress.resource_version,
            timeout_seconds=seconds,
            silence=self._times.silence,
            **self._selection,
        ) as lines:
            self.fault = None
            # A server in trouble refuses slowly: only from here on it is a watch that lasts.
            self._progress.opened(clock())
            slice_ = TimeSlice()
            try:
                async for line in lines:
                    self._take(line)
                    # Lines that have arrived already come at once.
                    await slice_.rest()
            except WatchIdle as silence:
                logger.debug(
                    "%s: %s; resuming the watch", self.resource.full_name, silence, extra={"event": "watch.silent"}
                )
                self._progress.silent()
            finally:
                lasted = self._progress.closed(clock())
        if not lasted:
            raise Unreachable("the watch ended at once")

    async def _compare_versions(self) -> None:
        """Ask the apiserver for its own version, which a watch would not show.

        As it lists: an account may have the right to read one object, by its name, and no others.
        """
        body = await self._client.list_page(self.resource, limit=1, deadline=10.0, **self._selection)
        self._progress.compare(decode(body, _Named).metadata.resource_version)

    def _take(self, line: bytes) -> None:
        try:
            event = decode(line, _Event)
        except InvalidObjectError as error:
            # Not quoted: it may be a part of any object, even of a Secret.
            raise ApiError(0, "NotAnEvent", f"a watch sent {len(line)} bytes that are no event: {error}") from error
        raw = bytes(event.object)
        if event.type == "ERROR":
            raise error_from_response(0, raw, quote=False)
        self.statistics.events += 1
        kind = _CHANGES.get(event.type)
        before = self.statistics.malformed
        item = None if kind is None else self._item(raw, deleted=kind == "deleted")
        if kind is not None and item is not None:
            self.store.apply(kind, item)
        # Also for what was skipped, and for bookmarks: resuming must not begin before it.
        read = item if self.statistics.malformed == before else None
        self._progress.moved((decode(raw, _Named) if read is None else read).metadata.resource_version)

    def _item(self, raw: bytes, *, deleted: bool = False) -> Any:  # noqa: ANN401 - of the type that is watched
        """Decode one object; for a malformed one return its last readable version, or None."""
        try:
            return self._projection.decode(raw)
        except InvalidObjectError as error:
            self.statistics.malformed += 1
            try:
                meta = decode(raw, _Named).metadata
            except InvalidObjectError:
                meta = _Name()
            what = "its last readable version is deleted" if deleted else "skipped"
            logger.warning(
                "%s %s/%s: %s: %s",
                self.resource.full_name,
                meta.namespace,
                meta.name,
                what,
                error,
                extra={"event": "watch.malformed"},
            )
            return self.store.get(meta.namespace, meta.name)
