"""What is found in workloads where another one than the ledger admits."""

from dataclasses import replace

import pytest

from muster.admitters import Admitter
from muster.admitters.kueue_quota import ClusterQueue
from muster.gangs.intent import Defaults, IntentScope
from muster.model.findings import Reason
from muster.model.names import ADMITTER
from muster.model.objects import ObjectMeta
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.schedulers import named
from muster.validation.context import Context
from muster.validation.workload import Verdict
from tests.support.cases import cases
from tests.support.manifests.families import FAMILIES, Family, judged
from tests.support.manifests.kueue import flavored_queue
from tests.support.manifests.observed import JSON, amounts, made, ray_cluster, template

LABELS = {"volcano.sh/queue-name": "q", "kueue.x-k8s.io/queue-name": "team"}
DEFAULTS = Defaults(admitters=tuple(Admitter))
# Whose operators add init containers.
ADDED_TO = tuple(one for one in FAMILIES if one.kind in ("RayCluster", "PyTorchJob"))
TINY, CLOSED = QueueView("q", "Open", amounts(cpu="1")), QueueView("q", "Closed", {})


def verdict(
    manifest: JSON,
    queue: QueueView = TINY,
    *,
    admitter: str = "kueue",
    quota: JSON | None = None,
    defaults: Defaults = DEFAULTS,
) -> Verdict:
    """What is said of a workload of 3 cpu, in a namespace whose annotation names the admitter."""
    scope = IntentScope(namespace=ObjectMeta(name="ns", annotations={ADMITTER: admitter}))
    cluster_queue = made(ClusterQueue, quota) if quota else None
    context = Context(QueueTree([queue]).place, {"": 0}, defaults, scope, cluster_queue=cluster_queue)
    return judged(manifest, context)


def reasons(found: Verdict) -> tuple[list[Reason], list[Reason]]:
    return [one.reason for one in found.refusals], [one.reason for one in found.warnings]


@pytest.mark.parametrize("admitter", ["kueue", "none"])
def test_the_capability_of_a_queue_refuses_nothing_that_the_ledger_does_not_admit(admitter: str) -> None:
    assert reasons(verdict(ray_cluster(labels=LABELS), admitter=admitter)) == ([], [])
    assert reasons(verdict(ray_cluster(labels=LABELS), admitter="ledger"))[0] == [Reason.EXCEEDS_CAPABILITY]


def test_a_queue_that_its_scheduler_places_nothing_in_refuses_all_the_same() -> None:
    assert reasons(verdict(ray_cluster(labels=LABELS), CLOSED))[0] == [Reason.QUEUE_CLOSED]
    elsewhere = replace(DEFAULTS, schedulers=named("coscheduling"))
    assert reasons(verdict(ray_cluster(labels=LABELS), CLOSED, defaults=elsewhere)) == ([], [])


@cases(
    "quota, expected",
    ("just enough", flavored_queue({"cpu": "3", "memory": "3Gi"}), []),
    ("too little", flavored_queue({"cpu": "2", "memory": "3Gi"}), [Reason.EXCEEDS_KUEUE_QUOTA]),
    ("what it may borrow", flavored_queue({"cpu": "2", "memory": "3Gi"}, cohort="all"), []),
    ("nobody knows the queue", None, []),
)
def test_what_no_quota_of_kueues_can_hold_is_warned_of(quota: JSON | None, expected: list[Reason]) -> None:
    assert reasons(verdict(ray_cluster(labels=LABELS), quota=quota)) == ([], expected)


