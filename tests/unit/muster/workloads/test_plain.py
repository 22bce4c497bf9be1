"""Pods and batch Jobs that opt in by themselves."""

from collections.abc import Callable

import pytest

from muster.model.findings import Reason
from muster.model.pods import Pod
from muster.resources.amounts import as_text
from muster.schedulers import SCHEDULERS
from muster.workloads.plain import PLAIN_JOB
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, NAMESPACE, made, pod, read, template

SIZE, GANG = "muster.dev/gang-size", "muster.dev/gang"
ON_POD, ON_TEMPLATE = "metadata", "spec.template.metadata"


def meta(size: str | None = "2", gang: str = "g", **annotations: str) -> JSON:
    sized = {} if size is None else {SIZE: size}
    return {"labels": {GANG: gang, "volcano.sh/queue-name": "q"}, "annotations": {**sized, **annotations}}


def plain_job(
    said: JSON | None = None, pods: JSON | None = None, *, status: JSON | None = None, **spec: object
) -> JSON:
    """A Job of four pods at once, of which two must start together."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": NAMESPACE},
        "spec": {"parallelism": 4, "template": {**(pods or template()), "metadata": said or meta()}, **spec},
        "status": status or {},
    }


def plain_set(said: JSON | None = None, pods: JSON | None = None, **spec: object) -> JSON:
    """A StatefulSet of four pods that are made at once, of which two must start together."""
    template_ = {**(pods or template()), "metadata": said or meta()}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "set", "namespace": NAMESPACE},
        "spec": {"replicas": 4, "podManagementPolicy": "Parallel", "template": template_, **spec},
    }


def plain_pod(said: JSON | None = None, **fields: object) -> JSON:
    """A pod of a gang of two."""
    return {"apiVersion": "v1", "kind": "Pod", **pod("p", meta=said or meta(), schedulerName=""), **fields}


@cases(
    "manifest, replicas, member",
    ("a part of a Job", plain_job(), 4, 2),
    ("all at once", plain_job(meta("4")), 4, 4),
    ("parallelism not given", plain_job(meta("1"), parallelism=None), 1, 1),
    ("completions fewer than parallelism", plain_job(completions=3), 3, 2),
    ("completions one after another", plain_job(completions=9), 4, 2),
    ("a part of a StatefulSet", plain_set(), 4, 2),
    ("replicas not given", plain_set(meta("1"), replicas=None), 1, 1),
    ("one after another, and none waits", plain_set(meta("1"), podManagementPolicy=None), 4, 1),
    ("pods that somebody makes", plain_pod(), 2, 2),
)
def test_who_counts(manifest: JSON, replicas: int, member: int) -> None:
    gang = judged(manifest).gang
    assert gang is not None
    assert (gang.name, gang.roles[0].replicas, gang.min_member) == ("g", replicas, member)
    assert as_text(gang.min_resources)["cpu"] == str(member)


@cases(
    "size, line",
    ("missing", None, "missing; set the number of pods that the gang needs to start"),
    ("empty", "", "missing; set the number of pods that the gang needs to start"),
    ("none", "0", '"0" is not a number of pods; use 1 or more'),
    ("negative", "-1", '"-1" is not a number of pods; use 1 or more'),
    ("broken", "2.5", '"2.5" is not a number of pods; use 1 or more'),
    ("a word", "two", '"two" is not a number of pods; use 1 or more'),
    ("digits of another script", "\u0662", '"\u0662" is not a number of pods; use 1 or more'),
    ("more than an int32", "9" * 10, f'"{"9" * 10}" is not a number of pods; use 1 or more'),
    ("more than Python reads", "9" * 5000, f'"{"9" * 5000}" is not a number of pods; use 1 or more'),
)
@cases(
    "make, where",
    ("on a Job's template", plain_job, ON_TEMPLATE),
    ("on a StatefulSet's", plain_set, ON_TEMPLATE),
    ("on a pod", plain_pod, ON_POD),
)
def test_a_size_that_is_none_is_refused_by_its_annotation(
    make: Callable[..., JSON], where: str, size: str | None, line: str
) -> None:
    (only,) = judged(make(meta(size))).refusals
    assert only.message == f"{where}.annotations[{SIZE}]: {line}"


@pytest.mark.parametrize("name", ["Team-A", "a_b", "a..b", "A"])
@cases(
    "make, where",
    ("on a Job's template", plain_job, ON_TEMPLATE),
    ("on a StatefulSet's", plain_set, ON_TEMPLATE),
    ("on a pod", plain_pod, ON_POD),
)
def test_a_name_that_no_pod_group_can_have_is_refused_by_its_label(
    make: Callable[..., JSON], where: str, name: str
) -> None:
    """A label's value may be more than the name of an object."""
    (only,) = judged(make(meta(gang=name))).refusals
    assert only.message == (
        f'{where}.labels[{GANG}]: "{name}" is no name; use lower case letters and digits, "-" and "." between them'
    )


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        pytest.param(
            plain_job(meta("5")),
            f"{ON_TEMPLATE}.annotations[{SIZE}]: 5 is above the 4 pods that there are at once; "
            "raise parallelism and completions, or lower it in a new Job",
            id="size above parallelism",
        ),
        pytest.param(
            plain_job(completions=1),
            f"{ON_TEMPLATE}.annotations[{SIZE}]: 2 is above the 1 pods that there are at once; "
            "raise parallelism and completions, or lower it in a new Job",
            id="size above completions",
        ),
        pytest.param(
            plain_set(meta("5")),
            f"{ON_TEMPLATE}.annotations[{SIZE}]: 5 is above the 4 pods that there are; lower it or raise replicas",
            id="size above replicas",
        ),
        pytest.param(plain_set(replicas=-1), "spec.replicas: -1 is negative; use 0 or more", id="negative replicas"),
        *(
            pytest.param(
                plain_set(podManagementPolicy=policy),
                "spec.podManagementPolicy: OrderedReady makes a pod when the one before it is ready, and none of the "
                "gang starts before 2 are there; use Parallel, with which all pods are made at once",
                id=f"one after another{said}",
            )
            for policy, said in ((None, ""), ("OrderedReady", ", said"))
        ),
        pytest.param(
            plain_job(parallelism=-1), "spec.parallelism: -1 is negative; use 0 or more", id="negative parallelism"
        ),
        pytest.param(
            plain_job(completions=-2), "spec.completions: -2 is negative; use 0 or more", id="negative completions"
        ),
        pytest.param(
            plain_job(pods={"spec": {}}),
            "spec.template.spec.containers: empty; a pod has at least one container",
            id="a Job without containers",
        ),
        pytest.param(
            plain_pod(spec={}),
            "spec.containers: empty; a pod has at least one container",
            id="a pod without containers",
        ),
        pytest.param(
            plain_job(pods=template("1 core")),
            'spec.template.spec.containers[0].resources.requests.cpu: "1 core" is not a quantity '
            "such as 500m, 2 or 1.5Gi",
            id="no quantity",
        ),
    ],
)
def test_numbers_that_make_no_gang_are_refused_by_field(manifest: JSON, line: str) -> None:
    (only,) = judged(manifest).refusals
    assert only.message == line


