"""A TrainJob and its runtime as the Trainer reads them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from muster.admission import Context, Verdict, judge
from muster.cli.manifests import Document
from muster.cli.plan import plan
from muster.findings import Reason
from muster.intent import Defaults, Surroundings
from muster.objects import InvalidObjectError, ObjectMeta
from muster.resources import as_text
from muster.schedulers import SCHEDULERS
from muster.workloads import Reference
from muster.workloads.trainer import (
    CLUSTER_TRAINING_RUNTIME,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    TrainingRuntime,
    TrainJob,
)
from tests.unit.builders import JSON, NAMESPACE, QUEUE_LABELS, lines, made, template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.workloads import Workload

QUEUE = "volcano.sh/queue-name"
PRIORITY = "ray.io/priority-class-name"
ANNOTATION = "scheduling.volcano.sh/queue-name"
RUNTIME = "ClusterTrainingRuntime torch"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_DEFAULTS = Defaults(schedulers=frozenset(SCHEDULERS))


def step(name: str, of: str = "", *, pod: JSON | None = None, depends_on: str = "", **rest: object) -> JSON:
    """A replicated job; `of` is the step of a TrainJob that it is, `rest` fields of its Job."""
    waits = {"dependsOn": [{"name": depends_on, "status": "Complete"}]} if depends_on else {}
    container = {"name": of if of.endswith("initializer") else "node", "resources": {"requests": {"cpu": "1"}}}
    pod = pod or {"spec": {"containers": [container]}}
    labels = {"metadata": {"labels": {_STEP: of}}} if of else {}
    return {"name": name, **waits, "template": {**labels, "spec": {"template": pod, **rest}}}


TRAINER = step("node", "trainer")
LAUNCHER = step("launcher", "trainer")


def runtime(*jobs: JSON, meta: JSON | None = None, kind: str = "ClusterTrainingRuntime", **spec: object) -> JSON:
    """A runtime of one replicated job that trains, where none are given; `meta` is its template's metadata."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "torch", **({"namespace": NAMESPACE} if kind == "TrainingRuntime" else {})},
        "spec": {
            "mlPolicy": {"torch": {}},
            **spec,
            "template": {"metadata": meta or {}, "spec": {"replicatedJobs": list(jobs or (TRAINER,))}},
        },
    }


def train_job(
    trainer: JSON | None = None,
    *,
    labels: Mapping[str, str] = QUEUE_LABELS,
    annotations: Mapping[str, str] | None = None,
    status: JSON | None = None,
    **spec: object,
) -> JSON:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": "train",
            "namespace": NAMESPACE,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
        },
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": trainer or {}, **spec},
        "status": status or {},
    }


def read(job: JSON, of: JSON) -> Workload:
    origin = TRAIN_JOB.origin
    assert origin is not None
    return TRAIN_JOB.read(origin.joined(made(TrainJob, job), made(TrainingRuntime, of)))


def judged(job: JSON, of: JSON | None = None, namespace: ObjectMeta | None = None) -> Verdict:
    """The verdict where there is that runtime, or none."""
    known = {}
    if of is not None:
        source = TRAINING_RUNTIME if of["kind"] == "TrainingRuntime" else CLUSTER_TRAINING_RUNTIME
        known[Reference(source, of["metadata"].get("namespace", ""), "torch")] = made(TrainingRuntime, of)
    around = Surroundings(namespace=namespace or ObjectMeta(name=NAMESPACE))
    return judge(TRAIN_JOB, made(TrainJob, job), Context(origin=known.get, around=around, defaults=_DEFAULTS))


def counts(workload: Workload) -> dict[str, int]:
    return {role.name: role.replicas for role in workload.roles}


_MPI: JSON = {"mpiImplementation": "OpenMPI"}
_AS_NODE: JSON = {**_MPI, "runLauncherAsNode": True}


