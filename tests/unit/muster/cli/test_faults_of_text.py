"""What `muster plan` says of files as people have them: not filled in, wrongly indented, in another encoding."""

from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.cli.command import Command

ENVSUBST = "fill it in first: envsubst < FILE | muster plan -f -"
HELM = "render it first: helm template CHART | muster plan -f -"
KUSTOMIZE = "render it first: kubectl kustomize DIRECTORY | muster plan -f -"
BRACE = 'a "," or the "}" that closes line 2 is missing'
WORKERS = "spec.pytorchReplicaSpecs.Worker"
LIMITS = f"{WORKERS}.template.spec.containers[0].resources.limits"


def job(name: str = "j", replicas: str = "1", gpus: str = "1", queue: str = "q") -> str:
    return f"""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}, labels: {{volcano.sh/queue-name: {queue}}}}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: {replicas}
      template:
        spec:
          containers:
          - name: pytorch
            command: [sh, -c, "echo $HOME ${{HOME}} {{{{ x }}}}"]
            resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""


@cases(
    "field, values, shown, cure",
    ("replicas", f"{WORKERS}.replicas", {"replicas": "$NUM_NODES"}, "$NUM_NODES", ENVSUBST),
    ("in braces", f"{WORKERS}.replicas", {"replicas": '"${NUM_NODES}"'}, "${NUM_NODES}", ENVSUBST),
    ("in angles", f"{WORKERS}.replicas", {"replicas": "<number of nodes>"}, "<number of nodes>", "fill it in first"),
    ("between at signs", f"{WORKERS}.replicas", {"replicas": '"@NODES@"'}, "@NODES@", "fill it in first"),
    ("of Helm", f"{WORKERS}.replicas", {"replicas": '"{{ .Values.n }}"'}, "{{ .Values.n }}", HELM),
    ("of kustomize", f"{WORKERS}.replicas", {"replicas": "$(NODES)"}, "$(NODES)", KUSTOMIZE),
    ("of a name", "metadata.name", {"name": '"${NAME}-train"'}, "${NAME}-train", ENVSUBST),
    ("of Jinja", "metadata.name", {"name": '"{{ jobname }}"'}, "{{ jobname }}", HELM),
    ("of a queue", "metadata.labels[volcano.sh/queue-name]", {"queue": "<queue>"}, "<queue>", "fill it in first"),
    (
        "of an amount",
        f"{LIMITS}[nvidia.com/gpu]",
        {"gpus": '"${GPUS:-8}"'},
        "${GPUS:-8}",
        ENVSUBST,
    ),
)  # fmt: skip
def test_a_variable_that_is_not_filled_in_is_shown(
    command: Command, field: str, values: dict[str, str], shown: str, cure: str
) -> None:
    said = command.plan(job(**values))
    words = f'{field}: "{shown}" is a variable that is not filled in; {cure}'
    assert (said.code, said.err) == (2, f"muster plan: {command.folder / '0.yaml'}, document 1, line 1: {words}\n")


def test_all_variables_are_shown_at_once_and_none_of_a_command(command: Command) -> None:
    """A shell fills in its own."""
    said = command.plan(job(name='"${NAME}"', replicas="$N", gpus="$G", queue="$Q"))
    assert len(said.err.splitlines()) == 4
    assert command.plan(job()).code == 0


def test_a_variable_of_a_queue_is_shown(command: Command) -> None:
    queue = (
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {capability: {cpu: $CPU}}"
    )
    said = command.plan(queue)
    assert f'spec.capability.cpu: "$CPU" is a variable that is not filled in; {ENVSUBST}' in said.err


@cases(
    "replicas, problem",
    ("in quotes", '"1"', '"1" is a string; write 1 without quotes'),
    ("a word", "one", 'expected an integer, found the string "one"'),
    ("a fraction", "1.5", "expected an integer, found a number with a fraction"),
    ("a list", "[1]", "expected an integer, found a list"),
    ("yes", "yes", "expected an integer, found true or false"),
)
def test_a_wrong_type_is_told_in_the_words_of_kubernetes(command: Command, replicas: str, problem: str) -> None:
    said = command.plan(job(replicas=replicas))
    assert said.err == f"muster plan: {command.folder / '0.yaml'}, document 1, line 1: {WORKERS}.replicas: {problem}\n"


@cases(
    "text, line, words",
    ("a line further in", "metadata:\n  name: x\n   labels: y\n", 3,
     "a key is indented more than its place allows; check the indentation of lines 2 and 3"),
    ("a line further out", "metadata:\n  name: x\n labels: y\n", 3,
     "not indented as the other lines of its block, which begins in line 1; check the indentation of lines 2 and 3"),
    ("two colons", "a: b: c\n", 1, 'two ": " in one line; put the value in quotes, or check the indentation'),
    ("no colon", "metadata:\n  name: x\n  labels\nspec: 1\n", 3,
     'a key without ":"; add it, or indent the text below its key'),
    ("a quotation mark", 'a: "x\nb: 1\n', 1, "a quotation mark is not closed"),
    ("a brace", "a: {b: 1\nc: 2\n", 2, 'a "," or the "}" that closes line 1 is missing'),
    ("a bracket", "a: [b\nc: d\n", 2, 'a "," or the "]" that closes line 1 is missing'),
    ("an end", "a: [", 2, "a value, or the bracket that closes a list or an object, is missing"),
    ("a sign", "a: `x`\n", 1, '"`" cannot begin a value; put the value in quotes'),
    ("a variable", "spec:\n  entry: @ENTRY@\n", 2,
     '"@" cannot begin a value; "@ENTRY@" is a variable that is not filled in; fill it in first'),
    ("a variable in braces", "a: 1\nb: {c: ${Y}}\n", 2,
     f'{BRACE}; "b: {{c: ${{Y}}}}" is a variable that is not filled in; {ENVSUBST}'),
    ("after a quote", 'a: "x" y\n', 1, "text after the end of a value; put the whole value in quotes"),
    ("an escape", 'a: "\\q"\n', 1, 'an unknown escape after "\\"; use single quotes'),
    ("a control character", "a: 1\nb: \x01\n", 2, "control characters are not allowed"),
    ("a tab", "a:\n\tb: 1\n", 2, "a tab cannot indent YAML; use spaces"),
)  # fmt: skip
def test_what_is_no_yaml_names_the_line_to_look_at(command: Command, text: str, line: int, words: str) -> None:
    said = command.plan(text)
    assert (said.code, said.err) == (2, f"muster plan: {command.folder / '0.yaml'}, line {line}: {words}\n")


@pytest.mark.parametrize("named", ["0.yaml", "0.json"])
def test_of_a_key_that_is_there_twice_the_last_value_counts(command: Command, named: str) -> None:
    """As for kubectl; the warning has the line."""
    text = '{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j",\n'
    text += '"labels": {"volcano.sh/queue-name": "q"}}, "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1,\n'
    text += '"replicas": 3, "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}}}}}'
    said = command.run("plan", "-o", "json", "-f", command.file(text, named))
    (entry,) = said.entries
    assert entry["podGroup"]["spec"]["minMember"] == 3
    assert "replicas: written twice, again in line 3; the last value counts, as for kubectl" in str(entry["verdict"])


@cases(
    "text, words",
    ("without quotes", job(replicas="{{ n }}"), f'line 7: "{{{{ n }}}}" is a variable that is not filled in; {HELM}'),
    ("a version", job().replace("kubeflow.org/v1", "${API}"),
     f'line 1: apiVersion: "${{API}}" is a variable that is not filled in; {ENVSUBST}'),
    ("a resource", job().replace("nvidia.com/gpu", '"${GPU}"'),
     f'line 1: {LIMITS}: the key "${{GPU}}" is a variable that is not filled in; {ENVSUBST}'),
    ("a name that is a number", job(name="7"),
     'line 1: metadata.name: 7 is a number, and a string is expected; write "7" in quotes'),
)  # fmt: skip
def test_where_no_field_is_known_the_line_is_named(command: Command, text: str, words: str) -> None:
    said = command.plan(text)
    assert (said.code, said.err) == (2, f"muster plan: {command.folder / '0.yaml'}, document 1, {words}\n")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_other_encodings_are_read(command: Command, encoding: str, mark: str) -> None:
    """Windows PowerShell writes UTF-16."""
    path = command.folder / "job.yaml"
    path.write_bytes(f"{mark}{job()}".encode(encoding))
    assert command.run("plan", "-f", str(path)).code == 0


def test_a_byte_of_another_encoding_is_named(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(job().encode() + "# déjà\n".encode("latin-1"))
    said = command.run("plan", "-f", str(path))
    assert said.err == f"muster plan: {path}, line 14: byte 0xE9 is not UTF-8; save the file as UTF-8\n"
