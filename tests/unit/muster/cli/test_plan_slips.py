"""`muster plan`: what is misspelled is not green, and nothing in the input is passed over in silence."""

import json
from typing import Any

import pytest
import yaml

from tests.support.cases import cases
from tests.support.cli.command import Command, Said, messages
from tests.support.manifests.observed import JSON, pytorch_job, ray_cluster


def document(manifest: JSON) -> str:
    return json.dumps(manifest)


def queue(name: str, annotations: JSON | None = None, **spec: Any) -> str:  # noqa: ANN401 - JSON
    meta = {"name": name, "annotations": annotations or {}}
    found = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": meta, "spec": spec}
    return document(found)


def only(said: Said) -> JSON:
    (entry,) = said.entries
    verdict: JSON = entry["verdict"]
    return verdict


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n---\n"])
def test_input_without_any_object_is_an_error(command: Command, text: str) -> None:
    """As kubectl has it: an empty variable in a pipeline is not green. What reads a list gets an empty one."""
    for output, out in (("json", "[]\n"), ("yaml", "[]\n"), ("table", "")):
        said = command.plan(text, output=output)
        assert (said.code, said.out, said.err) == (1, out, "muster plan: no objects passed to plan\n")


@pytest.mark.parametrize(
    ("version", "kind", "why"),
    [
        ("ray.io/v1", "Raycluster", 'unknown kind "ray.io/v1 Raycluster"; did you mean ray.io/v1 RayCluster?'),
        ("ray.io/v1", "RayJobs", 'unknown kind "ray.io/v1 RayJobs"; did you mean ray.io/v1 RayJob?'),
        ("rayio/v1", "RayCluster", 'unknown kind "rayio/v1 RayCluster"; did you mean ray.io/v1 RayCluster?'),
        (
            "kubeflow.org/v1",
            "PytorchJob",
            'unknown kind "kubeflow.org/v1 PytorchJob"; did you mean kubeflow.org/v1 PyTorchJob?',
        ),
        ("ray.io/v2", "RayCluster", 'muster supports RayCluster of ray.io in v1 and v1alpha1, not in "v2"'),
        ("batch/v1beta1", "Job", 'muster supports Job of batch in v1, not in "v1beta1"'),
    ],
)
def test_a_kind_that_is_nearly_one_is_told_with_the_right_one(
    command: Command, version: str, kind: str, why: str
) -> None:
    text = document({**ray_cluster(), "apiVersion": version, "kind": kind})
    assert only(command.plan(text))["message"] == f"not managed: {why}"
    assert command.plan(text, output="table").out.splitlines()[1].startswith("  not managed: ")
    assert [command.plan(text, options=options).code for options in ([], ["--strict"])] == [0, 3]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({}, "it does not ask for gang scheduling: name a queue"),
        (
            {"ray.io/gang-scheduling-enabled": "false"},
            'metadata.labels[ray.io/gang-scheduling-enabled] is "false", and it does not ask for gang scheduling ',
        ),
        (
            {"volcano.sh/queuename": "q"},
            "metadata.labels[volcano.sh/queuename]: unknown label; did you mean volcano.sh/queue-name?",
        ),
        (
            {"muster.dev/managed": "false", "volcano.sh/queue-name": "q"},
            'metadata.labels[muster.dev/managed] is "false"',
        ),
        (
            {"ray.io/scheduler-name": "yunikorn"},
            'metadata.labels[ray.io/scheduler-name] names the scheduler "yunikorn"',
        ),
        (
            {"kueue.x-k8s.io/queue-name": "q"},
            "metadata.labels[kueue.x-k8s.io/queue-name]: it asks Kueue to admit the workload, and its pods are placed",
        ),
        (
            {"kai.scheduler/queue": "q"},
            "metadata.labels[kai.scheduler/queue]: muster reads no queue of KAI; to run it as a gang",
        ),
        ({"yunikorn.apache.org/queue": "q"}, "metadata.labels[yunikorn.apache.org/queue]: muster reads no queue of"),
        (
            {"kueue.x-k8s.io/podset-required-topology": "rack"},
            "metadata.labels[kueue.x-k8s.io/podset-required-topology]: it places pods near each other",
        ),
    ],
)
def test_a_workload_that_is_not_managed_says_why_and_is_not_green_where_it_is_strict(
    command: Command, labels: JSON, why: str
) -> None:
    text = document(ray_cluster(labels=labels))
    verdict = only(command.plan(text))
    assert (verdict["allowed"], verdict["managed"]) == (True, False)
    assert verdict["message"].startswith(f"not managed: {why}")
    assert [command.plan(text, options=options).code for options in ([], ["--strict"])] == [0, 3]


