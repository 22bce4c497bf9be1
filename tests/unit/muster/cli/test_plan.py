"""`muster plan`: what it prints, for programs and for the shell."""

import io
import json
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from muster.process.revision import revision
from tests.support.cases import cases
from tests.support.cli.command import Command, messages
from tests.support.cli.plan_entries import ENTRIES

UNJUDGED = "no Queue in the input: queue limits are not checked"


def ray(name: str = "demo", cpu: str = "1") -> str:
    return (
        f"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {{name: {name}, labels: {{volcano.sh/queue-name: q}}}}\n"
        f"spec: {{headGroupSpec: {{template: {{spec: {{containers: [{{name: h, resources: "
        f"{{requests: {{cpu: {cpu}}}}}}}]}}}}}}}}\n"
    )


def queue(cpu: str = "2", name: str = "q") -> str:
    return (
        f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\n"
        f"spec: {{capability: {{cpu: {cpu}}}}}\n"
    )


@pytest.mark.parametrize(("manifest", "entry"), ENTRIES.values(), ids=ENTRIES)
def test_the_entry_of_every_family_is_as_it_was(command: Command, manifest: str, entry: str) -> None:
    """Keys, their order, and every value: programs read this."""
    (found,) = command.plan(manifest).unplaced
    expected = yaml.safe_load(entry)
    assert found == expected
    assert json.dumps(found) == json.dumps(expected)