def test_the_submitter_of_a_ray_job_counts_with_kueue() -> None:
    """It asks for 500m, and is no member of the gang."""
    job = ray_cluster(labels=LABELS)
    job |= {"kind": "RayJob", "spec": {"rayClusterSpec": job["spec"], "entrypoint": "x"}}
    assert reasons(verdict(job, quota=flavored_queue({"cpu": "3500m", "memory": "4Gi"})))[1] == []
    (found,) = verdict(job, quota=flavored_queue({"cpu": "3", "memory": "4Gi"})).warnings
    assert "it needs cpu 3500m, and all flavors of ClusterQueue" in found.message
    job["spec"]["submissionMode"] = "HTTPMode"
    assert reasons(verdict(job, quota=flavored_queue({"cpu": "3", "memory": "4Gi"})))[1] == []


@pytest.mark.parametrize("family", ADDED_TO, ids=lambda family: family.kind)
def test_what_operators_add_to_the_pods_does_not_count_with_kueue(family: Family) -> None:
    """Their init containers ask for cpu and memory, of which a ClusterQueue of GPUs alone has no quota."""
    gpu = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    job = family.manifest(gpu, gpu, labels=LABELS)
    assert reasons(verdict(job, quota=flavored_queue({"nvidia.com/gpu": "3"})))[1] == []
    (found,) = verdict(job, quota=flavored_queue({"nvidia.com/gpu": "2"})).warnings
    assert "it needs nvidia.com/gpu 3, and all flavors" in found.message


@pytest.mark.parametrize("cpu", ["-1", "1e99"])
def test_a_submitter_whose_requests_are_none_leaves_the_quota_unjudged(cpu: str) -> None:
    """Its pod is no member: who cannot count it refuses nothing, and fails nobody's call."""
    job = ray_cluster(labels=LABELS)
    job |= {"kind": "RayJob", "spec": {"rayClusterSpec": job["spec"], "submitterPodTemplate": template(cpu)}}
    assert reasons(verdict(job, quota=flavored_queue({"cpu": "1"}))) == ([], [])


def plain_job(labels: JSON, annotations: JSON | None = None) -> JSON:
    """A Job of four pods of 1 cpu whose template names a gang; labels and annotations are its own."""
    of_pods = {
        "labels": {"muster.dev/gang": "g", "volcano.sh/queue-name": "q"},
        "annotations": {"muster.dev/gang-size": "4"},
    }
    metadata = {"name": "job", "namespace": "ns", "labels": labels, "annotations": annotations or {}}
    spec = {"parallelism": 4, "completions": 4, "template": {"metadata": of_pods, **template()}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def test_of_a_job_that_kueue_may_admit_in_part_nobody_says_that_it_is_too_large() -> None:
    in_queue, small = {"kueue.x-k8s.io/queue-name": "team"}, flavored_queue({"cpu": "3", "memory": "9Gi"})
    assert reasons(verdict(plain_job(in_queue), quota=small)) == ([], [Reason.EXCEEDS_KUEUE_QUOTA])
    in_part = plain_job(in_queue, {"kueue.x-k8s.io/job-min-parallelism": "1"})
    assert reasons(verdict(in_part, quota=small)) == ([], [])


def test_a_workload_in_no_queue_of_kueues_is_warned_of() -> None:
    assert reasons(verdict(ray_cluster())) == ([], [Reason.IN_NO_KUEUE_QUEUE])


def test_the_label_for_kueue_is_asked_for_on_the_job_and_not_on_its_pods() -> None:
    """On the pods it would have Kueue admit them one by one."""
    (found,) = verdict(plain_job({})).warnings
    assert (found.reason, found.field) == (Reason.IN_NO_KUEUE_QUEUE, "metadata.labels[kueue.x-k8s.io/queue-name]")


def test_an_admitter_that_is_not_configured_is_ignored_and_said() -> None:
    known = replace(DEFAULTS, admitters=(Admitter.LEDGER,))
    large = QueueView("q", "Open", amounts(cpu="9", memory="9Gi"))
    (found,) = verdict(ray_cluster(labels=LABELS), large, defaults=known).warnings
    assert found.message == (
        'namespace: metadata.annotations[muster.dev/admitter]: "kueue" is none of the admitters (ledger); '
        "it is ignored, and ledger admits"
    )
