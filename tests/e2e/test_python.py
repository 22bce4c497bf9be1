"""`muster.wait` and `muster.explain` from Python, as a notebook has them, on a whole cluster."""

from typing import Any

import pytest

import muster
from muster.model.names import QUEUE_LABEL
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene
from tests.support.cluster.verbs import PATIENCE
from tests.support.manifests.applied import ray_cluster


def test_a_gang_is_waited_for_from_its_place_in_the_queue_until_it_runs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(scene.testbed.kubeconfig))
    where: dict[str, Any] = {"namespace": scene.namespace}
    queue = scene.queue(cpu="2")
    scene.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(1))
    first = muster.wait("raycluster/first", "running", timeout=PATIENCE, interval=0.5, **where)
    assert (first.state, first.queue, first.running) == ("Running", queue, True)
    assert f"RayCluster {scene.namespace}/first: Running" in capsys.readouterr().err

    scene.apply(ray_cluster("second").label(QUEUE_LABEL, queue).workers(1))
    waits = muster.wait("raycluster/second", lambda gang: gang.state == "WaitingForQuota", timeout=PATIENCE, **where)
    assert waits.waits
    gang = muster.explain("raycluster/second", **where)
    assert (gang.position, gang.waiting, gang.needs) == (1, 1, {"cpu": "2", "memory": "2Gi"})
    (own,) = [one for one in muster.queues() if one.name == queue]
    assert (own.gangs, own.waiting, own.limit["cpu"]) == (1, 1, "2")
    with pytest.raises(muster.WaitTimeoutError) as late:
        muster.wait("raycluster/second", "admitted", timeout=0.1, progress=False, **where)
    assert late.value.gang.state == "WaitingForQuota"

    scene.delete(RAY_CLUSTERS, "first")
    assert muster.wait("raycluster/second", "admitted", timeout=PATIENCE, progress=False, **where).admitted