def test_a_ray_job_that_selects_a_cluster_is_told_so_whatever_it_asks_for(command: Command) -> None:
    for labels in ({}, {"volcano.sh/queue-name": "q"}):
        manifest = ray_cluster(labels=labels) | {"kind": "RayJob", "spec": {"clusterSelector": {"ray.io/cluster": "c"}}}
        assert only(command.plan(document(manifest)))["message"].startswith("not managed: spec.clusterSelector: ")


def test_a_label_that_stands_in_a_pod_template_alone_is_told_where_it_belongs(command: Command) -> None:
    manifest = ray_cluster(labels={})
    manifest["spec"]["headGroupSpec"]["template"]["metadata"] = {"labels": {"volcano.sh/queue-name": "q"}}
    path = "spec.headGroupSpec.template.metadata.labels[volcano.sh/queue-name]"
    assert only(command.plan(document(manifest)))["message"] == (
        f"not managed: {path}: it is not read there; move it to metadata.labels of the RayCluster"
    )


def test_a_scheduler_of_the_templates_makes_no_gang_and_is_named(command: Command) -> None:
    manifest = ray_cluster(labels={})
    manifest["spec"]["headGroupSpec"]["template"]["spec"]["schedulerName"] = "volcano"
    assert only(command.plan(document(manifest)))["message"] == (
        "not managed: spec.headGroupSpec.template.spec.schedulerName: it chooses a scheduler, and asks for no gang; "
        "to run it as a gang here, name a queue of muster as well (label volcano.sh/queue-name)"
    )


KUEUE = {"kueue.x-k8s.io/queue-name": "q"}
OWN_QUEUE = {"volcano.sh/queue-name": "q"}
PLAIN = [("batch/v1", "Job"), ("apps/v1", "StatefulSet"), ("v1", "Pod")]


def plain(version: str, kind: str, own: JSON, of_pods: JSON, scheduler: str) -> str:
    pods = {"containers": [{"name": "c"}], "schedulerName": scheduler}
    spec = pods if kind == "Pod" else {"template": {"metadata": {"labels": of_pods}, "spec": pods}}
    return document({"apiVersion": version, "kind": kind, "metadata": {"name": "w", "labels": own}, "spec": spec})


@pytest.mark.parametrize(("version", "kind"), [*PLAIN, ("apps/v1", "Deployment")])
@cases(
    "own, of_pods, scheduler, why",
    ("queue of Kueue", KUEUE, {}, "", "metadata.labels[kueue.x-k8s.io/queue-name]: it asks Kueue to admit"),
    ("in the template", {}, KUEUE, "", "metadata.labels[kueue.x-k8s.io/queue-name]: it asks Kueue to admit"),
    ("queue of muster", OWN_QUEUE, {}, "", "metadata.labels[volcano.sh/queue-name]: it "),
    ("that in the template", {}, OWN_QUEUE, "", "metadata.labels[volcano.sh/queue-name]: it "),
    ("a scheduler", {}, {}, "volcano", "spec.schedulerName: it chooses a scheduler, and asks for no gang; "),
)
def test_plain_pods_that_ask_for_a_queue_or_a_scheduler_are_told_what_they_lack(  # noqa: PLR0917 - each is a case
    command: Command, version: str, kind: str, own: JSON, of_pods: JSON, scheduler: str, why: str
) -> None:
    in_template = kind != "Pod" and not own
    text = plain(version, kind, own or (of_pods if kind == "Pod" else {}), of_pods, scheduler)
    said = command.plan(text, options=["--strict"])
    message = only(said)["message"]
    assert message.startswith(f"not managed: {'spec.template.' * in_template}{why}")
    assert "the label muster.dev/gang and the annotation muster.dev/gang-size" in message
    assert ("the annotation muster.dev/admitter: kueue" in message) == ("kueue" in why)
    assert said.code == 3


@pytest.mark.parametrize(("version", "kind"), PLAIN)
def test_plain_pods_are_told_where_their_gang_is_named(command: Command, version: str, kind: str) -> None:
    joins, where = ("it joins", "it") if kind == "Pod" else ("its pods join", "its pod template")
    assert only(command.plan(plain(version, kind, {}, {}, "")))["message"] == (
        f"not managed: {joins} no gang: give {where} the label muster.dev/gang and the annotation muster.dev/gang-size"
    )


