"""Touches a gang's workload for its operator, or its PodGroup for its scheduler, where these would look too late.

While no webhook answers, operators cannot create pods, and retry after delays that double, up to a quarter of an hour.
No event tells the controller that the outage is over; but an operator reconciles a touched workload at once, and a
touch in vain costs one write. So the workload is touched while pods are missing, less often the longer they are: an
outage grows by a small part only, and a workload that lacks pods for another reason (a quota) costs little. Where batch
Jobs stand between a workload and its pods, it is Kubernetes' own Job controller that waits, a minute at most, and
watches its Jobs only: those that lack pods are touched as well.

scheduler-plugins' coscheduling registers for added pods and changed PodGroups alone (v0.34.7). A replacement that opens
a moment before the next one exists is turned away for too few pods; the next waits for it until its time is over; and
then it looks at neither for five minutes, however much room there is. So the PodGroup is touched, the less often the
longer no node is found.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.apiserver import MOST_JOBS
from controller.term import Term, Work
from muster.kube.errors import ApiError
from muster.model.names import NUDGE
from muster.model.objects import ObjectMeta
from muster.model.resource import JOBS
from muster.model.times import text_of
from muster.planning.phase import Phase
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from muster.schedulers import scheduler_of_group

logger = logging.getLogger(__name__)

# Seconds: operators make pods one by one, and get along without help as a rule; then a sixteenth of what has passed, so
# that an outage of a minute is over for all within 5 s of its end.
_SILENCE = 5.0
_SHARE, _SHORTEST, _LONGEST = 1 / 16, 2.0, 300.0
# Of all gangs together, after an outage that thousands have waited through.
_PER_SECOND = 20.0
# Of the turns one namespace has every second one at most: another that lacks pods is not behind thousands of it.
_APART = 2
# Of all workers no more wait for a touch: while a webhook of the workloads is away each takes as long as a write may,
# and gangs of other kinds must not wait for that.
_AT_ONCE = 4
_WANTS_PODS = frozenset({Phase.ASSEMBLING, Phase.WAITING, Phase.ADMITTED})


@dataclass(slots=True)
class _Waiting:
    """A gang that lacks something: since when, when it is due next, and its turn (by number), if any."""

    since: float
    next: float
    turn: int | None = None


class TouchSchedule:
    """The gangs that lack something, and when each is touched next. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._waiting: dict[GangKey, _Waiting] = {}
        # The turns that are given and to come, numbered by time, and the first that may be free.
        self._given: set[int] = set()
        self._free = 0
        self._last: dict[str, int] = {}

    @property
    def gangs(self) -> int:
        """The number of gangs that lack something."""
        return len(self._waiting)

    def forget(self, key: GangKey) -> None:
        """The gang lacks nothing any more; others may have its turn."""
        one = self._waiting.pop(key, None)
        if one is not None and one.turn is not None:
            self._given.discard(one.turn)
            self._free = min(self._free, one.turn)
            self._last.pop(key.namespace, None)

    def wait(self, key: GangKey, now: float) -> float:
        """Return the seconds until the gang is to be touched; 0.0 when it is now, which counts as done."""
        one = self._waiting.setdefault(key, _Waiting(now, now + _SILENCE))
        if one.next <= now and one.turn is None:
            # A turn of its own for each: they would all come again at once otherwise.
            one.turn = self._next_turn(key.namespace, now)
            one.next = max(now, one.turn / _PER_SECOND)
        if one.next > now:
            return one.next - now
        self._take(one)
        one.next = now + min(max((now - one.since) * _SHARE, _SHORTEST), _LONGEST)
        return 0.0

    def _next_turn(self, namespace: str, now: float) -> int:
        present = math.floor(now * _PER_SECOND)
        self._last = {one: last for one, last in self._last.items() if last + _APART > present}
        self._free = max(self._free, present)
        while self._free in self._given:
            self._free += 1
        turn = max(self._free, self._last.get(namespace, present - _APART) + _APART)
        while turn in self._given:
            turn += 1
        self._given.add(turn)
        self._last[namespace] = turn
        return turn

    def _take(self, one: _Waiting) -> None:
        if one.turn is not None:
            self._given.discard(one.turn)
            # A gang that asks in the same twentieth of a second has the next one.
            self._free = max(self._free, one.turn + 1)
            one.turn = None

    def missed(self, key: GangKey, now: float) -> None:
        """The gang was to be touched now, and was not: it has another turn soon."""
        one = self._waiting[key]
        self._take(one)
        one.next = now + _SHORTEST


