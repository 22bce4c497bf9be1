"""`muster plan` names every field of a wrong type, and nothing that only follows from a fault."""

import json
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext
from muster.cli.plan.entries import plan
from muster.cli.plan.manifests import Document
from muster.cli.plan.shape import unreadable
from muster.gangs.intent import Defaults
from muster.model.objects import InvalidObjectError, convert
from muster.workloads import kind_of
from tests.support.cases import cases
from tests.support.cli.command import Command
from tests.support.cli.plan_entries import ENTRIES
from tests.support.manifests.observed import pytorch_job

CLUSTER = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, labels: {volcano.sh/queue-name: q, ray.io/priority-class-name: gone}}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: h, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}
  workerGroupSpecs:
  - groupName: a
    replicas: 3
    minReplicas: 1
    maxReplicas: 5
    template: {spec: {containers: [{name: w, resources: {requests: {nvidia.com/gpu: 1}}}]}}
  - groupName: b
    numOfHosts: 2
    template: {spec: {containers: [{name: w, resources: {requests: {cpu: 1}}}]}}
"""
HEAD = "spec.headGroupSpec.template.spec.containers[0].resources.requests"
GROUPS = "spec.workerGroupSpecs"
CLASSES = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: other}\nvalue: 1\n"
NO_QUANTITY = "is not a quantity such as 500m, 2 or 1.5Gi"
NO_CLASS = (
    'metadata.labels[ray.io/priority-class-name]: PriorityClass "gone" does not exist; '
    "name an existing class or create it first"
)
NEGATIVE = "is negative; a number of pods is 0 or more"


def broken(text: str, **changes: object) -> str:
    """The manifest with other values; `a__0__b` is the place a[0].b, and None leaves out what is there."""
    manifest = yaml.safe_load(text)
    for place, value in changes.items():
        *way, last = [int(step) if step.isdigit() else step for step in place.split("__")]
        within = manifest
        for step in way:
            within = within[step]
        if value is None:
            del within[last]
        else:
            within[last] = value
    return json.dumps(manifest)


def refusals(command: Command, *texts: str) -> list[str]:
    (entry,) = command.plan(*texts).entries
    return [one["message"] for one in entry["verdict"]["refusals"]]


def test_all_fields_of_a_wrong_type_are_named_with_a_wrong_name(command: Command) -> None:
    """In the output of each form; the object counts once."""
    text = broken(
        CLUSTER,
        metadata__name="Demo",
        metadata__labels={"volcano.sh/queue-name": 7, "ray.io/priority-class-name": "gone"},
        spec__headGroupSpec__template__spec__containers__0__resources__requests={"cpu": [1], "memory": "1GB"},
        spec__workerGroupSpecs__0__replicas="3",
        spec__workerGroupSpecs__1__template__spec__containers={},
        spec__workerGroupSpecs__1__numOfHosts=0,
    )
    words = [
        'metadata.name: "Demo" is not a valid name; use at most 253 lower-case letters, digits, - and .',
        'metadata.labels[volcano.sh/queue-name]: 7 is a number, and a string is expected; write "7" in quotes',
        f"{HEAD}.cpu: expected a quantity, found a list",
        f'{GROUPS}[0].replicas: "3" is a string; write 3 without quotes',
        f"{GROUPS}[1].template.spec.containers: expected a list, found an object",
    ]
    said = command.plan(text, CLASSES, output="table")
    source = f"muster plan: {command.folder / '0.yaml'}, document 1, line 1: "
    assert said.code == 2
    assert sorted(said.err.splitlines()) == sorted(f"{source}{line}" for line in words)
    assert said.out.splitlines() == ["0 objects: 0 allowed, 0 refused, 1 could not be read"]
    junit = command.plan(text, CLASSES, output="junit").out
    (case,) = ET.fromstring(junit).iter("testcase")  # noqa: S314 - our own
    assert len([one for one in case if one.tag == "error"]) == len(words)


def test_what_makes_no_gang_is_a_refusal_with_the_names_that_mean_nothing(command: Command) -> None:
    """Every amount that is none, and what does not depend on the amounts."""
    text = broken(
        CLUSTER,
        spec__headGroupSpec__template__spec__containers__0__resources__requests={"cpu": "much", "memory": "1GB"},
    )
    wrong = [f'{HEAD}.cpu: "much" {NO_QUANTITY}', f'{HEAD}.memory: "1GB" {NO_QUANTITY}']
    assert refusals(command, text, CLASSES) == [*wrong, NO_CLASS]


def test_a_misspelled_role_is_told_of_next_to_an_amount_that_is_none(command: Command) -> None:
    wrong = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "4GB"}}}]}}
    manifest = pytorch_job(policy={"queue": "q"}, replicas={"Wroker": {"replicas": 1, "template": wrong}})
    (entry,) = command.plan(json.dumps(manifest)).entries
    assert [one["reason"] for one in entry["verdict"]["refusals"]] == ["Invalid"]
    assert "did you mean Worker?" in entry["verdict"]["warnings"][0]["message"]


def test_a_misspelled_label_is_told_of_next_to_a_field_of_another_type(command: Command) -> None:
    text = broken(CLUSTER, metadata__labels={"volcano.sh/queuename": "q"}, spec__workerGroupSpecs__0__replicas="3")
    first, second = command.plan(text).err.splitlines()
    assert "metadata.labels[volcano.sh/queuename]: unknown label; did you mean volcano.sh/queue-name?" in first
    assert f"{GROUPS}[0].replicas" in second


def test_a_queue_and_a_class_are_judged_next_to_a_runtime_that_is_not_known(command: Command) -> None:
    """The runtime, the queue and the class, each with the name that may be meant."""
    group = "trainer.kubeflow.org/v1alpha1"
    runtime = {"apiVersion": group, "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch-distributed"}}
    queue = '{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team-a"}}'
    manifest = {
        "apiVersion": group,
        "kind": "TrainJob",
        "metadata": {"name": "t", "labels": {"volcano.sh/queue-name": "taem-a", "ray.io/priority-class-name": "ohter"}},
        "spec": {"runtimeRef": {"name": "torch-distributd"}},
    }
    found = refusals(command, json.dumps(runtime), queue, CLASSES, json.dumps(manifest))
    assert len(found) == 3
    for message, meant in zip(found, ("torch-distributed", "team-a", "other"), strict=True):
        assert f'did you mean "{meant}"?' in message
    assert 'queue "taem-a" is not among the Queues of the input' in found[1]


@cases(
    "change, only",
    ("counts", {"replicas": -1, "minReplicas": 9}, [f"{GROUPS}[0].replicas: -1 {NEGATIVE}"]),
    ("bounds", {"minReplicas": 9, "maxReplicas": -1}, [f"{GROUPS}[0].maxReplicas: -1 {NEGATIVE}"]),
    ("a name of two", {"groupName": "b"}, [f'{GROUPS}[1].groupName: "b" is taken; group names differ']),
)
def test_what_only_follows_from_a_fault_is_not_told(
    command: Command, change: dict[str, object], only: list[str]
) -> None:
    """The pods are not fewer than a minimum because their number is malformed."""
    text = broken(CLUSTER, **{f"spec__workerGroupSpecs__0__{field}": value for field, value in change.items()})
    assert refusals(command, text) == only


@pytest.mark.parametrize("kind", ["scheduling.volcano.sh/v1beta1\nkind: Queue", "muster.dev/v1alpha1\nkind: GangQueue"])
def test_what_is_wrong_with_a_queue_or_another_context_is_named(command: Command, kind: str) -> None:
    queue = f"""\