def test_a_binding_of_the_templates_is_named(command: Command) -> None:
    manifest = ray_cluster(labels={})
    annotations = {"scheduling.k8s.io/group-name": "g"}
    manifest["spec"]["headGroupSpec"]["template"]["metadata"] = {"annotations": annotations}
    message = only(command.plan(document(manifest)))["message"]
    assert "template.metadata.annotations[scheduling.k8s.io/group-name]: its pods are bound to a PodGroup" in message


def test_kuberays_word_for_a_gang_is_one(command: Command) -> None:
    """The gang is one of the default queue; `false`, which KubeRay does not read, turns it off."""
    for value, queue_of in (("true", "default"), ("", "default"), ("false", None)):
        (entry,) = command.plan(document(ray_cluster(labels={"ray.io/gang-scheduling-enabled": value}))).entries
        assert (entry["intent"] or {}).get("queue") == queue_of


def test_a_warning_has_reason_field_and_message(command: Command) -> None:
    labels = {"volcano.sh/queue-name": "q", "ray.io/scheduler": "volcano"}
    field = "metadata.labels[ray.io/scheduler]"
    assert only(command.plan(document(ray_cluster(labels=labels))))["warnings"] == [
        {
            "reason": "Misspelled",
            "field": field,
            "message": f"{field}: unknown label; did you mean ray.io/scheduler-name?",
        }
    ]


def test_the_table_says_what_is_misspelled_once(command: Command) -> None:
    out = command.plan(document(ray_cluster(labels={"volcano.sh/queuename": "q"})), output="table").out
    assert out.count("volcano.sh/queuename") == 1


def test_strict_lets_pass_what_is_managed_and_well_written_and_a_refusal_goes_before(command: Command) -> None:
    good, slip = ray_cluster(), ray_cluster(labels={"ray.io/scheduler-name": "volcano", "volcano.sh/queue": "q"})
    assert command.plan(document(good), options=["--strict"]).code == 0
    assert only(command.plan(document(slip)))["misspelled"]
    assert [command.plan(document(slip), options=options).code for options in ([], ["--strict"])] == [0, 3]
    lost = ray_cluster(labels={"volcano.sh/queue-name": "gone"})
    assert command.plan(queue("q"), document(slip), document(lost), options=["--strict"]).code == 1


@pytest.mark.parametrize(
    ("name", "meant"),
    [("minAvailible", "; did you mean minAvailable?"), ("priority", "; did you mean priorityClass?"), ("x", "")],
)
def test_the_fields_of_a_scheduling_policy_are_known_without_a_schema(command: Command, name: str, meant: str) -> None:
    (warning,) = messages(only(command.plan(document(pytorch_job(policy={"queue": "q", name: 2}))))["warnings"])
    assert warning == (
        f"spec.runPolicy.schedulingPolicy.{name}: unknown field (known: queue, priorityClass, minAvailable, "
        f"minResources, scheduleTimeoutSeconds){meant}"
    )


OBJECT: JSON = {"type": "object"}
ANYTHING: JSON = {**OBJECT, "x-kubernetes-preserve-unknown-fields": True}


def crd(schema: JSON) -> str:
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "ray.io", "names": {"kind": "RayCluster"}, "versions": [version]}
    return document({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec})


def known_fields(workers: JSON) -> str:
    return crd({**OBJECT, "properties": {"spec": {**OBJECT, "properties": {"workerGroupSpecs": workers}}}})


