"""When a surprise is told of and when not; its words are in docs/denials.md."""

from dataclasses import replace
from typing import Any

import pytest

from muster.gangs.intent import Defaults
from muster.model.findings import Reason, Severity, Validation
from muster.model.modes import GateMode
from muster.model.names import TOPOLOGY_MODE_LABEL
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.schedulers import named
from muster.validation.context import Context
from tests.support.cases import cases
from tests.support.manifests.families import FAMILIES, Family, each, judged
from tests.support.manifests.observed import (
    JSON,
    QUEUE_LABELS,
    amounts,
    lines,
    pytorch_job,
    ray_cluster,
    template,
    workers,
)

QUEUED = {"queue": "q"}
SIX = QueueView("q", "Open", amounts(cpu="6", memory="8Gi"))


def known(*queues: QueueView) -> Context:
    return Context(queue=QueueTree(queues or [SIX]).place, priorities={"": 0})


def told(manifest: JSON, context: Context | None = None) -> list[Reason]:
    """The reasons of the warnings on what is taken."""
    verdict = judged(manifest, context or known())
    assert verdict.allowed, verdict.refusals
    return [one.reason for one in verdict.warnings]


@cases(
    "cpu, strategy, warned",
    ("room for one and a part", "5", {}, True),
    ("room for two", "6", {}, False),
    ("said", "5", {"upgradeStrategy": {"type": "NewCluster"}}, True),
    ("in steps", "5", {"upgradeStrategy": {"type": "NewClusterWithIncrementalUpgrade"}}, True),
    ("never upgraded", "5", {"upgradeStrategy": {"type": "None"}}, False),
)
def test_a_ray_service_is_upgraded_beside_itself(cpu: str, strategy: JSON, warned: bool) -> None:
    spec = {"rayClusterConfig": ray_cluster()["spec"], **strategy}
    reasons = told({**ray_cluster(), "kind": "RayService", "spec": spec}, known(replace(SIX, limit=amounts(cpu=cpu))))
    assert reasons == [Reason.NO_ROOM_TO_UPGRADE] * warned


def test_a_ray_cluster_is_not_upgraded() -> None:
    assert told(ray_cluster(), known(replace(SIX, limit=amounts(cpu="3")))) == []


@cases(
    "available, spec, warned",
    ("not said", None, {}, False),
    ("all", 3, {}, False),
    ("a part of a job that needs all", 2, {}, True),
    ("as many as it can work with", 2, {"elasticPolicy": {"minReplicas": 1}}, False),
    ("fewer than it can work with", 1, {"elasticPolicy": {"minReplicas": 1}}, True),
)
def test_a_part_of_a_job_that_is_not_elastic_is_of_no_use(available: int | None, spec: JSON, warned: bool) -> None:
    job = pytorch_job(policy={"queue": "q", **({} if available is None else {"minAvailable": available})})
    reasons = told({**job, "spec": {**job["spec"], **spec}})
    assert (Reason.MIN_AVAILABLE_TOO_LOW in reasons) is warned


def test_a_tf_job_that_takes_workers_as_they_come_needs_none_of_them() -> None:
    worker = {"replicas": 3, "template": template()}
    spec = {"tfReplicaSpecs": {"Worker": worker}, "runPolicy": {"schedulingPolicy": {"queue": "q", "minAvailable": 1}}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "t"}, "spec": spec}
    assert told(job) == [Reason.MIN_AVAILABLE_TOO_LOW]
    assert told({**job, "spec": {**spec, "enableDynamicWorker": True}}) == []


@cases("of_task, warned", ("named", 2, True), ("Volcano's default", None, False))
def test_volcano_passes_over_tasks_minimums_below_their_sum(of_task: int | None, warned: bool) -> None:
    task = {"name": "a", "replicas": 2, "template": template()} | ({"minAvailable": of_task} if of_task else {})
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"queue": "q", "schedulerName": "volcano", "minAvailable": 1, "tasks": [task]},
    }
    assert told(job) == [Reason.MIN_AVAILABLE_TOO_LOW] * warned


