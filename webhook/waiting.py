"""Who waits in the queues, for a word in a warning: listed when a workload comes to a full queue, and then seldom.

The controller writes on its PodGroups how they stand. They are not watched, for Volcano writes them at every step; and
however many workloads come, one list serves all of them for some seconds. Nothing is ever refused by what it says.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.kube.resource import POD_GROUPS
from muster.names import MANAGED_BY, MUSTER, STATE
from muster.objects import InvalidObjectError, PodGroup, decode
from muster.reasons import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.kube.client import Client

__all__ = ["Waiting"]

logger = logging.getLogger(__name__)

_GOOD_FOR = 5.0
# A page is decoded in one go, and reviews wait meanwhile.
_PAGE = 100
# Of the seconds that a list may take: a review waits for no more, and the next one finds what came.
_SHARE = 0.25

_Line = tuple[str, ...]


class Waiting:
    """The gangs that wait, by queue; a list may take `read_seconds`, and `clock` counts seconds."""

    def __init__(self, client: Client, read_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._read_seconds = read_seconds
        self._clock = clock
        self._until = float("-inf")
        self._lines: dict[str, _Line] | None = None
        self._listing: asyncio.Task[None] | None = None

    async def in_queue(self, queue: str) -> _Line | None:
        """The PriorityClass of each gang that waits in the queue, "" for none; None where that is not known in time."""
        if self._clock() >= self._until:
            if self._listing is None or self._listing.done():
                self._listing = asyncio.create_task(self._list())
            try:
                async with asyncio.timeout(self._read_seconds * _SHARE):
                    await asyncio.shield(self._listing)
            except TimeoutError:
                return None
        return self._lines.get(queue, ()) if self._lines is not None else None

    async def _list(self) -> None:
        lines: defaultdict[str, list[str]] = defaultdict(list)
        seen: set[tuple[str, str]] = set()

        def read(raw: bytes) -> None:
            try:
                group = decode(raw, PodGroup)
            except InvalidObjectError:
                return
            meta = group.metadata
            # A list that expires between two pages begins anew.
            if (meta.namespace, meta.name) not in seen and meta.annotations.get(STATE) == State.WAITING_FOR_QUOTA:
                seen.add((meta.namespace, meta.name))
                lines[group.spec.queue].append(group.spec.priority_class_name)

        try:
            async with asyncio.timeout(self._read_seconds):
                await list_all(
                    self._client,
                    POD_GROUPS,
                    read,
                    label_selector=f"{MANAGED_BY}={MUSTER}",
                    page=_PAGE,
                    deadline=self._read_seconds,
                )
            self._lines = {queue: tuple(line) for queue, line in lines.items()}
        except (ApiError, TimeoutError) as error:
            logger.info("who waits in the queues cannot be read: %s", str(error) or "it took too long")
            self._lines = None
        self._until = self._clock() + _GOOD_FOR
