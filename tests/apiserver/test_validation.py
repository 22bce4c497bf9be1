"""What kubectl prints of refusals and warnings, who is asked at all, and how much the apiserver passes on."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.testbed import wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import (
    PRIORITY_CLASS_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    REQUEUE_AFTER,
)
from muster.model.resource import QUEUES, Resource
from tests.support.cases import cases
from tests.support.cluster.desk import PATIENCE, Desk, Manifest
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS
from tests.support.cluster.reviews import reviews
from tests.support.manifests.applied import PyTorchJob, RayCluster, pytorch_job, queue, ray_cluster

_NOW = "2026-11-21T10:00:00Z"
_CONTROLLER = "system:serviceaccount:muster-system:muster-controller"
_QUEUE = f"metadata.labels[{QUEUE_LABEL}]"


@pytest.fixture
def lane(desk: Desk, calls: Api) -> Iterator[str]:
    """A queue of 4 cpu of the test's own."""
    calls.done("POST", QUEUES.path(), queue(desk.namespace, cpu="4"))
    yield desk.namespace
    calls.done("DELETE", QUEUES.path(name=desk.namespace))


@cases(
    "kind, workload",
    ("RayCluster", RAY_CLUSTERS, ray_cluster("one").workers(1)),
    ("PyTorchJob", PYTORCH_JOBS, pytorch_job("one").workers(1)),
)
def test_asked_only_where_spec_labels_or_queue_change(
    calls: Api, webhook: MusterInstall, lane: str, kind: Resource, workload: RayCluster | PyTorchJob
) -> None:
    """Operators write status and finalizers all the time, and what is being deleted must not hang on anybody."""
    path = kind.path(lane, "one")
    conditions = [{"type": "Created", "status": "True", "reason": "r", "message": "", "lastTransitionTime": _NOW}]
    started = reviews(webhook, "workloads")
    calls.done("POST", kind.path(lane), workload.label(QUEUE_LABEL, lane).manifest())
    assert reviews(webhook, "workloads") == started + 1, "a new workload"

    quiet: list[tuple[str, Manifest]] = [
        ("/status", {"status": {"conditions": conditions}}),
        ("", {"metadata": {"annotations": {"note": "1"}}}),
        ("", {"metadata": {"finalizers": ["example.com/one", "example.com/two"]}}),
    ]

    def change_it(change: Manifest, rest: str = "") -> None:
        # Of an object that its cache has as it was the apiserver asks once more, with what is stored.
        version = calls.get(path)["metadata"]["resourceVersion"]
        cached = f"{path}?resourceVersion=0"
        wait_for("the cache", lambda: calls.get(cached)["metadata"]["resourceVersion"] == version, PATIENCE)
        calls.done("PATCH", path + rest, change, patch="merge")

    for rest, change in quiet:
        change_it(change, rest)
    assert reviews(webhook, "workloads") == started + 1, "status, other annotations, finalizers"
    for change in ({"metadata": {"labels": {"app": "x"}}}, {"spec": _changed(kind)}):
        change_it(change)
    assert reviews(webhook, "workloads") == started + 3, "labels and spec"

    change_it({"metadata": {"annotations": {QUEUE_ANNOTATION: lane}}})
    assert reviews(webhook, "workloads") == started + 4, "the annotation that names a queue"

    calls.done("DELETE", path)
    for left in (["example.com/two"], None):
        calls.done("PATCH", path, {"metadata": {"finalizers": left}}, patch="merge")
    assert not calls("GET", path).ok
    assert reviews(webhook, "workloads") == started + 4, "its end"


def _kubectl_create(desk: Desk, manifest: Manifest) -> str:
    """What kubectl prints beside what it has created."""
    at = f"--namespace={desk.namespace}"
    return desk.testbed.kubectl("create", "-f-", at, input=json.dumps(manifest), check=False).stderr.strip()


