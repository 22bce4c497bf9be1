"""Namespaces that speak for their workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.resource import NAMESPACES
from muster.names import MANAGED, QUEUE_ANNOTATION
from tests.support.cluster.propagation import await_said
from tests.support.manifests.workloads import ray_cluster

if TYPE_CHECKING:
    from tests.support.cluster.scene import Scene


def test_workloads_of_an_opted_in_namespace_need_to_say_nothing(scene: Scene) -> None:
    """One that can never run is refused, one that can is a gang in the namespace's queue."""
    queue = scene.queue(cpu="3")
    scene.annotate(NAMESPACES, scene.namespace, **{QUEUE_ANNOTATION: queue})
    scene.label(NAMESPACES, scene.namespace, **{MANAGED: "true"})
    refused = f'namespace {scene.namespace}: metadata.annotations[{QUEUE_ANNOTATION}]: gang "ray-large-pg" needs cpu 4'
    await_said(scene, ray_cluster("large").workers(3), refused)
    scene.apply(ray_cluster("silent").workers(2))
    scene.await_running("ray-silent-pg", 3)
    scene.assert_started_together("ray-silent-pg", 3)
    assert scene.pod_group("ray-silent-pg")["spec"]["queue"] == queue