@cases(
    "manifest",
    ("a StatefulSet that is scaled to nothing", plain_set(replicas=0)),
    ("in the default queue", plain_set({**meta(), "labels": {GANG: "g"}}, replicas=0)),
    ("a Job that is paused", plain_job(parallelism=0)),
    ("a Job with nothing to do", plain_job(completions=0)),
)
def test_what_is_stopped_is_not_refused_for_its_size(manifest: JSON) -> None:
    verdict = judged(manifest)
    assert (verdict.refusals, verdict.gang is not None and verdict.gang.min_resources) == ((), {})
    assert [one.reason for one in verdict.warnings] == [Reason.NO_PODS]


@cases(
    "manifest, suspended, finished",
    ("runs", plain_job(), False, False),
    ("suspended", plain_job(suspend=True), True, False),
    ("complete", plain_job(status={"conditions": [{"type": "Complete", "status": "True"}]}), False, True),
    ("failed", plain_job(status={"conditions": [{"type": "Failed", "status": "True"}]}), False, True),
    ("about to be", plain_job(status={"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}), False, False),
    ("a pod that runs", plain_pod(status={"phase": "Running"}), False, False),
    ("a pod that ran", plain_pod(status={"phase": "Succeeded"}), False, True),
)
def test_where_it_stands(manifest: JSON, suspended: bool, finished: bool) -> None:
    workload = read(manifest)
    assert (workload.suspended, workload.finished) == (suspended, finished)


@cases(
    "make, path",
    ("a Job", plain_job, "spec.template.spec"),
    ("a StatefulSet", plain_set, "spec.template.spec"),
    ("a pod", plain_pod, "spec"),
)
def test_a_priority_class_that_only_the_pods_carry(make: Callable[..., JSON], path: str) -> None:
    manifest = make()
    pods = manifest["spec"].get("template", manifest)
    pods["spec"]["priorityClassName"] = "high"
    intent = judged(manifest).intent
    assert intent is not None
    assert (intent.priority_class, intent.paths["priorityClassName"]) == ("high", f"{path}.priorityClassName")


def test_the_podgroup_has_nothing_of_one_of_its_pods() -> None:
    """No owner, for it is there as long as any of them; no annotations, for those concern the pod."""
    said = meta(**{"volcano.sh/x": "y"})
    verdict = judged(plain_job(said))
    assert verdict.gang is not None
    assert verdict.intent is not None
    assert verdict.workload is not None
    group = SCHEDULERS["volcano"].pod_group(verdict.gang, verdict.intent, verdict.workload)
    assert set(group["metadata"]) == {"name", "namespace", "labels"}


def test_a_stateful_set_whose_pods_join_no_gang_is_nobodys_business() -> None:
    verdict = judged(plain_set({"labels": {}}, podManagementPolicy="OrderedReady"))
    assert (verdict.allowed, verdict.gang) == (True, None)


def test_a_pod_that_says_no_gang_has_none() -> None:
    assert PLAIN_JOB.role_of(made(Pod, plain_pod())) == "member"
    assert PLAIN_JOB.role_of(made(Pod, pod("other"))) is None


def test_a_job_of_another_cluster_is_judged_there() -> None:
    assert read(plain_job(managedBy="kueue.x-k8s.io/multikueue")).elsewhere
    assert not read(plain_job(managedBy="kubernetes.io/job-controller")).elsewhere


@pytest.mark.parametrize("make", [plain_job, plain_set])
def test_a_job_is_judged_by_what_its_pods_say(make: Callable[..., JSON]) -> None:
    """Pods have the labels of the template alone: what the Job says beside it reaches nobody."""
    manifest = make()
    manifest["metadata"]["labels"] = {
        "volcano.sh/queue-name": "other",
        "ray.io/priority-class-name": "high",
        "muster.dev/managed": "false",
    }
    intent = judged(manifest).intent
    assert intent is not None
    assert (intent.queue, intent.priority_class) == ("q", "")
    opted_out = make(meta() | {"labels": meta()["labels"] | {"muster.dev/managed": "false"}})
    opted_out["metadata"]["labels"] = {"muster.dev/managed": "true"}
    assert judged(opted_out).intent is None
