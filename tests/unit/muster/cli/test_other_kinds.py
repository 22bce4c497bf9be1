"""`muster plan` on kinds that muster does not run: templates are judged, gangs are named, the rest is one line."""

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.cases import cases
from tests.support.cli.command import Command
from tests.support.manifests.observed import JSON, ray_cluster, template

QUEUE = {"volcano.sh/queue-name": "q"}
MEMBER = {"labels": {"muster.dev/gang": "g"}, "annotations": {"muster.dev/gang-size": "2"}}


def manifest(version: str, kind: str, spec: JSON | None = None, **metadata: Any) -> str:  # noqa: ANN401 - JSON
    found = {"apiVersion": version, "kind": kind, "metadata": {"name": "w", **metadata}, "spec": spec or {}}
    return json.dumps(found)


def job(of_pods: JSON) -> JSON:
    return {"parallelism": 2, "completions": 2, "template": {**template(), "metadata": of_pods}}


WITHOUT_NAME = {**ray_cluster(), "metadata": {"labels": {"volcano.sh/queue-name": "${trialParameters.queue}"}}}
PLAIN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


@cases(
    "text, name, within",
    (
        "a CronJob",
        manifest("batch/v1", "CronJob", {"jobTemplate": {"spec": job(MEMBER)}}),
        "w-xxxxx",
        "spec.jobTemplate of CronJob w",
    ),
    (
        "an AppWrapper",
        manifest(
            "workload.codeflare.dev/v1beta2",
            "AppWrapper",
            {"components": [{"template": PLAIN}, {"template": ray_cluster(labels=QUEUE)}]},
        ),
        "demo",
        "spec.components[1].template of AppWrapper w",
    ),
    (
        "a Katib Experiment",
        manifest("kubeflow.org/v1beta1", "Experiment", {"trialTemplate": {"trialSpec": WITHOUT_NAME}}),
        "w-xxxxx",
        "spec.trialTemplate.trialSpec of Experiment w",
    ),
)
def test_workloads_in_templates_are_judged(command: Command, text: str, name: str, within: str) -> None:
    said = command.plan(text, options=["--strict"])
    (entry,) = said.entries
    assert (said.code, entry["workload"]["name"], entry["source"]["within"]) == (0, name, within)
    assert entry["podGroup"] is not None
    assert within in command.plan(text, output="table").out.splitlines()[0]


@cases(
    "text, words",
    ("a labelled Deployment", manifest("apps/v1", "Deployment", labels=QUEUE), "it is not read on a Deployment"),
    ("an annotated one", manifest("apps/v1", "DaemonSet", annotations={"muster.dev/managed": "true"}), "DaemonSet"),
    (
        "a labelled kind with a pod template",
        manifest("serving.example.com/v1", "Model", {"podTemplate": {}}, labels=QUEUE),
        "Model",
    ),
    ("a LeaderWorkerSet", manifest("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), "in leaderTemplate"),
    ("Spark", manifest("sparkoperator.k8s.io/v1beta2", "SparkApplication"), "without the driver"),
    ("an empty AppWrapper", manifest("workload.codeflare.dev/v1beta2", "AppWrapper"), "no template of a workload"),
    (
        "a CronJob without the label",
        manifest("batch/v1", "CronJob", {"jobTemplate": {"spec": job({})}}),
        "join no gang",
    ),
)
def test_a_gang_that_muster_does_not_run_is_not_green_where_it_is_strict(
    command: Command, text: str, words: str
) -> None:
    (entry,) = command.plan(text).entries
    assert (entry["verdict"]["allowed"], entry["verdict"]["managed"]) == (True, False)
    assert words in entry["verdict"]["message"]
    assert [command.plan(text, options=options).code for options in ([], ["--strict"])] == [0, 3]


@cases(
    "inner, labels, why",
    ("a Job", ("batch/v1", "Job", job({})), {"kueue.x-k8s.io/queue-name": "q"}, "it asks Kueue to admit"),
    ("a RayCluster", ("ray.io/v1", "RayCluster", {}), {"kueue.x-k8s.io/queue-name": "q"}, "it asks Kueue to admit"),
    (
        "a Deployment",
        ("apps/v1", "Deployment", {"template": template()}),
        {"kueue.x-k8s.io/queue-name": "q"},
        "it asks Kueue to admit",
    ),
    ("a queue of muster", ("ray.io/v1", "RayCluster", {}), QUEUE, "it is not read there; move it to metadata.labels"),
)
def test_what_an_appwrapper_asks_for_is_named_on_what_it_creates(
    command: Command, inner: tuple[str, str, JSON], labels: JSON, why: str
) -> None:
    version, kind, spec = inner
    component = {"template": json.loads(manifest(version, kind, spec))}
    text = manifest("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [component]}, labels=labels)
    said = command.plan(text, options=["--strict"])
    (entry,) = said.entries
    (key,) = labels
    assert entry["verdict"]["message"].startswith(f"not managed: metadata.labels[{key}] of AppWrapper w: {why}")
    assert said.code == 3


def test_pods_that_opt_in_themselves_are_no_slip(command: Command) -> None:
    text = manifest("apps/v1", "Deployment", {"template": {"metadata": MEMBER}}, labels=QUEUE)
    said = command.plan(text, options=["--strict"])
    assert (said.code, said.entries) == (0, [])
    assert 'the pods of this Deployment join gang "g"' in said.err


def test_all_other_kinds_are_one_line_with_counts(command: Command) -> None:
    """Common labels of a kustomization are on everything, and make no gang of a Service."""
    kinds = ["ConfigMap", "ConfigMap", "Service", "Secret"]
    texts = [manifest("v1", kind, labels=QUEUE) for kind in kinds] + [manifest("apps/v1", "Deployment")]
    said = command.plan(*texts, json.dumps(ray_cluster()), options=["--strict"])
    assert (said.code, len(said.entries)) == (0, 1)
    assert said.err == (
        "muster plan: skipping 5 objects of other kinds: 2 ConfigMap, 1 Service, 1 Secret, 1 Deployment\n"
    )


@pytest.mark.parametrize("output", ["table", "wide", "json", "junit"])
def test_where_there_are_several_files_each_object_has_its_own(command: Command, output: str) -> None:
    first, second = json.dumps(ray_cluster(name="a")), f"# a comment\n---\n\n{json.dumps(ray_cluster(name='b'))}"
    out = command.plan(first, second, output=output).out
    places = [(str(command.folder / "0.yaml"), 1), (str(command.folder / "1.yaml"), 4)]
    if output == "json":
        assert [(one["source"]["file"], one["source"]["line"]) for one in json.loads(out)] == places
    elif output == "junit":
        suite = ET.fromstring(out)  # noqa: S314 - our own
        assert [(case.attrib["file"], int(case.attrib["line"])) for case in suite] == places
    else:
        assert [f"{file}:{line}" in out for file, line in places] == [True, True]
    assert str(command.folder) not in command.plan(first, output="table").out