@pytest.mark.parametrize(
    ("nodes", "of", "counted"),
    [
        pytest.param(None, runtime(), {"node": 1}, id="one where nobody says a number"),
        pytest.param(None, runtime(mlPolicy={"numNodes": 3}), {"node": 3}, id="the runtime's"),
        pytest.param(2, runtime(mlPolicy={"numNodes": 3}), {"node": 2}, id="the TrainJob's before the runtime's"),
        pytest.param(0, runtime(mlPolicy={"numNodes": 3}), {"node": 0}, id="none is a number"),
        pytest.param(None, runtime(mlPolicy={"numNodes": 0}), {"node": 1}, id="a runtime's none is one"),
        pytest.param(
            None, runtime(step("node", "trainer", parallelism=4)), {"node": 1}, id="a policy goes before parallelism"
        ),
        pytest.param(
            None,
            runtime(step("node", "trainer", parallelism=4), mlPolicy=None),
            {"node": 4},
            id="parallelism without a policy",
        ),
        pytest.param(5, runtime(mlPolicy=None), {"node": 5}, id="the TrainJob's without a policy"),
        pytest.param(
            3,
            runtime(step("node"), step("other", parallelism=2)),
            {"node": 1, "other": 2},
            id="a runtime without a trainer step has no nodes to count",
        ),
        pytest.param(
            3, runtime(TRAINER, step("second", "trainer")), {"node": 3, "second": 1}, id="of two steps the first"
        ),
        pytest.param(
            4, runtime(LAUNCHER, step("node"), mlPolicy={"mpi": _MPI}), {"launcher": 1, "node": 4}, id="MPI by name"
        ),
        pytest.param(
            4,
            runtime(LAUNCHER, step("node"), mlPolicy={"mpi": _AS_NODE}),
            {"launcher": 1, "node": 3},
            id="the launcher is one of the nodes",
        ),
        pytest.param(
            1,
            runtime(LAUNCHER, step("node"), mlPolicy={"mpi": _AS_NODE}),
            {"launcher": 1, "node": 1},
            id="and there is always another",
        ),
        pytest.param(
            None,
            runtime(LAUNCHER, step("node", parallelism=2), mlPolicy={"numNodes": 3, "mpi": _AS_NODE}),
            {"launcher": 3, "node": 2},
            id="MPI: the runtime's number is the launchers'",
        ),
    ],
)
def test_how_many_pods_the_trainer_makes(nodes: int | None, of: JSON, counted: dict[str, int]) -> None:
    job = train_job({} if nodes is None else {"numNodes": nodes})
    assert counts(read(job, of)) == counted


def test_of_a_step_there_is_one_job_and_of_others_as_many_as_the_runtime_says() -> None:
    jobs = [{**one, "replicas": 2} for one in (TRAINER, step("data", "dataset-initializer"), step("metrics"))]
    assert counts(read(train_job({"numNodes": 3}), runtime(*jobs))) == {"node": 3, "data": 1, "metrics": 2}


@pytest.mark.parametrize(
    ("job", "of", "line"),
    [
        pytest.param(
            train_job({"numNodes": -1}),
            runtime(),
            "spec.trainer.numNodes: -1 is negative; use 0 or more",
            id="negative nodes",
        ),
        pytest.param(
            train_job(),
            runtime(TRAINER, {**step("metrics"), "replicas": -2}),
            f"{RUNTIME}: spec.template.spec.replicatedJobs[1].replicas: -2 is negative; use 0 or more",
            id="negative replicas in the runtime",
        ),
        pytest.param(
            train_job({"resourcesPerNode": {"limits": {"memory": "much"}}}),
            runtime(),
            'spec.trainer.resourcesPerNode.limits.memory: "much" is not a quantity such as 500m, 2 or 1.5Gi',
            id="an amount that is none",
        ),
        pytest.param(
            train_job(),
            {**runtime(), "spec": {}},
            f"{RUNTIME}: spec.template.spec.replicatedJobs: empty; a JobSet has at least one",
            id="an empty runtime",
        ),
        pytest.param(
            train_job(),
            runtime(podGroupPolicy={"volcano": {"networkTopology": {"mode": "firm"}}}),
            f'{RUNTIME}: spec.podGroupPolicy.volcano.networkTopology.mode: "firm" is not a mode; use hard or soft',
            id="a topology that there is not",
        ),
    ],
)
def test_what_makes_no_gang_is_refused_by_field(job: JSON, of: JSON, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        read(job, of)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("ref", "line"),
    [
        pytest.param(
            {"kind": "Deployment", "name": "x"},
            'spec.runtimeRef: "Deployment" of "trainer.kubeflow.org" is no runtime; '
            "use TrainingRuntime or ClusterTrainingRuntime of trainer.kubeflow.org",
            id="another kind",
        ),
        pytest.param({}, "spec.runtimeRef.name: missing; name the runtime that the TrainJob runs in", id="no name"),
    ],
)
def test_a_reference_to_no_runtime_is_invalid(ref: JSON, line: str) -> None:
    refusals = judged(train_job(runtimeRef=ref), runtime()).refusals
    assert [(one.reason, one.message) for one in refusals] == [(Reason.INVALID, line)]


