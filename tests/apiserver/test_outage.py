"""How narrow the webhooks are: with no webhook running, only what concerns gangs is in anybody's way."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, GATE, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS, QUEUES, Resource
from tests.apiserver.conftest import EXCLUDED, running
from tests.support.cases import cases
from tests.support.cluster.desk import Desk, Manifest, open_desk
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.verbs import Verbs
from tests.support.manifests import applied
from tests.support.manifests.applied import pytorch_job, ray_cluster
from tests.support.manifests.members import serve

pytestmark = pytest.mark.part("processes")

_CLUSTERS = ("ours", "noted", "finalized", "reported", "deleted")


@pytest.fixture(scope="module")
def desk(bare: Testbed, calls: Api) -> Iterator[Desk]:
    """One namespace for all: a webhook that is to be down need not be started for each test."""
    with open_desk(bare, calls, "outage") as opened:
        yield opened


@pytest.fixture(scope="module")
def down(desk: Desk, webhook_of_session: MusterInstall) -> Iterator[list[str]]:
    """No webhook; labelled RayClusters and held pods of one are from before. Gives the names of the pods."""
    running(webhook_of_session)
    desk.create(applied.queue(desk.namespace, cpu="8"))
    made = [desk.create(ray_cluster(name).label(QUEUE_LABEL, desk.namespace).manifest()) for name in _CLUSTERS]
    asks = {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
    pods = [desk.create(desk.member(made[0], "headgroup", **asks))["metadata"]["name"] for _ in range(3)]
    webhook_of_session.stop_webhooks()
    yield pods
    desk.delete(QUEUES, desk.namespace)


def _pod(**labels: str) -> Manifest:
    return {**applied.pod("p"), "metadata": {"name": "p", "labels": labels}}


def _job(**labels: str) -> Manifest:
    template = {"metadata": {"labels": labels}, "spec": {**applied.pod("p")["spec"], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}


def _daemon(**labels: str) -> Manifest:
    pod = _pod(**labels)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def _placed(labels: dict[str, str], *, mirror: bool = False) -> Manifest:
    pod = _pod(**labels)
    if mirror:
        # As a kubelet reports its static pods.
        pod["metadata"]["annotations"] = dict.fromkeys(
            ("kubernetes.io/config.mirror", "kubernetes.io/config.hash"), "x"
        )
    return {**pod, "spec": {**pod["spec"], "nodeName": "node-0"}}


def _unspecified(api_version: str, kind: str) -> Manifest:
    """What a CRD lets pass that does not require a spec; their operators say themselves what is wrong with it."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "empty"}}


_RAY = {"ray.io/cluster": "ours"}
_JOBSET = {"jobset.sigs.k8s.io/jobset-name": "ours"}
_KUBEFLOW = {"training.kubeflow.org/job-name": "ours"}


@cases(
    "manifest, namespace",
    ("plain pod", _pod(app="web"), ""),
    ("plain Job", _job(app="web"), ""),
    ("Ray's pod in kube-system", _pod(**_RAY), "kube-system"),
    ("Ray's pod in muster's namespace", _pod(**_RAY), "muster-system"),
    ("Ray's pod in an excluded namespace", _pod(**_RAY), EXCLUDED),
    ("KubeRay's clean-up pod", _pod(**_RAY, **{"ray.io/node-type": "redis-cleanup"}), ""),
    ("mirror of a static pod", _placed({}, mirror=True), ""),
    ("daemon", _daemon(app="agent"), ""),
    ("RayCluster without labels", ray_cluster("theirs").manifest(), ""),
    ("PyTorchJob without policy", pytorch_job("theirs").manifest(), ""),
    ("RayCluster without spec", _unspecified("ray.io/v1", "RayCluster"), ""),
    ("PyTorchJob without spec", _unspecified("kubeflow.org/v1", "PyTorchJob"), ""),
    ("PodGroup without spec", _unspecified(POD_GROUPS.api_version, "PodGroup"), ""),
    (
        "PodGroup of another user of Volcano's",
        {**_unspecified(POD_GROUPS.api_version, "PodGroup"), "spec": {"minMember": 1, "queue": "nobodys"}},
        "",
    ),
)
@pytest.mark.usefixtures("down")
def test_created_all_the_same(desk: Desk, manifest: Manifest, namespace: str) -> None:
    """What is none of muster's business makes no call."""
    there = Verbs(desk.api, namespace or desk.namespace)
    assert there.create(manifest, dry_run=True)["metadata"]["name"]


@pytest.mark.usefixtures("down")
def test_a_job_set_without_a_spec_is_created_all_the_same(desk: Desk, bare: Testbed) -> None:
    """Like the others. By itself, for old apiservers do not take its CRD (hack/versions.py)."""
    serve(bare, bare.module_dir("sigs.k8s.io/jobset").glob("config/components/crd/bases/*jobsets.yaml"))
    assert desk.create(_unspecified("jobset.x-k8s.io/v1alpha2", "JobSet"), dry_run=True)["metadata"]["name"]