@cases(
    "group, scaled, warned",
    ("above", {"minReplicas": 1, "maxReplicas": 9}, True, True),
    ("within", {"minReplicas": 1, "maxReplicas": 3}, True, False),
    ("hosts count", {"minReplicas": 1, "maxReplicas": 2, "numOfHosts": 3}, True, True),
    ("without a bound", {"minReplicas": 1}, True, False),
    ("nobody scales it", {"minReplicas": 1, "maxReplicas": 9}, False, False),
)
def test_an_autoscaler_may_ask_for_more_than_there_ever_is(group: dict[str, Any], scaled: bool, warned: bool) -> None:
    cluster = ray_cluster(workers(replicas=1, **group), enableInTreeAutoscaling=scaled)
    assert told(cluster) == [Reason.GROWS_BEYOND_CAPABILITY] * warned


@cases("metrics", ("scaled", [{"type": "Resource"}]), ("by nobody", []))
def test_an_elastic_job_grows_where_its_operator_makes_an_autoscaler(metrics: list[JSON]) -> None:
    job = pytorch_job(policy={"queue": "q"})
    elastic = {"minReplicas": 2, "maxReplicas": 9, "metrics": metrics}
    warned = told({**job, "spec": {**job["spec"], "elasticPolicy": elastic}})
    assert warned == [Reason.GROWS_BEYOND_CAPABILITY] * bool(metrics)


def held(cpu: str, memory: str = "0") -> Context:
    return replace(known(), held=lambda _: amounts(cpu=cpu, memory=memory))


@cases(
    "context, warned",
    ("room for exactly that", held("3"), False),
    ("half a core is missing", held("3500m"), True),
    ("memory is missing", held("0", "7Gi"), True),
    ("what is changed holds its own room already", known(), False),
    ("others make room", replace(held("6"), queue=QueueTree([replace(SIX, preempts=True)]).place), False),
    (
        "others make room for gangs of Volcano alone",
        replace(
            held("6"),
            queue=QueueTree([replace(SIX, preempts=True)]).place,
            defaults=Defaults(schedulers=named("coscheduling")),
        ),
        True,
    ),
    (
        "the queue above is full",
        replace(
            known(),
            queue=QueueTree([QueueView("q", "Open", {}, parent="team"), replace(SIX, name="team")]).place,
            held={"q": amounts(cpu="0"), "team": amounts(cpu="5")}.__getitem__,
        ),
        True,
    ),
)
def test_a_new_gang_that_will_wait_is_told_so(context: Context, warned: bool) -> None:
    assert told(ray_cluster(), context) == [Reason.QUEUE_NEARLY_FULL] * warned


def test_nobody_makes_room_for_a_gang_for_which_volcano_does_not_preempt() -> None:
    never = ray_cluster(head={"spec": {**template()["spec"], "preemptionPolicy": "Never"}})
    near = ray_cluster(labels={**QUEUE_LABELS, TOPOLOGY_MODE_LABEL: "soft"})
    context = replace(held("6"), queue=QueueTree([replace(SIX, preempts=True)]).place)
    assert [told(one, context) for one in (never, near)] == [[Reason.QUEUE_NEARLY_FULL]] * 2


def test_who_will_wait_is_told_what_it_needs_and_not_what_others_use() -> None:
    (line,) = [one.message for one in judged(ray_cluster(), held("5")).warnings]
    assert line == (
        'metadata.labels[volcano.sh/queue-name]: gang "ray-demo-pg" needs cpu 3; queue "q" has less than that '
        "free now (its capability is cpu 6); the gang waits until there is room, and its event WaitingForQuota says "
        "its position"
    )


@cases(
    "context, by",
    ("with room", QueueTree([replace(SIX, on_hold=True)]), 'queue "q"'),
    (
        "the queue above",
        QueueTree([QueueView("q", "Open", {}, parent="team"), QueueView("team", "Open", {}, on_hold=True)]),
        'queue "team" above "q"',
    ),
)
def test_a_new_gang_is_told_that_its_queue_is_on_hold(context: QueueTree, by: str) -> None:
    for cpu in ("0", "6"):  # full or not
        (warning,) = judged(ray_cluster(), replace(held(cpu), queue=context.place)).warnings
        assert warning.reason is Reason.QUEUE_ON_HOLD
        assert f"{by} is on hold (its annotation muster.dev/hold)" in warning.message
    assert told(ray_cluster(), replace(known(), queue=context.place)) == []
    ungated = replace(held("0"), queue=context.place, defaults=Defaults(gate=GateMode.OFF))
    assert told(ray_cluster(), ungated) == []


def test_what_is_suspended_waits_for_nothing() -> None:
    assert told(ray_cluster(suspend=True), held("6")) == []


