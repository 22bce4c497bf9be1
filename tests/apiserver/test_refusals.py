"""What can never run is refused by the real apiserver, in one line: the field, what was found, the rule, what to do.

kubectl's own words around it are in test_validation.py.
"""

from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, GANG_SIZE, MANAGED_BY, MUSTER, PRIORITY_CLASS_LABEL, QUEUE_LABEL
from muster.model.resource import QUEUES
from tests.apiserver.conftest import running
from tests.support.cluster.desk import PATIENCE, Desk, Manifest, open_desk
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.manifests.applied import pod, pytorch_job, queue, ray_cluster
from tests.support.manifests.batch import runtime, train_job, trainer

_LABEL, _FIELD = f"metadata.labels[{QUEUE_LABEL}]", "spec.runPolicy.schedulingPolicy"
_DENIED = 'admission webhook "{}.muster.dev" denied the request: {}'
_ROOM = 'needs cpu 5, queue "QUEUE" has capability cpu 4; lower the replicas or use a larger queue'
_UNKNOWN = 'PriorityClass "nobody-knows" does not exist; name an existing class or create it first'
_TEMPLATE: Manifest = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
    }
}


@pytest.fixture(scope="module")
def desk(bare: Testbed, calls: Api, webhook_of_session: MusterInstall, every_kind: None) -> Iterator[Desk]:
    """A namespace with a runtime of TrainJobs, and a queue of its name: 4 cpu and 6Gi."""
    del every_kind
    running(webhook_of_session)
    with open_desk(bare, calls, "refusals") as opened:
        opened.create(queue(opened.namespace, cpu="4", memory="6Gi"))
        opened.create(runtime("plain", trainer()))
        job = train_job("any", "plain", {})
        wait_for("the runtime to be known", lambda: opened.ask(job, dry_run=True).ok, PATIENCE)
        fits = ray_cluster("fits").label(QUEUE_LABEL, opened.namespace).manifest()
        wait_for("the queue to be known", lambda: opened.ask(fits, dry_run=True).ok, PATIENCE)
        yield opened
        opened.delete(QUEUES, opened.namespace)


def _ray_job(lane: str) -> Manifest:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "big", "labels": {QUEUE_LABEL: lane}},
        "spec": {"entrypoint": "true", "rayClusterSpec": ray_cluster("").workers(4, memory="1Gi").manifest()["spec"]},
    }


def _job(lane: str) -> Manifest:
    about = {"labels": {GANG: "big", QUEUE_LABEL: lane}, "annotations": {GANG_SIZE: "5"}}
    spec = {"parallelism": 5, "completions": 5, "template": {**_TEMPLATE, "metadata": about}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "big"}, "spec": spec}


@pytest.mark.parametrize(
    ("workload", "reason", "message"),
    [
        pytest.param(
            lambda lane: ray_cluster("big").label(QUEUE_LABEL, lane).workers(4, memory="1536Mi").manifest(),
            "ExceedsCapability",
            f'{_LABEL}: gang "ray-big-pg" needs cpu 5 and memory 7Gi, queue "QUEUE" has capability cpu 4 and memory '
            "6Gi; lower the replicas or use a larger queue",
            id="RayCluster above the capability in both",
        ),
        pytest.param(
            # Counted with its runtime.
            lambda lane: train_job("big", "plain", {QUEUE_LABEL: lane}, nodes=5),
            "ExceedsCapability",
            f'{_LABEL}: gang "big" {_ROOM}',
            id="TrainJob above it",
        ),
        pytest.param(
            # Itself, and not its RayCluster, which nobody who applies a RayJob looks at.
            _ray_job,
            "ExceedsCapability",
            f'{_LABEL}: gang "ray-big-xxxxx-pg" {_ROOM}',
            id="RayJob above it",
        ),
        pytest.param(
            lambda lane: (
                ray_cluster("odd").label(QUEUE_LABEL, lane).label(PRIORITY_CLASS_LABEL, "nobody-knows").manifest()
            ),
            "UnknownPriorityClass",
            f"metadata.labels[{PRIORITY_CLASS_LABEL}]: {_UNKNOWN}",
            id="unknown PriorityClass in a label",
        ),
        pytest.param(
            lambda lane: ray_cluster("odd").label(QUEUE_LABEL, lane).head(cpu="-1").manifest(),
            "Invalid",
            'spec.headGroupSpec.template.spec.containers[0].resources.requests.cpu: "-1" is negative; a resource is '
            "0 or more",
            id="negative quantity, which the CRD lets pass",
        ),
        pytest.param(
            lambda lane: ray_cluster("odd").label(QUEUE_LABEL, lane).head(memory="1e0.5").manifest(),
            "Invalid",
            'spec.headGroupSpec.template.spec.containers[0].resources.requests.memory: "1e0.5" is not a quantity such '
            "as 500m, 2 or 1.5Gi",
            id="no quantity, which the CRD lets pass",
        ),
    ],
)
def test_refused_in_one_line(desk: Desk, workload: Callable[[str], Manifest], reason: str, message: str) -> None:
    answer = desk.ask(workload(desk.namespace))
    expected = message.replace("QUEUE", desk.namespace)
    assert (answer.status, answer.body["reason"]) == (HTTPStatus.UNPROCESSABLE_ENTITY, reason)
    assert answer.message == _DENIED.format("workloads", expected)
    # What programs read, and kubectl of what is Invalid.
    (cause,) = answer.body["details"]["causes"]
    assert (f"{cause['field']}: {cause['message']}") == expected


