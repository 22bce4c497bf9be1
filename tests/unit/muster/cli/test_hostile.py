"""Hostile input, given to the command itself: one line, within seconds and a fixed amount of memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.cases import cases
from tests.support.cli.forked import Run, forks

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
HEAD = "headGroupSpec: {template: {spec: {containers: [{name: h}]}}}"
LABELLED = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: d, labels: {volcano.sh/queue-name: q}}\n"
MEBIBYTE = 2**20
MEMORY = 600 * MEBIBYTE
# Of the processor; ten times what any of these takes on a quiet machine.
SECONDS = 60

_BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
)
_KEYS = ", ".join(f"k{n}: 1" for n in range(1000))


class Plan(Protocol):
    """Plans a file of this name and text."""

    def __call__(self, name: str, text: str, output: str = "json") -> tuple[int, str, str]:
        """Return exit code, output and errors, which call the file F."""


@pytest.fixture(scope="module")
def muster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The command in a child that gets no more memory and time than that."""
    with forks(tmp_path_factory.mktemp("said"), memory=MEMORY, seconds=SECONDS) as run:
        yield run


@pytest.fixture
def plan(muster: Run, tmp_path: Path) -> Plan:
    """The command `muster plan` in such a child."""

    def run(name: str, text: str, output: str = "json") -> tuple[int, str, str]:
        path = tmp_path / name
        path.write_text(text)
        done = muster("plan", "-o", output, "-f", str(path))
        return done.returncode, done.stdout, done.stderr.replace(str(path), "F")

    return run


