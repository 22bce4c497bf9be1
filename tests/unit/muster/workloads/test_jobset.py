"""A JobSet: its controller starts it wave by wave."""

import pytest

from muster.model.pods import Pod
from muster.workloads.jobset import JOB_SET
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, lines, made, pod, read, template


def job(name: str, replicas: int | None = 1, *after: str, status: str = "Ready", **spec: object) -> JSON:
    """A replicated job, of one pod unless `parallelism` says otherwise, that comes `after` others."""
    counted = {} if replicas is None else {"replicas": replicas}
    waits = {"dependsOn": [{"name": other, "status": status} for other in after]} if after else {}
    return {"name": name, **counted, **waits, "template": {"spec": {"template": template(), **spec}}}


def job_set(*jobs: JSON, order: str | None = None, status: JSON | None = None, **spec: object) -> JSON:
    """A JobSet in queue q."""
    ordered = {} if order is None else {"startupPolicy": {"startupPolicyOrder": order}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set", "namespace": NAMESPACE, "labels": QUEUE_LABELS},
        "spec": {"replicatedJobs": list(jobs), **ordered, **spec},
        "status": status or {},
    }


@cases(
    "one, pods",
    ("one", job("a"), 1),
    ("replicas not given", job("a", None), 1),
    ("no replica", job("a", 0, parallelism=3), 0),
    ("parallelism not given", job("a", 3), 3),
    ("replicas times parallelism", job("a", 3, parallelism=4), 12),
    ("parallelism of none", job("a", 3, parallelism=0), 0),
    ("no more at once than completions", job("a", 2, parallelism=4, completions=3), 6),
    ("no more at once than parallelism", job("a", 2, parallelism=4, completions=9), 8),
    ("nothing to complete", job("a", 2, parallelism=4, completions=0), 0),
)
def test_pods_of_a_replicated_job(one: JSON, pods: int) -> None:
    (role,) = read(job_set(one)).roles
    assert (role.replicas, role.minimum) == (pods, pods)


@cases(
    "manifest, first",
    ("in any order", job_set(job("a"), job("b")), ["a", "b"]),
    ("in any order, said", job_set(job("a"), job("b"), order="AnyOrder"), ["a", "b"]),
    ("in order", job_set(job("a"), job("b"), order="InOrder"), ["a"]),
    ("in order, the first without a replica", job_set(job("a", 0), job("b"), job("c"), order="InOrder"), ["b"]),
    ("in order, the first without pods", job_set(job("a", parallelism=0), job("b"), order="InOrder"), ["b"]),
    ("after one that must be ready", job_set(job("a"), job("b", 1, "a")), ["a"]),
    ("one of three waits", job_set(job("a"), job("b", 1, "a"), job("c")), ["a", "c"]),
    ("after one without a replica", job_set(job("a", 0), job("b", 1, "a")), ["b"]),
    ("after the end of one without replicas", job_set(job("a", 0), job("b", 1, "a", status="Complete")), ["b"]),
    ("after the end of one that never ends", job_set(job("a", parallelism=0), job("b", 1, "a", status="Complete")), []),
    (
        "after the end of one with nothing to do",
        job_set(job("a", completions=0), job("b", 1, "a", status="Complete")),
        ["b"],
    ),
    ("after two, of which one waits", job_set(job("a", 0), job("b"), job("c", 1, "a", "b")), ["b"]),
    ("after one that there is not: JobSet refuses it", job_set(job("b", 1, "nobody")), []),
)
def test_only_the_first_wave_must_be_there(manifest: JSON, first: list[str]) -> None:
    """Later jobs are made when those that they wait for are ready or complete; a job without pods is so at once."""
    assert [role.name for role in read(manifest).roles if role.minimum] == first


def done(**jobs: int) -> JSON:
    """The status of a JobSet of which so many Jobs have succeeded."""
    return {"replicatedJobsStatus": [{"name": name, "succeeded": count, "ready": 0} for name, count in jobs.items()]}


@cases(
    "manifest, left",
    ("nothing yet", job_set(job("a"), job("b")), {}),
    ("nothing yet, said", job_set(job("a"), job("b"), status=done(a=0, b=0)), {}),
    ("one of two", job_set(job("a"), job("b"), status=done(a=1)), {"b": 1}),
    ("a part of one", job_set(job("a", 3, parallelism=2), status=done(a=1)), {"a": 4}),
    ("in order", job_set(job("a"), job("b"), order="InOrder", status=done(a=1)), {"b": 1}),
    ("not the wave yet", job_set(job("a", 2), job("b", 1, "a", status="Complete"), status=done(a=1)), {"a": 1}),
    ("the first wave", job_set(job("a", 2), job("b", 1, "a", status="Complete"), status=done(a=2)), {"b": 1}),
    ("all of it", job_set(job("a"), status=done(a=1)), {}),
)
def test_what_is_left_begins_with_the_first_wave_that_is_not_done(manifest: JSON, left: dict[str, int]) -> None:
    """Jobs that have succeeded are not started again when the JobSet is resumed."""
    workload = read(manifest)
    assert {role.name: role.minimum for role in workload.remaining_roles if role.minimum} == left
    assert workload.roles == read({**manifest, "status": {}}).roles