class Touches:
    """The touches of a term: `nudges` of operators whose workloads lack pods, `wakes` of schedulers."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self.nudges = TouchSchedule()
        self.wakes = TouchSchedule()
        self._under_way = 0

    def forget(self, key: GangKey) -> None:
        """The gang is gone."""
        self.nudges.forget(key)
        self.wakes.forget(key)

    async def touch(self, work: Work) -> bool:
        """Touch what it is time for; True when a touch was sent, for which the gang waited. Raises NotLeaderError."""
        nudged = await self._nudge(work)
        return await self._wake(work) or nudged

    async def _nudge(self, work: Work) -> bool:
        """Touch the workload if its gang lacks pods; one that MultiKueue runs in another cluster lacks nothing here."""
        snapshot = work.snapshot
        elsewhere = snapshot.workload is not None and snapshot.workload.elsewhere
        hears = snapshot.kind is not None and snapshot.kind.hears_touches and not elsewhere
        lacks = work.plan.phase in _WANTS_PODS and hears and snapshot.short
        if not self._is_due(self.nudges, work, lacks=lacks):
            return False
        sent = self._under_way < _AT_ONCE
        if not sent:
            self.nudges.missed(work.key, self._term.clock.now())
        else:
            self._under_way += 1
            try:
                await self.touch_workload(snapshot)
            finally:
                self._under_way -= 1
        work.again(self.nudges.wait(work.key, self._term.clock.now()))
        return sent

    def _is_due(self, schedule: TouchSchedule, work: Work, *, lacks: bool) -> bool:
        """True if the gang lacks something and its turn is now; before its turn it comes again then."""
        if not lacks:
            schedule.forget(work.key)
            return False
        wait = schedule.wait(work.key, self._term.clock.now())
        if wait > 0:
            work.again(wait)
        return wait <= 0

    async def touch_workload(self, snapshot: GangSnapshot) -> None:
        """Touch the workload at once, where its operator hears that. Raises NotLeaderError."""
        if snapshot.kind is None or snapshot.decoded is None or not snapshot.kind.hears_touches:
            return
        term = self._term
        logger.info("%s lacks pods; nudging its operator", snapshot.key, extra={"event": "nudge.sent"})
        try:
            nudge = {NUDGE: text_of(term.clock.wall())}
            meta: ObjectMeta = snapshot.decoded.metadata
            await term.writer.annotate(snapshot.kind.resource, meta, nudge)
            if snapshot.kind.pods_of_jobs:
                selector = f"{snapshot.kind.pod_label}={meta.name}"
                await self._touch_jobs(await term.reads.short_jobs(meta.namespace, selector), nudge)
        except ApiError as error:
            # The operator tries again by itself, later.
            logger.warning("%s: failed to nudge its operator: %s", snapshot.key, error, extra={"event": "nudge.failed"})

    async def _touch_jobs(self, jobs: Sequence[ObjectMeta], nudge: Mapping[str, str]) -> None:
        """Touch some of the Jobs; one that cannot be, for it is gone perhaps, keeps the others from nothing.

        Where the write is not served, as without a webhook of Jobs, that holds for the others: they have their turn
        when it comes again.
        """
        errors = []
        for job in jobs[:MOST_JOBS]:
            try:
                await self._term.writer.annotate(JOBS, job, nudge)
            except ApiError as error:
                errors.append(f"{job.namespace}/{job.name}: {error}")
                if not error.refused:
                    break
        if errors:
            logger.warning(
                "failed to nudge %d Jobs, the first: %s", len(errors), errors[0], extra={"event": "nudge.jobs"}
            )

    async def _wake(self, work: Work) -> bool:
        """Touch the PodGroup of an admitted gang whose open pods lack nodes, for a scheduler that hears that alone."""
        snapshot, group, clock = work.snapshot, work.snapshot.pod_group, self._term.clock
        hears = snapshot.intent is not None and snapshot.intent.gang_scheduler.retries_on_group_changes
        lacks = group is not None and work.admitted and hears and snapshot.ours and bool(snapshot.unplaced)
        if not self._is_due(self.wakes, work, lacks=lacks) or group is None:
            return False
        logger.info("%s has pods without a node; asking its scheduler again", work.key, extra={"event": "wake.sent"})
        try:
            nudge = {NUDGE: text_of(clock.wall())}
            await self._term.writer.annotate(scheduler_of_group(group).resource, group.metadata, nudge)
        except ApiError as error:
            logger.warning("%s: cannot ask its scheduler: %s", work.key, error, extra={"event": "wake.failed"})
        work.again(self.wakes.wait(work.key, clock.now()))
        return True
