"""KubeRay started with its own `--batch-scheduler=volcano`: muster stands back (issue 3, 4.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.testbed.muster import install
from muster.kube.resource import PODS
from muster.names import ADMITTED, GANG, GROUP_NAME, MANAGED_BY, QUEUE_LABEL, STATE
from tests.builders import ray_cluster
from tests.e2e.conftest import VALUES
from tests.recorder import RAY_CLUSTERS
from tests.scene import PATIENCE, gates, open_scene, phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.scene import Scene
    from tests.testbed_fixtures import OwnTestbed


@pytest.fixture
def flagged(own_testbed: OwnTestbed) -> Iterator[Scene]:
    """A testbed whose KubeRay makes gangs itself, with muster installed."""
    testbed = own_testbed(parts=("volcano", "kuberay"))
    testbed.restart_part("kuberay", extra_args=("--batch-scheduler=volcano",))
    # The Training operator's kinds must be known, as wherever muster is installed.
    crds = testbed.module_dir("github.com/kubeflow/training-operator") / "manifests/base/crds"
    testbed.kubectl("apply", "--server-side", f"--filename={crds / 'kubeflow.org_pytorchjobs.yaml'}")
    muster = install(testbed, values=VALUES)
    muster.wait_ready(PATIENCE)
    with open_scene(testbed, "flagged", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene


def test_operators_own_gangs_are_left_to_it(flagged: Scene) -> None:
    """No PodGroup and no gate of muster's, the cluster runs; what can never fit is refused all the same."""
    scene = flagged
    queue = scene.queue(cpu="4", memory="6Gi")
    cluster = ray_cluster("own").label(QUEUE_LABEL, queue).label("ray.io/scheduler-name", "volcano").workers(2)
    scene.apply(cluster)
    scene.wait("its pods to run", lambda: [phase(pod) for pod in scene.pods()] == ["Running"] * 3)
    group = scene.pod_group("ray-own-pg")
    assert phase(group) in {"Inqueue", "Running"}
    assert MANAGED_BY not in (group["metadata"].get("labels") or {})
    assert not {ADMITTED, STATE} & set(group["metadata"].get("annotations") or {})
    scene.recorder.settle()
    for seen in scene.recorder.history(PODS):
        assert gates(seen.object) == []
        assert GANG not in seen.object["metadata"]["labels"]
        assert seen.object["metadata"]["annotations"][GROUP_NAME] == "ray-own-pg"

    said = scene.try_apply(ray_cluster("big").label(QUEUE_LABEL, queue).workers(4))
    assert f'gang "ray-big-pg" needs cpu 5, queue "{queue}" has capability cpu 4' in said
