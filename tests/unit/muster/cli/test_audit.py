"""What `muster audit` finds; tests/apiserver/test_audit.py looks at a real cluster."""

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from muster.cli.parsing import InputError
from muster.cli.plan.audit import Audit, print_audit
from muster.cli.plan.manifests import Document
from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.model.findings import Severity, Validation, read_validation
from muster.model.names import GROUP_NAME, STATE
from muster.model.resource import PRIORITY_CLASSES, QUEUES
from muster.model.selectors import Selector, parse_selector
from muster.schedulers import PRODUCTS
from muster.workloads import kind_of
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.trainer import CLUSTER_TRAINING_RUNTIME, TRAIN_JOB
from tests.support.cases import cases
from tests.support.cli.command import Command
from tests.support.manifests.families import FAMILIES, Family
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    as_json,
    pytorch_job,
    queue,
    ray_cluster,
    template,
    workers,
)
from tests.support.manifests.train_jobs import train_job

LOST = {"volcano.sh/queue-name": "lost"}
OWN = {"app.kubernetes.io/managed-by": "muster"}


def child(name: str, parent: str = "q") -> JSON:
    """A queue below another."""
    made = queue(name)
    return {**made, "spec": {**made["spec"], "parent": parent}}


def pod_group(name: str, queue: str = "q", *, labels: Mapping[str, str] | None = None, **rest: JSON) -> JSON:
    """A PodGroup that asks for 3 cpu, of others unless labelled `OWN`."""
    spec = {"queue": queue, "minResources": {"cpu": "3"}, "minMember": 1}
    return {"metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels or {})}, "spec": spec, **rest}


def audit_of(
    *manifests: JSON,
    validation: Validation | None = None,
    queues: tuple[JSON, ...] = (queue(cpu="4"),),
    groups: tuple[JSON, ...] = (),
    selected: str = "",
    **rest: Any,  # noqa: ANN401 - whatever an Audit begins with
) -> Audit:
    """An audit of a cluster that holds these, each listed as an apiserver lists it."""
    namespaces = parse_selector(selected) if selected else Selector()
    audit = Audit(Defaults(validation=validation or Validation(), namespaces=namespaces), **rest)
    for one in queues:
        audit.known.learn(Document("", {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **one}))
    for group in groups:
        audit.read_pod_group(PRODUCTS["volcano"](), as_json(group).encode())
    for one in queues:
        audit.read_queue(as_json(one).encode())
    for manifest in manifests:
        kind = kind_of(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        audit.read(kind, as_json(manifest).encode())
    return audit


def found(audit: Audit) -> list[tuple[str, str, str]]:
    """Every finding: the workload's name, severity, reason."""
    return [
        (entry["name"], one["severity"], one["reason"])
        for entries in ("queues", "podGroups", "workloads")
        for entry in audit.report()[entries]
        for one in entry["findings"]
    ]


def test_what_would_be_refused_is_found_with_its_field_and_numbers() -> None:
    (entry,) = audit_of(ray_cluster(workers(replicas=9))).report()["workloads"]
    assert (entry["apiVersion"], entry["kind"], entry["namespace"], entry["name"]) == (
        "ray.io/v1",
        "RayCluster",
        NAMESPACE,
        "demo",
    )
    assert entry["findings"] == [
        {
            "severity": "deny",
            "reason": "ExceedsCapability",
            "field": "metadata.labels[volcano.sh/queue-name]",
            "message": 'metadata.labels[volcano.sh/queue-name]: gang "ray-demo-pg" needs cpu 10, '
            'queue "q" has capability cpu 4; lower the replicas or use a larger queue',
        }
    ]


@cases(
    "validation, severities",
    ("deny", read_validation("deny"), {"deny"}),
    ("warn", read_validation("warn"), {"warn"}),
    ("this reason warns", read_validation("deny", ["QueueNotFound=warn"]), {"warn"}),
    ("off", read_validation("off"), set()),
)
def test_severities_are_those_of_the_values_that_are_to_come(validation: Validation, severities: set[str]) -> None:
    audit = audit_of(ray_cluster(labels=LOST), validation=validation)
    assert {severity for _, severity, _ in found(audit)} == severities


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.api_version} {family.kind}")
def test_every_kind_is_judged(family: Family) -> None:
    manifest = family.manifest(template("-1"))
    audit = audit_of(manifest, queues=(queue(), queue("default")))
    (entry,) = audit.report()["workloads"]
    # A TrainJob's templates stand in its runtime, of which this cluster has none.
    assert entry["findings"][0]["reason"] == ("TrainingRuntimeNotFound" if family.kind == "TrainJob" else "Invalid")


@cases(
    "labels, meta, judged",
    ("says nothing: looked at, and passed", {}, {}, 1),
    ("is being deleted", LOST, {"deletionTimestamp": "2026-11-21T10:00:00Z"}, 0),
    ("in a namespace that the webhook does not see", LOST, {"namespace": "ours"}, 0),
)
def test_what_the_webhook_would_let_pass_is_no_finding(labels: Mapping[str, str], meta: JSON, judged: int) -> None:
    audit = audit_of(ray_cluster(labels=labels, meta=meta), selected="kubernetes.io/metadata.name!=ours")
    assert (found(audit), audit.report()["lookedAt"]["workloads"]) == ([], judged)


def test_a_batch_job_is_judged_when_its_pods_join_a_gang() -> None:
    def job(name: str, **labels: str) -> JSON:
        meta = {
            "labels": {key.replace("_", "-").replace("muster", "muster.dev/"): item for key, item in labels.items()}
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": LOST},
            "spec": {"template": {**template(), "metadata": meta}},
        }

    assert found(audit_of(job("alone"), job("joins", mustergang="g"))) == [
        ("joins", "deny", "Invalid"),
        ("joins", "warn", "Misspelled"),
    ]


def test_jobs_of_two_groups_of_one_name_are_two() -> None:
    volcano = next(family for family in FAMILIES if family.api_version == "batch.volcano.sh/v1alpha1")
    plain = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "demo", "namespace": NAMESPACE},
        "spec": {"template": {**template(), "metadata": {"labels": {"muster.dev/gang": "g"}}}},
    }
    assert len(audit_of(volcano.manifest(template("-1")), plain).report()["workloads"]) == 2