@cases(
    "workers, dropped",
    ("anything goes", ANYTHING, []),
    ("a map", {"type": "array", "items": {**OBJECT, "additionalProperties": OBJECT}}, []),
    ("nobody says", {"type": "array", "items": OBJECT}, []),
    (
        "some are not known",
        {"type": "array", "items": {**OBJECT, "properties": {"replica": OBJECT, "template": ANYTHING}}},
        [("groupName", ""), ("replicas", "; did you mean replica?")],
    ),
)
def test_the_fields_that_a_definition_in_the_input_does_not_know_are_told(
    command: Command, workers: JSON, dropped: list[tuple[str, str]]
) -> None:
    group = {"groupName": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c"}], "any": 1}}}
    manifest = ray_cluster()
    manifest["spec"] = {"headGroupSpec": manifest["spec"]["headGroupSpec"], "workerGroupSpecs": [group]}
    said = [
        line.partition(": ")
        for line in messages(only(command.plan(known_fields(workers), document(manifest)))["warnings"])
        if "has no such field" in line
    ]
    assert said[0][::2] == (
        "spec.headGroupSpec",
        "ray.io/v1 RayCluster has no such field: kubectl apply refuses it, and other clients lose it",
    )
    assert [(path, rest) for path, _, rest in said[1:]] == [
        (
            f"spec.workerGroupSpecs[0].{name}",
            f"ray.io/v1 RayCluster has no such field: kubectl apply refuses it, and other clients lose it{meant}",
        )
        for name, meant in dropped
    ]


@cases(
    "text, lines",
    ("orphan", queue("q", parent="team"), ['spec.parent: queue "team" does not exist']),
    (
        "above its parent",
        f"{queue('team', capability={'cpu': 4})}\n---\n{queue('q', capability={'cpu': 8}, parent='team')}",
        ['spec.capability: cpu 4 is below the cpu 8 of queue "q"', "spec.capability: cpu 8 is above the cpu 4 of"],
    ),
    (
        "patience",
        queue("q", {"muster.dev/patience": "forever"}),
        ['metadata.annotations[muster.dev/patience]: "forever" is not a duration'],
    ),
)
def test_queues_of_the_input_are_judged_as_audit_judges_them(command: Command, text: str, lines: list[str]) -> None:
    said = command.plan(text)
    assert (said.code, [entry["workload"]["kind"] for entry in said.entries]) == (1, ["Queue"] * len(lines))
    for entry, line in zip(said.entries, lines, strict=True):
        assert entry["verdict"]["message"].startswith(line)
    assert command.plan(text, output="table").out.startswith("Queue ")


def test_a_sound_queue_has_no_entry(command: Command) -> None:
    said = command.plan(f"{queue('team', capability={'cpu': 4})}\n---\n{queue('q', parent='team')}")
    assert (said.code, said.entries) == (0, [])


def test_a_workload_in_an_orphan_queue_is_refused_and_the_note_says_what_is_missing(command: Command) -> None:
    said = command.plan(queue("q", parent="team"), document(ray_cluster(labels={"volcano.sh/queue-name": "q"})))
    assert [entry["verdict"]["reason"] for entry in said.entries] == ["QueueHierarchy", "QueueNotFound"]
    assert 'queue "q" is below "team", which does not exist' in said.err
    assert yaml.safe_load(command.plan(queue("q", parent="team"), output="yaml").out)[0]["workload"]["name"] == "q"


@pytest.mark.parametrize(
    ("values", "managed"),
    [
        ({"namespaceSelector": {"matchLabels": {"muster": "pilot"}}}, True),
        ({"namespaceSelector": {"matchExpressions": [{"key": "muster", "operator": "In", "values": ["a"]}]}}, False),
        ({"excludedNamespaces": ["team"]}, False),
        ({"excludedNamespaces": ["a", 7]}, True),
    ],
)
def test_a_namespace_that_the_installation_does_not_select_is_told(
    command: Command, values: dict[str, Any], *, managed: bool
) -> None:
    """As for the controller; what is required there counts for nothing either."""
    labels = {"muster": "pilot", "muster.dev/managed": "required"}
    namespace = document({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}})
    verdict = only(command.plan(namespace, document(ray_cluster()), options=command.values(**values)))
    assert verdict["managed"] is managed
    if not managed:
        why = 'namespace "team" is not selected by the chart value namespaceSelector'
        assert verdict["message"] == f"not managed: {why}"


@cases(
    "text, words",
    ("a slip", "schedulers: [vulcano]", '"vulcano" is no gang scheduler that muster knows'),
    ("no value of the chart", "gate: open", "invalid enum value 'open'"),
    ("another type", "schedulers: volcano", "expected a list, found a string"),
    ("an admitter", "admitters: [me]", '"me" names an unknown admitter'),
    ("selector", "namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}", "is neither key"),
    ("not YAML", "schedulers: [a", "values.yaml, line 2"),
)
def test_values_that_the_chart_would_refuse_are_refused(command: Command, text: str, words: str) -> None:
    said = command.plan(document(ray_cluster()), options=("--values", command.file(text, "values.yaml")))
    assert (said.code, "argument --values: " in said.err, words in said.err) == (2, True, True), said.err


def test_a_missing_file_of_values_is_named(command: Command) -> None:
    said = command.plan(document(ray_cluster()), options=("--values", "/nowhere/values.yaml"))
    assert (said.code, "argument --values: /nowhere/values.yaml: No such file" in said.err) == (2, True)