@cases(
    "limit, requests, warned",
    ("no cpu where that is shared out", {"cpu": "9"}, {"memory": "1Gi"}, 1),
    ("no cpu where nobody counts it", {"memory": "9Gi"}, {"memory": "1Gi"}, 0),
    ("neither", {"cpu": "9", "memory": "9Gi"}, {"nvidia.com/gpu": "1"}, 2),
    ("nothing at all", {}, {}, 1),
    ("nothing, in a number", {}, {"cpu": "0"}, 1),
)
def test_pods_that_take_no_room_are_told_of(limit: dict[str, str], requests: JSON, warned: int) -> None:
    pod_template = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
    job = pytorch_job(policy={"queue": "q"}, replicas={"Worker": {"replicas": 2, "template": pod_template}})
    assert told(job, known(QueueView("q", "Open", amounts(**limit)))) == [Reason.REQUESTS_MISSING] * warned


_CLAIMING = template(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])


@pytest.mark.parametrize(("severity", "allowed"), [(Severity.WARN, True), (Severity.DENY, False)])
def test_devices_that_no_queue_counts_are_told_of_or_refused(severity: Severity, *, allowed: bool) -> None:
    """A claim goes past every capability, also that of the whole cluster."""
    defaults = Defaults(validation=Validation(reasons={Reason.RESOURCE_CLAIMS: severity}))
    verdict = judged(ray_cluster(workers(template=_CLAIMING)), replace(known(), defaults=defaults))
    assert verdict.allowed is allowed
    (found,) = verdict.warnings or verdict.refusals
    assert found.message == (
        "spec.workerGroupSpecs[0].template.spec.resourceClaims: pods of workers get devices by ResourceClaims, which "
        "count in no queue, whatever it allows; ask for them as an extended resource"
    )


def test_of_many_roles_a_line_names_three() -> None:
    """Thousands of names would push everything else out of what the apiserver passes on."""
    empty = {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}
    found = judged(
        pytorch_job(policy=QUEUED, replicas={f"R{number}": empty for number in range(6)}), known(SIX)
    ).warnings
    (warning,) = (one for one in found if one.reason is Reason.REQUESTS_MISSING)
    assert "the pods of roles r0, r1, r2 and 3 more request nothing" in warning.message


@cases(
    "role, place, warned",
    ("a worker", "Worker", SIX, True),
    ("before a queue is known", "Worker", None, False),
    ("a launcher of MPI", "Launcher", SIX, False),
)
def test_pods_without_requests_are_told_of(role: str, place: QueueView | None, *, warned: bool) -> None:
    empty = {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}
    manifest = pytorch_job(policy=QUEUED, replicas={role: empty})
    context = known(place) if place else Context()
    found = [one.reason for one in judged(manifest, context).warnings]
    assert (Reason.REQUESTS_MISSING in found) is warned


def test_a_capability_of_zero_is_told_to_whom_it_concerns() -> None:
    zero = replace(SIX, zeros=("memory",))
    asking = template()
    asking["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    without = pytorch_job(policy=QUEUED, replicas={"Worker": {"replicas": 1, "template": asking}})
    assert told(ray_cluster(), known(zero)) == [Reason.CAPABILITY_OF_ZERO]
    assert Reason.CAPABILITY_OF_ZERO not in told(without, known(zero))


@each("Job", "JAXJob")
def test_kueues_label_alone_is_nothing_to_warn_of(family: Family) -> None:
    """A LocalQueue `default` labels everything."""
    manifest = family.manifest()
    manifest["metadata"]["labels"] = {**QUEUE_LABELS, "kueue.x-k8s.io/queue-name": "research"}
    assert told(manifest, known(replace(SIX, limit={}))) == []


LIMITED = {"activeDeadlineSeconds": 600}


@pytest.mark.parametrize("kind", ["JobSet", "TrainJob"])
def test_the_time_limits_of_the_jobs_of_a_set_run_while_it_waits(kind: str) -> None:
    family = next(one for one in FAMILIES if one.kind == kind)
    manifest = family.manifest()
    spec = manifest["spec"]["madeFrom"]["spec"]["template"]["spec"] if kind == "TrainJob" else manifest["spec"]
    spec["replicatedJobs"][0]["template"]["spec"] |= LIMITED
    (warning,) = judged(manifest).warnings
    assert warning.reason is Reason.TIME_LIMIT_WHILE_WAITING
    assert warning.field == family.paths[0].replace("spec.template.spec", "spec.activeDeadlineSeconds").replace(
        "spec.activeDeadlineSeconds.replicatedJobs", "spec.template.spec.replicatedJobs"
    )


def test_the_time_limit_of_a_plain_job_runs_while_it_waits() -> None:
    metadata = {"labels": {"muster.dev/gang": "g"}, "annotations": {"muster.dev/gang-size": "1"}}
    spec = {"template": {"metadata": metadata, **template()}, **LIMITED}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "team"}, "spec": spec}
    (warning,) = judged(job).warnings
    assert (warning.reason, warning.field) == (Reason.TIME_LIMIT_WHILE_WAITING, "spec.activeDeadlineSeconds")