def test_who_made_a_workload_speaks_for_it() -> None:
    """The RayCluster of a RayJob that a RayCronJob made: the queue is named at the top only."""

    def owner(kind: str, name: str) -> JSON:
        return {"apiVersion": "ray.io/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}

    inner = ray_cluster(labels={})["spec"]
    cron = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCronJob",
        "metadata": {"name": "cron", "namespace": NAMESPACE, "uid": "uid-cron", "labels": LOST},
        "spec": {"jobTemplate": {"rayClusterSpec": inner}},
    }
    meta = {"name": "job", "namespace": NAMESPACE, "uid": "uid-job", "ownerReferences": [owner("RayCronJob", "cron")]}
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": meta, "spec": {"rayClusterSpec": inner}}
    cluster = ray_cluster(labels={}, meta={"ownerReferences": [owner("RayJob", "job")]})
    assert {name for name, _, _ in found(audit_of(cron, job, cluster))} == {"cron", "job", "demo"}
    forged = ray_cluster(labels={}, meta={"ownerReferences": [{**owner("RayJob", "job"), "uid": "former"}]})
    assert {name for name, _, _ in found(audit_of(cron, job, forged))} == {"cron", "job"}


def test_a_list_that_begins_again_counts_nobody_twice() -> None:
    once, twice = audit_of(ray_cluster(labels=LOST)), audit_of(*[ray_cluster(labels=LOST)] * 2)
    assert once.report() == twice.report()


def test_what_cannot_be_read_at_all_is_refused_where_it_asks_for_something() -> None:
    broken = ray_cluster(name="broken")
    broken["spec"]["workerGroupSpecs"] = "none"
    silent = {**broken, "metadata": {"name": "silent", "namespace": NAMESPACE}}
    audit = audit_of(broken, silent, {**broken, "metadata": "none"})
    assert found(audit) == [("broken", "deny", "Invalid")]
    assert audit.report()["workloads"][0]["findings"][0]["field"] == "spec.workerGroupSpecs"
    assert len(audit.known.notes) == 1


def test_a_queue_that_is_not_for_the_namespace_is_a_missing_one() -> None:
    def reasons_for(selector: str) -> list[tuple[str, str, str]]:
        return found(audit_of(ray_cluster(), queues=(queue(annotations={"muster.dev/namespace-selector": selector}),)))

    assert reasons_for(f"kubernetes.io/metadata.name={NAMESPACE}") == []
    assert reasons_for("team=others") == [("demo", "deny", "QueueNotFound")]


def test_without_any_queue_every_queue_is_missing() -> None:
    assert found(audit_of(ray_cluster(), queues=())) == [("demo", "deny", "QueueNotFound")]


