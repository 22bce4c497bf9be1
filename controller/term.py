"""One leader's term: what its work shares, how it takes over, and one reconcile of a gang.

Taking over, everything that is in the cluster enters the ledger before the first decision. Tens of thousands of gangs
take seconds, in which the lease has to be renewed and the watches go on: it is done step by step, and what changes
between two steps enters once more. It has ended when nothing is left that the ledger shows otherwise than the stores.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf

from controller.accounting import Accounting
from controller.admission_queue import AdmissionQueue, Sweeps
from controller.apiserver import LiveReader, Writer
from controller.delays import Clock, Evictions
from controller.events import Announcer
from controller.history import RunTimes
from controller.metrics import Metrics
from controller.reports import Reporter
from muster.cluster.cluster import Cluster
from muster.cluster.observe import observe, read_ahead
from muster.cluster.quota_use import QuotaUse
from muster.cluster.stores import gang_of_group
from muster.gangs.accounts import Accounts
from muster.gangs.history import History
from muster.gangs.intent import Defaults
from muster.kube.workqueue import WorkQueue
from muster.model.objects import PodGroup
from muster.planning.candidate import queue_held
from muster.planning.expectations import Expectations, ExpectationsByGang
from muster.planning.messages import eviction_in
from muster.planning.phase import Phase
from muster.planning.plan import GangPlan
from muster.planning.pod_group import newer
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.past_use import PastUse

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Work:
    """One reconcile of a gang."""

    snapshot: GangSnapshot
    """The gang as the cluster shows it, with the writes of this reconcile."""
    plan: GangPlan
    """The plan for it."""
    expects: Expectations
    """This leader's memory of it: its writes, its decision, its reports."""
    now: Callable[[], float]
    """Gives the time in seconds; it never goes back."""
    due: float = inf
    """The time at which the gang is to be reconciled again, whatever happens; infinity for none."""

    @property
    def requeue_after(self) -> float:
        """The seconds until then."""
        return max(self.due - self.now(), 0.0)

    @property
    def key(self) -> GangKey:
        """The gang."""
        return self.snapshot.key

    @property
    def admitted(self) -> bool:
        """True if the gang is admitted."""
        return self.plan.phase is Phase.ADMITTED

    def again(self, seconds: float | None) -> None:
        """Request another reconcile after so many seconds at the latest; None changes nothing."""
        if seconds is not None:
            self.due = min(self.due, self.now() + max(seconds, 0.0))

    def has_written(self) -> None:
        """The PodGroup is as the last write left it."""
        self.snapshot = replace(self.snapshot, pod_group=self.expects.written)


@dataclass(slots=True)
class Term:
    """One leader's term."""

    cluster: Cluster
    """The objects of the cluster, as the watches last showed them."""
    workqueue: WorkQueue[GangKey]
    """The gangs that are to be reconciled."""
    writer: Writer
    """Writes to the apiserver, while the lease is held."""
    reads: LiveReader
    """Reads what the watches do not show."""
    announcer: Announcer
    """Writes events."""
    metrics: Metrics
    """The metrics of the process."""
    clock: Clock
    """The clock."""
    defaults: Defaults
    """The settings of the installation."""
    history: History | None = None
    """The run times of former gangs; None where none are kept."""
    accounts: Accounts | None = None
    """What gangs used; None where that is not kept."""
    past: PastUse = field(default_factory=PastUse)
    """What queues have held so far."""
    expectations: ExpectationsByGang = field(default_factory=ExpectationsByGang, init=False)
    """This leader's memory of each gang."""
    sweeps: Sweeps = field(default_factory=Sweeps, init=False)
    """Work on many gangs, in steps."""
    evictions: Evictions = field(init=False)
    """The gangs that have just lost pods to the scheduler."""
    reporter: Reporter = field(init=False)
    """Writes the states of gangs."""
    run_times: RunTimes = field(init=False)
    """Records run times, and estimates them."""
    accounting: Accounting = field(init=False)
    """Records what gangs hold and wait for."""
    admission: AdmissionQueue = field(init=False)
    """The ledger, and the gangs to reconcile when something in it changes."""
    quota_use: QuotaUse = field(init=False)
    """The use of ElasticQuotas that the ledger counts."""
    taking_over: bool = field(default=False, init=False)
    """True while all gangs enter the ledger; nothing is decided before."""

    def __post_init__(self) -> None:
        self.evictions = Evictions()
        self.reporter = Reporter(self.writer, self.announcer, self.cluster)
        self.run_times = RunTimes(self.cluster, self.history)
        self.admission = AdmissionQueue(self.workqueue, self.sweeps, self.clock, self.past)
        self.quota_use = QuotaUse(self.cluster, self.ledger)
        self.accounting = Accounting(self.accounts, self.ledger, self.clock)

    @property
    def ledger(self) -> Ledger:
        """The claims of all gangs on all queues."""
        return self.admission.ledger