@cases(
    "name, text, line",
    ("lists", "f.yaml", POD + "a: " + "[" * 3 * MEBIBYTE, "document 1, line 4: nested more than 100 deep"),
    ("mappings", "f.yaml", POD + "a: " + "{a: " * MEBIBYTE, "document 1, line 4: nested more than 100 deep"),
    ("blocks", "f.yaml", POD + "a:\n" + "- " * MEBIBYTE, "document 1, line 5: nested more than 100 deep"),
    ("lists in JSON", "f.json", "[" * 3 * MEBIBYTE, "document 1, line 1: nested more than 100 deep"),
    (
        "just too deep in JSON",
        "f.json",
        '\n{"a":' * 101 + "[]" + "}" * 101,
        "document 1, line 102: nested more than 100 deep",
    ),
    ("JSON in a file of YAML", "f.yaml", '{"a":' * MEBIBYTE, "document 1, line 1: nested more than 100 deep"),
    (
        "aliases that stand for a billion values",
        "f.yaml",
        POD + _BOMB,
        "document 1, line 10: more than 2000000 values, with aliases expanded",
    ),
    (
        "merges that stand for a billion values",
        "f.yaml",
        POD + f"a: &a {{{_KEYS}}}\nb: {{" + "<<: *a, " * (MEBIBYTE // 4) + "}",
        "document 1, line 5: more than 2000000 values, with aliases expanded",
    ),
    ("in itself", "f.yaml", POD + "a: &a [*a]", 'document 1, line 4: alias "a" refers to a value that contains it'),
    ("of nothing", "f.yaml", POD + "a: *b", 'document 1, line 4: unknown alias "b"'),
    ("a list as key", "f.yaml", POD + "a: {[b]: c}", "document 1, line 4: a key that is not a string"),
    ("not a number", "f.yaml", POD + "a: .nan", "document 1, line 4: .nan is not a JSON number"),
    ("infinite", "f.yaml", POD + "a: -.inf", "document 1, line 4: -.inf is not a JSON number"),
    ("not a number in JSON", "f.json", '{"a":\nNaN}', "document 1, line 2: NaN is not a JSON number"),
    ("infinite in JSON", "f.json", '{"a":\n-1e999}', "document 1, line 2: -1e999 is not a JSON number"),
    (
        "a number of three million digits",
        "f.yaml",
        POD + "a: " + "9" * 3 * MEBIBYTE,
        f"document 1, line 4: {'9' * 20}... is too long for a number",
    ),
    (
        "and in JSON",
        "f.json",
        '{"a":\n' + "9" * 3 * MEBIBYTE + "}",
        f"document 1, line 2: {'9' * 20}... is too long for a number",
    ),
    ("half a character in JSON", "f.json", '{"a":\n"\\ud800"}', "line 2: found invalid Unicode character escape code"),
    ("a zero byte", "f.yaml", POD + "a: \x00", "line 4: control characters are not allowed"),
    ("no JSON", "f.json", '{"a":\n nothing}', "line 2: a value is missing, or is not JSON"),
    ("set", "f.yaml", POD + "a: !!set {b}", "document 1, line 4: tag !!set is not allowed in a manifest"),
    (
        "a tag that runs code",
        "f.yaml",
        POD + "a: !!python/object/apply:os.system [id]",
        "document 1, line 4: tag !!python/object/apply:os.system is not allowed in a manifest",
    ),
    (
        "a name that is not ASCII",
        "f.yaml",
        LABELLED.replace("name: d", "name: größe") + f"spec: {{{HEAD}}}",
        (
            'document 1, line 1: metadata.name: "größe" is not a valid name; '
            "use at most 253 lower-case letters, digits, - and ."
        ),
    ),
    (
        "a name that colours the terminal",
        "f.yaml",
        LABELLED.replace("name: d", 'name: "d\\n\\e[31m"') + f"spec: {{{HEAD}}}",
        (
            'document 1, line 1: metadata.name: "d\\n\\x1b[31m" is not a valid name; '
            "use at most 253 lower-case letters, digits, - and ."
        ),
    ),
    (
        "a label that is a number",
        "f.yaml",
        LABELLED.replace("queue-name: q", "queue-name: 7") + f"spec: {{{HEAD}}}",
        (
            "document 1, line 1: metadata.labels[volcano.sh/queue-name]: 7 is a number, and a string is expected; "
            'write "7" in quotes'
        ),
    ),
    (
        "a label that is true",
        "f.yaml",
        LABELLED.replace("queue-name: q", "queue-name: yes") + f"spec: {{{HEAD}}}",
        (
            "document 1, line 1: metadata.labels[volcano.sh/queue-name]: true is a boolean, and a string is expected; "
            "write it in quotes"
        ),
    ),
    (
        "a label that is a list",
        "f.yaml",
        LABELLED.replace("queue-name: q", "queue-name: [q]") + f"spec: {{{HEAD}}}",
        "document 1, line 1: metadata.labels[volcano.sh/queue-name]: expected a string, found a list",
    ),
)
def test_it_is_refused_in_one_line(plan: Plan, name: str, text: str, line: str) -> None:
    code, out, err = plan(name, text)
    assert (code, out) == (2, "[]\n")
    assert err in (f"muster plan: F, {line}\n", f"muster plan: F: {line}\n")


@cases(
    "text",
    ("a number to base 60, which is text", POD + "a: 1" + ":59" * MEBIBYTE),
    ("one long text", POD + "a: " + "x" * 3 * MEBIBYTE),
    ("a long list", POD + "a: [" + "x," * (MEBIBYTE // 2) + "]"),
    ("many anchors", POD + "".join(f"k{n}: &a{n} x\n" for n in range(MEBIBYTE // 10))),
    ("a comment", POD + "#" * 3 * MEBIBYTE),
    ("many empty documents", "---\n" * (MEBIBYTE // 8) + POD),
)
def test_what_is_only_large_is_read(plan: Plan, text: str) -> None:
    code, out, err = plan("f.yaml", text)
    assert (code, out.count('"kind": "Pod"'), err) == (0, 1, "")


def test_a_name_of_megabytes_is_wrapped_in_bounded_time(plan: Plan) -> None:
    words = "w " * 3 * MEBIBYTE
    pod = "template: {spec: {containers: [{}]}}"
    spec = f"{{headGroupSpec: {{{pod}}}, workerGroupSpecs: [{{groupName: '{words}', replicas: 1, {pod}}}]}}"
    code, out, err = plan("f.yaml", f"{LABELLED}spec: {spec}", output="table")
    assert (code, err) == (0, "")
    assert out.count("w ") >= 3 * MEBIBYTE


def test_a_workload_of_three_megabytes_is_planned(plan: Plan) -> None:
    """A manifest that no apiserver would take; each of its groups is one role."""
    groups = ",".join(
        f"{{groupName: g{n}, replicas: 1, template: {{spec: {{containers: [{{}}]}}}}}}" for n in range(200)
    )
    head = "{template: {spec: {containers: [{env: [" + "{name: a}," * (5 * MEBIBYTE // 20) + "]}]}}}"
    code, out, err = plan("f.yaml", f"{LABELLED}spec: {{headGroupSpec: {head}, workerGroupSpecs: [{groups}]}}")
    assert (code, err) == (0, "")
    assert '"minMember": 201' in out
