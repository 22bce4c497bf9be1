"""Namespaces that speak for their workloads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from muster.names import MANAGED, QUEUE_ANNOTATION
from tests.support.manifests.workloads import ray_cluster

if TYPE_CHECKING:
    from tests.support.cluster.scene import Scene


def test_workloads_of_an_opted_in_namespace_need_to_say_nothing(scene: Scene) -> None:
    """One that can never run is refused, one that can is a gang in the namespace's queue."""
    queue = scene.queue(cpu="3")
    scene.kubectl("annotate", "namespace", scene.namespace, f"{QUEUE_ANNOTATION}={queue}")
    scene.kubectl("label", "namespace", scene.namespace, f"{MANAGED}=true")
    too_large = json.dumps(ray_cluster("large").workers(3).manifest())
    refused = f'namespace {scene.namespace}: metadata.annotations[{QUEUE_ANNOTATION}]: gang "ray-large-pg" needs cpu 4'
    scene.wait(
        "the opt-in to be known",
        lambda: refused in scene.kubectl("create", "--dry-run=server", "-f-", text=too_large, check=False).stderr,
    )
    scene.apply(ray_cluster("silent").workers(2))
    scene.await_running("ray-silent-pg", 3)
    scene.assert_started_together("ray-silent-pg", 3)
    assert scene.pod_group("ray-silent-pg")["spec"]["queue"] == queue