@pytest.mark.parametrize(
    ("ref", "what"),
    [
        pytest.param({"name": "torch"}, 'ClusterTrainingRuntime "torch" is not known', id="of the cluster"),
        pytest.param(
            {"kind": "TrainingRuntime", "name": "torch"},
            f'TrainingRuntime "torch" is not known in namespace "{NAMESPACE}"',
            id="of the namespace",
        ),
    ],
)
def test_without_its_runtime_a_train_job_is_refused_with_what_to_do(ref: JSON, what: str) -> None:
    refusals = judged(train_job(runtimeRef=ref)).refusals
    assert [(one.reason, one.field) for one in refusals] == [
        (Reason.TRAINING_RUNTIME_NOT_FOUND, "spec.runtimeRef.name")
    ]
    assert refusals[0].message == (
        f"spec.runtimeRef.name: {what}: the pods cannot be counted; create it first "
        "(for muster plan: add its manifest to the input, or use --cluster)"
    )


def test_a_fault_within_the_runtime_is_refused_with_the_whole_of_its_path() -> None:
    (refusal,) = judged(train_job(), runtime(step("node"), step("node"))).refusals
    assert refusal.field == f"{RUNTIME}: spec.template.spec.replicatedJobs[1].name"
    assert refusal.message.startswith(f'{refusal.field}: "node" is taken;')


def test_a_train_job_that_is_being_deleted_needs_no_runtime_any_more() -> None:
    job = train_job()
    job["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    assert judged(job) == Verdict()


def test_a_runtime_of_another_namespace_is_not_its_own() -> None:
    of = runtime(kind="TrainingRuntime")
    of["metadata"]["namespace"] = "elsewhere"
    job = train_job(runtimeRef={"kind": "TrainingRuntime", "name": "torch"})
    assert [one.reason for one in judged(job, of).refusals] == [Reason.TRAINING_RUNTIME_NOT_FOUND]


def test_a_train_job_that_says_nothing_is_only_warned_about_a_missing_runtime_which_might() -> None:
    verdict = judged(train_job(labels={}))
    assert verdict.allowed
    assert verdict.intent is None
    assert "is not known" in "".join(lines(verdict.warnings))
    assert not judged(train_job(labels={"muster.dev/managed": "false"})).warnings
    assert not judged(train_job(labels={}), runtime()).warnings


_TUNE = (
    step("data", "dataset-initializer"),
    step("model", "model-initializer"),
    {**TRAINER, "dependsOn": [{"name": "data", "status": "Complete"}, {"name": "model", "status": "Complete"}]},
)


def test_only_the_first_wave_must_exist_before_the_gang_starts() -> None:
    """As in the shipped torchtune runtimes: the nodes come when the initializers are through."""
    gang = judged(train_job({"numNodes": 3}), runtime(*_TUNE)).gang
    assert gang is not None
    assert gang.min_task_member == {"data": 1, "model": 1}
    assert (gang.min_member, as_text(gang.min_resources)) == (2, {"cpu": "2"})
    assert {role.name: role.replicas for role in gang.roles} == {"data": 1, "model": 1, "node": 3}


_TWO_CONTAINERS: JSON = {
    "spec": {
        "containers": [
            {"name": "node", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}},
            {"name": "proxy", "resources": {"requests": {"cpu": "250m"}}},
        ]
    }
}


