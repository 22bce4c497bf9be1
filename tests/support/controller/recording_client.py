"""A client that records what the controller writes, fails on demand, and shows the stores what a watch would.

It knows nothing of Kubernetes but what the controller's own writes do to the four things it writes.
"""

import asyncio
import copy
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from prometheus_client import CollectorRegistry

from controller.apiserver import LiveReader, Writer
from controller.delays import Clock
from controller.events import Announcer
from controller.metrics import Metrics
from controller.reconciler import Reconciler
from controller.term import Term
from muster.admitters import Admitter
from muster.admitters.kueue import KueueWorkload
from muster.gangs.history import History
from muster.kube.errors import ApiError
from muster.kube.events import Regarding
from muster.kube.workqueue import WorkQueue
from muster.model.names import ADMITTED
from muster.model.objects import Namespace, ObjectMeta, OwnerReference, PodGroup, Queue
from muster.model.resource import POD_GROUPS, Resource
from muster.queueing.ledger import GangKey
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import SCHEDULERS, GangScheduler
from muster.workloads import kind_of
from muster.workloads.ray import RAY_CLUSTER
from tests.support.controller.stores import fill_pods, filled, workload_store
from tests.support.manifests.observed import DEFAULTS, JSON, as_client, as_json, made


class Write(NamedTuple):
    """One write: what was done to what, by which field manager."""

    verb: str
    kind: str
    name: str
    body: Any = None
    manager: str = ""
    uid: str = ""

    @property
    def says(self) -> str:
        """The write in a word, for lists: which object, and for applies of a PodGroup what for."""
        if self.verb == "apply":
            return f"{'mark' if ADMITTED in self.body['metadata'].get('annotations', {}) else self.manager} {self.name}"
        return f"{self.verb} {self.kind if self.verb == 'create' else self.name}"