def observe_gang(term: Term, key: GangKey) -> GangSnapshot:
    """Return the gang as the stores show it, with the writes that the watches may not show yet."""
    expects = term.expectations.seen(key)
    # A leader that takes over believes the marks. Later one counts that it wrote, or for which the gang holds room.
    believed = term.taking_over or bool(expects.record.admitted) or term.ledger.holds(key) is not None
    return observe(
        key,
        term.cluster,
        term.defaults,
        expects,
        now=term.clock.wall(),
        believed=believed,
        pause=term.evictions.pause(key, term.clock.now()),
    )


def plan_and_enter(term: Term, snapshot: GangSnapshot) -> GangPlan:
    """Plan the gang as it stands, enter it into the ledger so, and wake the gangs for which that changes anything."""
    was_lost = snapshot.key in term.admission.lost
    expects = term.expectations.seen(snapshot.key)
    plan = term.admission.enter_and_wake(snapshot, expects)
    expects.yielded = expects.yielded and (plan.yields or plan.phase is not Phase.ADMITTED)
    if was_lost and not plan.lost:
        enter_lost_gangs(term, queue_held(snapshot))
    return plan


def enter(term: Term, key: GangKey) -> None:
    """Enter the gang into the ledger as the stores show it, without growth, and without waking other gangs.

    No object is known on which this fails. Where a defect makes it fail on one, that gang holds what its PodGroup asks
    for, for it may be running, until a reconcile of it succeeds: no leader could take over otherwise.
    """
    try:
        term.admission.enter(observe_gang(term, key), term.expectations.seen(key), may_grow=False)
    except Exception:
        logger.exception(
            "internal error: %s cannot be read; it keeps what its PodGroup asks for, and no more of it starts",
            key,
            extra={"event": "gang.unread"},
        )
        term.admission.record_unreadable(key, newer(term.cluster.pod_group(key), term.expectations.seen(key).written))


def enter_lost_gangs(term: Term, queue: str) -> None:
    """Enter the gangs that waited for a queue which is there now, before a new gang there is decided for."""
    term.admission.lost.queue_found(queue, lambda key: enter(term, key))


class Takeover:
    """The beginning of a leader's term."""

    def __init__(self, term: Term) -> None:
        self._term = term
        # In the order in which they came; a dict, so that each is there once.
        self._left: dict[GangKey, None] = {}
        self._many: list[Iterator[GangKey | None]] = []

    def touched(self, key: GangKey) -> None:
        """Enter a gang once more that has changed after it was entered."""
        if self._term.taking_over:
            self._left[key] = None

    def touched_many(self, keys: Iterable[GangKey | None]) -> None:
        """As `touched`, for all of these; None stands for a gang that is not concerned."""
        self._many.append(iter(keys))

    def steps(self, groups: Iterable[PodGroup]) -> Iterator[None]:
        """Enter everything, no more than one queue or gang in a step, and of a large gang some pods.

        `groups` are all PodGroups as listed since the lease is held: the watch may not have shown yet what the former
        leader wrote last.
        """
        term = self._term
        term.taking_over = True
        for name in [queue.metadata.name for queue in term.cluster.queues]:
            # Between two steps the watch may show a newer one, or none.
            queue = term.cluster.queues.get("", name)
            if queue is not None:
                term.admission.set_queue(queue)
                # The PodGroups of waiting gangs may state the numbers of an earlier moment.
                term.admission.refresh(name)
            yield
        for group in groups:
            key = gang_of_group(group)
            term.expectations.begin(key, group)
            self._left[key] = None
            yield
        for key in term.cluster.each_gang():
            self._left[key] = None
            yield
        while self._left or self._many:
            if self._many:
                yield from self._noted(self._many.pop())
            else:
                key = next(iter(self._left))
                yield from read_ahead(key, term.cluster)
                expects, pods = term.expectations.seen(key), term.cluster.pods_of(key)
                reported, now, wall = eviction_in(expects.reported[1]), term.clock.now(), term.clock.wall()
                expects.evicted = reported.words
                yield from term.evictions.take_over(key, pods, reported, now=now, wall=wall)
                # What changed since then is entered with it.
                del self._left[key]
                enter(term, key)
                term.workqueue.add(key)
                yield
        term.taking_over = False

    def _noted(self, keys: Iterator[GangKey | None]) -> Iterator[None]:
        for key in keys:
            if key is not None:
                self._left[key] = None
            yield
