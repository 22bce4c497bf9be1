"""One leader's term: the cluster and its gangs, the ledger, the writer and the reporter that its work shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.admission_queue import AdmissionQueue
from controller.events import Announcer
from controller.evictions import Evictions
from controller.fenced_writes import Writer
from controller.history import RunTimes
from controller.live_reads import LiveReader
from controller.metrics import Metrics
from controller.reports import Reporter
from controller.sweeps import Sweeps
from muster.cluster.cluster import Cluster
from muster.cluster.quota_use import QuotaUse
from muster.gangs.history import History
from muster.gangs.intent import Defaults
from muster.kube.workqueue import WorkQueue
from muster.model.times import steady
from muster.planning.expectations import ExpectationsByGang
from muster.queueing.ledger import GangKey, Ledger


class Clock:
    """The time, in seconds.

    :ivar now: gives the time of day as the term began, carried on by a clock that never leaps.
    :ivar wall: gives the time of day, with which times that others have written are compared.
    """

    def __init__(self, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self.now = steady(monotonic, wall)
        self.wall = wall


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
    """The time."""
    defaults: Defaults
    """The settings of the installation."""
    history: History | None = None
    """The run times of former gangs; None where none are kept."""
    expectations: ExpectationsByGang = field(default_factory=ExpectationsByGang, init=False)
    """The writes for each gang that the watches may not show yet."""
    sweeps: Sweeps = field(default_factory=Sweeps, init=False)
    """Work on many gangs, in steps."""
    evictions: Evictions = field(init=False)
    """The gangs that have just lost pods to the scheduler."""
    reporter: Reporter = field(init=False)
    """Writes the states of gangs."""
    run_times: RunTimes = field(init=False)
    """Records run times, and estimates them."""
    admission: AdmissionQueue = field(init=False)
    """The ledger, and the gangs to reconcile when something in it changes."""
    quota_use: QuotaUse = field(init=False)
    """The use of ElasticQuotas that the ledger counts."""
    taking_over: bool = field(default=False, init=False)
    """True while all gangs enter the ledger; nothing is decided before."""

    def __post_init__(self) -> None:
        self.evictions = Evictions(self.clock.now)
        self.reporter = Reporter(self.writer, self.announcer, self.cluster)
        self.run_times = RunTimes(self.cluster, self.history)
        self.admission = AdmissionQueue(self.workqueue, self.sweeps, self.clock.now)
        self.quota_use = QuotaUse(self.cluster, self.ledger)

    @property
    def ledger(self) -> Ledger:
        """The claims of all gangs on all queues."""
        return self.admission.ledger