def test_where_queues_may_not_be_listed_nothing_is_judged_by_them_and_that_is_said() -> None:
    audit = Audit(Defaults())
    audit.cannot_list(QUEUES, ApiError(403, "Forbidden", "no"))
    kind = kind_of("ray.io/v1", "RayCluster")
    assert kind is not None
    audit.read(kind, as_json(ray_cluster(labels=LOST)).encode())
    assert found(audit) == []
    assert audit.incomplete == ["cannot list with your permissions: queues.scheduling.volcano.sh"]


def test_all_kinds_that_may_not_be_listed_are_one_line() -> None:
    audit = Audit(Defaults())
    for resource in (QUEUES, PRIORITY_CLASSES):
        audit.cannot_list(resource, ApiError(403, "Forbidden", "no"))
    audit.known.note("more")
    kinds = "priorityclasses.scheduling.k8s.io, queues.scheduling.volcano.sh"
    assert audit.report()["unknown"] == [f"cannot list with your permissions: {kinds}", "more"]


def test_an_apiserver_that_fails_is_no_matter_of_rights() -> None:
    with pytest.raises(ApiError):
        Audit(Defaults()).cannot_list(QUEUES, ApiError(500, "", "broken"))


@cases(
    "group, queues, expected",
    ("fits", pod_group("g"), (queue(),), []),
    ("in a missing queue", pod_group("g", "lost"), (queue(),), [("g", "deny", "QueueNotFound")]),
    ("muster's own in a missing queue", pod_group("g", "lost", labels=OWN), (queue(),), []),
    ("in the default queue", pod_group("g", ""), (queue("default"),), []),
    ("in a closed queue", pod_group("g"), (queue(state="Closed"),), [("g", "deny", "QueueClosed")]),
    (
        "in a queue of others",
        pod_group("g"),
        (queue(annotations={"muster.dev/namespace-selector": "team=others"}),),
        [("g", "deny", "QueueNotFound")],
    ),
    (
        "in a queue with one below it",
        pod_group("g"),
        (queue(), child("below")),
        [("below", "deny", "QueueHierarchy"), ("g", "deny", "QueueNotLeaf")],
    ),
    (
        "muster's own, larger than its queue",
        pod_group("g", labels=OWN),
        (queue(cpu="2"),),
        [("q", "warn", "CapabilityLowered")],
    ),
    (
        "larger than a queue above its own",
        pod_group("g", "below", labels=OWN),
        (queue(cpu="2"), child("below")),
        [("q", "warn", "CapabilityLowered")],
    ),
    ("larger, and it runs", pod_group("g", labels=OWN, status={"phase": "Running"}), (queue(cpu="2"),), []),
    (
        "an annotation of muster's that says nothing",
        pod_group("g"),
        (queue(annotations={"muster.dev/patience": "soon"}),),
        [("q", "deny", "Invalid")],
    ),
)
def test_queues_and_pod_groups_are_judged_as_new_ones_are(
    group: JSON, queues: tuple[JSON, ...], expected: list[tuple[str, str, str]]
) -> None:
    assert found(audit_of(queues=queues, groups=(group,))) == expected


def test_whose_a_queue_is_no_validation_decides() -> None:
    """As at admission: of a PodGroup in a queue that is not its namespace's, whatever is configured."""
    for mode in ("warn", "off"):
        lost = audit_of(groups=(pod_group("g", "lost"),), validation=read_validation(mode))
        assert found(lost) == [("g", "deny", "QueueNotFound")]
        below = (queue(), child("below"))
        inside = audit_of(groups=(pod_group("g"),), queues=below, validation=read_validation(mode))
        assert {severity for _, severity, _ in found(inside)} == ({"warn"} if mode == "warn" else set())


