"""Other mutating webhooks beside muster's: whichever is asked first, and however often, the pod comes out right.

The apiserver asks in the order of the configurations' names, and once more who was asked before somebody else changed
the pod (`reinvocationPolicy: IfNeeded`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, GATE, GROUP_NAME, PRIORITY_CLASS_LABEL, QUEUE_LABEL, TASK_SPEC
from muster.model.resource import PRIORITY_CLASSES, QUEUES
from tests.support.cluster.desk import Desk, Manifest, wait_for_class
from tests.support.cluster.other_webhooks import Injector, injecting, with_sidecar
from tests.support.cluster.reviews import reviews
from tests.support.manifests.applied import queue, ray_cluster
from tests.support.manifests.owner_chains import member

pytestmark = pytest.mark.part("processes")

_FIRST, _LAST = "a-first", "z-last"


@pytest.fixture
def cluster(desk: Desk, calls: Api) -> Iterator[Manifest]:
    """A RayCluster in a queue and of a priority class of its own."""
    name = desk.namespace
    desk.create(queue(name, cpu="8"))
    urgent = {"metadata": {"name": name}, "value": 700, "preemptionPolicy": "Never"}
    calls.done("POST", PRIORITY_CLASSES.path(), urgent)
    wait_for_class(calls, name)
    yield desk.create(ray_cluster("c").label(QUEUE_LABEL, name).label(PRIORITY_CLASS_LABEL, name).workers(2).manifest())
    desk.delete(QUEUES, name)
    desk.delete(PRIORITY_CLASSES, name)


def _worker(cluster: Manifest) -> Manifest:
    labels = {"ray.io/cluster": "c", "ray.io/group": "worker", "ray.io/node-type": "worker"}
    return member(cluster, labels, schedulingGates=[{"name": "example.com/own"}])


@pytest.mark.parametrize("name", [_FIRST, _LAST])
def test_sidecar_injector_and_muster_leave_each_others_alone(
    desk: Desk, calls: Api, webhook: MusterInstall, cluster: Manifest, tmp_path: Path, *, name: str
) -> None:
    """Everybody is asked twice, for the class's numbers changed after the first round; the second changes nothing."""
    injector = Injector(with_sidecar())
    with injecting(injector, name, desk.namespace, calls=calls, folder=tmp_path):
        before = reviews(webhook, "pods")
        pod = desk.create(_worker(cluster))
        assert (reviews(webhook, "pods") - before, len(injector.seen)) == (2, 2)
    spec, annotations = pod["spec"], pod["metadata"]["annotations"]
    assert [one["name"] for one in spec["containers"]] == ["main", "istio-proxy"]
    assert [one["name"] for one in spec["initContainers"]] == ["istio-proxy-init"]
    assert annotations == {"sidecar.istio.io/status": "injected", GROUP_NAME: "ray-c-pg", TASK_SPEC: "worker"}
    assert (spec["schedulerName"], spec["schedulingGates"]) == (
        "volcano",
        [{"name": "example.com/own"}, {"name": GATE}],
    )
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (desk.namespace, 700, "Never")


@pytest.mark.parametrize("name", [_FIRST, _LAST])
def test_pod_that_another_webhook_gives_to_another_scheduler_is_let_go(
    desk: Desk, calls: Api, cluster: Manifest, tmp_path: Path, name: str
) -> None:
    """Whether before muster has bound it or after: nothing of muster's that could hold it is left on it."""

    def elsewhere(pod: Manifest) -> list[dict[str, Any]]:
        there = pod["spec"].get("schedulerName") == "their-own"
        return [] if there else [{"op": "add", "path": "/spec/schedulerName", "value": "their-own"}]

    with injecting(Injector(elsewhere), name, desk.namespace, calls=calls, folder=tmp_path):
        pod = desk.create(_worker(cluster))
    assert pod["spec"]["schedulerName"] == "their-own"
    assert pod["spec"]["schedulingGates"] == [{"name": "example.com/own"}]
    assert GANG not in pod["metadata"]["labels"]
    assert GROUP_NAME not in pod["metadata"].get("annotations", {})


def test_gate_that_another_webhook_adds_stays_beside_musters(
    desk: Desk, calls: Api, cluster: Manifest, tmp_path: Path
) -> None:
    """As Kueue's: who adds a gate takes it off again."""

    def gated(pod: Manifest) -> list[dict[str, Any]]:
        gates = pod["spec"].get("schedulingGates", [])
        theirs = {"name": "example.com/quota"}
        return [] if theirs in gates else [{"op": "add", "path": "/spec/schedulingGates", "value": [*gates, theirs]}]

    with injecting(Injector(gated), _LAST, desk.namespace, calls=calls, folder=tmp_path):
        pod = desk.create(_worker(cluster))
    assert [one["name"] for one in pod["spec"]["schedulingGates"]] == [
        "example.com/own",
        GATE,
        "example.com/quota",
    ]