def test_entries_stand_in_the_order_of_the_input(command: Command) -> None:
    """Files as they are named, documents as they stand in them, context between them or not."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(ray(name)) for name in "dc"]})
    said = command.plan(f"{ray('b')}---\n{queue()}---\n{ray('a')}", listed, ray("e"))
    assert [entry["workload"]["name"] for entry in said.entries] == ["b", "a", "d", "c", "e"]


def test_a_gang_has_no_higher_class_than_a_template_of_it(command: Command) -> None:
    """The controller goes by the lowest of its pods, of which that one is."""
    classes = "".join(
        f"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
        for name, value in (("high", 9), ("low", 1))
    )
    text = ray().replace("labels: {", "labels: {ray.io/priority-class-name: high, ")
    low = text.replace("{containers:", "{priorityClassName: low, containers:")
    for manifest, name in ((text, "high"), (low, "low")):
        (entry,) = command.plan(manifest + classes).entries
        assert entry["podGroup"]["spec"]["priorityClassName"] == name
        assert entry["intent"]["priorityClassName"] == "high", "what its user asked for"


@pytest.mark.parametrize(("values", "code"), [({}, 0), ({"dra": "warn"}, 0), ({"dra": "deny"}, 1)])
def test_claims_on_devices_are_judged_as_the_chart_will(command: Command, values: dict[str, str], code: int) -> None:
    manifest = ray().replace("{containers:", "{resourceClaims: [{name: gpu}], containers:")
    said = command.plan(manifest, options=command.values(**values))
    (entry,) = said.entries
    assert (said.code, entry["verdict"]["allowed"]) == (code, not code)
    assert "ResourceClaims" in json.dumps(entry["verdict"])


def test_nothing_to_plan_is_an_empty_list(command: Command) -> None:
    assert command.plan(queue()).entries == []


@cases(
    "text, code, reasons",
    ("allowed", ray(), 0, [""]),
    ("one", f"{ray('a')}---\n{ray('b', cpu='3')}---\n{ray('c')}", 1, ["", "ExceedsCapability", ""]),
    ("numbers that make no gang", ray(cpu="much"), 1, ["Invalid"]),
    ("no workload", queue(), 0, []),
)
def test_the_exit_code_tells_of_refusals_and_every_verdict_is_printed(
    command: Command, text: str, code: int, reasons: list[str]
) -> None:
    said = command.plan(text, queue())
    assert (said.code, [entry["verdict"]["reason"] for entry in said.entries]) == (code, reasons)


@cases(
    "text, line",
    ("no YAML", "a: [\n", ", line 2: a value, or the bracket that closes a list or an object, is missing"),
    ("tabs", "a:\n\tb: 1\n", ", line 2: a tab cannot indent YAML; use spaces"),
    (
        "Helm source",
        "a: {{ .Values.a }}\n",
        (
            ', document 1, line 1: "{{ .Values.a }}" is a variable that is not filled in; render it first: '
            "helm template CHART | muster plan -f -"
        ),
    ),
    (
        "a field of the wrong type",
        ray().replace("queue-name: q", "queue-name: 7"),
        (
            ", document 1, line 1: metadata.labels[volcano.sh/queue-name]: 7 is a number, and a string is expected; "
            'write "7" in quotes'
        ),
    ),
    (
        "context that is wrong",
        queue(cpu="much"),
        ', document 1, line 1: spec.capability.cpu: "much" is not a quantity such as 500m, 2 or 1.5Gi',
    ),
    (
        "no name",
        ray("Demo"),
        (
            ', document 1, line 1: metadata.name: "Demo" is not a valid name; '
            "use at most 253 lower-case letters, digits, - and ."
        ),
    ),
)
def test_input_that_cannot_be_read_is_one_line_that_names_the_place(command: Command, text: str, line: str) -> None:
    """And what stands before and behind it in the same file, and in others, is planned all the same."""
    said = command.plan(text)
    assert (said.code, said.out, said.err) == (2, "[]\n", f"muster plan: {command.folder / '0.yaml'}{line}\n")
    said = command.plan(f"{text}---\n{ray('b')}", ray("c", cpu="3"), queue())
    assert [(entry["workload"]["name"], entry["verdict"]["reason"]) for entry in said.entries] == [
        ("b", ""),
        ("c", "ExceedsCapability"),
    ]
    assert (said.code, said.err) == (2, f"muster plan: {command.folder / '0.yaml'}{line}\n")


def test_an_error_of_yaml_stands_before_the_summary(command: Command) -> None:
    said = command.plan("a: 1\n b: 2\n", output="table")
    words = "a key is indented more than its place allows; check the indentation of lines 1 and 2"
    assert said.err == f"muster plan: {command.folder / '0.yaml'}, line 2: {words}\n"


def test_errors_behind_an_error_keep_their_places(command: Command) -> None:
    said = command.plan(f"{ray('a')}---\na: [\n---\n{ray('b')}---\na: *b\n---\n{ray('c')}---\nkind: X\n")
    assert [entry["workload"]["name"] for entry in said.entries] == ["a", "b", "c"]
    path = f"muster plan: {command.folder / '0.yaml'}"
    assert said.err.splitlines() == [
        f"{path}, line 7: a value, or the bracket that closes a list or an object, is missing",
        f'{path}, document 4, line 13: unknown alias "b"',
        f"{path}, document 6, line 20: no apiVersion and kind; is this a Kubernetes manifest?",
    ]


def test_a_file_full_of_errors_ends_after_some(command: Command) -> None:
    said = command.plan("---\na: [\n" * 1000)
    assert (said.code, len(said.err.splitlines())) == (2, 21)
    assert said.err.endswith(": more than 20 errors; the rest is not read\n")


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("kustomization.yaml", "a kustomization; render it first: kubectl kustomize {folder} | muster plan -f -"),
        ("Chart.yaml", "a Helm chart; render it first: helm template {folder} | muster plan -f -"),
    ],
)
def test_a_folder_that_is_to_be_rendered_is_told_how(command: Command, file: str, hint: str) -> None:
    command.file("resources: []", file)
    said = command.run("plan", "-f", str(command.folder))
    line = f"muster plan: {command.folder}: {hint.format(folder=command.folder)}\n"
    assert (said.code, said.err) == (2, line)


def test_a_url_is_told_how(command: Command) -> None:
    said = command.run("plan", "-f", "https://192.0.2.1/a.yaml")
    words = "plan does not download; use: curl -sSfL https://192.0.2.1/a.yaml | muster plan -f -"
    assert (said.code, said.err) == (2, f"muster plan: https://192.0.2.1/a.yaml: {words}\n")


def test_every_refusal_has_a_line_of_its_own(command: Command) -> None:
    """In json each is an object; `message` has them all, as before."""
    text = ray(cpu="3").replace("labels: {", "labels: {ray.io/priority-class-name: gone, ")
    classes = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: other}\nvalue: 1\n"
    (entry,) = command.plan(queue(), classes, text).entries
    reasons = [one["reason"] for one in entry["verdict"]["refusals"]]
    assert sorted(reasons) == ["ExceedsCapability", "UnknownPriorityClass"]
    lines = command.plan(queue(), classes, text, output="table").out.splitlines()
    assert [line.partition(":")[0] for line in lines if line.startswith("  refused")] == [
        f"  refused ({reason})" for reason in reasons
    ]


def test_the_last_line_is_the_sum(command: Command) -> None:
    plain = ray("plain").replace("labels: {volcano.sh/queue-name: q}", "labels: {}")
    texts = (queue(), ray("a"), ray("b", cpu="3"), plain, "a: [\n")
    for output in ("table", "wide"):
        *_, last = command.plan(*texts, output=output).out.splitlines()
        assert last == "3 objects: 1 allowed, 1 refused, 1 not managed, 1 could not be read"


def test_objects_without_a_namespace_go_to_the_one_that_is_given(command: Command) -> None:
    """With the LimitRange that applies there; a Queue has no namespace."""
    limits = (
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Container, default: {x: 1}}]}\n"
    )
    own = ray("own").replace("name: own,", "name: own, namespace: other,")
    said = command.plan(queue(), limits, ray(), own, options=["-n", "team"])
    found = [(entry["workload"]["namespace"], "x" in entry["roles"][0]["requests"]) for entry in said.entries]
    assert found == [("team", True), ("other", False)]


def test_patches_are_shown_on_demand(command: Command) -> None:
    assert "patch of a headgroup pod" not in command.plan(ray(), output="table").out
    assert "patch of a headgroup pod" in command.plan(ray(), output="table", options=["--patches"]).out


def test_wide_is_a_row_for_each_workload(command: Command) -> None:
    said = command.plan(queue(), ray("a"), ray("b", cpu="3"), output="wide")
    head, first, second, *_ = (line.split() for line in said.out.splitlines())
    assert head[:5] == ["NAMESPACE", "KIND", "NAME", "VERDICT", "QUEUE"]
    assert first[:8] == ["default", "RayCluster", "a", "allowed", "q", "-", "1", "1"]
    assert second[:5] == ["default", "RayCluster", "b", "ExceedsCapability", "q"]


def test_junit_has_a_case_for_each_workload(command: Command) -> None:
    """A refusal is a failure, unreadable input an error; with `--strict` what is not managed is a failure, too."""
    plain = ray("plain").replace("labels: {volcano.sh/queue-name: q}", "labels: {}")
    texts = (queue(), ray("a"), ray("b", cpu="3"), plain, 'a: "\n')
    counts = {}
    for options in ((), ("--strict",)):
        suite = ET.fromstring(command.plan(*texts, output="junit", options=options).out)  # noqa: S314 - our own
        counts[options] = tuple(int(suite.attrib[name]) for name in ("tests", "failures", "errors"))
        names = [case.attrib["name"] for case in suite]
        assert names[:3] == ["default/a", "default/b", "default/plain"]
        (failure,) = suite[1]
        assert (failure.tag, failure.attrib["type"]) == ("failure", "ExceedsCapability")
    assert counts == {(): (4, 1, 1), ("--strict",): (4, 2, 1)}


@pytest.mark.parametrize(
    ("memory", "shown"), [("3536870912", "3.3Gi"), ("2Gi", "2Gi"), ("1048577", "1Mi"), ("1073741824", "1Gi")]
)
def test_bytes_are_rounded_for_people_and_exact_for_programs(command: Command, memory: str, shown: str) -> None:
    text = ray().replace("{requests: {cpu: 1}}", f"{{requests: {{cpu: 1, memory: {memory}}}}}")
    assert f"cpu 1, memory {shown}\n" in command.plan(text, output="table").out
    (entry,) = command.plan(text).entries
    assert entry["roles"][0]["requests"]["memory"] == memory


def test_a_file_that_is_not_there_is_named(command: Command) -> None:
    said = command.run("plan", "-f", "/nowhere/at/all.yaml")
    assert (said.code, said.err) == (2, "muster plan: /nowhere/at/all.yaml: No such file or directory\n")


def test_a_dash_is_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ray("piped").encode())))
    said = command.run("plan", "-o", "json", "-f", command.file(queue()), "-f", "-")
    assert [entry["workload"]["name"] for entry in said.entries] == ["piped"]


def test_a_folder_is_all_its_manifests(command: Command) -> None:
    for name in ("b.yaml", "a.json", "c.yml"):
        command.file(json.dumps(yaml.safe_load(ray(name[0]))), name)
    command.file("no manifest", "README.md")
    (command.folder / "d.yaml").mkdir()
    said = command.run("plan", "-o", "json", "-f", str(command.folder))
    assert [entry["workload"]["name"] for entry in said.entries] == ["a", "b", "c"]


def test_a_list_of_one_kind_is_all_its_items(command: Command) -> None:
    """As the apiserver gives it: only the list says what its items are."""
    item = yaml.safe_load(ray("listed"))
    items = {"apiVersion": item.pop("apiVersion"), "kind": f"{item.pop('kind')}List", "items": [item]}
    assert [entry["workload"]["name"] for entry in command.plan(json.dumps(items)).entries] == ["listed"]


def test_who_stops_reading_gets_no_traceback() -> None:
    """`muster plan … | head -1`: the exit code is still that of the verdicts."""
    text = "---\n".join(ray(f"demo-{number}") for number in range(200))
    argv = [sys.executable, "-m", "muster.cli", "plan", "-f", "-"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(text.encode())
        process.stdin.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_queues_bound_gangs_whoever_places_them(command: Command) -> None:
    """Their limits are muster's to keep where the scheduler knows no queues."""
    manifest = ray().replace("labels: {", "labels: {ray.io/scheduler-name: scheduler-plugins-scheduler, ")
    small, large = (command.plan(queue(cpu=cpu), manifest).entries[0]["verdict"] for cpu in ("100m", "100"))
    assert (small["allowed"], small["reason"], large["allowed"]) == (False, "ExceedsCapability", True)