@dataclass
class RecordingClient:
    """Writes in their order; `fails` has by the first words of `Write.says` the errors to raise, in turn."""

    writes: list[Write] = field(default_factory=list)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    took_effect: bool = False  # whether a failed write was carried out all the same
    pods: dict[str, JSON] = field(default_factory=dict)
    groups: dict[str, JSON] = field(default_factory=dict)
    applied: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    version: int = 0
    _seen: dict[str, str] = field(default_factory=dict)

    async def apply(
        self, resource: Resource, name: str, body: JSON, namespace: str, *, field_manager: str, deadline: float
    ) -> bytes:
        """Merge what this manager says into the PodGroup."""
        assert deadline > 0
        assert (body["metadata"]["name"], body["metadata"]["namespace"]) == (name, namespace)
        write = Write("apply", resource.kind, name, body, field_manager)
        failure = await self._record(write)
        if not failure and self._meets_another(name, body["metadata"]):
            failure = ApiError(409, "Conflict", "the object has been modified")
        elif not failure or (self.took_effect and not _final(failure, body["metadata"])):
            self._merge(name, body, field_manager)
        if failure:
            raise failure
        return as_json(self.groups[name]).encode()

    def _meets_another(self, name: str, said: JSON) -> bool:
        """Whether the apply names a UID or a resource version, and what is there has another."""
        now = self.groups.get(name)
        if "uid" in said:
            return now is None or now["metadata"]["uid"] != said["uid"]
        return now is not None and "resourceVersion" in said

    async def strategic_merge_patch(
        self, resource: Resource, name: str, body: JSON, namespace: str, *, deadline: float, dry_run: bool = False
    ) -> bytes:
        """Take the named gates off a pod; in a dry run a policy says no as it would, and nothing else happens."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        if dry_run:
            await asyncio.sleep(0)
            if (refusal := self._policy(f"patch {name}")) is not None:
                raise refusal
            return b"{}"
        failure = await self._record(Write("patch", resource.kind, name, body, uid=body["metadata"]["uid"]))
        if failure:
            raise failure
        gone = {gate["name"] for gate in body["spec"]["schedulingGates"] if gate["$patch"] == "delete"}
        gates = self.pods[name]["spec"]["schedulingGates"]
        self.pods[name]["spec"]["schedulingGates"] = [gate for gate in gates if gate["name"] not in gone]
        return b"{}"

    async def merge_patch(self, resource: Resource, name: str, body: JSON, namespace: str, *, deadline: float) -> bytes:
        """Annotate a workload."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        failure = await self._record(Write("annotate", resource.kind, name, body, uid=body["metadata"]["uid"]))
        if failure:
            raise failure
        return b"{}"

    async def create(self, resource: Resource, body: JSON, namespace: str, *, deadline: float) -> bytes:
        """Record an event."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        failure = await self._record(Write("create", resource.kind, body["metadata"]["name"], body))
        if failure:
            raise failure
        return b"{}"

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        *,
        uid: str,
        resource_version: str | None,
        deadline: float,
    ) -> None:
        """Take a PodGroup or a pod away; a pod in another state than it was seen in is a conflict."""
        assert (deadline > 0, bool(namespace)) == (True, True)
        failure = await self._record(Write("delete", resource.kind, name, uid=uid))
        if failure:
            raise failure
        if resource.kind == POD_GROUPS.kind and self.groups.get(name, {"metadata": {}})["metadata"].get("finalizers"):
            # Somebody keeps it.
            self.groups[name]["metadata"]["deletionTimestamp"] = "2026-11-21T10:02:00Z"
        elif resource.kind == POD_GROUPS.kind:
            self.groups.pop(name, None)
            self.applied.pop(name, None)
        elif _versioned(self.pods[name])["metadata"]["resourceVersion"] != resource_version:
            raise ApiError(409, "Conflict", "the object has been modified")
        else:
            del self.pods[name]

    def _policy(self, says: str) -> ApiError | None:
        """What refuses the write now, and again when it is done."""
        failures = (errors[0] for prefix, errors in self.fails.items() if says.startswith(prefix) and errors)
        refusals = (one for one in failures if isinstance(one, ApiError) and one.refused)
        return next((one for one in refusals if not (one.conflict or one.not_found)), None)

    async def _record(self, write: Write) -> Exception | None:
        self.writes.append(write)
        # As on a network: others get on with their work meanwhile.
        await asyncio.sleep(0)
        for prefix, errors in self.fails.items():
            if write.says.startswith(prefix) and errors:
                return errors.pop(0)
        return None

    def _merge(self, name: str, body: JSON, manager: str) -> None:
        """An apply takes back the annotations that the same manager does not say any more."""
        group = self.groups.setdefault(
            name, {"metadata": {"name": name, "uid": f"uid-{name}", "annotations": {}}, "status": {}}
        )
        said = body["metadata"].get("annotations", {})
        before = self.applied.setdefault(name, {}).get(manager)
        kept = group["metadata"].get("annotations", {})
        if before is None and manager == "muster-ledger":
            before = {key for key in kept if key.startswith("muster.dev/")}
        kept = {key: value for key, value in kept.items() if key not in (before or set())}
        self.applied[name][manager] = set(said)
        meta = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
        others = [entry for entry in group["metadata"].get("managedFields", []) if entry["manager"] != manager]
        fields = {f"f:{part}": _fields(body[part]) for part in ("metadata", "spec") if part in body}
        group["metadata"] = {
            **group["metadata"],
            **meta,
            "labels": {**group["metadata"].get("labels", {}), **meta.get("labels", {})},
            "annotations": {**kept, **said},
            "managedFields": [*others, {"manager": manager, "operation": "Apply", "fieldsV1": fields}],
        }
        if "spec" in body:
            group["spec"] = copy.deepcopy(body["spec"])
        self.versioned(group)

    def versioned(self, group: JSON) -> JSON:
        """The PodGroup with a resource version that has risen if anything in it changed, whoever changed it."""
        meta = group["metadata"]
        content = as_json({**group, "metadata": {**meta, "resourceVersion": ""}})
        if self._seen.get(meta["name"]) != content:
            self._seen[meta["name"]] = content
            self.version += 1
            meta["resourceVersion"] = str(self.version)
        return group


def _final(failure: Exception, said: JSON) -> bool:
    """Whether a failed apply changed nothing for certain: a conflict, unless it is with its own first try to create."""
    return isinstance(failure, ApiError) and failure.conflict and "resourceVersion" not in said


def _fields(said: JSON) -> JSON:
    """What is said, as FieldsV1; the identity of an object is nobody's field."""
    return {
        f"f:{key}": _fields(value) if isinstance(value, dict) else {}
        for key, value in said.items()
        if key not in ("name", "namespace", "uid", "resourceVersion")
    }


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
    are the `scheduler`'s.
    """

    scheduler: GangScheduler = SCHEDULERS["volcano"]

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
            pods=[_versioned(item) for item in self.client.pods.values()],
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
        self.now = 1000.0
        # By how much the wall clock is ahead of what it was.
        self.leap = 0.0
        self.budget = 60.0
        self.restart()

    def restart(self) -> None:
        """A new leader with the same stores: nothing is known but what is in the cluster."""
        for _ in self.takes_office():
            pass

    def takes_office(self) -> Iterator[None]:
        """As `restart`, step by step: nothing may be decided before the last.

        As in the cluster it lists the PodGroups when the lease is its own, whatever the watch has shown by then.
        """
        self.queue: WorkQueue[GangKey] = WorkQueue()
        writer = Writer(as_client(self.client), lambda: self.budget)
        reads = _Reads(self)
        self.announcer = Announcer(writer, reads, "muster-controller-0")
        self.registry = CollectorRegistry()
        settings = replace(
            DEFAULTS,
            admitters=tuple(Admitter),
            schedulers={self.scheduler.name: self.scheduler},
            elastic_quotas=True,
        )
        self.metrics = Metrics(self.registry)
        self.term = Term(
            self.cluster, self.queue, writer, reads, self.announcer, self.metrics, _Clock(self), settings, self.history
        )
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

    def watch(self) -> None:
        """Show the stores what was written, and nothing that was not."""
        pods = [_versioned(item) for item in self.client.pods.values()]
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


def _versioned(manifest: JSON) -> JSON:
    """With a resource version that changes when the object does."""
    version = zlib.crc32(as_json(manifest).encode())
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(version)}}


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