def test_later_waves_start_role_by_role() -> None:
    roles = read(job_set(job("a"), job("b", 1, "a", status="Complete"))).roles
    assert [(role.name, role.together) for role in roles] == [("a", False), ("b", True)]


def after(name: str, *, ready: tuple[str, ...] = (), complete: tuple[str, ...] = ()) -> JSON:
    """A job that waits for these."""
    waits = [{"name": one, "status": "Ready"} for one in ready]
    waits += [{"name": one, "status": "Complete"} for one in complete]
    return {**job(name), "dependsOn": waits}


PREPARED = (job("prepare"), after("node", complete=("prepare",)), after("launcher", ready=("node",)))


@cases(
    "manifest, first, beside, later",
    ("ready", job_set(job("a"), after("b", ready=("a",))), "a", "b", []),
    ("transitively", job_set(job("a"), after("b", ready=("a",)), after("c", ready=("b",))), "a", "b c", []),
    ("in order", job_set(job("a"), job("b"), job("c"), order="InOrder"), "a", "b c", []),
    ("complete", job_set(job("a"), after("b", complete=("a",))), "a", "", ["b"]),
    ("a wave after", job_set(job("a"), after("b", ready=("a",)), after("c", complete=("b",))), "a", "b", ["c"]),
    ("in a later wave", job_set(*PREPARED), "prepare", "", ["node launcher"]),
    ("what is left", job_set(*PREPARED, status=done(prepare=1)), "node", "launcher", []),
    (
        "both: it runs beside one",
        job_set(job("a"), job("data"), after("b", ready=("a",), complete=("data",))),
        "a data",
        "b",
        [],
    ),
    (
        "beside one that comes later",
        job_set(job("a"), job("x"), after("d", complete=("x",)), after("c", ready=("a", "d"))),
        "a x",
        "d c",
        [],
    ),
    (
        "both, in one group: it takes the room of what is complete",
        job_set(
            job("server"), after("train", ready=("server",)), after("eval", ready=("server",), complete=("train",))
        ),
        "server",
        "train",
        ["eval"],
    ),
    ("after no pods", job_set(job("a", 0), after("b", ready=("a",)), after("c", ready=("b",))), "b", "c", []),
    ("after one that there is not", job_set(after("b", ready=("nobody",))), "", "", ["b"]),
)
def test_what_runs_side_by_side_has_its_room_from_the_beginning(
    manifest: JSON, first: str, beside: str, later: list[str]
) -> None:
    """Those that are ready run on, perhaps until those that wait for them have ended."""
    workload = read(manifest)
    roles = [role for role in workload.remaining_roles or workload.roles if role.replicas]
    assert [role.name for role in roles if role.minimum] == first.split()
    assert [role.name for role in roles if role.reserved and not role.minimum] == beside.split()
    waves: dict[object, list[str]] = {}
    for role in roles:
        if role.together:
            waves.setdefault(role.group or role.name, []).append(role.name)
    assert list(waves.values()) == [names.split() for names in later]


@cases(
    "manifest, line",
    ("none", job_set(), "spec.replicatedJobs: empty; a JobSet has at least one"),
    (
        "negative replicas",
        job_set(job("a"), job("b", -1)),
        "spec.replicatedJobs[1].replicas: -1 is negative; use 0 or more",
    ),
    (
        "negative parallelism",
        job_set(job("a", parallelism=-2)),
        "spec.replicatedJobs[0].template.spec.parallelism: -2 is negative; use 0 or more",
    ),
    (
        "negative completions",
        job_set(job("a", completions=-3)),
        "spec.replicatedJobs[0].template.spec.completions: -3 is negative; use 0 or more",
    ),
    ("no name", job_set(job("")), "spec.replicatedJobs[0].name: missing; a replicated job needs a name"),
    (
        "a name twice",
        job_set(job("a"), job("a")),
        'spec.replicatedJobs[1].name: "a" is taken; names of replicated jobs differ',
    ),
)
def test_numbers_and_names_that_make_no_gang_are_refused_by_field(manifest: JSON, line: str) -> None:
    (only,) = judged(manifest).refusals
    assert only.message == line


def test_a_set_without_pods_is_said_to_start_nothing() -> None:
    verdict = judged(job_set(job("a", 0), job("b", 0)))
    assert (verdict.allowed, lines(verdict.warnings)) == (
        True,
        ('spec: gang "set" has no pods; nothing starts until its replicas are raised',),
    )


@cases(
    "manifest, suspended, finished",
    ("runs", job_set(job("a")), False, False),
    ("suspended", job_set(job("a"), suspend=True), True, False),
    ("completed", job_set(job("a"), status={"terminalState": "Completed"}), False, True),
    ("failed", job_set(job("a"), status={"conditions": [{"type": "Failed", "status": "True"}]}), False, True),
    ("not failed", job_set(job("a"), status={"conditions": [{"type": "Failed", "status": "False"}]}), False, False),
)
def test_where_a_set_stands(manifest: JSON, suspended: bool, finished: bool) -> None:
    workload = read(manifest)
    assert (workload.suspended, workload.finished) == (suspended, finished)