@cases("context, message", ("no queue at all", "", UNJUDGED), ("its queue", queue(), ""))
def test_without_a_queue_the_verdict_says_that_room_was_not_judged(
    command: Command, context: str, message: str
) -> None:
    (entry,) = command.plan(context, ray()).entries
    assert (entry["verdict"]["allowed"], entry["verdict"]["message"]) == (True, message)


@cases("prefix, name", ("short", "run-", "run-xxxxx"), ("cut as by the apiserver", "r" * 70, "r" * 58 + "xxxxx"))
def test_a_generated_name_is_shown_with_letters_to_come(command: Command, prefix: str, name: str) -> None:
    (entry,) = command.plan(ray().replace("name: demo", f"generateName: {prefix}")).entries
    assert (entry["workload"]["name"], entry["podGroup"]["metadata"]["name"]) == (name, f"ray-{name}-pg")


def test_yaml_is_the_same_as_json(command: Command) -> None:
    """And says everything where it belongs, without names for what stands twice."""
    manifests = [manifest for manifest, _ in ENTRIES.values()]
    text = command.plan(*manifests, output="yaml").out
    assert yaml.safe_load(text) == command.plan(*manifests).entries
    assert "&id" not in text


@cases(
    "label, line",
    (
        "queue",
        "volcano.sh/queue-name: gone",
        (
            'labels[volcano.sh/queue-name]: queue "gone" is not among the Queues of the input; '
            "name one of those, add it to the input, or use --cluster"
        ),
    ),
    (
        "topology",
        "volcano.sh/network-topology-mode: near",
        'labels[volcano.sh/network-topology-mode]: "near" is not a mode; use hard or soft',
    ),
)
def test_a_job_is_refused_at_the_place_where_its_label_stands(command: Command, label: str, line: str) -> None:
    """On its pod template, which alone gives its pods their labels; of one above it hears a warning."""
    on_template = ENTRIES["plain-job"][0].replace("volcano.sh/queue-name: q", label)
    (entry,) = command.plan(on_template, queue()).entries
    assert entry["verdict"]["refusals"][0]["message"] == f"spec.template.metadata.{line}"
    above = on_template.replace(f", {label}", "").replace("simulation}", f"simulation, labels: {{{label}}}}}", 1)
    (entry,) = command.plan(above, queue(), queue("9", name="default")).entries
    (warning, *_) = messages(entry["verdict"]["warnings"])
    assert entry["verdict"]["refusals"] == []
    assert warning.startswith(f"metadata.{line.partition(':')[0]}: it is read on the pods")