def test_a_time_to_requeue_that_is_one_is_no_surprise() -> None:
    assert told(ray_cluster(annotations={"muster.dev/requeue-after": "10m"})) == []


def test_an_upgrade_without_room_is_told_with_numbers() -> None:
    service = {**ray_cluster(), "kind": "RayService", "spec": {"rayClusterConfig": ray_cluster()["spec"]}}
    (line,) = lines(judged(service, known(replace(SIX, limit=amounts(cpu="5")))).warnings)
    assert "two clusters run, which need cpu 6 together" in line
    assert "has capability cpu 5" in line


def test_a_minimum_with_which_a_job_cannot_work_is_told_with_numbers() -> None:
    (line,) = lines(judged(pytorch_job(policy={**QUEUED, "minAvailable": 2}), known()).warnings)
    assert "2 pods start the gang, but the job cannot work with fewer than 3" in line


@each("Job")
def test_a_place_is_given_back_where_that_fails_no_job(family: Family) -> None:
    """JobSet and TrainJob make Jobs, and so does the MPI operator for the launcher; each counts pods that are gone.

    And the clusters of a RayCronJob do not get what it says.
    """
    jobs = (family.kind, family.api_version.rpartition("/")[2])
    ignored = jobs in {("JobSet", "v1alpha2"), ("TrainJob", "v1alpha1"), ("MPIJob", "v2beta1"), ("RayCronJob", "v1")}
    found = judged(family.manifest(annotations={"muster.dev/requeue-after": "2m"}), known()).warnings
    fields = [one.field for one in found if one.reason is Reason.VALUE_IGNORED]
    assert fields == ["metadata.annotations[muster.dev/requeue-after]"] * ignored


def test_who_asks_for_no_cpu_is_told_how_much_of_it_its_queue_shares_out() -> None:
    pod_template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]}}
    job = pytorch_job(policy=QUEUED, replicas={"Worker": {"replicas": 2, "template": pod_template}})
    (line,) = [one.message for one in judged(job, known(QueueView("q", "Open", amounts(cpu="9")))).warnings]
    assert line.endswith(
        'containers: the pods of role worker request no cpu, and queue "q" limits cpu (9); '
        "give their containers a request for it"
    )


def test_a_pod_group_of_somebodys_is_named_once_however_many_roles_are_bound_to_it() -> None:
    groups = [workers(groupName=name) for name in ("a", "b", "c")]
    for group, bound in zip(groups, ("mine", "mine", "other"), strict=True):
        group["template"] = {**template(), "metadata": {"annotations": {"scheduling.k8s.io/group-name": bound}}}
    lines_of = [one.message for one in judged(ray_cluster(*groups)).warnings if one.reason is Reason.BOUND_TO_POD_GROUP]
    assert [line.split('"')[1] for line in lines_of] == ["mine", "other"]


@cases(
    "head, end",
    ("some", {}, "and those of role headgroup wait for them in vain; bind the pods of all roles, or of none"),
    ("all", {"annotations": {"scheduling.k8s.io/group-name": "mine"}}, "and makes none"),
)
def test_where_only_some_roles_are_bound_to_a_pod_group_the_others_are_said_to_wait(head: JSON, end: str) -> None:
    bound = {**template(), "metadata": {"annotations": {"scheduling.k8s.io/group-name": "mine"}}}
    cluster = ray_cluster(workers(template=bound), head={**template(), "metadata": head})
    (line,) = [one.message for one in judged(cluster).warnings if one.reason is Reason.BOUND_TO_POD_GROUP]
    assert line.split("leaves them to it, ")[1] == end