def _changed(kind: Resource) -> dict[str, Any]:
    return {"rayVersion": "2.53.0"} if kind is RAY_CLUSTERS else {"runPolicy": {"backoffLimit": 2}}


def test_a_refusal_says_everything_that_is_wrong(desk: Desk, calls: Api, lane: str) -> None:
    """In one line of kubectl's, and one by one for programs."""
    cluster = ray_cluster("big").label(QUEUE_LABEL, lane).label(PRIORITY_CLASS_LABEL, "hihg").workers(4)
    room = (
        f'gang "ray-big-pg" needs cpu 5, queue "{lane}" has capability cpu 4; lower the replicas or use a larger queue'
    )
    unknown = 'PriorityClass "hihg" does not exist; name an existing class or create it first'
    priority = f"metadata.labels[{PRIORITY_CLASS_LABEL}]"
    message = f'admission webhook "workloads.muster.dev" denied the request: {_QUEUE}: {room}; {priority}: {unknown}'
    said = _kubectl_create(desk, cluster.manifest())
    assert said == f'Error from server (ExceedsCapability): error when creating "STDIN": {message}'
    answer = calls("POST", RAY_CLUSTERS.path(lane), cluster.manifest())
    assert (answer.status, answer.body["reason"], answer.message) == (422, "ExceedsCapability", message)
    assert answer.body["details"]["causes"] == [
        {"reason": "ExceedsCapability", "field": _QUEUE, "message": room},
        {"reason": "UnknownPriorityClass", "field": priority, "message": unknown},
    ]


def test_a_number_that_makes_no_gang_is_said_once(desk: Desk, lane: str) -> None:
    """Kubectl makes the line of the causes, and adds nothing."""
    job = pytorch_job("odd").policy(queue=lane, minAvailable=0)
    assert _kubectl_create(desk, job.manifest()) == (
        "The request is invalid: spec.runPolicy.schedulingPolicy.minAvailable: 0 is below 1; a gang starts with at "
        "least one pod"
    )


def test_warnings_come_before_what_kubectl_does_gravest_first(desk: Desk, lane: str) -> None:
    """A value with a line break makes no line of its own."""
    job = pytorch_job("odd").workers(2).policy(queue=lane, minAvailable=2, scheduleTimeoutSeconds=60)
    said = _kubectl_create(desk, job.annotate(REQUEUE_AFTER, "so\non").manifest())
    policy = "spec.runPolicy.schedulingPolicy"
    assert said.splitlines() == [
        (
            f"Warning: {policy}.minAvailable: 2 pods start the gang, but the job cannot work with fewer than 3, and "
            "those that run hold their room; raise it, or leave it out"
        ),
        (
            f'Warning: metadata.annotations[{REQUEUE_AFTER}]: "so\\non" is not a duration such as 30s, 10m or 1h30m; '
            "it is ignored"
        ),
        f"Warning: {policy}.scheduleTimeoutSeconds: volcano does not know it; the gang waits for as long as it must",
    ]


def test_a_misspelled_label_is_told_also_with_the_refusal_that_comes_of_it(desk: Desk, lane: str) -> None:
    """A workload of which nothing else is muster's makes no call: `muster plan` tells it there."""
    cluster = ray_cluster("slip").label("ray.io/scheduler-name", "volcano").label("volcano.sh/queuename", lane)
    warning, refusal = _kubectl_create(desk, cluster.manifest()).splitlines()
    key = "metadata.labels[volcano.sh/queuename]: unknown label; did you mean volcano.sh/queue-name?"
    assert warning == f"Warning: {key}"
    assert 'queue "default" does not exist' in refusal
    managed = cluster.label("volcano.sh/queue-name", lane).label("ray.io/priority", "high")
    key = "metadata.labels[ray.io/priority]: unknown label; did you mean ray.io/priority-class-name?"
    assert f"Warning: {key}" in _kubectl_create(desk, managed.manifest()).splitlines()