@pytest.mark.parametrize(
    ("per_node", "asked"),
    [
        pytest.param(None, {"cpu": "1250m", "memory": "1Gi"}, id="the runtime's"),
        pytest.param({}, {"cpu": "1250m", "memory": "1Gi"}, id="an empty one says nothing"),
        pytest.param({"requests": {"cpu": "4"}}, {"cpu": "4250m"}, id="replaces all, for the node container"),
        pytest.param(
            {"limits": {"nvidia.com/gpu": 2}}, {"cpu": "250m", "nvidia.com/gpu": "2"}, id="limits stand for requests"
        ),
        pytest.param({"limits": {}}, {"cpu": "250m"}, id="empty limits are limits"),
    ],
)
def test_resources_per_node(per_node: JSON | None, asked: dict[str, str]) -> None:
    job = train_job({} if per_node is None else {"resourcesPerNode": per_node})
    gang = judged(job, runtime(step("node", "trainer", pod=_TWO_CONTAINERS))).gang
    assert gang is not None
    assert as_text(gang.min_resources) == asked


@pytest.mark.parametrize(
    ("policy", "cpus"),
    [
        pytest.param({"mpi": _AS_NODE}, {"launcher": "8", "node": "8"}, id="launcher as node: both"),
        pytest.param({"mpi": _MPI}, {"launcher": "8", "node": "1"}, id="else the trainer step only"),
    ],
)
def test_resources_per_node_under_mpi(policy: JSON, cpus: dict[str, str]) -> None:
    job = train_job({"resourcesPerNode": {"requests": {"cpu": "8"}}})
    gang = judged(job, runtime(LAUNCHER, step("node"), mlPolicy=policy)).gang
    assert gang is not None
    assert {role.name: str(role.requests["cpu"]) for role in gang.roles} == cpus


def test_overrides_change_the_metadata_and_gates_of_their_targets() -> None:
    pod = {**template(schedulingGates=[{"name": "a"}]), "metadata": {"labels": {"x": "1"}, "annotations": {"y": "1"}}}
    override = {
        "targetJobs": [{"name": "node"}],
        "metadata": {"labels": {"x": "2"}, "annotations": {"z": "1"}},
        "spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]},
    }
    jobs = [step(name, pod=pod) for name in ("node", "other")]
    roles = read(train_job(podTemplateOverrides=[override]), runtime(*jobs)).roles
    node, other = (role.template for role in roles)
    assert (node.metadata.labels, node.metadata.annotations) == ({"x": "2"}, {"y": "1", "z": "1"})
    assert [gate.name for gate in node.spec.scheduling_gates] == ["a", "b"]
    assert (other.metadata.labels, other.metadata.annotations) == ({"x": "1"}, {"y": "1"})
    assert [gate.name for gate in other.spec.scheduling_gates] == ["a"]


@pytest.mark.parametrize(
    ("job", "suspended", "finished"),
    [
        pytest.param(train_job(), False, False, id="runs"),
        pytest.param(train_job(suspend=True), True, False, id="suspended"),
        pytest.param(
            train_job(status={"conditions": [{"type": "Complete", "status": "True"}]}), False, True, id="complete"
        ),
        pytest.param(
            train_job(status={"conditions": [{"type": "Failed", "status": "True"}]}), False, True, id="failed"
        ),
        pytest.param(
            train_job(status={"conditions": [{"type": "Failed", "status": "False"}]}), False, False, id="not failed"
        ),
    ],
)
def test_where_a_train_job_stands(job: JSON, suspended: bool, finished: bool) -> None:  # noqa: FBT001
    of = runtime()
    of["spec"]["template"]["spec"]["suspend"] = not suspended  # the TrainJob's counts
    workload = read(job, of)
    assert (workload.suspended, workload.finished) == (suspended, finished)


_FROM = f"{RUNTIME}: spec.template.metadata"