def test_a_workload_that_names_no_queue_is_not_refused_for_a_default_queue_that_is_not_in_the_input(
    command: Command,
) -> None:
    """It exists on every cluster with Volcano; where it is in the input, it counts."""
    silent = ENTRIES["plain-job"][0].replace("volcano.sh/queue-name: q", "a: b")
    said = command.plan(silent, queue())
    (entry,) = said.entries
    assert (said.code, entry["verdict"]["message"]) == (
        0,
        'the workload names no queue, and the default queue "default" is not in the input: its limits are not checked',
    )
    (entry,) = command.plan(silent, queue(), queue(cpu="1", name="default")).entries
    assert entry["verdict"]["reason"] == "ExceedsCapability"


def test_a_job_that_says_managed_false_on_its_template_is_left_alone(command: Command) -> None:
    manifest = ENTRIES["plain-job"][0].replace("volcano.sh/queue-name: q", 'muster.dev/managed: "false"')
    (entry,) = command.plan(manifest).entries
    assert entry["intent"] is None


def test_a_job_without_the_opt_in_is_left_alone_in_a_namespace_that_is_opted_in(command: Command) -> None:
    """Nobody's other Jobs are ever looked at."""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {muster.dev/managed: 'true'}}\n"
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {containers: [{name: c}]}}}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"
    said = command.plan(namespace, job, pod)
    assert [(entry["intent"], entry["verdict"]["allowed"]) for entry in said.entries] == [(None, True)] * 2


