"""What a TrainJob or its runtime asks for: queue, priority, topology, timeout; and whose gang it then is."""

import copy
from typing import Any

import pytest

from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.model.objects import ObjectMeta
from tests.support.cases import cases
from tests.support.cli.command import messages
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, template
from tests.support.manifests.train_jobs import DEFAULTS, QUEUE, RUNTIME, judged, patch, runtime, step, train_job

PRIORITY = "ray.io/priority-class-name"
ANNOTATION = "scheduling.volcano.sh/queue-name"
_PATCHES, _PATCHED = "spec.runtimePatches", "trainingRuntimeSpec.template.metadata"
_FROM = f"{RUNTIME}: spec.template.metadata"


@cases(
    "job, meta, queue, said",
    ("its label", {"labels": {QUEUE: "a"}}, {}, "a", f"metadata.labels[{QUEUE}]"),
    (
        "its annotation before its spec",
        {"annotations": {ANNOTATION: "a"}, "spec": {"labels": {QUEUE: "b"}}},
        {},
        "a",
        f"metadata.annotations[{ANNOTATION}]",
    ),
    (
        "its spec before the runtime",
        {"spec": {"labels": {QUEUE: "a"}, "annotations": {ANNOTATION: "b"}}},
        {"labels": {QUEUE: "c"}},
        "a",
        f"spec.labels[{QUEUE}]",
    ),
    (
        "an annotation in its spec",
        {"spec": {"annotations": {ANNOTATION: "a"}}},
        {"labels": {QUEUE: "c"}},
        "a",
        f"spec.annotations[{ANNOTATION}]",
    ),
    (
        "the runtime's label",
        {},
        {"labels": {QUEUE: "a"}, "annotations": {ANNOTATION: "b"}},
        "a",
        f"{_FROM}.labels[{QUEUE}]",
    ),
    ("its annotation", {}, {"annotations": {ANNOTATION: "a"}}, "a", f"{_FROM}.annotations[{ANNOTATION}]"),
    (
        "a patch before the runtime",
        {"spec": {"runtimePatches": [patch(meta={"labels": {QUEUE: "a"}})], "labels": {QUEUE: "b"}}},
        {"labels": {QUEUE: "c"}},
        "a",
        f"{_PATCHES}[0].{_PATCHED}.labels[{QUEUE}]",
    ),
    (
        "the last patch that says something",
        {
            "spec": {
                "runtimePatches": [
                    patch(meta={"labels": {QUEUE: "b"}}),
                    patch(meta={"annotations": {ANNOTATION: "a"}}),
                    patch(),
                ]
            }
        },
        {},
        "a",
        f"{_PATCHES}[1].{_PATCHED}.annotations[{ANNOTATION}]",
    ),
    (
        "its label before a patch",
        {"labels": {QUEUE: "a"}, "spec": {"runtimePatches": [patch(meta={"labels": {QUEUE: "b"}})]}},
        {},
        "a",
        f"metadata.labels[{QUEUE}]",
    ),
    (
        "the namespace last",
        {},
        {"labels": {PRIORITY: "high"}},
        "d",
        f"namespace {NAMESPACE}: metadata.annotations[{ANNOTATION}]",
    ),
)
def test_who_says_the_queue(job: JSON, meta: JSON, queue: str, said: str) -> None:
    manifest = train_job()
    manifest["metadata"] |= {"labels": {}, **{key: value for key, value in job.items() if key != "spec"}}
    manifest["spec"] |= job.get("spec", {})
    namespace = ObjectMeta(name=NAMESPACE, annotations={ANNOTATION: "d"})
    intent = judged(manifest, runtime(meta=meta), namespace).intent
    assert intent is not None
    assert (intent.queue, intent.paths["queue"]) == (queue, said)