@pytest.mark.parametrize(
    ("job", "meta", "queue", "said"),
    [
        pytest.param({"labels": {QUEUE: "a"}}, {}, "a", f"metadata.labels[{QUEUE}]", id="its label"),
        pytest.param(
            {"annotations": {ANNOTATION: "a"}, "spec": {"labels": {QUEUE: "b"}}},
            {},
            "a",
            f"metadata.annotations[{ANNOTATION}]",
            id="its annotation before its spec",
        ),
        pytest.param(
            {"spec": {"labels": {QUEUE: "a"}, "annotations": {ANNOTATION: "b"}}},
            {"labels": {QUEUE: "c"}},
            "a",
            f"spec.labels[{QUEUE}]",
            id="its spec before the runtime",
        ),
        pytest.param(
            {"spec": {"annotations": {ANNOTATION: "a"}}},
            {"labels": {QUEUE: "c"}},
            "a",
            f"spec.annotations[{ANNOTATION}]",
            id="an annotation in its spec",
        ),
        pytest.param(
            {},
            {"labels": {QUEUE: "a"}, "annotations": {ANNOTATION: "b"}},
            "a",
            f"{_FROM}.labels[{QUEUE}]",
            id="the runtime's label",
        ),
        pytest.param(
            {}, {"annotations": {ANNOTATION: "a"}}, "a", f"{_FROM}.annotations[{ANNOTATION}]", id="its annotation"
        ),
        pytest.param(
            {},
            {"labels": {PRIORITY: "high"}},
            "d",
            f"namespace {NAMESPACE}: metadata.annotations[{ANNOTATION}]",
            id="the namespace last",
        ),
    ],
)
def test_who_says_the_queue(job: JSON, meta: JSON, queue: str, said: str) -> None:
    manifest = train_job()
    manifest["metadata"] |= {"labels": {}, **{key: value for key, value in job.items() if key != "spec"}}
    manifest["spec"] |= job.get("spec", {})
    namespace = ObjectMeta(name=NAMESPACE, annotations={ANNOTATION: "d"})
    intent = judged(manifest, runtime(meta=meta), namespace).intent
    assert intent is not None
    assert (intent.queue, intent.said["queue"]) == (queue, said)


@pytest.mark.parametrize(
    ("job", "of", "muster_s"),
    [
        pytest.param(train_job(labels={}), runtime(), False, id="nothing said"),
        pytest.param(train_job(labels={}), runtime(meta={"labels": {QUEUE: "q"}}), True, id="the runtime says it"),
        pytest.param(
            train_job(labels={"muster.dev/managed": "false"}),
            runtime(meta={"labels": {QUEUE: "q"}}),
            False,
            id="opted out of its runtime's choice",
        ),
        pytest.param(
            train_job(),
            runtime(meta={"labels": {"muster.dev/managed": "false"}}),
            False,
            id="a runtime may opt all its jobs out",
        ),
        pytest.param(
            train_job(labels={}),
            runtime(podGroupPolicy={"volcano": {}}),
            False,
            id="a podGroupPolicy is the Trainer's own gang scheduling",
        ),
        pytest.param(
            train_job(labels={}),
            runtime(podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": 10}}),
            False,
            id="with coscheduling too",
        ),
        pytest.param(
            train_job(labels=QUEUE_LABELS),
            runtime(meta={"labels": {"ray.io/scheduler-name": "yunikorn"}}),
            False,
            id="a scheduler that muster does not know",
        ),
    ],
)
def test_whose_it_is(job: JSON, of: JSON, muster_s: bool) -> None:  # noqa: FBT001
    verdict = judged(job, of)
    assert verdict.allowed
    assert (verdict.intent is not None) is muster_s


def test_a_priority_class_that_only_the_runtime_s_template_names() -> None:
    of = runtime(step("node", "trainer", pod=template(priorityClassName="high")))
    intent = judged(train_job(), of).intent
    assert intent is not None
    path = f"{RUNTIME}: spec.template.spec.replicatedJobs[0].template.spec.template.spec.priorityClassName"
    assert (intent.priority_class, intent.said["priorityClassName"]) == ("high", path)
    assert not intent.prioritise_pods


@pytest.mark.parametrize(
    ("labels", "asked", "topology"),
    [
        pytest.param({}, {"mode": "soft", "highestTierAllowed": 2}, ("soft", 2), id="the policy's"),
        pytest.param({}, {}, ("hard", 1), id="with the CRD's defaults"),
        pytest.param(
            {"volcano.sh/network-topology-mode": "soft"}, {"highestTierAllowed": 2}, ("soft", None), id="a label first"
        ),
    ],
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
    return plan([Document("test", copy.deepcopy(one)) for one in manifests], _DEFAULTS)


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
    assert (entry["roles"][0]["patch"], entry["roles"][0]["gated"]) == ([], False)
    (line,) = entry["verdict"]["warnings"]
    assert line == (
        "ClusterTrainingRuntime torch: spec.template.spec.replicatedJobs[0].template.spec.template.metadata: "
        'its pods come bound to PodGroup "train"; muster leaves them to it, and makes none'
    )
