"""The ledger of a leader's term, and the gangs to reconcile when something in it changes.

A PriorityClass, or a queue that comes back, may concern fifty thousand gangs. The handler of its change only notes what
is to be done; it is done step by step (`Sweeps`), and between two steps the lease is renewed and single gangs are
worked on.

Each event in a queue changes the message of all gangs that wait there: positions, and what is free. Each may be a
write, and takes from the apiserver what the starting of gangs needs: so many a second, and no more. Queues take turns.
In each, the head of the line has most of its turns, for its users look; the thousands behind it come one after another.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from controller.delays import Clock
from muster.admitters import Admitter
from muster.cluster.stores import view_of
from muster.kube.concurrency import in_slices
from muster.kube.workqueue import WorkQueue
from muster.model.gang_states import GangState
from muster.model.modes import GateMode
from muster.model.objects import PodGroup, Queue
from muster.planning.candidate import candidate, queue_held
from muster.planning.expectations import Expectations
from muster.planning.messages import not_by_kueue, of_kueue
from muster.planning.phase import lost_in
from muster.planning.plan import GangPlan, plan_gang
from muster.planning.pod_group import claim_of, scheduler_of
from muster.planning.record import recorded_queue
from muster.planning.snapshot import GangSnapshot
from muster.queueing.entries import Claim, EntryKey, Order
from muster.queueing.growth import GrowthQueue
from muster.queueing.ledger import Decision, GangKey, Ledger, queue_not_found
from muster.queueing.past_use import PastUse
from muster.resources.amounts import NOTHING, Resources

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


class LostGangs:
    """The gangs whose queue is not there for them, by the name of that queue."""

    def __init__(self, queue: WorkQueue[GangKey], sweeps: Sweeps) -> None:
        self._queue = queue
        self._sweeps = sweeps
        self._queue_of: dict[GangKey, str] = {}
        self._of: dict[str, dict[GangKey, None]] = {}
        # The queues whose gangs enter now, and the gangs whose decision waits for that.
        self._entering: dict[str, set[GangKey]] = {}

    def __contains__(self, key: GangKey) -> bool:
        return key in self._queue_of

    def queues_of(self, namespace: str) -> list[str]:
        """The queues in which gangs of the namespace are lost, by name."""
        return sorted({queue for key, queue in self._queue_of.items() if key.namespace == namespace})

    def note(self, key: GangKey, queue: str | None) -> None:
        """The gang is lost in this queue, or in none (None)."""
        before = self._queue_of.pop(key, None)
        if before is not None:
            gangs = self._of[before]
            del gangs[key]
            if not gangs:
                del self._of[before]
        if queue is not None:
            self._queue_of[key] = queue
            self._of.setdefault(queue, {})[key] = None

    def queue_found(self, queue: str, enter: Callable[[GangKey], object]) -> None:
        """The queue is there for one of its gangs: have all of them enter the ledger before it decides there."""
        if queue in self._of and queue not in self._entering:
            self._entering[queue] = set()
            self._sweeps.add((LostGangs, queue), self._enter(queue, list(self._of[queue]), enter))

    def _enter(self, queue: str, gangs: Iterable[GangKey], enter: Callable[[GangKey], object]) -> Iterator[None]:
        for key in gangs:
            if key in self:
                enter(key)
                self._queue.add(key)
            yield
        for key in self._entering.pop(queue):
            self._queue.add(key)
            yield

    def enter_before(self, key: GangKey, queue: str | None) -> bool:
        """True if gangs of that queue enter now, so that nothing is decided for this one yet; it is reconciled then."""
        if queue not in self._entering:
            return False
        self._entering[queue].add(key)
        return True


Line = Callable[[str, Order | None], Order | None]


_PER_SECOND = 5  # gangs of all queues together
_HEAD = 10  # gangs of a queue
_TURNS = 5  # of a queue's turns, one is for those behind its head


@dataclass(slots=True)
class _RefreshRound:
    """One way along a line: it skips `passes_over` gangs, and takes `most` after them; the next takes later changes."""

    passes_over: int
    most: float
    behind: Order | None = None
    left: float = 0
    touched: bool = False

    def next(self, queue: str, line: Line) -> EntryKey | None:
        """The next gang, or None where all messages are up to date."""
        found = self._step(queue, line)
        if found is None and self.touched:
            self.touched = False
            self.behind, self.left = None, self.passes_over
            while self._step(queue, line) is not None:
                pass
            self.left = self.most
            found = self._step(queue, line)
        return None if found is None else found.key

    def _step(self, queue: str, line: Line) -> Order | None:
        found = line(queue, self.behind) if self.left > 0 else None
        if found is None:
            self.left = 0
        else:
            self.behind = found
            self.left -= 1
        return found


@dataclass(slots=True)
class _Refresh:
    head: _RefreshRound = field(default_factory=lambda: _RefreshRound(0, _HEAD))
    rest: _RefreshRound = field(default_factory=lambda: _RefreshRound(_HEAD, float("inf")))
    turns: int = 0

    def next(self, queue: str, line: Line) -> EntryKey | None:
        self.turns += 1
        first, second = (self.head, self.rest) if self.turns % _TURNS else (self.rest, self.head)
        return first.next(queue, line) or second.next(queue, line)


class StatusUpdateSchedule:
    """The queues that changed since the messages of all their gangs were refreshed."""

    def __init__(self) -> None:
        # The one whose turn is next is first.
        self._queues: dict[str, _Refresh] = {}

    def touch(self, queues: Iterable[str]) -> None:
        """Something happened in these queues."""
        for name in queues:
            one = self._queues.get(name)
            if one is None:
                one = self._queues[name] = _Refresh()
            one.head.touched = one.rest.touched = True

    def due(self, line: Line) -> list[EntryKey]:
        """The gangs whose message is to be refreshed now; to be called about every second.

        `line` gives the first gang that waits in a queue behind a place in its order, None for the head of the line.
        """
        due: list[EntryKey] = []
        while self._queues and len(due) < _PER_SECOND:
            name = next(iter(self._queues))
            queue = self._queues.pop(name)
            gang = queue.next(name, line)
            if gang is not None:
                due.append(gang)
                self._queues[name] = queue
        return due


class AdmissionQueue:
    """The gangs that hold and those that wait; every gang that a change may concern is added to the work queue.

    Gangs that may start or grow are reconciled at once; for the others only the message changes, and their turn comes
    later.
    """

    def __init__(self, queue: WorkQueue[GangKey], sweeps: Sweeps, clock: Clock, past: PastUse | None = None) -> None:
        self.ledger = Ledger(past=past)
        self.lost = LostGangs(queue, sweeps)
        self._queue = queue
        self._sweeps = sweeps
        self._clock = clock
        self._growing = GrowthQueue()
        # Gangs that are reconciled because they may grow: the queue that changed, and the places that had their turn.
        self._turns_to_grow: dict[GangKey, tuple[str, Mapping[str, Order]]] = {}
        self._status_updates = StatusUpdateSchedule()
        self._turns: set[GangKey] = set()

    def set_queue(self, queue: Queue) -> bool:
        """Add or update a queue; nothing starts in a queue that cannot be read. True when anything changed."""
        view = view_of(queue)
        return self.ledger.drop_queue(queue.metadata.name) if view is None else self.ledger.set_queue(view)

    def terms(self, queue: str) -> tuple[object, ...]:
        """The settings of a queue that concern more than the gangs that wait there.

        They concern gangs of other queues, gangs that are not in the ledger, or admitted ones: its namespaces, its
        parent, its gate mode, whether it is on hold, and when its unplaced gangs let others past.
        """
        view = self.ledger.tree.get(queue)
        return (view.gate, view.namespaces, view.parent, view.on_hold, view.unplaced_after) if view else ()

    def bound(self, nodes: Resources | None) -> None:
        """Admit no more than the nodes can hold, or with None whatever the queues allow."""
        if self.ledger.bound(nodes):
            self.wake_all()

    def enter(self, snapshot: GangSnapshot, expects: Expectations, *, may_grow: bool = True) -> GangPlan:
        """Enter the gang as it stands, without waking other gangs."""
        plan = plan_gang(snapshot, self.ledger, expects, now=self._clock.now(), may_grow=may_grow)
        self._growing.enter(snapshot.key, plan.growth)
        self.lost.note(snapshot.key, queue_held(snapshot) if plan.lost else None)
        return plan

    def record_unreadable(self, key: GangKey, group: PodGroup | None) -> None:
        """Enter a gang when only its PodGroup can be read: it may be running, and hold what that asks for."""
        before = self.ledger.queue_of(key) if self.ledger.holds(key) is not None else None
        for one in key.all:
            self.ledger.forget(one)
        claim = claim_of(group.spec) if group is not None else {}
        if group is not None and claim:
            queue = before or recorded_queue(group) or group.queue
            self.ledger.hold(Claim(key, queue, claim, running=NOTHING))
        self._growing.enter(key, None)
        self.lost.note(key, None)

    def enter_and_wake(self, snapshot: GangSnapshot, expects: Expectations) -> GangPlan:
        """Enter the gang as it stands, and wake the gangs of its subtree when anything changed for them."""
        before = {self.ledger.queue_of(key) for key in snapshot.key.all}
        turn = self._turns_to_grow.pop(snapshot.key, None)
        plan = self.enter(snapshot, expects)
        if plan.changed:
            for queue in before | {self.ledger.queue_of(key) for key in snapshot.key.all}:
                if queue is not None:
                    self.wake(queue, but=snapshot.key)
            if plan.wave is not None:
                # In line it may have what it could not take without standing there.
                self._queue.add(snapshot.key)
        if turn is not None:
            # Whatever it took or left: what there is may be enough for the next.
            with _for_its_own_gangs(turn[0]):
                self._let_grow(turn[0], turn[1], but=snapshot.key)
        return plan

    def decide(self, snapshot: GangSnapshot, plan: GangPlan, now: float) -> Decision | None:
        """The decision on a waiting gang: by its queue, its admitter, the ledger or its own hold; None for none."""
        if plan.lost and snapshot.intent is not None:
            return queue_not_found(snapshot.intent.queue, snapshot.key.namespace)
        if snapshot.kueue is not None and not snapshot.kueue.admitted:
            return Decision(fits=False, state=of_kueue(snapshot.kueue), message=not_by_kueue(snapshot.kueue))
        if plan.gate is GateMode.ASSEMBLE and plan.on_hold is None:
            admitted = "Kueue has admitted it, and " if snapshot.kueue is not None else ""
            return Decision(fits=True, state=GangState.ADMITTED, message=f"{admitted}all its pods are there")
        return self.ledger.decide(snapshot.key, now) or plan.on_hold

    def refusal(self, snapshot: GangSnapshot) -> Decision | None:
        """The reason why a gang can never start, however much is free; None when it can."""
        if snapshot.intent is not None and lost_in(snapshot, self.ledger.tree, snapshot.intent.queue):
            return queue_not_found(snapshot.intent.queue, snapshot.key.namespace)
        if snapshot.admitter is not Admitter.LEDGER and not scheduler_of(snapshot).enforces_limits:
            return None
        waits = self.ledger.candidate(snapshot.key) or candidate(snapshot, snapshot.record)
        return self.ledger.refusal(waits, self._clock.now())

    def leave(self, key: GangKey) -> None:
        """Remove the gang, and wake the gangs that waited with it."""
        queue = self.ledger.queue_of(key)
        if self.ledger.forget(key) and queue is not None:
            self.wake(queue, but=key)

    def forget(self, key: GangKey) -> None:
        """Drop what is remembered of a gang that is gone."""
        self.lost.note(key, None)
        self._growing.enter(key, None)
        self._turns.discard(key)

    def wake(self, queue: str, but: GangKey | None = None) -> None:
        """Reconcile the gangs that a change in a queue lets start or grow; the others get their message in their turn.

        Each is reconciled once for a change: when thousands start, a start is no change for the others.
        """
        with _for_its_own_gangs(queue):
            competing = self.ledger.competing(queue)
            self._status_updates.touch(competing)
            startable = self.ledger.newly_startable(queue, self._clock.now())
            if startable is None:
                return
            for gang in dict.fromkeys(key.gang for key in startable):
                if gang != but:
                    self._queue.add(gang)
            self._let_grow(queue, but=but)

    def _let_grow(self, queue: str, passed: Mapping[str, Order] | None = None, *, but: GangKey | None = None) -> None:
        """Reconcile the first gang that may grow now; the next one gets what it leaves."""
        turn = self._growing.first(self.ledger.outcome(queue, self._clock.now()), passed=passed, but=but)
        if turn is not None:
            self._turns_to_grow[turn.gang] = queue, turn.passed
            self._queue.add(turn.gang)

    def wake_all(self) -> None:
        """As `wake`, wherever something has changed: in the tree, and with it for the competitors of each gang."""
        self._sweeps.add(self.wake_all, self._wake_each())

    def _wake_each(self) -> Iterator[None]:
        for queue in self.ledger.changed_subtrees(self._clock.now()):
            self.wake(queue)
            yield

    def refresh(self, queue: str) -> None:
        """Refresh the message of each gang that waits in the queue in its turn, where it has changed."""
        self._status_updates.touch([queue])

    def refresh_messages(self) -> None:
        """Reconcile gangs whose message has changed, a few of them, and wake those that time alone has changed.

        Called about every second: a gang may run longer than was expected, and others may start for that.
        """
        if self.ledger.next_moment() <= self._clock.now():
            self.wake_all()
        for key in self._status_updates.due(self.ledger.next_waiting):
            # A wave has no words of its own.
            if isinstance(key, GangKey):
                self.request_refresh(key)
                self._queue.add(key)

    def request_refresh(self, key: GangKey) -> None:
        """Refresh the gang's message at its next reconcile, also where only numbers have changed."""
        self._turns.add(key)

    def consume_refresh(self, key: GangKey) -> bool:
        """True if it is the gang's turn, which then is over."""
        if key not in self._turns:
            return False
        self._turns.remove(key)
        return True


@contextmanager
def _for_its_own_gangs(queue: str) -> Iterator[None]:
    """Let an error concern the gangs alone that compete with those of the queue: all others go on."""
    try:
        yield
    except Exception:
        logger.exception(
            "internal error: of the gangs of queue %s, and of all that share its limits, none may start or grow",
            queue,
            extra={"event": "queue.unjudged"},
        )
