"""The controller's picture of a cluster, filled with objects as a watch shows them."""

from collections.abc import Iterable

from muster.admitters import Admitter
from muster.admitters.kueue import KueueWorkload
from muster.cluster.cluster import Cluster
from muster.cluster.stores import Added, UnmanagedPods
from muster.kube.store import Store
from muster.model.names import GANG
from muster.model.objects import Namespace, PriorityClass, Queue
from muster.model.pods import Pod
from muster.resources.elastic_quotas import ElasticQuota
from muster.resources.pod_defaults import LimitRange, RuntimeClass
from muster.resources.resource_quotas import ResourceQuota
from muster.schedulers import SCHEDULERS, GangScheduler
from muster.workloads import SOURCES, Decoded, Kind, kind_of
from tests.support.manifests.observed import JSON, made


def filled(
    scheduler: GangScheduler = SCHEDULERS["volcano"],
    /,
    *,
    workloads: Iterable[JSON] = (),
    pods: Iterable[JSON] = (),
    groups: Iterable[JSON] = (),
    queues: Iterable[JSON] = (),
    classes: Iterable[JSON] = (),
    namespaces: Iterable[JSON] = (),
    ranges: Iterable[JSON] = (),
    runtimes: Iterable[JSON] = (),
    quotas: Iterable[JSON] = (),
    kueue: Iterable[JSON] = (),
    elastic: Iterable[JSON] = (),
) -> Cluster:
    """The controller's picture of a cluster that holds exactly these objects; all gangs are the `scheduler`'s."""
    cluster = Cluster(schedulers=[scheduler], admitters=Admitter, elastic_quotas=True)
    fill_pods(cluster, pods, scheduler.name)
    cluster.pod_groups.of(scheduler.name).replace_all([made(scheduler.pod_groups, item) for item in groups])
    cluster.queues.replace_all([made(Queue, item) for item in queues])
    cluster.priority_classes.replace_all([made(PriorityClass, item) for item in classes])
    cluster.namespaces.replace_all([made(Namespace, item) for item in namespaces])
    fill_added(cluster.added, ranges, runtimes, quotas)
    cluster.kueue.workloads.replace_all([made(KueueWorkload, item) for item in kueue])
    cluster.elastic_quotas.store.replace_all([made(ElasticQuota, item) for item in elastic])
    for item in workloads:
        kind = kind_of(item["apiVersion"], item["kind"])
        if kind is not None:
            workload_store(cluster, kind).apply("added", made(kind.decoded, item))
        for source in SOURCES:
            if item["kind"] == source.resource.kind:
                cluster.sources[source].apply("added", made(source.decoded, item))
    return cluster


def fill_added(added: Added, ranges: Iterable[JSON], runtimes: Iterable[JSON], quotas: Iterable[JSON] = ()) -> None:
    """Show the stores of what the cluster does to pods these objects."""
    added.quotas.replace_all([made(ResourceQuota, item) for item in quotas])
    added.ranges.replace_all([made(LimitRange, item) for item in ranges])
    added.runtimes.replace_all([made(RuntimeClass, item) for item in runtimes])


def fill_pods(cluster: Cluster, pods: Iterable[JSON], scheduler: str = "volcano") -> None:
    """Show the cluster's stores these pods, each where its labels put it."""
    decoded = [made(Pod, item) for item in pods]
    cluster.pods.of(scheduler).replace_all([pod for pod in decoded if pod.spec.scheduler_name == scheduler])
    fill_outsiders(cluster.unmanaged_pods, decoded)


def fill_outsiders(unmanaged_pods: UnmanagedPods, pods: Iterable[Pod]) -> None:
    """Show the stores of outsiders what their selectors let through."""
    there = [pod for pod in pods if GANG not in pod.metadata.labels]
    for selector, store in unmanaged_pods.stores.items():
        label, _, _ = selector.partition(",")
        store.replace_all([pod for pod in there if label in pod.metadata.labels])


def workload_store(cluster: Cluster, kind: Kind) -> Store[Decoded]:
    return cluster.workloads[kind]
