"""`muster plan` finds what stands at the wrong place, without a schema, and what the apiserver refuses of any kind."""

from typing import Any

import pytest
import yaml

from tests.support.cases import cases
from tests.support.cli.command import Command

LOST = "Kubernetes has no such field here: kubectl apply refuses it, and other clients lose it"
WORKER = "spec.workerGroupSpecs[0].template.spec"
CLUSTER = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, labels: {volcano.sh/queue-name: q}}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: h, resources: {requests: {cpu: 1}}}]}}
  workerGroupSpecs:
  - groupName: a
    replicas: 2
    template:
      metadata: {labels: {a: b}}
      spec:
        initContainers: [{name: i}]
        containers: [{name: w, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]
"""


def changed(place: str, value: object, text: str = CLUSTER) -> str:
    """The manifest with a value at a place such as a/0/b."""
    manifest: Any = yaml.safe_load(text)
    *way, last = [int(step) if step.isdigit() else step for step in place.split("/")]
    within = manifest
    for step in way:
        within = within[step]
    within[last] = value
    return str(yaml.safe_dump(manifest))


_POD = "spec/workerGroupSpecs/0/template"


@cases(
    "place, field, hint",
    ("labels", "labels", "labels", "; it belongs in metadata: check its indentation"),
    ("a field of the spec", "workerGroupSpecs", "workerGroupSpecs", "; it belongs in spec: check its indentation"),
    ("any other", "nothing", "nothing", ""),
    ("label", "metadata/label", "metadata.label", "; did you mean labels?"),
    (
        "labels of a template",
        f"{_POD}/labels",
        "spec.workerGroupSpecs[0].template.labels",
        "; it belongs in metadata: check its indentation",
    ),
    ("of a pod", f"{_POD}/spec/image", f"{WORKER}.image", "; it belongs in containers: check its indentation"),
    (
        "of a container",
        f"{_POD}/spec/containers/0/limits",
        f"{WORKER}.containers[0].limits",
        "; it belongs in resources: check its indentation",
    ),
    ("of an init container", f"{_POD}/spec/initContainers/0/img", f"{WORKER}.initContainers[0].img", ""),
    (
        "a GPU beside limits",
        f"{_POD}/spec/containers/0/resources/nvidia.com~gpu",
        f"{WORKER}.containers[0].resources.nvidia.com/gpu",
        "; it belongs in limits: check its indentation",
    ),
    (
        "memory beside limits",
        f"{_POD}/spec/containers/0/resources/memory",
        f"{WORKER}.containers[0].resources.memory",
        "; it belongs in limits: check its indentation",
    ),
    (
        "a GPU of a container",
        f"{_POD}/spec/containers/0/nvidia.com~gpu",
        f"{WORKER}.containers[0].nvidia.com/gpu",
        "; it belongs in resources.limits: check its indentation",
    ),
    ("limits of a pod", f"{_POD}/spec/limits", f"{WORKER}.limits", "; it belongs in resources: check its indentation"),
    (
        "request",
        f"{_POD}/spec/containers/0/resources/request",
        f"{WORKER}.containers[0].resources.request",
        "; did you mean requests?",
    ),
)
def test_a_key_at_the_wrong_place_is_found(command: Command, place: str, field: str, hint: str) -> None:
    """And `--strict` fails for it."""
    text = changed(place, {"a": "b"}).replace("nvidia.com~gpu", "nvidia.com/gpu")
    said = command.plan(text, options=("--strict",))
    (entry,) = said.entries
    assert [one["message"] if isinstance(one, dict) else one for one in entry["verdict"]["warnings"]] == [
        f"{field}: {LOST}{hint}"
    ]
    assert said.code == 3


def test_where_the_key_belongs_may_be_a_queue(command: Command) -> None:
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\ncapability: {cpu: 4}\n"
    (entry,) = command.plan(queue).entries
    assert f"capability: {LOST}; it belongs in spec: check its indentation" in str(entry["verdict"]["warnings"])


@pytest.mark.parametrize("kind", ["Queue", "GangQueue", "PriorityClass", "Namespace", "LimitRange", "RuntimeClass"])
def test_an_object_without_a_name_is_an_error(command: Command, kind: str) -> None:
    """It would be taken for one of the name ""."""
    groups = {"Queue": "scheduling.volcano.sh/v1beta1", "GangQueue": "muster.dev/v1alpha1"}
    groups |= {"PriorityClass": "scheduling.k8s.io/v1", "RuntimeClass": "node.k8s.io/v1"}
    said = command.plan(f"apiVersion: {groups.get(kind, 'v1')}\nkind: {kind}\nmetadata:\nname: q\n")
    path = command.folder / "0.yaml"
    assert said.code == 2
    assert said.err.splitlines() == [
        f"muster plan: {path}, document 1, line 1: metadata.name: missing; an object needs a name",
        f"muster plan: {path}, document 1, line 1: name: {LOST}; it belongs in metadata: check its indentation",
    ]


def test_a_class_has_other_keys_at_its_top(command: Command) -> None:
    text = 'apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nvalue: "1"\ndescription: x\n'
    problems = [line.rpartition("line 1: ")[2] for line in command.plan(text).err.splitlines()]
    assert problems == [
        "metadata.name: missing; an object needs a name",
        'value: "1" is a string; write 1 without quotes',
    ]


def test_a_workload_without_a_name_is_an_error(command: Command) -> None:
    said = command.plan(CLUSTER.replace("name: demo, ", ""))
    assert "metadata.name: missing; an object needs a name" in said.err


@pytest.mark.parametrize(
    ("metadata", "found"), [("demo", 'the string "demo"'), ("[demo]", "a list"), ("5", "an integer")]
)
def test_metadata_that_is_no_object_is_told_as_that(command: Command, metadata: str, found: str) -> None:
    planned = command.plan(CLUSTER.replace("{name: demo, labels: {volcano.sh/queue-name: q}}", metadata))
    assert planned.err.rstrip().endswith(f"line 1: metadata: expected an object, found {found}")


@cases(
    "place, value, refusal",
    (
        "half a cpu",
        f"{_POD}/spec/containers/0/resources/requests/cpu",
        0.5,
        (
            f"{WORKER}.containers[0].resources.requests.cpu: 0.5 is a number with a fraction, which the apiserver "
            'refuses here; write "0.5" in quotes'
        ),
    ),
    (
        "a label",
        "metadata/labels/app",
        "a b",
        (
            'metadata.labels[app]: "a b" is not a valid label value; use at most 63 letters, digits, -, _ and ., with '
            "a letter or a digit at both ends"
        ),
    ),
)
def test_the_apiserver_refuses_it_whatever_the_schema(
    command: Command, place: str, value: object, refusal: str
) -> None:
    (entry,) = command.plan(changed(place, value)).entries
    assert [one["message"] for one in entry["verdict"]["refusals"]] == [refusal]


def test_a_job_may_have_half_a_cpu(command: Command) -> None:
    """The apiserver turns the number into text for its own kinds."""
    job = """\
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  parallelism: 2
  template:
    metadata: {labels: {muster.dev/gang: g, volcano.sh/queue-name: q}, annotations: {muster.dev/gang-size: "2"}}
    spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 0.5}}}]}