apiVersion: {kind}
metadata: {{name: q}}
spec: {{parent: 7, capability: {{cpu: much, memory: x}}, guarantee: {{resource: {{cpu: z}}}}}}
"""
    limits = """\
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, default: {cpu: a}, max: {cpu: b}}]}
"""
    said = command.plan(queue, limits)
    files = [f"muster plan: {command.folder / name}, document 1, line 1: " for name in ("0.yaml", "1.yaml")]
    assert said.err.splitlines() == [
        f'{files[0]}spec.parent: 7 is a number, and a string is expected; write "7" in quotes',
        f'{files[1]}spec.limits[0].default.cpu: "a" {NO_QUANTITY}',
    ]


def test_a_thousand_faults_end_after_some(command: Command) -> None:
    text = broken(CLUSTER, metadata__labels={f"key-{number}": number for number in range(1000)})
    lines = command.plan(text).err.splitlines()
    assert len(lines) == 21
    assert lines[-1].endswith(": 980 more faults")


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401 - a manifest
    """Where each scalar stands."""
    if not isinstance(value, (dict, list)):
        return [way]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [place for key, item in items for place in places(item, (*way, key))]


MANIFESTS = [yaml.safe_load(CLUSTER), *(next(yaml.safe_load_all(text)) for text, _ in ENTRIES.values())]


@given(data=st.data(), manifest=st.sampled_from(MANIFESTS))
def test_each_field_that_a_decoder_would_stop_at_is_named(data: st.DataObject, manifest: dict[str, Any]) -> None:
    """Whatever stands where; with all of them right, the object is decoded."""
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    hurt, alone = deepcopy(manifest), 0
    for place in data.draw(st.lists(st.sampled_from(places(manifest)), min_size=1, max_size=4, unique=True)):
        value = data.draw(st.sampled_from([7, "seven", 1.5, True, [[]], {"a": []}]))
        one = deepcopy(manifest)
        for whole in (one, hurt):
            within = whole
            for step in place[:-1]:
                within = within[step]
            within[place[-1]] = value
        try:
            convert(one, kind.decoded)
        except InvalidObjectError:
            alone += 1
    lines = str(unreadable(Document("file", hurt), kind.decoded)).splitlines()
    assert len([line for line in lines if line != "file: None"]) == alone


@given(data=st.data(), manifest=st.sampled_from(MANIFESTS))
def test_no_object_is_too_broken(data: st.DataObject, manifest: dict[str, Any]) -> None:
    """Any JSON at any place: an entry or an error, and never anything else."""
    hurt = deepcopy(manifest)
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda more: st.lists(more, max_size=2) | st.dictionaries(st.text(max_size=3), more, max_size=2),
        max_leaves=4,
    )
    ways = places(manifest)
    for place in data.draw(st.lists(st.sampled_from(ways), min_size=1, max_size=4, unique=True)):
        cut = data.draw(st.integers(2 if place[0] == "metadata" else 1, len(place)))
        within: Any = hurt
        for step in place[: cut - 1]:
            within = within[step] if isinstance(within, dict) and step in within else {}
        if isinstance(within, dict) and place[0] not in ("apiVersion", "kind"):
            within[place[cut - 1]] = data.draw(values)
    errors: list[str] = []
    entries = plan([Document("file", hurt)], Defaults(), PlanContext(), errors)
    assert len(entries) + len(errors) == 1


def test_an_error_without_a_list_for_it_has_all_lines() -> None:
    document = Document("file", json.loads(broken(CLUSTER, metadata__name="A", metadata__namespace="B")))
    with pytest.raises(InputError) as caught:
        plan([document], Defaults())
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == [" metadata.name", " metadata.namespace"]


POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s"}}'


@pytest.mark.parametrize("name", ["0.json", "0.yaml"])
@pytest.mark.parametrize("between", ["\n", "\n---\n"])
def test_objects_before_the_broken_place_of_json_are_planned(command: Command, name: str, between: str) -> None:
    path = command.file(between.join([POD % "a", POD % "b", '{"apiVersion": "v1", "kind": ]}']), name)
    said = command.run("plan", "-o", "json", "-f", path)
    assert [entry["workload"]["name"] for entry in said.entries] == ["a", "b"]
    line = 1 + 2 * between.count("\n")
    missing = "a value, or the bracket that closes a list or an object, is missing"
    words = missing if between == "\n---\n" and "yaml" in name else "a value is missing, or is not JSON"
    assert said.err == f"muster plan: {path}, line {line}: {words}\n"
    assert said.code == 2


def test_objects_behind_a_broken_one_are_planned_where_lines_part_them(command: Command) -> None:
    path = command.file("\n---\n".join([POD % "a", '{"kind": [}', POD % "c"]))
    said = command.run("plan", "-o", "json", "-f", path)
    assert [entry["workload"]["name"] for entry in said.entries] == ["a", "c"]
    assert said.err.startswith(f"muster plan: {path}, line 3: ")