@cases(
    "job, of, muster_s",
    ("nothing said", train_job(labels={}), runtime(), False),
    ("the runtime says it", train_job(labels={}), runtime(meta={"labels": {QUEUE: "q"}}), True),
    (
        "opted out of its runtime's choice",
        train_job(labels={"muster.dev/managed": "false"}),
        runtime(meta={"labels": {QUEUE: "q"}}),
        False,
    ),
    (
        "a runtime may opt all its jobs out",
        train_job(),
        runtime(meta={"labels": {"muster.dev/managed": "false"}}),
        False,
    ),
    (
        "a podGroupPolicy is the Trainer's own gang scheduling",
        train_job(labels={}),
        runtime(podGroupPolicy={"volcano": {}}),
        False,
    ),
    (
        "with coscheduling too",
        train_job(labels={}),
        runtime(podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": 10}}),
        False,
    ),
    ("a patch says it", train_job(labels={}, runtimePatches=[patch(meta={"labels": {QUEUE: "q"}})]), runtime(), True),
    (
        "a patch opts out of its runtime's choice",
        train_job(labels={}, runtimePatches=[patch(meta={"labels": {"muster.dev/managed": "false"}})]),
        runtime(meta={"labels": {QUEUE: "q"}}),
        False,
    ),
    (
        "a scheduler that muster does not know, in a patch",
        train_job(runtimePatches=[patch(meta={"labels": {"ray.io/scheduler-name": "yunikorn"}})]),
        runtime(),
        False,
    ),
    (
        "a scheduler that muster does not know",
        train_job(labels=QUEUE_LABELS),
        runtime(meta={"labels": {"ray.io/scheduler-name": "yunikorn"}}),
        False,
    ),
)
def test_whose_it_is(job: JSON, of: JSON, muster_s: bool) -> None:
    verdict = judged(job, of)
    assert verdict.allowed
    assert (verdict.intent is not None) is muster_s


def test_a_patch_may_name_priority_and_scheduler() -> None:
    labels = {PRIORITY: "high", "ray.io/scheduler-name": "scheduler-plugins-scheduler"}
    intent = judged(train_job(runtimePatches=[patch(meta={"labels": labels})]), runtime()).intent
    assert intent is not None
    assert (intent.priority_class, intent.scheduler) == ("high", "scheduler-plugins-scheduler")
    assert intent.prioritise_pods


def test_a_priority_class_that_only_the_runtime_s_template_names() -> None:
    of = runtime(step("node", "trainer", pod=template(priorityClassName="high")))
    intent = judged(train_job(), of).intent
    assert intent is not None
    path = f"{RUNTIME}: spec.template.spec.replicatedJobs[0].template.spec.template.spec.priorityClassName"
    assert (intent.priority_class, intent.paths["priorityClassName"]) == ("high", path)
    assert not intent.prioritise_pods


@cases(
    "labels, asked, topology",
    ("the policy's", {}, {"mode": "soft", "highestTierAllowed": 2}, ("soft", 2)),
    ("with the CRD's defaults", {}, {}, ("hard", 1)),
    ("a label first", {"volcano.sh/network-topology-mode": "soft"}, {"highestTierAllowed": 2}, ("soft", None)),
)
def test_network_topology(labels: JSON, asked: JSON, topology: tuple[str, int | None]) -> None:
    of = runtime(podGroupPolicy={"volcano": {"networkTopology": asked}})
    intent = judged(train_job(labels={**QUEUE_LABELS, **labels}), of).intent
    assert intent is not None
    assert intent.topology is not None
    assert (intent.topology.mode, intent.topology.highest_tier_allowed) == topology


def test_a_negative_timeout_is_refused_where_it_stands() -> None:
    refusals = judged(train_job(), runtime(podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": -1}})).refusals
    path = f"{RUNTIME}: spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds"
    assert [one.message for one in refusals] == [f"{path}: -1 is negative; use 0 or more seconds"]


def test_the_timeout_of_coscheduling_goes_into_its_pod_group() -> None:
    labels = {**QUEUE_LABELS, "ray.io/scheduler-name": "scheduler-plugins-scheduler"}
    entries = planned(train_job(labels=labels), runtime(podGroupPolicy={"coscheduling": {}}))
    assert entries[0]["podGroup"]["spec"]["scheduleTimeoutSeconds"] == 60


def planned(*manifests: JSON) -> list[dict[str, Any]]:
    return [one.data() for one in plan([Document("test", copy.deepcopy(one)) for one in manifests], DEFAULTS)]


def test_the_plan_of_a_train_job_wherever_its_runtime_stands(capsys: pytest.CaptureFixture[str]) -> None:
    job, of = train_job({"numNodes": 2}), runtime(kind="TrainingRuntime")
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    entries = planned(job, of)
    assert entries == planned(of, job)
    metadata = entries[0]["podGroup"]["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("train", NAMESPACE)
    assert [(owner["kind"], owner["name"]) for owner in metadata["ownerReferences"]] == [("TrainJob", "train")]
    assert entries[0]["podGroup"]["spec"]["minMember"] == 2
    assert entries[0]["roles"][0]["patch"]
    assert not capsys.readouterr().err


def test_pods_that_the_trainer_binds_itself_are_left_to_its_pod_group() -> None:
    """Where the runtime has a podGroupPolicy, muster checks the queue and does nothing else."""
    entry = planned(train_job(), runtime(podGroupPolicy={"volcano": {}}))[0]
    assert (entry["roles"][0]["patch"], entry["roles"][0]["getsGate"]) == ([], False)
    (line,) = messages(entry["verdict"]["warnings"])
    assert line == (
        "ClusterTrainingRuntime torch: spec.template.spec.replicatedJobs[0].template.spec.template.metadata: "
        'its pods come bound to PodGroup "train"; muster leaves them to it, and makes none'
    )