"""
    (entry,) = command.plan(job).entries
    assert entry["verdict"]["allowed"]


@pytest.mark.parametrize("amount", ["0.5", '"0.5"', "500m"])
def test_a_part_of_a_gpu_is_refused_for_no_pod_may_ask_for_it(command: Command, amount: str) -> None:
    (entry,) = command.plan(CLUSTER.replace("limits: {cpu: 1}", f"limits: {{nvidia.com/gpu: {amount}}}")).entries
    (refusal,) = entry["verdict"]["refusals"]
    assert refusal["field"] == f"{WORKER}.containers[0].resources.limits.nvidia.com/gpu"
    assert "is not a whole number, and pods ask for an extended resource in whole numbers" in refusal["message"]


def test_a_request_above_its_limit_is_refused(command: Command) -> None:
    (entry,) = command.plan(CLUSTER.replace("limits: {cpu: 1}", "limits: {cpu: 500m}")).entries
    (refusal,) = entry["verdict"]["refusals"]
    field = f"{WORKER}.containers[0].resources.requests.cpu"
    assert refusal["message"] == f"{field}: 1 is above the limit 500m; lower it or raise limits.cpu"


NUMBER = "is a number, and a string is expected; write"
BOOLEAN = "is a boolean, and a string is expected; write it in quotes"
FRACTION = "is a number with a fraction, which the apiserver refuses here; write"
VARIABLE = "is a variable that is not filled in; fill it in first: envsubst < FILE | muster plan -f -"
SCHEMA = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rayclusters.ray.io}
spec:
  group: ray.io
  names: {kind: RayCluster}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [headGroupSpec, entry, given]
            properties:
              entry: {type: string}
              given: {type: string, default: x}
              mode: {type: string, enum: [a, b]}
              count: {type: integer, minimum: 1, maximum: 3}
              port: {x-kubernetes-int-or-string: true}
              ratio: {type: number}
              flag: {type: boolean}
              names: {type: array, items: {type: string}}
              params: {type: object, additionalProperties: {type: string}}
              headGroupSpec: {type: object, x-kubernetes-preserve-unknown-fields: true}
              workerGroupSpecs: {x-kubernetes-preserve-unknown-fields: true}
"""