def test_a_pods_role_is_its_replicated_job() -> None:
    workload = read(job_set(job("a")))
    labels = JOB_SET.pod_labels(workload, workload.roles[0])
    assert labels["jobset.sigs.k8s.io/jobset-name"] == "set"
    assert JOB_SET.role_of(made(Pod, pod("set-a-0-0-x", labels=labels))) == "a"
    assert JOB_SET.role_of(made(Pod, pod("other"))) is None


EXCLUSIVE, BY_LABELS = (f"alpha.jobset.sigs.k8s.io/{name}" for name in ("exclusive-topology", "node-selector"))


def placed(where: str, annotations: JSON, parallelism: int = 4) -> JSON:
    """A JobSet of two Jobs of four pods, with annotations on the set, or on its Jobs' or their pods' template."""
    manifest = job_set(job("a", 2, parallelism=parallelism))
    job_template = manifest["spec"]["replicatedJobs"][0]["template"]
    spots = {"set": manifest, "job": job_template, "pod": job_template["spec"]["template"]}
    spots[where]["metadata"] = {**spots[where].get("metadata", {}), "annotations": annotations}
    return manifest


@pytest.mark.parametrize("where", ["set", "job", "pod"])
def test_with_exclusive_placement_the_first_pod_of_each_job_is_the_gang(where: str) -> None:
    """JobSet refuses the others until that has a node; their room counts from the beginning."""
    verdict = judged(placed(where, {EXCLUSIVE: "rack"}))
    assert verdict.gang is not None
    (role,) = verdict.gang.roles
    assert (role.replicas, role.minimum, role.reserved, role.made_first) == (8, 2, 6, 2)
    assert (verdict.gang.min_member, str(verdict.gang.min_resources["cpu"])) == (2, "8")
    (warning,) = lines(verdict.warnings)
    assert warning.endswith(
        "exclusive-topology has JobSet make 2 of 8 pods first, and the others when these have nodes; "
        "the queue keeps room for the others from the beginning, and no node does"
    )


@cases(
    "manifest",
    ("by labels of nodes", placed("set", {EXCLUSIVE: "rack", BY_LABELS: "true"})),
    ("by labels of nodes, of one job", placed("job", {EXCLUSIVE: "rack", BY_LABELS: "true"})),
    ("labels of nodes alone", placed("set", {BY_LABELS: "true"})),
    ("Jobs of one pod", placed("set", {EXCLUSIVE: "rack"}, parallelism=1)),
)
def test_where_all_pods_are_made_at_once_all_are_the_gang(manifest: JSON) -> None:
    verdict = judged(manifest)
    assert verdict.gang is not None
    (role,) = verdict.gang.roles
    assert (role.minimum, role.reserved, role.made_first) == (role.replicas, 0, 0)
    assert verdict.warnings == ()


def test_labels_of_nodes_that_are_said_elsewhere_are_not_copied() -> None:
    """JobSet copies both annotations from where it finds the first."""
    manifest = placed("job", {EXCLUSIVE: "rack"})
    manifest["metadata"]["annotations"] = {BY_LABELS: "true"}
    (role,) = read(manifest).roles
    assert role.made_first == 2


def test_leaders_of_a_later_wave_have_no_minimum() -> None:
    manifest = job_set(job("a"), job("b", 2, "a", status="Complete", parallelism=4))
    manifest["metadata"]["annotations"] = {EXCLUSIVE: "rack"}
    _, later = read(manifest).roles
    assert (later.minimum, later.reserved, later.together, later.made_first) == (0, 0, True, 2)


def test_a_set_that_is_resumed_with_exclusive_placement_begins_with_the_leaders_that_are_left() -> None:
    manifest = placed("set", {EXCLUSIVE: "rack"})
    manifest["status"] = {"replicatedJobsStatus": [{"name": "a", "succeeded": 1}]}
    (role,) = read(manifest).remaining_roles
    assert (role.replicas, role.minimum, role.reserved) == (4, 1, 3)


@cases(
    "manifest, beside",
    ("in any order", job_set(job("a"), job("b")), {"a": (), "b": ()}),
    ("in order", job_set(job("a"), job("b"), job("c"), order="InOrder"), {"a": (), "b": ("a",), "c": ("a", "b")}),
    (
        "those that are ready go on",
        job_set(job("a"), job("b", 1, "a"), job("c", 1, "b")),
        {"a": (), "b": ("a",), "c": ("a", "b")},
    ),
    (
        "those that are complete do not",
        job_set(job("a"), job("b", 1, "a", status="Complete"), job("c", 1, "b")),
        {"a": (), "b": (), "c": ("b",)},
    ),
    ("after one that there is not", job_set(job("a"), job("b", 1, "nobody")), {"a": (), "b": ()}),
)
def test_who_runs_when_a_later_job_comes(manifest: JSON, beside: dict[str, tuple[str, ...]]) -> None:
    roles = read(manifest).roles
    places = list(enumerate(roles))
    found = {role.name: tuple(one.name for place, one in places if role.runs_with >> place & 1) for role in roles}
    assert found == beside
