"""A scene whose gangs Kueue admits: a namespace that says so, with a LocalQueue and a ClusterQueue of its own."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from hack.testbed import Testbed
from muster.model.names import ADMITTER, SCHEDULER_LABEL
from muster.model.resource import NAMESPACES, Resource
from muster.schedulers import named
from tests.support.cluster.backends import (
    CLUSTER_QUEUES,
    KUEUE_QUEUE,
    WORKLOADS,
    bound,
    cluster_queue,
    local_queue,
)
from tests.support.cluster.objects import alive, has_condition
from tests.support.cluster.pair_scene import PairScene
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, open_scene
from tests.support.manifests.applied import RayCluster, ray_cluster

RAY_JOBS = Resource("ray.io", "v1", "rayjobs", "RayJob")
TEAM = "team"
"""The LocalQueue of each scene."""
FLAVOR = "plain"
"""The ResourceFlavor of its ClusterQueue, which the cluster must have."""


@contextmanager
def open_kueue_scene(testbed: Testbed, name: str, product: str = "volcano", **quota: str) -> Iterator[Scene]:
    """Make such a namespace with this name, in a cluster whose gangs this scheduler places."""
    (scheduler,) = named(product).values()
    kinds = (RAY_CLUSTERS, PYTORCH_JOBS, RAY_JOBS, WORKLOADS, scheduler.resource)
    with open_scene(testbed, name, kinds, made=Scene if product == "volcano" else PairScene) as scene:
        if isinstance(scene, PairScene):
            scene.product = product
        scene.api.merge(NAMESPACES.path(name=scene.namespace), {"metadata": {"annotations": {ADMITTER: "kueue"}}})
        scene.create(cluster_queue(scene.namespace, FLAVOR, **quota))
        scene.create(local_queue(TEAM, scene.namespace))
        try:
            yield scene
        finally:
            scene.delete(CLUSTER_QUEUES, scene.namespace, wait=False)


def in_team(name: str, workers: int = 2, scheduler: str = "volcano") -> RayCluster:
    """Begin a RayCluster for a scheduler in the LocalQueue."""
    return ray_cluster(name).label(KUEUE_QUEUE, TEAM).label(SCHEDULER_LABEL, scheduler).workers(workers)


def admitted_workloads(scene: Scene) -> int:
    """Return how many Workloads are admitted now."""
    return sum(has_condition(one, "Admitted") for one in scene.recorder.now(WORKLOADS))


def evicted(scene: Scene) -> set[str]:
    """Return the Workloads that Kueue has evicted at any time."""
    return {seen.name for seen in scene.recorder.history(WORKLOADS) if has_condition(seen.object, "Evicted")}


def cluster_of(pod: Manifest) -> str:
    """Return the name of a pod's RayCluster."""
    return str(pod["metadata"]["labels"]["ray.io/cluster"])


def placed_of_each(scene: Scene) -> list[int]:
    """Return, of each RayCluster that has a pod with a node, how many have one, sorted."""
    return sorted(Counter(cluster_of(pod) for pod in scene.pods() if alive(pod) and bound([pod])).values())