def test_a_job_of_a_gang_that_is_too_large_is_refused(desk: Desk) -> None:
    said = desk.refused(_job(desk.namespace))
    assert f'gang "big" needs cpu 5, queue "{desk.namespace}" has capability cpu 4' in said
    assert said.startswith("ExceedsCapability: " + _DENIED.format("jobs.workloads", ""))


def _stateful_set(lane: str, **spec: object) -> Manifest:
    about = {"labels": {GANG: "set", QUEUE_LABEL: lane, "app": "set"}, "annotations": {GANG_SIZE: "2"}}
    # The apiserver makes the policy OrderedReady where none is said.
    template = {"spec": {"containers": _TEMPLATE["spec"]["containers"]}, "metadata": about}
    spec = {
        "replicas": 2,
        "serviceName": "set",
        "selector": {"matchLabels": {"app": "set"}},
        "template": template,
        **spec,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"}, "spec": spec}


def test_a_stateful_set_that_makes_its_gang_one_by_one_is_refused_with_the_cure(desk: Desk) -> None:
    """The second pod would come when the first one is ready, and that waits for the second."""
    said = desk.refused(_stateful_set(desk.namespace))
    ordered = _DENIED.format("jobs.workloads", "spec.podManagementPolicy: OrderedReady makes a pod when ")
    assert said.startswith(f"Invalid: {ordered}")
    assert "use Parallel" in said
    assert desk.ask(_stateful_set(desk.namespace, podManagementPolicy="Parallel")).ok


def test_a_pod_that_does_not_say_how_many_they_are_is_refused(desk: Desk) -> None:
    alone = pod("alone")
    alone["metadata"]["labels"] = {GANG: "some"}
    said = desk.refused(alone)
    assert f"metadata.annotations[{GANG_SIZE}]: missing; set the number of pods that the gang needs to start" in said


def test_a_text_that_is_no_quantity_is_refused_by_its_crd(desk: Desk) -> None:
    """What the CRD itself refuses keeps the apiserver's words."""
    said = desk.refused(ray_cluster("odd").label(QUEUE_LABEL, desk.namespace).head(cpu="1x").manifest())
    field = "spec.headGroupSpec.template.spec.containers[0].resources"
    assert said.startswith(f'Invalid: RayCluster.ray.io "odd" is invalid: {field}')
    assert 'Invalid value: "1x"' in said


def _lane(desk: Desk, name: str, cpu: str) -> str:
    """One more queue, which the webhook knows; it goes with the control plane."""
    lane = f"{desk.namespace}-{name}"
    desk.create(queue(lane, cpu=cpu))
    probe = ray_cluster("probe").label(QUEUE_LABEL, lane).manifest()
    wait_for("the queue to be known", lambda: desk.ask(probe, dry_run=True).ok, PATIENCE)
    return lane


def test_what_one_queue_refuses_a_larger_one_takes(desk: Desk) -> None:
    large = _lane(desk, "large", "5")
    cluster = ray_cluster("moved").workers(4)
    assert "needs cpu 5" in desk.refused(cluster.label(QUEUE_LABEL, desk.namespace).manifest())
    desk.create(cluster.label(QUEUE_LABEL, large).manifest())


def test_a_closed_queue_refuses_new_work_until_it_is_opened(desk: Desk) -> None:
    """tests/e2e/test_queueing.py has Volcano close one, with gangs that run and wait there."""
    lane = _lane(desk, "closed", "4")
    late = ray_cluster("late").label(QUEUE_LABEL, lane).manifest()

    def turn(state: str) -> None:
        desk.patch(QUEUES, lane, {"status": {"state": state}}, "status")

    turn("Closed")
    wait_for("the webhook to know", lambda: not desk.ask(late, dry_run=True).ok, PATIENCE)
    answer = desk.ask(late)
    assert answer.body["reason"] == "QueueClosed"
    assert answer.message == _DENIED.format(
        "workloads",
        f'{_LABEL}: queue "{lane}" is Closed and takes no new work; use an open queue or have this one opened',
    )
    turn("Open")
    wait_for("the webhook to know", lambda: desk.ask(late, dry_run=True).ok, PATIENCE)
    desk.create(late)


def test_what_became_invalid_can_be_mended_in_steps_and_deleted(desk: Desk) -> None:
    """A queue shrinks under a cluster: what was wrong already may stay wrong in an update, nothing new may."""
    lane = _lane(desk, "shrinking", "8")
    cluster = ray_cluster("shrinking").label(QUEUE_LABEL, lane).workers(3).head(cpu="5")
    desk.create(cluster.manifest())
    desk.patch(QUEUES, lane, {"spec": {"capability": {"cpu": "4"}}})
    probe = ray_cluster("probe").label(QUEUE_LABEL, lane).head(cpu="5").manifest()
    wait_for("the webhook to know", lambda: "has capability cpu 4" in desk.ask(probe, dry_run=True).message, PATIENCE)

    # From 8 cpu to 7: still above 4, but better than it was.
    path, smaller = desk.path(RAY_CLUSTERS, "shrinking"), cluster.workers(2)
    answer = desk.api("PATCH", path, {"spec": smaller.manifest()["spec"]}, patch="merge")
    assert answer.ok, answer.message
    assert any(f'{_LABEL}: gang "ray-shrinking-pg" needs cpu 7, queue "{lane}"' in said for said in answer.warnings)
    unknown = {"metadata": {"labels": {PRIORITY_CLASS_LABEL: "nobody-knows"}}}
    answer = desk.api("PATCH", path, unknown, patch="merge")
    assert not answer.ok
    assert _UNKNOWN in answer.message
    desk.delete(RAY_CLUSTERS, "shrinking")


def test_valid_cannot_become_invalid(desk: Desk) -> None:
    """An update that makes a cluster larger than its queue is refused, and nothing of it is there."""
    cluster = ray_cluster("steady").label(QUEUE_LABEL, desk.namespace).workers(1, memory="1Gi")
    made = desk.create(cluster.manifest())
    larger = {"spec": cluster.workers(4, memory="1Gi").manifest()["spec"]}
    answer = desk.api("PATCH", desk.path(RAY_CLUSTERS, "steady"), larger, patch="merge")
    assert not answer.ok
    assert 'gang "ray-steady-pg" needs cpu 5' in answer.message
    assert desk.get(RAY_CLUSTERS, "steady")["spec"] == made["spec"]


def test_the_name_of_a_living_workloads_pod_group_is_refused_until_that_is_gone(desk: Desk) -> None:
    """The test plays the controller: it makes the PodGroup of a RayCluster, whose name a PyTorchJob wants."""
    made = desk.create(ray_cluster("holder").label(QUEUE_LABEL, desk.namespace).manifest())
    owner = {"apiVersion": made["apiVersion"], "kind": made["kind"], "controller": True}
    owner |= {"name": "holder", "uid": made["metadata"]["uid"]}
    group: Manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    group["spec"] = {"minMember": 1, "queue": desk.namespace}
    metadata = {"name": "ray-holder-pg", "labels": {MANAGED_BY: MUSTER}, "ownerReferences": [owner]}
    desk.create({**group, "metadata": metadata})
    rival = pytorch_job("ray-holder-pg").policy(queue=desk.namespace).manifest()
    said = 'the PodGroup "ray-holder-pg" belongs to another workload (RayCluster), and two gangs'
    # A read that does not come in time refuses nobody.
    wait_for("the refusal", lambda: said in desk.ask(rival, dry_run=True).message, PATIENCE)
    desk.delete(RAY_CLUSTERS, "holder")
    wait_for("the name to be free", lambda: desk.ask(rival, dry_run=True).ok, PATIENCE)


def test_claims_that_nothing_counts_are_warned_of(desk: Desk) -> None:
    """Of a RayCluster whose workers ask for a device by DRA."""
    claiming = ray_cluster("claims").label(QUEUE_LABEL, desk.namespace).workers(1).manifest()
    template = claiming["spec"]["workerGroupSpecs"][0]["template"]
    template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    assert any("resourceClaims" in one for one in desk.apply(claiming))
