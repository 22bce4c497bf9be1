"""Reads one gang into a snapshot, by few requests: its namespace, its owners, its PodGroup, and the queues.

With the workload, its pods and its events (`muster.cli.explain.subjects`) these are six requests for a workload that no
other one has made. The same rules then read the same stores, which have no other gang.
"""

from muster.admitters import Admitter
from muster.cli.explain.subjects import Subject
from muster.cli.snapshot import ClusterSnapshot, load_namespace, load_store
from muster.cluster.stores import KUEUE_WORKLOADS
from muster.gangs.intent import find_intent
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Watched
from muster.model.names import GANG
from muster.model.objects import InvalidObjectError, decode
from muster.schedulers import GangScheduler
from muster.workloads import GANG_KINDS, OwnerWalk, kind_of_owner


async def load_gang(client: Client, subject: Subject, snapshot: ClusterSnapshot) -> None:
    """Add the gang of a subject to a snapshot that has no other gangs. Raises ApiError when there is no answer."""
    snapshot.whole = False
    kind, meta = subject.kind, subject.decoded.metadata
    if subject.makes_none or (kind not in GANG_KINDS and kind.owns_pod_group):
        return
    cluster = snapshot.cluster
    for made, decoded in ((kind, subject.decoded), *subject.makers):
        if made in cluster.workloads:
            cluster.workloads[made].apply("added", decoded)
    _add_pods(subject, snapshot)
    await load_namespace(client, meta.namespace, snapshot)
    await _load_owners(client, subject, snapshot)
    await _load_origin(client, subject, snapshot)
    wanted = {snapshot.defaults.queue_source.resource}
    if Admitter.KUEUE in snapshot.defaults.admitters:
        wanted.add(KUEUE_WORKLOADS)
    for watched in cluster.watched():
        if watched.resource in wanted:
            await load_store(client, watched, meta.namespace, snapshot, everywhere=False)
    await _load_pod_group(client, subject, snapshot)


def _add_pods(subject: Subject, snapshot: ClusterSnapshot) -> None:
    """Put the pods of a workload where the watches of the controller would have them."""
    cluster = snapshot.cluster
    unmanaged = cluster.unmanaged_pods.stores.get(f"{subject.kind.pod_label},!{GANG}")
    for pod in subject.pods:
        scheduler = snapshot.defaults.schedulers.get(pod.spec.scheduler_name)
        labelled = GANG in pod.metadata.labels
        if scheduler is not None and (scheduler.keeps_room or labelled):
            cluster.pods.of(scheduler.name).apply("added", pod)
        if unmanaged is not None and not labelled and pod.living:
            unmanaged.apply("added", pod)


async def _load_owners(client: Client, subject: Subject, snapshot: ClusterSnapshot) -> None:
    """Read the objects of watched kinds that control the workload, as far up as they can be read."""
    cluster, meta = snapshot.cluster, subject.decoded.metadata
    walk = OwnerWalk(meta.controller)
    for owner in walk:
        kind = kind_of_owner(owner)
        if kind is None or kind not in cluster.workloads:
            return
        if cluster.workload(meta.namespace, owner) is None:
            watched = Watched(kind.resource, kind.decoded, cluster.workloads[kind])
            await _load(client, watched, owner.name, meta.namespace, snapshot)
        found = cluster.workload(meta.namespace, owner)
        if found is None:
            return
        walk.step_to(found[1].metadata.controller)


async def _load_origin(client: Client, subject: Subject, snapshot: ClusterSnapshot) -> None:
    """Read the object that the workload is made from, such as the training runtime of a TrainJob."""
    reference = subject.kind.origin.of(subject.decoded) if subject.kind.origin else None
    if reference is not None:
        source = reference.source
        watched = Watched(source.resource, source.decoded, snapshot.cluster.sources[source])
        await _load(
            client, watched, reference.name, reference.namespace if source.resource.namespaced else None, snapshot
        )


async def _load_pod_group(client: Client, subject: Subject, snapshot: ClusterSnapshot) -> None:
    scheduler = _scheduler(subject, snapshot)
    meta = subject.decoded.metadata
    name = scheduler.group_name(subject.gang_name, meta.uid if subject.kind.owns_pod_group else "")
    if name:
        store = snapshot.cluster.pod_groups.of(scheduler.name)
        watched = Watched(scheduler.resource, scheduler.pod_groups, store)
        await _load(client, watched, name, meta.namespace, snapshot)


def _scheduler(subject: Subject, snapshot: ClusterSnapshot) -> GangScheduler:
    """The scheduler of the gang: the one that its pods or its workload name, else the first of the installation."""
    schedulers, cluster = snapshot.defaults.schedulers, snapshot.cluster
    for pod in subject.pods:
        if GANG in pod.metadata.labels and pod.spec.scheduler_name in schedulers:
            return schedulers[pod.spec.scheduler_name]
    intent = None
    try:
        workload = subject.kind.read(cluster.whole(subject.kind, subject.decoded))
        intent = find_intent(workload, snapshot.defaults, cluster.scope_of(subject.kind, subject.decoded))
    except InvalidObjectError:
        pass
    return intent.gang_scheduler if intent is not None else next(iter(schedulers.values()))


async def _load(client: Client, watched: Watched, name: str, namespace: str | None, snapshot: ClusterSnapshot) -> None:
    """Add one object to a store; a note, when this user may not read it. Raises ApiError when there is no answer."""
    kind = watched.resource.full_name
    try:
        watched.store.apply("added", decode(await client.get(watched.resource, name, namespace), watched.type))
    except ApiError as error:
        if error.forbidden:
            snapshot.unreadable.add(kind)
            where = f' in "{namespace}"' if namespace else ""
            snapshot.note(f"cannot get {kind}{where}: what they hold of this gang is unknown")
        elif not error.not_found:
            raise
    except InvalidObjectError as error:
        snapshot.note(f"{kind} {name} is malformed: {error}")
