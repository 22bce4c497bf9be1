"""What a plan takes from the input beside the workloads, and what it makes of it."""

from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.cli.command import Command, messages

CLUSTER = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, namespace: team, labels: {volcano.sh/queue-name: q}}
spec:
  headGroupSpec:
    template: {spec: {runtimeClassName: kata, containers: [{name: h, resources: {requests: {cpu: 1}}}]}}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\n"
QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"
GANG_QUEUE = "apiVersion: muster.dev/v1alpha1\nkind: GangQueue\n"
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
LIMITS = "apiVersion: v1\nkind: LimitRange\n"
ELASTIC = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\n"
RUNTIME = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nhandler: kata\n"


def limits(namespace: str, **default: str) -> str:
    amounts = ", ".join(f"{name}: {amount}" for name, amount in default.items())
    return (
        f"{LIMITS}metadata: {{name: l, namespace: {namespace}}}\n"
        f"spec: {{limits: [{{type: Container, defaultRequest: {{{amounts}}}}}]}}"
    )


def entry(command: Command, *texts: str) -> dict[str, Any]:
    """The entry of the one workload; wherever its context stands in the input, it is the same."""
    before, after = command.plan(*texts, CLUSTER), command.plan(CLUSTER, *texts)
    assert before.unplaced == after.unplaced
    (only,) = before.unplaced
    return only


@cases(
    "context, asks",
    ("nothing known", [], {"cpu": "1"}),
    (
        "a RuntimeClass",
        [f"{RUNTIME}metadata: {{name: kata}}\noverhead: {{podFixed: {{cpu: 250m, memory: 1Gi}}}}"],
        {"cpu": "1250m", "memory": "1Gi"},
    ),
    (
        "LimitRanges of its namespace",
        [
            limits("team", memory="2Gi"),
            limits("others", memory="9Gi"),
        ],
        {"cpu": "1", "memory": "2Gi"},
    ),
    (
        "the same LimitRange twice: the last, as kubectl apply would leave it",
        [limits("team", memory="2Gi"), limits("team", storage="2Gi")],
        {"cpu": "1", "storage": "2Gi"},
    ),
)
def test_what_the_cluster_adds_to_pods_is_in_the_gang(
    command: Command, context: list[str], asks: dict[str, str]
) -> None:
    found = entry(command, *context)
    assert found["roles"][0]["requests"] == asks
    assert found["podGroup"]["spec"]["minResources"] == asks


def test_of_classes_that_are_known_a_missing_one_is_warned_about(command: Command) -> None:
    assert entry(command)["verdict"]["warnings"] == []
    (warning,) = messages(entry(command, f"{RUNTIME}metadata: {{name: other}}")["verdict"]["warnings"])
    assert warning == (
        'spec.headGroupSpec.template.spec.runtimeClassName: RuntimeClass "kata" does not exist; '
        "the apiserver refuses such pods, name an existing class or create it first"
    )


@cases(
    "quotas, reason",
    ("enough", ["{name: e, namespace: team}\nspec: {max: {cpu: 1}}"], ""),
    ("max", ["{name: e, namespace: team}\nspec: {max: {cpu: 500m}}"], "ExceedsElasticQuota"),
    ("of another namespace", ["{name: e, namespace: other}\nspec: {max: {cpu: 500m}}"], ""),
    ("those of the input are not all there are", ["{name: e, namespace: team}\nspec: {min: {cpu: 100m}}"], ""),
    (
        "the same twice: the last",
        [
            "{name: e, namespace: team}\nspec: {max: {cpu: 500m}}",
            "{name: e, namespace: team}\nspec: {max: {cpu: 2}}",
            "{name: f, namespace: team}\nspec: {max: {cpu: 4}}",
        ],
        "",
    ),
)
def test_elastic_quotas_of_the_input_judge_what_heeds_them(command: Command, quotas: list[str], reason: str) -> None:
    texts = [f"{ELASTIC}metadata: {quota}" for quota in quotas]
    (found,) = command.plan(*texts, CLUSTER, options=command.values(schedulers=["coscheduling"])).entries
    assert found["verdict"]["reason"] == reason
    assert entry(command, *texts)["verdict"]["reason"] == ""


def test_elastic_quotas_need_a_scheduler_that_uses_them(command: Command) -> None:
    for values in ({}, {"schedulers": ["volcano"]}):
        said = command.plan(CLUSTER, options=command.values(elasticQuotas=True, **values))
        assert said.code == 2
        assert "elasticQuotas: only coscheduling uses ElasticQuotas; add it to schedulers" in said.err
    both = command.values(elasticQuotas=True, schedulers=["volcano", "coscheduling"])
    assert command.plan(CLUSTER, options=both).code == 0


def test_priority_classes_judge_where_there_are_any(command: Command) -> None:
    urgent = CLUSTER.replace("queue-name: q}", "queue-name: q, ray.io/priority-class-name: high}")
    other, high = f"{CLASS}metadata: {{name: low}}\nvalue: 1", f"{CLASS}metadata: {{name: high}}\nvalue: 9"
    reasons = [
        command.plan(urgent, *context).entries[0]["verdict"]["reason"] for context in ([], [other], [other, high])
    ]
    assert reasons == ["", "UnknownPriorityClass", ""]