@cases(
    "context, values, held",
    ("held", queue(), {}, True),
    ("off by the chart", queue(), {"gate": "off"}, False),
    ("off by the chart, without quotes", queue(), {"gate": False}, False),
    ("Queue", queue().replace("{name: q}", '{name: q, annotations: {muster.dev/gate: "off"}}'), {}, False),
    (
        "Namespace",
        'apiVersion: v1\nkind: Namespace\nmetadata: {name: default, annotations: {muster.dev/gate: "off"}}\n',
        {},
        False,
    ),
    ("until it is whole", queue(), {"gate": "assemble"}, True),
)
def test_where_the_gate_is_off_the_patch_has_none(
    command: Command, context: str, values: dict[str, Any], held: bool
) -> None:
    said = command.run("plan", "-o", "json", *command.values(**values), "-f", command.file(f"{ray()}---\n{context}"))
    (role,) = said.entries[0]["roles"]
    assert role["getsGate"] is held
    assert any("schedulingGates" in operation["path"] for operation in role["patch"]) is held


def test_the_version_is_printed(command: Command) -> None:
    assert command.run("version").out == f"0.1.0 (commit {revision()})\n"


def test_a_queue_kept_for_other_namespaces_is_refused_as_in_the_cluster_and_named_to_who_has_it(
    command: Command,
) -> None:
    """The verdict is what its user would be told; whoever plans with the queue's manifest may know more."""
    kept = queue().replace("name: q}", "name: q, annotations: {muster.dev/namespace-selector: team=ml}}")
    team = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: ml}}\n"
    refused = command.plan(ray(), kept)
    assert refused.code == 1
    assert 'queue "q" is not open to namespace "default" (muster.dev/namespace-selector)' in refused.err
    assert refused.entries[0]["verdict"]["message"] == (
        'metadata.labels[volcano.sh/queue-name]: queue "q" does not exist, or is not open to namespace "default"; '
        "name another one, or ask its administrator"
    )
    allowed = command.plan(ray(), kept, team)
    assert (allowed.code, allowed.err) == (0, "")
