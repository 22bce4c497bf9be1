"""The part of the cluster that a user may read, in the stores of the controller, and notes about the rest.

The ledger is built as a new leader builds it: from the same objects, by the same rules.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from muster.admitters import Admitter
from muster.cli.connecting import silence
from muster.cli.settings import Settings
from muster.cluster.cluster import Cluster
from muster.cluster.nodes import NodeRoom
from muster.cluster.observe import observe
from muster.cluster.quota_use import QuotaUse
from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.kube.concurrency import in_slices
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.kube.reflector import Reflector, Watched
from muster.model.gang_states import GangState
from muster.model.names import HALF_LIFE
from muster.model.objects import ConfigMap, InvalidObjectError, Namespace, Node, decode
from muster.model.pods import Pod
from muster.model.resource import CONFIG_MAPS, ELASTIC_QUOTAS, NAMESPACES, NODES, PODS
from muster.planning.candidate import candidate
from muster.planning.phase import lost_in
from muster.planning.plan import plan_gang
from muster.planning.pod_group import scheduler_of
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.ledger import Decision, GangKey, Ledger, queue_not_found
from muster.queueing.past_use import PastUse
from muster.queueing.queue_view import ROOT, read_queue
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.amounts import Resources

_CONSEQUENCES = {
    **{f"{one.plural}.{one.group}": "limits and free resources are unknown" for one in QUEUE_SOURCES.values()},
    "priorityclasses.scheduling.k8s.io": "all priorities count as 0, and positions may be wrong",
    "limitranges": "their default requests are unknown",
    "resourcequotas": "their limits are unknown",
    "elasticquotas.scheduling.x-k8s.io": "what they let the namespace use is unknown",
    "runtimeclasses.node.k8s.io": "the overhead of pods is unknown",
    "namespaces": "the settings of the namespace (its queue, opting in or out) are unknown",
}
# A closed queue takes a PodGroup where Volcano's own webhook does not refuse it.
_WITHOUT_GROUP = (GangState.QUEUE_NOT_LEAF, GangState.QUEUE_CLOSED)
_OF_OTHERS = "gangs of other namespaces, what they hold, and all positions are unknown"
_UNREADABLE = "."  # not a valid namespace name


@dataclass(slots=True)
class ClusterSnapshot:
    """The stores as they are now, and what is unknown.

    :ivar cluster: the stores
    :ivar nodes: the sum of what the nodes can give; None when the nodes do not limit admission, or cannot be read
    :ivar room: what is counted of the nodes, where they limit admission and can be read
    :ivar missing: what is unknown, such as for a missing permission, each with its consequence
    :ivar whole: true if every namespace was read; if not, the usage of other gangs and all positions are unknown
    :ivar unreadable: the kinds that could not be read at all, by their full names
    :ivar scopes: the stores that could be read, of all namespaces or of one
    :ivar settings: the settings of the installation
    :ivar past: the past use of queues: what the leader stored, and what was held since
    """

    cluster: Cluster = field(default_factory=Cluster)
    nodes: Resources | None = None
    room: NodeRoom | None = None
    missing: list[str] = field(default_factory=list)
    whole: bool = True
    unreadable: set[str] = field(default_factory=set)
    scopes: list[Watched] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    past: PastUse = field(default_factory=PastUse)

    @classmethod
    def empty(cls, settings: Settings) -> ClusterSnapshot:
        """An empty snapshot of an installation with these settings."""
        defaults = settings.defaults
        cluster = Cluster(
            defaults.namespaces,
            defaults.schedulers.values(),
            defaults.queue_source,
            defaults.admitters,
            elastic_quotas=defaults.elastic_quotas,
        )
        return cls(cluster, settings=settings, missing=[settings.note] if settings.note else [])

    @property
    def defaults(self) -> Defaults:
        """The defaults of the installation."""
        return self.settings.defaults

    def ledger_snapshot(self, now: float) -> LedgerSnapshot:
        """The ledger of all visible gangs, at `now` in seconds of the wall clock."""
        snapshot = LedgerSnapshot(Ledger(past=self.past.copy()), {}, now)
        for _ in self._entering(snapshot):
            pass
        return snapshot

    async def ledger_snapshot_in_slices(self, now: float) -> LedgerSnapshot:
        """As `ledger_snapshot`, in slices of time; not a consistent snapshot if objects change in between.

        5,000 gangs take two seconds of a core.
        """
        snapshot = LedgerSnapshot(Ledger(past=self.past.copy()), {}, now)
        await in_slices(self._entering(snapshot))
        return snapshot

    def _entering(self, snapshot: LedgerSnapshot) -> Iterator[None]:
        """Fill the ledger, gang by gang."""
        for queue in list(self.cluster.queues):
            try:
                snapshot.ledger.set_queue(read_queue(queue))
            except InvalidObjectError as error:
                self.note(f"queue {queue.metadata.name} is malformed, and no gang starts in it: {error}")
        snapshot.ledger.bound(self.nodes)
        quota_use = QuotaUse(self.cluster, snapshot.ledger)
        quota_use.begin()
        for key in self.cluster.gangs():
            view = snapshot.views[key] = observe(key, self.cluster, self.defaults, now=snapshot.now)
            plan_gang(view, snapshot.ledger, now=snapshot.now, may_grow=False)
            refusal = self._kept_out(view, snapshot)
            if refusal is not None:
                snapshot.kept_out[key] = refusal
            yield
        quota_use.count()
        if self.whole:
            snapshot.ledger.note_use(snapshot.now)
            self.past = snapshot.ledger.past

    def _kept_out(self, view: GangSnapshot, snapshot: LedgerSnapshot) -> Decision | None:
        """The decision on held pods that get no PodGroup, and so no state, because of their queue; else None."""
        if view.pod_group is not None or view.gang is None or view.intent is None or view.left_alone:
            return None
        if not view.members or view.open or view.workload is None or not view.workload.active:
            return None
        if self.is_lost(view, view.intent.queue, snapshot.ledger):
            return queue_not_found(view.intent.queue, view.key.namespace)
        if view.admitter is not Admitter.LEDGER and not scheduler_of(view).enforces_limits:
            return None
        refusal = snapshot.ledger.refusal(candidate(view, AdmissionRecord()), snapshot.now)
        return refusal if refusal is not None and refusal.state in _WITHOUT_GROUP else None

    def is_lost(self, view: GangSnapshot, queue: str, ledger: Ledger) -> bool:
        """True if a queue is not there for the gang, as far as this user can know."""
        known = ledger.tree and self.cluster.namespaces.get("", view.key.namespace) is not None
        return bool(known) and lost_in(view, ledger.tree, queue)

    def note(self, text: str) -> None:
        """Add a note about missing information, once."""
        if text not in self.missing:
            self.missing.append(text)


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """The ledger, and the view of every gang in it; why those are `kept_out` for which no PodGroup is made."""

    ledger: Ledger
    views: dict[GangKey, GangSnapshot]
    now: float
    kept_out: dict[GangKey, Decision] = field(default_factory=dict)


async def load(client: Client, namespace: str, visible: ClusterSnapshot) -> None:
    """Read everything that a decision depends on: from all namespaces when allowed, else from `namespace`.

    Raises ApiError when the apiserver does not answer.
    """
    only_there: dict[str, None] = {}  # in place of a set: in their order
    nowhere: dict[str, None] = {}
    for watched in visible.cluster.watched():
        scope = await load_store(client, watched, namespace, visible)
        if scope is not _UNREADABLE:
            visible.scopes.append(watched._replace(namespace=scope or None))
        if watched.resource == ELASTIC_QUOTAS:
            visible.cluster.elastic_quotas.limits.whole = not scope
        if scope == namespace:
            only_there[watched.resource.full_name] = None
        if scope is _UNREADABLE and watched.resource.namespaced:
            nowhere[watched.resource.full_name] = None
    if only_there:
        names = ", ".join(only_there)
        visible.missing.insert(0, f'can list only in "{namespace}", not in all namespaces: {names}; {_OF_OTHERS}')
    if nowhere:
        consequences = [f"; {_CONSEQUENCES[name]}" for name in nowhere if name in _CONSEQUENCES]
        visible.note(f'cannot list in "{namespace}": {", ".join(nowhere)}{"".join(consequences)}')
    tree = visible.ledger_snapshot(time.time()).ledger.tree
    if visible.settings.by_nodes or tree.settings(ROOT).bound_by_nodes:
        visible.nodes = await load_nodes(client, visible)
    if any(view.half_life is not None for view in tree):
        await _load_past(client, visible)


async def _load_past(client: Client, visible: ClusterSnapshot) -> None:
    """Read the past use of queues; a note where that is not possible. Raises ApiError when there is no answer."""
    namespace, _, name = visible.settings.history.partition("/")
    try:
        found = decode(await client.get(CONFIG_MAPS, name, namespace), ConfigMap) if name else ConfigMap()
        visible.past = PastUse()
        visible.past.read(found.data["past"])
    except KeyError:
        why = "no leader has stored it yet"
    except InvalidObjectError as error:
        why = f"it is malformed: {error}"
    except ApiError as error:
        if not (error.forbidden or error.not_found):
            raise
        why = str(error)
    else:
        return
    visible.note(f"the past use of queues with {HALF_LIFE} is unknown, and counts as none ({why})")


async def read_cluster(client: Client, settings: Settings, namespace: str) -> ClusterSnapshot:
    """The cluster as far as it can be read (`load`); that no controller is alive is the first of its notes."""
    visible = ClusterSnapshot.empty(settings)
    await load(client, namespace, visible)
    if silent := await silence(client, settings):
        visible.missing.insert(0, silent)
    return visible


async def load_store(
    client: Client, watched: Watched, namespace: str, visible: ClusterSnapshot, *, everywhere: bool = True
) -> str:
    """Fill a store from all namespaces, or else from this one; returns the namespace that was read, "" for all."""
    resource, name = watched.resource, watched.resource.full_name
    scopes = (("", namespace) if everywhere else (namespace,)) if resource.namespaced else ("",)
    for scope in scopes:
        try:
            found: Sequence[Any] = await list_objects(
                client,
                resource,
                watched.type,
                namespace=scope or None,
                field_selector=watched.field_selector,
                label_selector=watched.label_selector,
            )
        except ApiError as error:
            if error.not_found:
                # The kind is not installed.
                watched.store.replace_all([])
                return ""
            if not error.forbidden:
                raise
            continue
        watched.store.replace_all(found)
        if scope:
            visible.whole = False
        return scope
    watched.store.replace_all([])
    if resource == NAMESPACES and await load_namespace(client, namespace, visible):
        return _UNREADABLE
    visible.unreadable.add(name)
    visible.whole = visible.whole and not resource.namespaced
    if not resource.namespaced:
        visible.note(f"cannot list {name}: {_CONSEQUENCES.get(name, 'they are unknown')}")
    return _UNREADABLE


async def load_namespace(client: Client, name: str, visible: ClusterSnapshot) -> bool:
    """Read only this namespace; False, and a note, when that is not allowed, or it does not exist."""
    try:
        found = decode(await client.get(NAMESPACES, name), Namespace)
    except ApiError as error:
        if not (error.forbidden or error.not_found):
            raise
        visible.unreadable.add(NAMESPACES.full_name)
        visible.note(f"cannot list {NAMESPACES.full_name}: {_CONSEQUENCES[NAMESPACES.full_name]}")
        return False
    visible.cluster.namespaces.replace_all([found])
    return True


async def load_nodes(client: Client, visible: ClusterSnapshot) -> Resources | None:
    """The sum of what the nodes can give; None, and a note, when they cannot be read. Raises ApiError."""
    room = NodeRoom(visible.cluster)
    try:
        room.nodes.replace_all(await list_objects(client, NODES, Node))
        fields, labels = visible.cluster.other_pods
        others = await list_objects(client, PODS, Pod, field_selector=fields, label_selector=labels)
        room.others.replace_all(others)
    except ApiError as error:
        if not error.forbidden:
            raise
        visible.note("cannot list nodes, or pods in all namespaces: the capacity of the nodes is unknown")
        return None
    visible.room = room
    return room.free()


class Followed:
    """A snapshot that follows its cluster.

    :ivar visible: the snapshot, as of the last events of the watches
    :ivar changed: set at every change; the waiting task clears it
    """

    def __init__(self, visible: ClusterSnapshot, reflectors: Sequence[Reflector]) -> None:
        self.visible = visible
        self.changed = asyncio.Event()
        self._reflectors = reflectors
        for one in reflectors:
            one.store.subscribe(lambda _: self.changed.set())

    @property
    def faults(self) -> list[str]:
        """The reasons why kinds are not followed at the moment, one sentence each: their objects may be old."""
        return [f"{one.resource.full_name}: {one.fault}" for one in self._reflectors if one.fault is not None]


@asynccontextmanager
async def followed(client: Client, visible: ClusterSnapshot, namespace: str) -> AsyncIterator[Followed]:
    """Read everything once (`load`), and follow it in the block. Raises ApiError for the former."""
    await load(client, namespace, visible)
    reflectors = [Reflector(client, watched) for watched in visible.scopes]
    following = Followed(visible, reflectors)
    async with in_background(*(one.run() for one in reflectors)):
        yield following


@asynccontextmanager
async def in_background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these in the background of the block; at its end they are cancelled and have ended."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
