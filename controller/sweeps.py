"""Work that one event brings for all gangs or all queues, in slices of the event loop.

A PriorityClass may concern fifty thousand gangs. The handler of its change only notes what is to be done; it is done
step by step, and between two steps the lease is renewed and single gangs are worked on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Iterable, Iterator

from muster.kube.slices import in_slices

logger = logging.getLogger(__name__)


class Sweeps:
    """The sweeps that are left to do, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, Iterable[object]] = {}
        self._begun = False
        self._some = asyncio.Event()

    @property
    def under_way(self) -> bool:
        """True if anything is left to do."""
        return self._begun or bool(self._waiting)

    def add(self, what: Hashable, steps: Iterable[object]) -> None:
        """Queue these steps; they see the cluster as it is when they are taken.

        Where the same is waiting already, that will do: of a hundred Queues that change each may concern all gangs.
        """
        self._waiting.setdefault(what, steps)
        self._some.set()

    def steps(self) -> Iterator[None]:
        """Everything that is left, and what comes on the way."""
        while self._waiting:
            what = next(iter(self._waiting))
            steps, self._begun = self._waiting.pop(what), True
            try:
                for _ in steps:
                    yield
            except Exception:
                logger.exception("internal error: a sweep failed", extra={"event": "sweep.failed"})
            self._begun = False

    async def run(self) -> None:
        """Do what comes, until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            await in_slices(self.steps())
