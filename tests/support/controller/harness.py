"""A reconciler with its stores, a clock and a recording client, for tests that look at what it writes."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Self

from prometheus_client import CollectorRegistry

from controller.apiserver import LiveReader, Writer
from controller.delays import Clock
from controller.events import Announcer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from controller.term import Term
from muster.admitters import Admitter
from muster.admitters.kueue import KueueWorkload
from muster.gangs.accounts import Accounts
from muster.gangs.history import History
from muster.kube.events import Regarding
from muster.kube.workqueue import WorkQueue
from muster.model.objects import Namespace, ObjectMeta, OwnerReference, PodGroup, Queue
from muster.queueing.ledger import GangKey
from muster.queueing.past_use import PastUse
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import SCHEDULERS, GangScheduler
from muster.workloads import kind_of
from muster.workloads.ray import RAY_CLUSTER
from tests.support.controller.recording_client import RecordingClient, with_version
from tests.support.controller.stores import fill_pods, filled, workload_store
from tests.support.manifests.observed import DEFAULTS, JSON, as_client, made


class Makers(LiveReader):
    """Controllers of Jobs, by this function; without it no Job has one."""

    def __init__(self, maker_of: Callable[[Regarding], Awaitable[OwnerReference | None]] | None = None) -> None:
        super().__init__(as_client(RecordingClient()))
        self._maker_of = maker_of

    async def maker_of_job(self, job: Regarding) -> OwnerReference | None:
        """The controller of the Job."""
        return await self._maker_of(job) if self._maker_of is not None else None


class Harness:
    """A reconciler with its stores filled, a clock and a lease in hand, and everything it wrote.

    The stores see what was written only with `watch`, as in a cluster, where the watch comes a moment later. All gangs
    are the `scheduler`'s, and the settings are the `defaults`.
    """

    scheduler: GangScheduler = SCHEDULERS["volcano"]
    defaults = DEFAULTS

    def __init__(
        self,
        *,
        workloads: Iterable[JSON] = (),
        pods: Iterable[JSON] = (),
        groups: Iterable[JSON] = (),
        queues: Iterable[JSON] = (),
        classes: Iterable[JSON] = (),
        namespaces: Iterable[JSON] = (),
        quotas: Iterable[JSON] = (),
        kueue: Iterable[JSON] = (),
        elastic: Iterable[JSON] = (),
    ) -> None:
        # By the apiserver's word, whatever the watch shows: owners of PodGroups by UID, and PodGroups of plain pods.
        self.alive: set[str] = set()
        # The UIDs of Workloads that Kueue has taken back, and of which no watch has told yet.
        self.revoked: set[str] = set()
        # The names of the Jobs that lack pods, by the label selector that finds them.
        self.short_jobs: dict[str, list[str]] = {}
        # Who controls a Job, by its name.
        self.makers: dict[str, OwnerReference] = {}
        self.client = RecordingClient(
            pods={item["metadata"]["name"]: item for item in pods},
            groups={item["metadata"]["name"]: item for item in groups},
        )
        self.cluster = filled(
            self.scheduler,
            workloads=workloads,
            pods=[with_version(item) for item in self.client.pods.values()],
            groups=[self.client.versioned(item) for item in self.client.groups.values()],
            queues=queues,
            classes=classes,
            namespaces=namespaces,
            quotas=quotas,
            kueue=kueue,
            elastic=elastic,
        )
        # The run times of former gangs, which outlast a leader.
        self.history = History()
        # The accounts as they were last written.
        self.stored_accounts = ""
        self.history_labels: tuple[str, ...] = ()
        self.now = 1000.0
        # By how much the wall clock is ahead of what it was.
        self.leap = 0.0
        self.budget = 60.0
        self.restart()

    def restart(self, records: tuple[Accounts, PastUse] | None = None) -> None:
        """A new leader with the same stores: nothing is known but what is in the cluster, and in these `records`."""
        for _ in self.takes_office(records):
            pass

    def takes_office(self, records: tuple[Accounts, PastUse] | None = None) -> Iterator[None]:
        """As `restart`, step by step: nothing may be decided before the last.

        As in the cluster it lists the PodGroups when the lease is its own, whatever the watch has shown by then.
        """
        self.queue: WorkQueue[GangKey] = WorkQueue()
        writer = Writer(as_client(self.client), lambda: self.budget)
        reads = _Reads(self)
        self.announcer = Announcer(writer, reads, "muster-controller-0")
        self.registry = CollectorRegistry()
        settings = replace(
            self.defaults,
            admitters=tuple(Admitter),
            schedulers={self.scheduler.name: self.scheduler},
            elastic_quotas=True,
        )
        self.metrics = Metrics(self.registry)
        self.accounts, past = records or (Accounts(self.history_labels), PastUse())
        if self.stored_accounts:
            self.accounts.read(self.stored_accounts)
        shared = self.cluster, self.queue, writer, reads, self.announcer, self.metrics, _Clock(self)
        self.term = Term(*shared, settings, self.history, self.accounts, past)
        self.reconciler = Reconciler(self.term)
        self.reconciler.subscribe()
        return self.reconciler.prime(self._groups())

    def _groups(self) -> list[PodGroup]:
        of_scheduler = self.scheduler.pod_groups
        return [made(of_scheduler, self.client.versioned(item)) for item in self.client.groups.values()]

    async def work(self) -> list[str]:
        """Work on everything that is ready, without a watch in between; gives what was written, in words."""
        first = len(self.client.writes)
        while self.sweep():
            key = await self.queue.get()
            try:
                await self.reconciler.reconcile(key)
            finally:
                self.queue.done(key)
                await self.announcer.flush()
        return [write.says for write in self.client.writes[first:]]

    def sweep(self) -> bool:
        """Do what events have left for later; whether any gang is ready now."""
        for _ in self.term.sweeps.steps():
            pass
        return self.queue.statistics().ready > 0

    def store_accounts(self) -> None:
        """Write the accounts, as the leader does each minute."""
        for _ in self.term.accounting.steps():
            pass
        self.stored_accounts = self.accounts.text()
        self.term.accounting.go_on()

    def watch(self) -> None:
        """Show the stores what was written, and nothing that was not."""
        pods = [with_version(item) for item in self.client.pods.values()]
        fill_pods(self.cluster, pods, self.scheduler.name)
        self.watch_groups()

    def watch_groups(self) -> None:
        """As `watch`, of the PodGroups only: every kind has a watch of its own, and one may be behind another."""
        self.cluster.pod_groups.of(self.scheduler.name).replace_all(self._groups())

    async def settle(self) -> list[str]:
        """Work and watch until nothing is left to do; gives what was written, in words."""
        written: list[str] = []
        for _ in range(20):
            self.sweep()
            self.reconciler.refresh_messages()
            written += await self.work()
            self.watch()
            if not self.sweep():
                return written
        raise AssertionError(f"never settles: {written[-20:]}")

    async def settled(self) -> Self:
        """The harness when nothing is left to do."""
        await self.settle()
        return self

    async def catch_up(self) -> list[str]:
        """Show the stores what the test has changed in the cluster, and settle."""
        self.watch()
        return await self.settle()

    def drop_workload(self, manifest: JSON) -> None:
        """The RayCluster is gone."""
        workload_store(self.cluster, RAY_CLUSTER).apply("deleted", made(RAY_CLUSTER.decoded, manifest))

    def set_elastic_quota(self, manifest: JSON) -> None:
        """An ElasticQuota as the watch shows it now."""
        self.cluster.elastic_quotas.store.apply("modified", made(ElasticQuota, manifest))

    def drop_elastic_quota(self, manifest: JSON) -> None:
        """The ElasticQuota is gone."""
        self.cluster.elastic_quotas.store.apply("deleted", made(ElasticQuota, manifest))

    def set_queue(self, manifest: JSON) -> None:
        """A queue as the watch shows it now."""
        self.cluster.queues.apply("modified", made(Queue, manifest))

    def set_workload(self, manifest: JSON) -> None:
        """A workload as the watch shows it now."""
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        workload_store(self.cluster, kind).apply("modified", made(kind.decoded, manifest))

    def set_namespace(self, manifest: JSON) -> None:
        """The namespace as the watch shows it now."""
        self.cluster.namespaces.apply("modified", made(Namespace, manifest))

    def drop_queue(self, manifest: JSON) -> None:
        """The queue is gone."""
        self.cluster.queues.apply("deleted", made(Queue, manifest))

    def annotations(self, group: str) -> Mapping[str, str]:
        """Of a PodGroup in the cluster."""
        found: Mapping[str, str] = self.client.groups[group]["metadata"].get("annotations", {})
        return found

    def open_pods(self) -> list[str]:
        """The pods that no gate holds."""
        return sorted(name for name, pod in self.client.pods.items() if not pod["spec"]["schedulingGates"])

    def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and note of every event on a workload; its PodGroup has the same."""
        return [(event["type"], event["reason"], event["note"]) for event in self.events_on("RayCluster", "PyTorchJob")]

    def events_on(self, *kinds: str) -> list[JSON]:
        """Every event on objects of these kinds."""
        written = [write.body for write in self.client.writes if write.verb == "create"]
        return [event for event in written if event["regarding"]["kind"] in kinds]


class _Clock(Clock):
    """The clock of a harness."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        super().__init__()

    def monotonic(self) -> float:
        return self._harness.now

    def wall(self) -> float:
        return self._harness.now + self._harness.leap


class _Reads(LiveReader):
    """What a harness says that the apiserver shows now."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(as_client(harness.client))
        self._harness = harness

    async def has_living_owner(self, group: ObjectMeta) -> bool:
        return (group.controller.uid if group.controller else group.name) in self._harness.alive

    async def short_jobs(self, namespace: str, selector: str) -> list[ObjectMeta]:
        names = self._harness.short_jobs.get(selector, ())
        return [ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}") for name in names]

    async def maker_of_job(self, job: Regarding) -> OwnerReference | None:
        return self._harness.makers.get(job.name)

    async def still_admitted(self, workload: KueueWorkload) -> bool:
        return workload.metadata.uid not in self._harness.revoked
