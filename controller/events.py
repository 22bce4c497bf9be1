"""Events of events.k8s.io/v1, written in the background: an event is a courtesy, and nothing ever waits for one.

Events have four bounds: a budget for each gang, one for each owner of several gangs' workloads, one for all gangs
together, and a bound on events not yet written: the oldest of the namespace that has most are dropped. What
waits is written in turns of the namespaces. The PodGroup's annotations always have the latest message.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, replace

from controller.apiserver import LiveReader, NotLeaderError, Writer
from muster.cluster.owners import tellable
from muster.kube.backoff import Rate
from muster.kube.errors import ApiError
from muster.kube.events import EventSource, Regarding
from muster.model.resource import EVENTS, JOBS

logger = logging.getLogger(__name__)

REPORTING_CONTROLLER = "muster.dev/controller"
_JOB = (JOBS.api_version, JOBS.kind)
# All events of a leader: client-go gives a controller the same order of magnitude.
_PER_SECOND, _AT_ONCE = 50.0, 200
_PENDING = 2000
# A gang that goes to and fro between states gets ten events in a row, and then one a minute; so does its maker.
GANG_PER_SECOND, GANG_AT_ONCE = 1 / 60, 10
# As many makers are remembered before those are forgotten that had no event for a while.
_MAKERS = 1000


class Budgets:
    """A budget of a gang's size for each of many, known by their UIDs."""

    def __init__(self) -> None:
        self._budgets: dict[str, Rate] = {}

    def take(self, uid: str, now: float) -> bool:
        """True if it may happen for this one now; it is counted then."""
        if len(self._budgets) >= _MAKERS and uid not in self._budgets:
            self._budgets = {uid: budget for uid, budget in self._budgets.items() if not budget.unused(now)}
        return not self._budgets.setdefault(uid, Rate(GANG_PER_SECOND, GANG_AT_ONCE)).take(now)


@dataclass(frozen=True, slots=True)
class _PendingEvent:
    """An event that is to be written: its object, the time (seconds since 1970), and its text.

    One `to_maker` is on the maker of a workload; where it `climbs`, the maker of that Job gets one as well.
    """

    regarding: Regarding
    reason: str
    note: str
    warning: bool
    seconds: float
    to_maker: bool = False
    climbs: bool = False


class Announcer:
    """Events on their way; `instance` names this process in them.

    `reads` finds the controller of a Job: its user wrote a CronJob.
    """

    def __init__(self, writer: Writer, reads: LiveReader, instance: str) -> None:
        self._writer = writer
        self._reads = reads
        self._source = EventSource(REPORTING_CONTROLLER, instance, "GangScheduling")
        # By namespace: each has its turn, so that one with many events does not delay those of others.
        self._pending: OrderedDict[str, deque[_PendingEvent]] = OrderedDict()
        self._budget = Rate(_PER_SECOND, _AT_ONCE)
        self._makers = Budgets()
        self._something = asyncio.Event()
        self.written = self.dropped = 0

    def add(self, regarding: Regarding, reason: str, note: str, *, warning: bool) -> None:
        """Queue an event."""
        self._enqueue(_PendingEvent(regarding, reason, note, warning, time.time()))

    def add_for_maker(self, regarding: Regarding, reason: str, note: str, *, warning: bool) -> None:
        """As `add`, on an object that made the workload, and that may have made many: it has a budget of its own."""
        climbs = (regarding.api_version, regarding.kind) == _JOB
        self._enqueue(_PendingEvent(regarding, reason, note, warning, time.time(), to_maker=True, climbs=climbs))

    def _enqueue(self, event: _PendingEvent) -> None:
        if sum(map(len, self._pending.values())) >= _PENDING:
            max(self._pending.values(), key=len).popleft()
            self.dropped += 1
        self._pending.setdefault(event.regarding.namespace, deque()).append(event)
        self._something.set()

    def _next(self) -> _PendingEvent:
        """The oldest of the namespace whose turn it is."""
        namespace, events = self._pending.popitem(last=False)
        event = events.popleft()
        if events:
            self._pending[namespace] = events
        return event

    async def run(self) -> None:
        """Write what is queued, until cancelled."""
        while True:
            await self._something.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all that is pending, no faster than the budget allows; what is refused is given up."""
        loop = asyncio.get_running_loop()
        while self._pending:
            wait = self._budget.take(loop.time())
            if wait:
                await asyncio.sleep(wait)
                continue
            event = self._next()
            if event.to_maker and not self._makers.take(event.regarding.uid, loop.time()):
                self.dropped += 1
                continue
            await self._write(event)
            if event.climbs:
                await self._climb(event)
        self._something.clear()

    async def _write(self, event: _PendingEvent) -> None:
        about = event.regarding
        body = self._source.event(about, event.reason, event.note, warning=event.warning, seconds=event.seconds)
        try:
            await self._writer.create(EVENTS, body)
        except (ApiError, NotLeaderError) as error:
            self.dropped += 1
            logger.warning(
                "cannot write an event about %s %s/%s: %s",
                about.kind,
                about.namespace,
                about.name,
                error,
                extra={"event": "event.failed"},
            )
        else:
            self.written += 1

    async def _climb(self, event: _PendingEvent) -> None:
        """Tell the owner of a Job, too."""
        job = event.regarding
        try:
            maker = await self._reads.maker_of_job(job)
        except ApiError as error:
            logger.warning(
                "cannot find the maker of Job %s/%s: %s", job.namespace, job.name, error, extra={"event": "event.maker"}
            )
            return
        if maker is not None and tellable(maker):
            above = Regarding(maker.api_version, maker.kind, job.namespace, maker.name, maker.uid)
            self._pending.setdefault(job.namespace, deque()).appendleft(replace(event, regarding=above, climbs=False))
