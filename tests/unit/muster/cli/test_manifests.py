"""Reading manifests: as kubectl reads them, and hostile ones refused in one line, in bounded time."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.parsing import parse
from muster.cli.plan.manifests import Document, read_manifests
from tests.support.cases import cases

POD = "apiVersion: v1\nkind: Pod\n"


def kinds(folder: Path, text: str, name: str = "input.yaml") -> list[str]:
    path = folder / name
    path.write_text(text)
    return [document.kind for document in read(path)]


def read(path: Path | str) -> list[Document]:
    errors: list[str] = []
    documents = read_manifests([str(path)], errors)
    assert not errors
    return documents


def refusal(folder: Path, text: str) -> str:
    path, errors = folder / "input.yaml", list[str]()
    path.write_text(text)
    read_manifests([str(path)], errors)
    message = errors[0].removeprefix(str(path))
    assert "\n" not in message
    return message


def test_documents_lists_and_json_are_read_in_order(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": kind} for kind in ("A", "B")]}
    text = f"---\n{POD}---\n---\n{json.dumps(listed)}\n---\n{POD}"
    assert kinds(tmp_path, text) == ["Pod", "A", "B", "Pod"]


def test_a_folder_is_read_by_file_name_and_without_what_is_no_manifest(tmp_path: Path) -> None:
    for name, kind in (("b.yaml", "B"), ("a.json", '"A"'), ("c.txt", "C")):
        (tmp_path / name).write_text(
            f'{{"apiVersion": "v1", "kind": {kind}}}' if "json" in name else f"apiVersion: v1\nkind: {kind}"
        )
    assert [document.kind for document in read(tmp_path)] == ["A", "B"]


def test_marks_of_windows_may_stand_before_each_file_of_a_stream(tmp_path: Path) -> None:
    """As `cat *.yaml` puts them together."""
    assert kinds(tmp_path, f"\ufeff{POD}---\n\ufeff{POD}---\n\ufeff---\n{POD}") == ["Pod", "Pod", "Pod"]


@pytest.mark.parametrize("text", ["apiVersion: v1\nkind: 5", "apiVersion: [v1]\nkind: Pod", "kind: {Pod: Pod}"])
def test_a_kind_is_text(tmp_path: Path, text: str) -> None:
    """Another one is no object for kubectl, so that nothing is skipped."""
    assert refusal(tmp_path, text) == ", document 1, line 1: no apiVersion and kind; is this a Kubernetes manifest?"


def test_a_time_stays_text(tmp_path: Path) -> None:
    """As for kubectl; a date object fits into no field."""
    path = tmp_path / "input.yaml"
    path.write_text(f"{POD}metadata: {{creationTimestamp: 2026-11-21T10:00:00Z}}\n")
    (document,) = read(path)
    assert document.manifest["metadata"]["creationTimestamp"] == "2026-11-21T10:00:00Z"


@cases(
    "text, message",
    ("broken YAML", "a: [", ", line 2: a value, or the bracket that closes a list or an object, is missing"),
    ("no object", "just text", ", document 1, line 1: expected an object, found a string"),
    ("no kind", "a: 1", ", document 1, line 1: no apiVersion and kind; is this a Kubernetes manifest?"),
    ("deep", f"{POD}a: {'[' * 200}{']' * 200}", ", document 1, line 3: nested more than 100 deep"),
    ("in itself", f"{POD}a: &a [*a]", ', document 1, line 3: alias "a" refers to a value that contains it'),
    ("a tag that runs code", f"{POD}a: !!python/object/apply:os.system [id]", None),
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: str, message: str | None) -> None:
    said = refusal(tmp_path, text)
    assert said == message or (message is None and said.startswith(", ") and len(said) < 200)


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    """Nine lines that stand for a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    said = refusal(tmp_path, POD + "\n".join(lines))
    assert said == ", document 1, line 9: more than 2000000 values, with aliases expanded"


def test_aliases_in_their_everyday_use_are_read(tmp_path: Path) -> None:
    assert kinds(tmp_path, f"{POD}a: &a {{b: 1}}\nc: *a\nd: {{<<: *a, e: 2}}") == ["Pod"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    errors: list[str] = []
    assert read_manifests([str(tmp_path / "nowhere.yaml")], errors) == []
    assert errors == [f"{tmp_path}/nowhere.yaml: No such file or directory"]


@cases(
    "name, said",
    ("empty", "", "a file without a name: -f is empty"),
    ("too long", "x" * 5000, f"{'x' * 5000}: File name too long"),
)
def test_what_names_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    """An empty name is not the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    kinds(tmp_path, POD)
    errors: list[str] = []
    assert read_manifests([name], errors) == []
    assert errors == [said]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)


class Quoting(yaml.SafeDumper):
    """Quotes what may be a number or a truth to kubectl, and is text to PyYAML."""


Quoting.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="'" if text in {*"yYnN"} or text[:1] in {*"+-.0123456789"} else None
    ),
)


@given(st.lists(st.dictionaries(st.text(max_size=5), anything, min_size=1, max_size=4), max_size=3))
def test_what_was_written_as_yaml_or_json_is_read_as_it_was(values: list[object]) -> None:
    """In blocks or in flow, one document after the other, JSON in its own file or between the dashes of YAML."""
    for flow in (False, True):
        text = yaml.dump_all(values, Dumper=Quoting, default_flow_style=flow)
        assert [one.value for one in parse("a.yaml", text)] == values
    texts = [json.dumps(value, indent=2) for value in values]
    for name in ("a.yaml", "a.json"):
        assert [one.value for one in parse(name, "\n---\n".join(texts))] == values


def test_aliases_and_merges_are_what_they_stand_for() -> None:
    """Own keys go before merged ones, and of merged ones the first."""
    text = "a: &a {x: 1, w: 2}\nb: &b {x: 3, z: 4}\nc: {<<: [*a, *b], z: 5}\nd: {<<: *b, <<: *a}\n'<<': e\n"
    (value,) = (one.value for one in parse("a.yaml", text))
    assert (value["c"], value["d"]) == ({"x": 1, "w": 2, "z": 5}, {"x": 3, "w": 2, "z": 4})
    assert value["<<"] == "e"


@cases(
    "text, value",
    ("hexadecimal", "0x10", 16),
    ("underscores", "1_000", 1000),
    ("to base 60: text, as for kubectl", "1:30", "1:30"),
    ("a whole number with a point", "1.0", 1),
    ("yes", "yes", True),
    ("a letter", "y", True),
    ("another letter", "N", False),
    ("no octal number", "08", 8),
    ("an exponent without a point", "1e3", 1000),
    ("a hash that is a number", "[12345e6, 1_0e-1]", [12345000000, 1]),
    ("no numbers", "[1e999, 12ef, e3, 0x, -, .]", ["1e999", "12ef", "e3", "0x", "-", "."]),
    ("nothing", "~", None),
    ("a tag", "!!str 1", "1"),
    ("quoted", "'1'", "1"),
    ("keys are text, as in JSON", "{1: a, true: b}", {"1": "a", "true": "b"}),
)
def test_scalars_are_those_of_kubectl(text: str, value: object) -> None:
    ((where, found, _, _),) = parse("a.yaml", f"a: {text}")
    assert (where, found) == ("a.yaml, document 1, line 1", {"a": value})
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_a_whole_number_with_a_point_may_stand_where_an_integer_must(name: str) -> None:
    ((_, found, _, _),) = parse(name, '{"replicas": 2.0, "cpu": 0.5}')
    assert (repr(found["replicas"]), repr(found["cpu"])) == ("2", "0.5")