@cases(
    "manifest, called",
    ("Ray's pod", _pod(**_RAY), "ray.pods.muster.dev"),
    ("Kubeflow's pod", _pod(**_KUBEFLOW), "kubeflow.pods.muster.dev"),
    ("JobSet's pod", _pod(**_JOBSET), "jobset.pods.muster.dev"),
    ("pod that joins a gang", _pod(**{GANG: "ours"}), "plain.pods.muster.dev"),
    ("one call for a labelled pod of Ray", _pod(**_RAY, **{GANG: "ours"}), "ray.pods.muster.dev"),
    ("Ray's pod with a node", _placed(_RAY), "ray.pods.muster.dev"),
    ("pod with a node that says it is a member", _placed({GANG: "ours"}), "plain.pods.muster.dev"),
    ("daemon with Ray's label", _daemon(**_RAY), "ray.pods.muster.dev"),
    ("daemon that says it is a member", _daemon(**{GANG: "ours"}), "plain.pods.muster.dev"),
    (
        "clean-up pod that says it is a member",
        _pod(**_RAY, **{GANG: "ours", "ray.io/node-type": "redis-cleanup"}),
        "cleanup.pods.muster.dev",
    ),
    ("Job whose pods join a gang", _job(**{GANG: "ours"}), "jobs.workloads.muster.dev"),
    ("labelled RayCluster", ray_cluster("new").label(QUEUE_LABEL, "default").manifest(), "workloads.muster.dev"),
    ("PyTorchJob with a policy", pytorch_job("new").policy(minAvailable=1).manifest(), "workloads.muster.dev"),
)
@pytest.mark.usefixtures("down")
def test_not_created_meanwhile(desk: Desk, manifest: Manifest, called: str) -> None:
    """What might be a part of a gang waits for muster, and the answer names the webhook."""
    assert f'failed calling webhook "{called}"' in desk.refused(manifest)


@cases(
    "name, rest, change",
    ("annotation", "noted", None, {"metadata": {"annotations": {"note": "1"}}}),
    ("finalizer", "finalized", None, {"metadata": {"finalizers": ["example.com/f"]}}),
    ("status", "reported", "status", {"status": {"state": "ready"}}),
    ("deletion", "deleted", None, None),
)
@pytest.mark.usefixtures("down")
def test_ours_can_be_kept_in_order(desk: Desk, name: str, rest: str | None, change: Manifest | None) -> None:
    """Updates that change neither spec nor labels, and deletion, make no call."""
    if change is None:
        desk.delete(RAY_CLUSTERS, name)
        return
    desk.patch(RAY_CLUSTERS, name, change, rest)
    if name == "finalized":
        # With a finalizer it stays for a while, and its last update makes no call either.
        desk.delete(RAY_CLUSTERS, name, wait=False)
        desk.patch(RAY_CLUSTERS, name, {"metadata": {"finalizers": []}})


@pytest.mark.parametrize(
    ("resource", "change"),
    [
        pytest.param(RAY_CLUSTERS, {"metadata": {"annotations": {"note": "1"}}}, id="RayCluster"),
        pytest.param(PYTORCH_JOBS, {"metadata": {"annotations": {"note": "1"}}}, id="PyTorchJob"),
        # Writers in Go send an empty spec where there was none.
        pytest.param(POD_GROUPS, {"spec": {}, "status": {}}, id="PodGroup, as Volcano writes its status"),
    ],
)
@pytest.mark.usefixtures("down")
def test_without_a_spec_it_can_be_kept_in_order(desk: Desk, resource: Resource, change: Manifest) -> None:
    """No condition fails where it looks for something that is not there."""
    made = desk.create(_unspecified(resource.api_version, resource.kind))
    desk.patch(resource, made["metadata"]["name"], change)


@pytest.mark.usefixtures("down")
def test_spec_of_ours_waits_for_muster(desk: Desk) -> None:
    """A change of the spec is judged, or not made."""
    change = {"spec": {"rayVersion": "2.53.0"}}
    answer = desk.api("PATCH", desk.path(RAY_CLUSTERS, "ours"), change, patch="merge")
    assert 'failed calling webhook "workloads.muster.dev"' in answer.message


@pytest.mark.usefixtures("down")
def test_the_apiserver_counts_what_its_alert_asks_for(desk: Desk, bare: Testbed) -> None:
    """Calls that fail, and calls without which it went on: `MusterWebhookNotReached` asks for these labels."""
    assert "failed calling webhook" in desk.refused(_pod(**_RAY))
    desk.create(applied.queue(f"{desk.namespace}-passed", cpu="1"))
    desk.delete(QUEUES, f"{desk.namespace}-passed")
    counted = bare.kubectl("get", "--raw=/metrics").stdout.splitlines()
    failed = [line for line in counted if line.startswith("apiserver_admission_webhook_rejection_count{")]
    assert any('error_type="calling_webhook_error"' in line and 'name="ray.pods.muster.dev"' in line for line in failed)
    passed = [line for line in counted if line.startswith("apiserver_admission_webhook_fail_open_count{")]
    assert any('name="queues.muster.dev"' in line for line in passed)


def test_members_that_exist_make_no_call(desk: Desk, calls: Api, down: list[str]) -> None:
    """Neither their subresources nor their end: status, debugging, opening, binding, eviction, deletion."""
    held, _, evicted = (PODS.path(desk.namespace, name) for name in down)
    assert [gate["name"] for gate in calls.done("GET", held)["spec"]["schedulingGates"]] == [GATE]
    calls.done("PATCH", f"{held}/status", {"status": {"message": "seen"}}, patch="merge")
    debugger = {"name": "debugger", "image": "none", "targetContainerName": "main"}
    calls.done("PATCH", f"{held}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debugger]}}, patch="merge")
    calls.done("PATCH", held, {"spec": {"schedulingGates": None}}, patch="merge")
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": down[0]}, "target": target}
    calls.done("POST", f"{held}/binding", binding)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": down[2]}}
    calls.done("POST", f"{evicted}/eviction", eviction)
    calls.done("DELETE", held)


def test_a_member_is_resized_without_a_call(desk: Desk, calls: Api, down: list[str]) -> None:
    """Like its other subresources. By itself, for old apiservers have none (hack/versions.py)."""
    larger = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    resized = f"{PODS.path(desk.namespace, down[1])}/resize"
    calls.done("PATCH", resized, {"spec": {"containers": [larger]}}, patch="strategic-merge")