def _bound(lane: str, groups: int) -> Manifest:
    """A RayCluster that is warned of each PodGroup to which its head and its workers are bound, in 340 characters."""

    def template(number: int) -> Manifest:
        bound = {"scheduling.k8s.io/group-name": f"{number:03} {'word ' * 40}end"}
        return {**one["template"], "metadata": {"annotations": bound}}

    cluster = ray_cluster("bound").label(QUEUE_LABEL, lane).workers(0).manifest()
    (one,) = cluster["spec"]["workerGroupSpecs"]
    cluster["spec"]["headGroupSpec"]["template"]["metadata"] = template(0)["metadata"]
    cluster["spec"]["workerGroupSpecs"] = [
        {**one, "groupName": f"g{number}", "template": template(number)} for number in range(groups)
    ]
    return cluster


def test_long_warnings_pass_whole_up_to_what_the_apiserver_lets_through(desk: Desk, lane: str) -> None:
    """256 characters are its limit only where all together have more than 4096."""
    said = desk.apply(_bound(lane, 10))
    assert len(said) == 10
    assert all(len(line) > 300 and line.endswith("muster leaves them to it, and makes none") for line in said)


def test_of_too_many_warnings_each_is_cut_between_words(desk: Desk, lane: str) -> None:
    """The apiserver would cut within a word, and within a name."""
    said = desk.apply(_bound(lane, 30))
    assert all(line.endswith(" word...") and len(line) <= 256 for line in said)
    assert 16 <= len(said) < 30
    assert sum(map(len, said)) <= 4096


def test_kubectl_scale_is_answered_with_numbers(desk: Desk, calls: Api, webhook: MusterInstall, lane: str) -> None:
    """The review of a scale shows a number and no workload. Fewer pods make no call."""
    path = PYTORCH_JOBS.path(lane, "one")
    calls.done("POST", PYTORCH_JOBS.path(lane), pytorch_job("one").workers(1).policy(queue=lane).manifest())
    asked = reviews(webhook, "scale")
    said = desk.testbed.kubectl(
        "scale", "pytorchjob", "one", "--replicas=4", f"--namespace={lane}", check=False
    ).stderr.strip()
    assert said == (
        'Error from server (ExceedsCapability): admission webhook "scale.workloads.muster.dev" denied the request: '
        f'spec.runPolicy.schedulingPolicy.queue: gang "one" needs cpu 5, queue "{lane}" has capability cpu 4; '
        "lower the replicas or use a larger queue"
    )
    desk.testbed.kubectl("scale", "pytorchjob", "one", "--replicas=3", f"--namespace={lane}")
    assert reviews(webhook, "scale") == asked + 2
    calls.done("PATCH", f"{path}/scale", {"spec": {"replicas": 1}}, patch="merge")
    assert calls("GET", path).body["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 1
    assert reviews(webhook, "scale") == asked + 2


def test_a_queue_that_is_full_now_is_told_to_new_workloads_only(desk: Desk, calls: Api, lane: str) -> None:
    """A workload that is changed may hold that room itself."""
    used = {"status": {"state": "Open", "allocated": {"cpu": "3500m", "memory": "1Gi"}}}
    calls.done("PATCH", f"{QUEUES.path(name=lane)}/status", used, patch="merge")
    probe = ray_cluster("second").label(QUEUE_LABEL, lane)
    line = (
        f'{_QUEUE}: gang "ray-second-pg" needs cpu 1; queue "{lane}" has less than that free now '
        "(its capability is cpu 4)"
    )
    wait_for("the warning", lambda: line in "".join(desk.told(probe)), PATIENCE)
    assert len(desk.apply(probe)) == 1
    path = RAY_CLUSTERS.path(lane, "second")
    changed = calls("PATCH", path, {"spec": {"rayVersion": "2.0.0"}}, patch="merge")
    assert (changed.warnings, changed.body["spec"]["rayVersion"]) == ((), "2.0.0")
