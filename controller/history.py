"""The history of run times in a leader's term: records the runs that end, and estimates those that come.

Decisions read the estimates that stand on PodGroups, never the history: so another leader, and `muster plan`, decide
the same. What is lost of the history costs estimates, and nothing else.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from controller.accounting import Accounting
from controller.apiserver import NotLeaderError, Writer
from muster.cluster.cluster import Cluster
from muster.gangs.accounts import Outcome
from muster.gangs.history import History
from muster.kube.client import Client
from muster.kube.concurrency import in_slices
from muster.kube.errors import ApiError
from muster.model.objects import ConfigMap, InvalidObjectError, decode
from muster.model.resource import CONFIG_MAPS
from muster.model.times import duration_text, seconds_of
from muster.planning.candidate import lasts, lineage, queue_held
from muster.planning.expectations import Expectations, Runs
from muster.planning.phase import Phase
from muster.planning.snapshot import GangSnapshot
from muster.workloads import Workload

logger = logging.getLogger(__name__)

_STARTS = "starts"
_READ_SECONDS = 3.0
_EVERY = 60.0
# In minutes.
_HOUR = 60


class RunTimes:
    """Follows admitted gangs to their ends, and gives estimates; without a `history` it does neither."""

    def __init__(self, cluster: Cluster, history: History | None) -> None:
        self._cluster = cluster
        self._history = history

    def follow(self, snapshot: GangSnapshot, phase: Phase, expects: Expectations, now: float) -> Outcome | None:
        """Note that an admitted gang runs, and record for how long it ran, and return how, when it has run to its end.

        One that was deleted, suspended or queued again has not; nor is anything known of one that ended while another
        process led. `now` is of the wall clock.
        """
        if self._history is None:
            return None
        ran = expects.runs
        if phase is Phase.ADMITTED:
            marked = snapshot.record if snapshot.marked_for == snapshot.uid else expects.record
            since = seconds_of(marked.admitted_at)
            if since is None or (ran is not None and ran.since == since):
                return None
            maker = snapshot.decoded.metadata.controller if snapshot.decoded is not None else None
            expects.runs = Runs(snapshot.uid, lineage(snapshot), queue_held(snapshot), since, maker)
            return None
        expects.runs = None
        ended = self._ended(snapshot, phase, ran) if ran is not None else None
        if ran is None or ended is None or not ended.finished:
            return None
        self._history.record(ran.lineage, ran.queue, now - ran.since)
        return "failed" if ended.failed else "succeeded"

    def _ended(self, snapshot: GangSnapshot, phase: Phase, ran: Runs) -> Workload | None:
        """The workload of that run, or what made it, where it may have ended."""
        if phase is Phase.INACTIVE:
            return snapshot.workload if snapshot.uid == ran.uid else None
        # A RayJob that has ended takes its cluster along.
        made = self._cluster.workload(snapshot.key.namespace, ran.maker) if phase is Phase.GONE and ran.maker else None
        with suppress(InvalidObjectError):
            return made[0].read(made[1]) if made is not None else None
        return None

    def expect(self, snapshot: GangSnapshot, expects: Expectations, *, renew: bool = False) -> None:
        """Note the estimates of a gang that waits: those of its PodGroup; where it says none, or to `renew`, new ones.

        An admitted gang keeps those with which it started.
        """
        if self._history is None:
            return
        expects.runs_about = (snapshot.record.runs_about if snapshot.ours else "") or expects.runs_about
        known = snapshot.record.admitted or (expects.runs_about and not renew)
        if known or snapshot.intent is None or not snapshot.members or lasts(snapshot):
            return
        expects.runs_about = " ".join(
            map(duration_text, self._history.estimates(lineage(snapshot), snapshot.intent.queue))
        )

    def drain_after(self, queue: str) -> str:
        """The time after which a queue drains for a bypassed gang, by its runs; "" where too few are known."""
        seconds = self._history.drain_after(queue) if self._history is not None else None
        return duration_text(60 * round(seconds / 60)) if seconds is not None else ""


class Part(Protocol):
    """A part of what a leader leaves to the next one."""

    changed: bool

    def text(self) -> str:
        """Return the part as it is stored."""
        ...

    def read(self, text: str) -> None:
        """Add what is stored. Raises InvalidObjectError for any other text."""
        ...


class HistoryStore:
    """Keeps parts, each under its key, in one ConfigMap that the chart makes, and `starts` in another, public one.

    With the name "" nothing is kept. One ConfigMap at most is written in a minute, the public one once an hour.
    """

    def __init__(
        self, client: Client, writer: Writer, *, namespace: str, name: str, parts: Mapping[str, Part], starts: Part
    ) -> None:
        self._client = client
        self._writer = writer
        self._namespace = namespace
        self._own, self._public = name, f"{name}-{_STARTS}"
        self._maps = {self._own: parts, self._public: {_STARTS: starts}} if name else {}
        self._unread = {name: dict(parts) for name, parts in self._maps.items()}
        self._failing = False
        self._minutes = _HOUR - 2

    async def read(self) -> None:
        """Read what is stored; what does not answer is read again before it is written."""
        await asyncio.gather(*map(self._read, sorted(self._unread)))

    async def _read(self, name: str) -> None:
        data: Mapping[str, str] = {}
        try:
            data = decode(
                await self._client.get(CONFIG_MAPS, name, self._namespace, deadline=_READ_SECONDS), ConfigMap
            ).data
        except ApiError as error:
            if not error.not_found:
                self._failed("read", name, error)
                return
        except InvalidObjectError as error:
            _lost(name, error)
        left = self._unread[name]
        while left:
            # A large part takes the time of a step.
            await asyncio.sleep(0)
            key, part = left.popitem()
            try:
                if text := data.get(key):
                    part.read(text)
            except InvalidObjectError as error:
                _lost(f"{name}, {key},", error)
        del self._unread[name]

    async def run(self, accounting: Accounting) -> None:
        """Write what has changed once a minute, until cancelled."""
        while self._maps:
            await asyncio.sleep(_EVERY)
            await self.account(accounting)

    async def account(self, accounting: Accounting, *, last: bool = False) -> None:
        """Write what has changed, with what gangs have held until now."""
        await in_slices(accounting.steps())
        await self.write(last=last)
        accounting.go_on()

    async def write(self, *, last: bool = False) -> None:
        """Write one ConfigMap that was read and has changed, the own one if it is the `last` time."""
        await self.read()
        self._minutes += 1
        for name, parts in reversed(self._maps.items()):
            if (
                not any(part.changed for part in parts.values())
                or name in self._unread
                or (name == self._public and (last or self._minutes < _HOUR))
            ):
                continue
            data, done = {}, False
            try:
                # All of them: the ConfigMap may have been deleted, and made again by the chart.
                for key, part in parts.items():
                    part.changed, data[key] = False, part.text()
                    await asyncio.sleep(0)
                await self._writer.patch(CONFIG_MAPS, name, self._namespace, {"data": data})
                done = True
            except (ApiError, NotLeaderError) as error:
                self._failed("written", name, error)
                return
            finally:
                for part in () if done else parts.values():
                    part.changed = True
            if name == self._public:
                self._minutes = 0
            break
        self._failing = bool(self._unread)

    def _failed(self, what: str, name: str, error: Exception) -> None:
        """Say it once, until everything can be read and written."""
        if not self._failing:
            logger.warning(
                "ConfigMap %s cannot be %s, so that a new leader would miss records; it is tried again each minute: %s",
                name,
                what,
                error,
                extra={"event": "history.failed"},
            )
        self._failing = True


def _lost(name: str, error: InvalidObjectError) -> None:
    logger.warning(
        "ConfigMap %s holds no records as muster writes them; they start empty: %s",
        name,
        error,
        extra={"event": "history.lost"},
    )