def test_pod_groups_that_the_webhook_does_not_see_are_no_finding() -> None:
    going = pod_group("going", "lost")
    going["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    elsewhere = pod_group("elsewhere", "lost")
    elsewhere["metadata"]["namespace"] = "ours"
    audit = audit_of(groups=(going, elsewhere), selected="kubernetes.io/metadata.name!=ours")
    assert (found(audit), audit.report()["lookedAt"]["podGroups"]) == ([], 0)


def test_a_pod_group_that_cannot_be_read_is_no_all_clear() -> None:
    audit = audit_of(groups=({"metadata": "none"},))
    assert found(audit) == []
    assert audit.known.notes[0].startswith("skipping malformed podgroups.scheduling.volcano.sh: ")


@pytest.mark.parametrize("product", ["kubernetes", "coscheduling"])
def test_a_gang_of_another_scheduler_runs_as_muster_says(product: str) -> None:
    """Its PodGroup has no phase, or one that says little. Whoever made the PodGroup, Volcano's rules are not for it."""
    scheduler, gang = PRODUCTS[product](), RAY_CLUSTER.pod_group_name("demo")
    group = pod_group(scheduler.group_name(gang, "u"), queue="lost")
    group["metadata"]["annotations"] = {GROUP_NAME: gang, STATE: "Running"}
    audit = audit_of()
    audit.read_pod_group(scheduler, as_json(group).encode())
    audit.read(RAY_CLUSTER, as_json(ray_cluster(labels=LOST)).encode())
    report = audit.report()
    assert [(one["name"], one["running"]) for one in report["workloads"]] == [("demo", True)]
    assert report["podGroups"] == []


def test_people_read_what_would_happen_and_the_sum() -> None:
    job = pytorch_job(policy={"queue": "lost"}, activeDeadlineSeconds=60)
    groups = (pod_group("train", status={"phase": "Running"}, labels=OWN), pod_group("theirs", queue="lost"))
    audit = audit_of(ray_cluster(labels=LOST), job, queues=(child("q", "lost"),), groups=groups)
    out = io.StringIO()
    print_audit(audit, "table", out)
    assert out.getvalue() == (
        "Queue q\n"
        '  refused (QueueHierarchy): spec.parent: queue "lost" does not exist; create it\n'
        "    first, or name another\n"
        "\n"
        "PodGroup team/theirs\n"
        '  refused (QueueNotFound): spec.queue: queue "lost" does not exist,\n'
        '    or is not open to namespace "team"; name another one,\n'
        "    or ask its administrator\n"
        "\n"
        "PyTorchJob team/train (running; it keeps running)\n"
        '  refused (QueueNotFound): spec.runPolicy.schedulingPolicy.queue: queue "lost"\n'
        '    does not exist, or is not open to namespace "team"; name another one,\n'
        "    or ask its administrator\n"
        "  warning (TimeLimitWhileWaiting): spec.runPolicy.activeDeadlineSeconds: 60 s\n"
        "    are counted while the gang waits for room, too; when they are over,\n"
        "    the workload fails, whether it has run or not\n"
        "\n"
        "RayCluster team/demo\n"
        '  refused (QueueNotFound): metadata.labels[volcano.sh/queue-name]: queue "lost"\n'
        '    does not exist, or is not open to namespace "team"; name another one,\n'
        "    or ask its administrator\n"
        "\n"
        "2 workloads, 1 Queue and 1 PodGroup checked: 4 would be refused, 0 with warnings\n"
    )


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_read_the_same(form: str, load: Any) -> None:  # noqa: ANN401 - json.loads or yaml.safe_load
    audit = audit_of(ray_cluster(labels=LOST))
    report = audit.report()
    out = io.StringIO()
    print_audit(audit, form, out)
    assert load(out.getvalue()) == report
    assert report["workloads"][0]["findings"][0]["severity"] == Severity.DENY


def test_a_reason_that_does_not_exist_is_one_line(command: Command) -> None:
    said = command.run("audit", "--validation-reason", "NoSuch=warn")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith('muster audit: a reason: "NoSuch" is not known; use one of Invalid, ')


def test_a_workload_whose_runtime_may_not_be_listed_is_skipped_and_not_refused() -> None:
    """The runtime may exist; where the kind can be listed, a missing one is a refusal."""
    forbidden = ApiError(403, "Forbidden", "no")
    audit = Audit(Defaults())
    audit.cannot_list(CLUSTER_TRAINING_RUNTIME.resource, forbidden)
    for one in (audit, missing := Audit(Defaults())):
        one.read(TRAIN_JOB, as_json(train_job()).encode())
    assert ("train", "deny", "TrainingRuntimeNotFound") in found(missing)
    assert (found(audit), audit.known.notes) == (
        [],
        ["skipping each TrainJob with a ClusterTrainingRuntime: you cannot list these"],
    )


def test_each_fault_of_an_object_of_the_cluster_has_its_line() -> None:
    audit = Audit(Defaults())
    malformed = {**queue(), "spec": {"parent": 7, "weight": "x"}}
    document = Document(
        "Queue q of the cluster", {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **malformed}
    )
    with pytest.raises(InputError) as caught:
        audit.known.learn(document)
    audit.known.ignore(caught.value)
    words = "ignoring it, as the webhook does"
    assert audit.known.notes == [
        f'Queue q of the cluster: spec.parent: 7 is a number, and a string is expected; write "7" in quotes; {words}',
        f'Queue q of the cluster: spec.weight: expected an integer, found the string "x"; {words}',
    ]