def test_a_namespace_speaks_for_its_workloads(command: Command) -> None:
    """It turns muster on or off, and names a queue for those that name none."""
    silent = CLUSTER.replace(", labels: {volcano.sh/queue-name: q}", "")
    on = (
        f"{NAMESPACE}metadata: {{name: team, labels: {{muster.dev/managed: 'true'}}, "
        "annotations: {scheduling.volcano.sh/queue-name: theirs}}"
    )
    off = f"{NAMESPACE}metadata: {{name: team, labels: {{muster.dev/managed: 'false'}}}}"
    (found,) = command.plan(on, silent).entries
    assert found["intent"]["queue"] == "theirs"
    assert found["intent"]["from"]["queue"] == "namespace team: metadata.annotations[scheduling.volcano.sh/queue-name]"
    assert command.plan(silent).entries[0]["intent"] is None
    assert entry(command, off)["intent"] is None


@cases(
    "context, line",
    (
        "RuntimeClass",
        f"{RUNTIME}metadata: {{name: r}}\noverhead: {{podFixed: {{cpu: some}}}}",
        'overhead.podFixed.cpu: "some" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    ("class", f"{CLASS}metadata: {{name: c}}\nvalue: high", 'value: expected an integer, found the string "high"'),
    ("Namespace", f"{NAMESPACE}metadata: [1]", "metadata: expected an object, found a list"),
    (
        "LimitRange",
        f"{LIMITS}metadata: {{name: l}}\nspec: {{limits: 1}}",
        "spec.limits: expected a list, found an integer",
    ),
    (
        "amount of a LimitRange",
        f"{LIMITS}metadata: {{name: l}}\nspec: {{limits: [{{type: Container, default: {{cpu: some}}}}]}}",
        'spec.limits[0].default.cpu: "some" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    (
        "ElasticQuota",
        f"{ELASTIC}metadata: {{name: e}}\nspec: {{max: {{cpu: some}}}}",
        'spec.max.cpu: "some" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
)
def test_context_that_is_wrong_is_named_with_its_field(command: Command, context: str, line: str) -> None:
    said = command.plan(CLUSTER, context)
    assert (said.code, said.err) == (2, f"muster plan: {command.folder / '1.yaml'}, document 1, line 1: {line}\n")


@pytest.mark.parametrize(("source", "allowed"), [("volcano", True), ("muster", False)])
def test_of_two_queues_of_one_name_that_of_the_queue_source_counts(
    command: Command, source: str, allowed: bool
) -> None:
    """A repository may still have the Queues from which `muster migrate-queues` made GangQueues."""
    large = f"{QUEUE}metadata: {{name: q}}\nspec: {{capability: {{cpu: 4}}}}"
    small = f"{GANG_QUEUE}metadata: {{name: q}}\nspec: {{capability: {{cpu: 500m}}}}"
    for queues in ((large, small), (small, large)):
        (only,) = command.plan(*queues, CLUSTER, options=command.values(queues={"source": source})).entries
        assert only["verdict"]["allowed"] is allowed


@pytest.mark.parametrize("kind", [QUEUE, GANG_QUEUE])
def test_what_is_wrong_with_a_queue_is_said_of_either_source(command: Command, kind: str) -> None:
    source = "muster" if kind == GANG_QUEUE else "volcano"
    options = command.values(queues={"source": source})
    said = command.plan(f"{kind}metadata: {{name: q}}\nspec: {{parent: gone}}", options=options)
    (only,) = said.entries
    assert (said.code, only["verdict"]["reason"], only["workload"]["name"]) == (1, "QueueHierarchy", "q")


@pytest.mark.parametrize(
    "spec",
    [
        "text",
        "[1]",
        "{versions: text}",
        "{versions: [text]}",
        "{versions: [{schema: text}]}",
        "{group: ray.io, names: text, versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}",
    ],
)
def test_what_is_no_custom_resource_definition_is_named(command: Command, spec: str) -> None:
    """And the rest of the input is read."""
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c}\n"
    said = command.plan(f"{crd}spec: {spec}", CLUSTER)
    assert (said.code, len(said.entries)) == (2, 1)
    assert "document 1, line 1: not a CustomResourceDefinition: " in said.err


@pytest.mark.parametrize("schema", ["text", "{properties: text}", "{properties: {spec: text}}", "{properties: [1]}"])
def test_a_schema_that_is_none_says_nothing_of_a_workload(command: Command, schema: str) -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c}\n"
    version = f"{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}"
    said = command.plan(f"{crd}spec: {{group: ray.io, names: {{kind: RayCluster}}, versions: [{version}]}}", CLUSTER)
    assert (said.code, [one["verdict"]["warnings"] for one in said.entries]) == (0, [[]])