@cases(
    "field, value, problem",
    ("missing", "entry", None, "spec.entry: required, and missing"),
    ("a number for text", "entry", 7, f'spec.entry: 7 {NUMBER} "7" in quotes'),
    ("a boolean for text", "entry", True, f"spec.entry: true {BOOLEAN}"),
    ("text for a number", "count", "2", 'spec.count: "2" is a string; write 2 without quotes'),
    ("a word for a number", "count", "two", 'spec.count: expected an integer, found the string "two"'),
    ("a variable", "count", "${N}", f'spec.count: "${{N}}" {VARIABLE}'),
    ("too small", "count", 0, "spec.count: 0 is not allowed; use at least 1"),
    ("too large", "count", 4, "spec.count: 4 is not allowed; use at most 3"),
    ("none of the values", "mode", "c", 'spec.mode: "c" is not allowed; use a or b'),
    ("a fraction", "port", 0.5, f'spec.port: 0.5 {FRACTION} "0.5" in quotes'),
    ("text for a boolean", "flag", "true", 'spec.flag: "true" is a string; write true without quotes'),
    ("an object for a list", "names", {"a": 1}, "spec.names: expected an array, found an object"),
    ("in a list", "names", ["a", 1], f'spec.names[1]: 1 {NUMBER} "1" in quotes'),
    ("in a map", "params", {"cpus": 0}, f'spec.params.cpus: 0 {NUMBER} "0" in quotes'),
)  # fmt: skip
def test_a_known_schema_refuses_types_values_and_missing_fields(
    command: Command, field: str, value: object, problem: str
) -> None:
    text = changed("spec/entry", "x")
    text = changed(f"spec/{field}", value, text)
    (entry,) = command.plan(text, SCHEMA).entries
    assert [one["message"] for one in entry["verdict"]["refusals"]] == [problem]


@pytest.mark.parametrize(
    ("field", "value"),
    [("port", 1), ("port", "http"), ("ratio", 1), ("ratio", 0.5), ("names", None), ("headGroupSpec", {"any": [1]})],
)
def test_a_known_schema_allows_what_the_apiserver_takes(command: Command, field: str, value: object) -> None:
    text = changed("spec/entry", "x")
    if field != "headGroupSpec":
        text = changed(f"spec/{field}", value, text)
    (entry,) = command.plan(text, SCHEMA).entries
    assert entry["verdict"]["refusals"] == []
