"""Asks an operator for the pods that its workload lacks, by touching the workload.

While no webhook answers, operators cannot create pods, and retry after delays that double, up to a quarter of an hour.
Nothing tells the controller that the outage is over; but an operator reconciles a touched workload at once, and a touch
in vain costs one write. So the workload is touched while pods are missing, less often the longer they are: an outage
grows by a small part only, and a workload that lacks pods for another reason (a quota) costs little.

Where batch Jobs stand between a workload and its pods, it is Kubernetes' own Job controller that waits, a minute at
most, and hears of its Jobs only: those that lack pods are touched as well.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.fenced_writes import Writer
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.kube.resource import JOBS
from muster.model.names import NUDGE
from muster.model.objects import Condition, InvalidObjectError, LocalObject, ObjectMeta, decode, is_true
from muster.model.times import text_of
from muster.observe.resources import resource_of
from muster.observe.view import View
from muster.queueing.ledger import GangKey

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
# Of one workload; those beyond them have their turn when these have their pods.
_MOST_JOBS = 100
_JOBS_SECONDS = 5.0


class _JobSpec(LocalObject, frozen=True):
    parallelism: int = 1
    suspend: bool = False


class _JobStatus(LocalObject, frozen=True):
    active: int = 0
    conditions: tuple[Condition, ...] = ()


class _Job(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()

    @property
    def short(self) -> bool:
        """Whether it has fewer pods than it may have, and would make more."""
        ended = is_true(self.status.conditions, "Complete", "Failed")
        idle = ended or self.spec.suspend or self.metadata.deletion_timestamp
        return not idle and self.status.active < self.spec.parallelism


async def short_jobs(client: Client, namespace: str, selector: str) -> list[ObjectMeta]:
    """The Jobs that this label selector finds in the namespace and that lack pods; raises ApiError."""

    def short(raw: bytes) -> ObjectMeta | None:
        try:
            job = decode(raw, _Job)
        except InvalidObjectError:
            return None
        return job.metadata if job.short else None

    found = await list_all(
        client, JOBS, short, namespace=namespace, label_selector=selector, page=_MOST_JOBS, deadline=_JOBS_SECONDS
    )
    return found.items


class Touch(NamedTuple):
    """Seconds until a gang is to be touched again, None where nothing is; and whether one was sent and waited for."""

    again: float | None = None
    sent: bool = False


@dataclass(slots=True)
class _Short:
    """Since when a gang lacks pods, when it is looked at next, and which turn it has (by number), if any."""

    since: float
    next: float
    turn: int | None = None


class Turns:
    """The gangs that lack pods, and when each is nudged next. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._short: dict[GangKey, _Short] = {}
        # The turns that are given and to come, numbered by time, and the first that may be free.
        self._given: set[int] = set()
        self._free = 0
        self._last: dict[str, int] = {}

    @property
    def gangs(self) -> int:
        """How many gangs lack pods."""
        return len(self._short)

    def forget(self, key: GangKey) -> None:
        """The gang has its pods, or wants none; others may have its turn."""
        one = self._short.pop(key, None)
        if one is not None and one.turn is not None:
            self._given.discard(one.turn)
            self._free = min(self._free, one.turn)
            self._last.pop(key.namespace, None)

    def wait(self, key: GangKey, now: float) -> float:
        """Seconds until the gang, which lacks pods, is to be nudged; 0.0 when it is now, which counts as done."""
        one = self._short.setdefault(key, _Short(now, now + _SILENCE))
        if one.next <= now and one.turn is None:
            # A turn of its own for everybody: they would all come again at once otherwise.
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

    def _take(self, one: _Short) -> None:
        if one.turn is not None:
            self._given.discard(one.turn)
            # Whoever asks in the same twentieth of a second has the next one.
            self._free = max(self._free, one.turn + 1)
            one.turn = None

    def missed(self, key: GangKey, now: float) -> None:
        """The gang was to be nudged now, and was not: it has another turn soon."""
        one = self._short[key]
        self._take(one)
        one.next = now + _SHORTEST


class Nudges:
    """Touches the workloads of gangs that lack pods; `clock` is monotonic, `wall` the time that is written.

    `jobs` finds the Jobs that lack pods, in a namespace and by a label selector; it raises ApiError.
    """

    def __init__(
        self,
        writer: Writer,
        jobs: Callable[[str, str], Awaitable[list[ObjectMeta]]],
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._jobs = jobs
        self._clock = clock
        self._wall = wall
        self._turns = Turns()
        self._under_way = 0

    @property
    def gangs(self) -> int:
        """How many gangs lack pods."""
        return self._turns.gangs

    def forget(self, key: GangKey) -> None:
        """The gang is gone."""
        self._turns.forget(key)

    async def nudge(self, view: View, *, wants: bool) -> Touch:
        """Touch the workload if it is time; `again` is None when no pod is lacking.

        `wants` tells whether muster manages the workload and it is to run. One that MultiKueue runs in another cluster
        lacks nothing here. Raises NotLeaderError.
        """
        elsewhere = view.workload is not None and view.workload.elsewhere
        hears = view.kind is not None and view.kind.hears_touches and not elsewhere
        if not (wants and hears and view.short) or view.decoded is None or view.kind is None:
            self._turns.forget(view.key)
            return Touch()
        wait = self._turns.wait(view.key, self._clock())
        if wait > 0:
            return Touch(wait)
        sent = self._under_way < _AT_ONCE
        if not sent:
            self._turns.missed(view.key, self._clock())
        else:
            self._under_way += 1
            try:
                await self.touch(view)
            finally:
                self._under_way -= 1
        return Touch(self._turns.wait(view.key, self._clock()), sent)

    async def touch(self, view: View) -> None:
        """Touch the workload at once, where its operator hears that. Raises NotLeaderError."""
        if view.kind is None or view.decoded is None or not view.kind.hears_touches:
            return
        logger.info("%s lacks pods; nudging its operator", view.key, extra={"event": "nudge.sent"})
        try:
            said = {NUDGE: text_of(self._wall())}
            meta: ObjectMeta = view.decoded.metadata
            await self._writer.annotate(resource_of(view.kind), meta, said)
            if view.kind.pods_of_jobs:
                await self._touch_jobs(await self._jobs(meta.namespace, f"{view.kind.pod_label}={meta.name}"), said)
        except ApiError as error:
            # The operator tries again by itself, later.
            logger.warning("%s: failed to nudge its operator: %s", view.key, error, extra={"event": "nudge.failed"})

    async def _touch_jobs(self, jobs: Sequence[ObjectMeta], said: Mapping[str, str]) -> None:
        """Touch some of the Jobs; one that cannot be, for it is gone perhaps, keeps the others from nothing.

        Where nobody serves the write, as without a webhook of Jobs, that holds for the others: they have their turn
        when it comes again.
        """
        errors = []
        for job in jobs[:_MOST_JOBS]:
            try:
                await self._writer.annotate(JOBS, job, said)
            except ApiError as error:
                errors.append(f"{job.namespace}/{job.name}: {error}")
                if not error.refused:
                    break
        if errors:
            logger.warning(
                "failed to nudge %d Jobs, the first: %s", len(errors), errors[0], extra={"event": "nudge.jobs"}
            )
