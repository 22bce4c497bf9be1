"""Admission, the plan, the PodGroup and the pods count a gang alike, also by what the cluster adds to its pods."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.cli.plan.reading import from_cluster
from muster.model.names import QUEUE_LABEL
from muster.model.objects import convert
from muster.model.pods import PodSpec
from muster.model.resource import POD_GROUPS, QUEUES, RUNTIME_CLASSES
from muster.resources.amounts import as_text, total
from muster.resources.pod_requests import pod_requests
from tests.support.cli.command import cluster_options
from tests.support.cluster.desk import PATIENCE, Desk, Manifest
from tests.support.manifests.applied import PyTorchJob, RayCluster, pytorch_job, queue, ray_cluster

# What a container does not say is given: a request, a limit that stands in for one, a least amount that does.
_GIVEN = {
    "type": "Container",
    "defaultRequest": {"cpu": "100m"},
    "default": {"memory": "300Mi"},
    "min": {"ephemeral-storage": "10Mi"},
}
_OVERHEAD = {"cpu": "70m", "memory": "30Mi"}


@pytest.fixture(scope="module")
def controller(webhook_of_session: MusterInstall) -> Iterator[None]:
    """A controller beside the webhook, which makes PodGroups; everywhere else in this session nobody does."""
    process = webhook_of_session.start_controller()
    webhook_of_session.wait_ready(PATIENCE)
    yield
    webhook_of_session.controllers.remove(process)
    process.stop()


@pytest.fixture
def lane(desk: Desk) -> Iterator[str]:
    """A queue, a LimitRange and a RuntimeClass, by the name of the test's own namespace."""
    name = desk.namespace
    named = {"metadata": {"name": name}}
    desk.create(queue(name, cpu="100"))
    desk.create({"apiVersion": "v1", "kind": "LimitRange", **named, "spec": {"limits": [_GIVEN]}})
    overhead = {"handler": "none", "overhead": {"podFixed": _OVERHEAD}}
    desk.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", **named, **overhead})
    yield name
    desk.delete(QUEUES, name)
    desk.delete(RUNTIME_CLASSES, name)


def _templates(workload: Manifest) -> dict[str, Manifest]:
    """The pod specifications by role, in place."""
    spec = workload["spec"]
    if workload["kind"] == "PyTorchJob":
        return {name.lower(): one["template"]["spec"] for name, one in spec["pytorchReplicaSpecs"].items()}
    groups = {group["groupName"]: group["template"]["spec"] for group in spec["workerGroupSpecs"]}
    return {"headgroup": spec["headGroupSpec"]["template"]["spec"], **groups}


def _needs(bare: Testbed, workload: Manifest) -> dict[str, str]:
    """What the plan says that the gang needs."""
    (planned,) = plan([Document("test", workload)], *from_cluster(cluster_options(bare.kubeconfig)))
    entry = planned.data()
    needs: dict[str, str] = entry["podGroup"]["spec"]["minResources"]
    return needs


def _refusal(desk: Desk, workload: Manifest) -> str:
    """What admission says against the workload, "" for nothing."""
    return desk.ask(workload, dry_run=True).message


@pytest.mark.parametrize(
    ("workload", "cpu", "less"),
    [
        # A master that says nothing and two workers that say how much cpu: 100m and twice 1, and the overhead of three.
        pytest.param(
            pytorch_job("gang").master(cpu="", memory="").workers(2, cpu="1", memory=""),
            *("2310m", "2309m"),
            id="PyTorchJob",
        ),
        # Of the workers KubeRay's own init container asks for more, 200m.
        pytest.param(
            ray_cluster("gang").head(cpu="", memory="").workers(2, cpu="", memory=""),
            *("710m", "709m"),
            id="RayCluster",
        ),
    ],
)
@pytest.mark.usefixtures("controller")
def test_admission_plan_pod_group_and_pods_say_the_same(
    desk: Desk, calls: Api, bare: Testbed, lane: str, *, workload: PyTorchJob | RayCluster, cpu: str, less: str
) -> None:
    """A queue that has just the room takes the gang; one with a little less says what it needs."""
    manifest = workload.label(QUEUE_LABEL, lane).manifest()
    manifest["metadata"]["namespace"] = lane
    for spec in _templates(manifest).values():
        spec["runtimeClassName"] = lane
    needs = {"cpu": cpu, "memory": "990Mi", "ephemeral-storage": "30Mi"}
    assert _needs(bare, manifest) == needs

    def capability(**amounts: str) -> None:
        calls.done("PATCH", QUEUES.path(name=lane), {"spec": {"capability": {**needs, **amounts}}}, patch="merge")

    capability(cpu=less)
    refusal = f'needs cpu {cpu}, queue "{lane}" has capability cpu {less}'
    wait_for("the refusal with its numbers", lambda: refusal in _refusal(desk, manifest), PATIENCE)
    capability()
    wait_for("it to fit exactly", lambda: not _refusal(desk, manifest), PATIENCE)

    made = desk.create(manifest)
    pods = {role: desk.create(desk.member(made, role, **spec)) for role, spec in _templates(made).items()}
    name = "gang" if made["kind"] == "PyTorchJob" else "ray-gang-pg"
    path = POD_GROUPS.path(lane, name)
    wait_for("the PodGroup", lambda: calls("GET", path).ok, PATIENCE)
    assert calls.done("GET", path)["spec"]["minResources"] == needs
    if made["kind"] == "PyTorchJob":
        # KubeRay adds to its pods before it makes them, which nobody does here.
        asked = {role: pod_requests(convert(pod["spec"], PodSpec)) for role, pod in pods.items()}
        assert as_text(total((asked["master"], asked["worker"], asked["worker"]))) == needs
