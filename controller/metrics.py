"""The controller's metrics: its gangs, its decisions, and its own work."""

import time
from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controller.delays import Clock
from controller.events import Announcer
from muster.cluster.cluster import Cluster
from muster.gangs.start_errors import PlannedStart, StartErrors
from muster.kube.store import Change
from muster.kube.workqueue import WorkQueue
from muster.model.gang_states import GangState
from muster.model.names import STATE
from muster.model.objects import PodGroup
from muster.model.times import seconds_of
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.queue_numbers import QueueNumbers
from muster.queueing.queue_view import ROOT

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Few, because each queue has them: 1,000 queues make 1 MB of a scrape.
_WAITS = (5, _MINUTE, 10 * _MINUTE, _HOUR, 4 * _HOUR, _DAY, 7 * _DAY)
_ERRORS = (5 * _MINUTE, _HOUR, _DAY)
_MOVES = (_MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 4 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY)
_BURSTS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# client-go's, from a microsecond on, by tens.
_TENFOLD = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10)
_QUEUE = "gangs"
_STATES = frozenset(map(str, GangState))
# Seconds between two readings of the queues' numbers.
_READ_EVERY = 15.0
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
"""The resources of the queues' numbers, if no others are named."""


class Metrics:
    """The controller's numbers that are counted when something happens; all but the queues' names are known before."""

    def __init__(
        self,
        registry: CollectorRegistry,
        resources: Collection[str] = RESOURCES,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self.start_errors = StartErrors()
        """The errors of the last week, as `muster queues` shows them."""
        self.queues = QueueMetrics(resources, leads, registry)
        self._admissions = Counter("muster_admissions", "Gangs admitted.", ["queue"], registry=registry)
        self._waits = Histogram(
            "muster_admission_wait_seconds",
            "From the creation of a gang's first pod to its admission.",
            ["queue"],
            buckets=_WAITS,
            registry=registry,
        )
        self._moved = Histogram(
            "muster_reservation_moved_seconds",
            "By how much the start of a reservation moved to later.",
            ["basis"],
            buckets=_MOVES,
            registry=registry,
        )
        self._start_errors = Histogram(
            "muster_start_error_seconds",
            "From the start of a gang's last reservation to the start of the gang, less than 0 where that was earlier.",
            ["queue", "basis"],
            buckets=(*(-seconds for seconds in reversed(_ERRORS)), *_ERRORS),
            registry=registry,
        )
        self._gates = Counter("muster_gates_opened", "Scheduling gates taken off pods.", registry=registry)
        self._bursts = Histogram(
            "muster_ungating_duration_seconds",
            "From the first to the last gate of what is opened of a gang at once.",
            buckets=_BURSTS,
            registry=registry,
        )
        self._reconciles = Histogram(
            "muster_reconcile_duration_seconds", "Work on one gang.", buckets=_BURSTS, registry=registry
        )
        self._errors = Counter("muster_reconcile_errors", "Work on a gang that failed.", registry=registry)
        # client-go's names, so that the usual dashboards find them.
        self.queue_wait = Histogram(
            "workqueue_queue_duration_seconds",
            "Time of a gang in the work queue until work on it begins.",
            ["name"],
            buckets=_TENFOLD,
            registry=registry,
        ).labels(_QUEUE)

    def admitted(self, queue: str, waited: float) -> None:
        """A gang was admitted that had waited so many seconds."""
        self._admissions.labels(queue).inc()
        self._waits.labels(queue).observe(max(waited, 0.0))

    def moved(self, basis: str, seconds: float) -> None:
        """The start of a reservation moved by so many seconds to later."""
        self._moved.labels(basis).observe(seconds)

    def started(self, queue: str, planned: PlannedStart, now: float) -> None:
        """A gang of a queue started now, and had reservations."""
        self._start_errors.labels(queue, planned.basis).observe(now - planned.start)
        self.start_errors.record(planned, now)

    def opened(self, gates: int, seconds: float) -> None:
        """So many gates were opened in one burst."""
        self._gates.inc(gates)
        self._bursts.observe(seconds)

    def forget(self, queue: str) -> None:
        """Drop the series of a queue that is gone, or it would stay for ever."""
        for by_queue in (self._admissions, self._waits, self._start_errors):
            by_queue.remove_by_labels({"queue": queue})
        self.queues.forget(queue)

    def measured(self, reconcile: Callable[[GangKey], Awaitable[None]]) -> Callable[[GangKey], Awaitable[None]]:
        """The same work, measured."""

        async def measure(key: GangKey) -> None:
            started = time.perf_counter()
            try:
                await reconcile(key)
            except Exception:
                self._errors.inc()
                raise
            finally:
                self._reconciles.observe(time.perf_counter() - started)

        return measure


class QueueMetrics(Collector):
    """The numbers of all queues as they were read last, of some resources; only the leader reads them."""

    def __init__(self, resources: Collection[str], leads: Callable[[], bool], registry: CollectorRegistry) -> None:
        self._resources = resources
        self._leads = leads
        self._read: dict[str, tuple[QueueNumbers, float]] = {}
        self._next = 0.0
        registry.register(self)

    def due(self, now: float) -> bool:
        """True about every 15 seconds: read the numbers now."""
        if now < self._next:
            return False
        self._next = now + _READ_EVERY
        return True

    def read(self, ledger: Ledger, clock: Clock) -> Iterator[None]:
        """Read the numbers of all queues in small steps."""
        read = {}
        for found in ledger.numbers(self._resources):
            if found is not None:
                queue, numbers = found
                since = seconds_of(numbers.oldest)
                read[queue] = numbers, max(clock.wall() - since, 0.0) if since is not None else 0.0
            yield
        self._read = {queue: found for queue, found in read.items() if queue == ROOT or ledger.tree.get(queue)}

    def forget(self, queue: str) -> None:
        """Drop the series of a queue that is gone."""
        self._read.pop(queue, None)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their samples."""
        return self._families()

    def collect(self) -> Iterator[Metric]:
        """The metrics as they were read last."""
        families = tuple(self._families())
        for queue, (numbers, oldest) in list(self._read.items()) if self._leads() else ():
            *by_resource, waits = families
            parts = numbers.limit, numbers.used, numbers.waiting, numbers.deserved, numbers.reserved
            for family, amounts in zip(by_resource, parts, strict=True):
                for resource, amount in amounts.items():
                    family.add_metric([queue, resource], amount)
            waits.add_metric([queue], oldest)
        yield from families

    @staticmethod
    def _families() -> Iterator[GaugeMetricFamily]:
        for name, what in (
            ("limit", "Limit of a queue."),
            ("used", "Held by the gangs of a queue and of those below it."),
            ("waiting", "Asked for by the gangs that wait in a queue and in those below it."),
            ("deserved", "Share of a queue of what its parent has."),
            ("reserved", "Asked for by those waiting gangs that have a reservation."),
        ):
            yield GaugeMetricFamily(f"muster_queue_{name}", what, labels=["queue", "resource"])
        yield GaugeMetricFamily(
            "muster_queue_oldest_waiting_seconds",
            "Age of the oldest gang that waits in a queue, or time since it was requeued; 0 where none waits.",
            labels=["queue"],
        )


class TermMetrics(Collector):
    """The values at the moment of a scrape: the leader, and while this process leads, its gangs, queue and events.

    The replica that only waits counts no gangs, so that sums over the replicas are right.
    """

    def __init__(self, cluster: Cluster, lease: str, leads: Callable[[], bool], registry: CollectorRegistry) -> None:
        self._cluster = cluster
        self._lease = lease
        self._leads = leads
        self._gangs: Tally[tuple[str, str]] = Tally()
        self._work: tuple[WorkQueue[GangKey], Announcer, Callable[[], Mapping[str, int]]] | None = None
        self._groupless: Callable[[], Mapping[tuple[str, str], int]] = dict
        self._reserved: Callable[[], Mapping[tuple[str, str], int]] = dict
        self._held: Callable[[], Mapping[tuple[str, str], float]] = dict
        cluster.pod_groups.subscribe(self._group_changed)
        registry.register(self)

    def begins(
        self,
        queue: WorkQueue[GangKey],
        announcer: Announcer,
        kept: Callable[[], Mapping[str, int]],
        groupless: Callable[[], Mapping[tuple[str, str], int]] = dict,
        *,
        reserved: Callable[[], Mapping[tuple[str, str], int]] = dict,
        held: Callable[[], Mapping[tuple[str, str], float]] = dict,
    ) -> None:
        """This process leads now, with this queue and these events; `kept` counts what each part keeps of gangs.

        `groupless` counts the gangs whose state stands on no PodGroup, by queue and state: their queue takes none, or
        one of others is in the way. `reserved` counts the reservations, by queue and basis, and `held` has what gangs
        have held, by queue and resource.
        """
        self._work = queue, announcer, kept
        self._groupless = groupless
        self._reserved = reserved
        self._held = held

    def _group_changed(self, change: Change[PodGroup]) -> None:
        for group, number in ((change.old, -1), (change.new, 1)):
            if group is not None and group.metadata.by_muster:
                state = group.metadata.annotations.get(STATE, "")
                # Users that write PodGroups must not be able to make series.
                key = (group.spec.queue, state if state in _STATES else "")
                self._gangs[key] += number
                if not self._gangs[key]:
                    del self._gangs[key]

    def describe(self) -> Iterator[Metric]:
        """The metrics without their samples."""
        return self._families()

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        families = tuple(self._families())
        leader, gangs, reserved, held, depth, adds, retries, written, dropped, entries = families
        leads = self._leads()
        leader.add_metric([self._lease], int(leads))
        if leads:
            for (queue, state), count in self._by_known_queue().items():
                gangs.add_metric([queue, state], count)
            for (queue, basis), count in self._reserved().items():
                reserved.add_metric([queue, basis], count)
            for (queue, resource), amount in self._held().items():
                held.add_metric([queue, resource], amount)
        if self._work is not None:
            work, announcer, kept = self._work
            numbers = work.statistics()
            for family, number in (
                (depth, numbers.ready),
                (adds, numbers.added),
                (retries, numbers.retried),
            ):
                family.add_metric([_QUEUE], number)
            written.add_metric([], announcer.written)
            dropped.add_metric([], announcer.dropped)
            for part, number in (*kept().items(), ("delayed", numbers.delayed), ("failing", numbers.failing)):
                entries.add_metric([part], number)
        yield from families

    def _by_known_queue(self) -> Tally[tuple[str, str]]:
        known: Tally[tuple[str, str]] = Tally()
        for (queue, state), count in (*self._gangs.items(), *self._groupless().items()):
            # A PodGroup may name any queue; only those that exist get series of their own.
            exists = self._cluster.queues.get("", queue) is not None
            known[queue if exists else "", state] += count
        return known

    @staticmethod
    def _families() -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        yield GaugeMetricFamily("leader_election_master_status", "1 while this process leads, else 0.", labels=["name"])
        yield GaugeMetricFamily(
            "muster_gangs", 'Gangs by queue ("" for queues that do not exist) and state.', labels=["queue", "state"]
        )
        yield GaugeMetricFamily(
            "muster_reservations", "Room that is kept for gangs, by what its start rests on.", labels=["queue", "basis"]
        )
        yield CounterMetricFamily(
            "muster_held_resource_seconds",
            "Amount times seconds held by gangs, of each resource that their queue or one above it limits.",
            labels=["queue", "resource"],
        )
        yield GaugeMetricFamily("workqueue_depth", "Gangs in the work queue.", labels=["name"])
        yield CounterMetricFamily("workqueue_adds", "Gangs added to the work queue.", labels=["name"])
        yield CounterMetricFamily("workqueue_retries", "Gangs added again after a failure.", labels=["name"])
        yield CounterMetricFamily("muster_events_written", "Events written.")
        yield CounterMetricFamily("muster_events_dropped", "Events given up: too many at once, or refused.")
        yield GaugeMetricFamily(
            "muster_kept_entries",
            "Entries of gangs in a part of the leader; they are removed with the gangs.",
            labels=["part"],
        )
