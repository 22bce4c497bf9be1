"""`make test` runs every test, and its end says which failed and what was left out."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hack.check import LEFT_OUT, SMOKE, lanes, main, parts, quick, run, unbuilt
from hack.part import Part
from hack.testbed.build import binary_path, finish
from hack.testbed.costs import COSTS, START
from hack.testbed.parts import PARTS, select
from hack.testbed.toolchain import find_go
from tests.support.examples import examples

_ROOT = Path(__file__).parents[2]
_SOME = """
import logging, pytest

@pytest.fixture
def broken():
    raise OSError("no such machine")

def test_fails():
    logging.getLogger().error("a line of a log")
    assert 1 + 1 == 3, "a sum " + "x" * 60

def test_has_no_fixture(broken): ...

def test_passes(): ...
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The pytests that run here need no plugins, which take most of their time; what they leave is the test's own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def _written(name: str, text: str) -> str:
    file = Path(f"test_{name}.py")
    file.write_text(text)
    return str(file)


def test_every_failed_test_is_named_with_its_reason_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    file = _written("some", _SOME)
    passing = Part("good", [], [f"{file}::test_passes"])
    failing = Part("bad", ["-v", "--durations=3"], [file])
    assert not run([failing, passing])
    *_, failed, error, last = capsys.readouterr().out.splitlines()
    assert failed.startswith("bad        | FAILED ")
    assert failed.endswith("test_some.py::test_fails - AssertionError: a sum " + "x" * 60)
    assert error.startswith("bad        | ERROR ")
    assert error.endswith("test_some.py::test_has_no_fixture - OSError: no such machine")
    assert last.startswith("== bad failed (1) in ")
    assert ", good passed in " in last


def test_what_would_pass_the_second_time_is_red_and_runs_once() -> None:
    counted = "from pathlib import Path\n\ndef test_slow():\n    with Path('runs').open('a') as runs:\n"
    counted += "        assert runs.write('x') and runs.tell() > 1, 'something was slow'\n"
    assert not run([Part("some", [], [_written("slow", counted)])])
    assert Path("runs").read_text() == "x"


def test_a_part_without_any_test_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert not run([Part("empty", [], ["empty"])])
    assert capsys.readouterr().out.splitlines()[-1].startswith("== empty failed (5) in ")


def test_all_passed_when_each_part_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([Part("good", [], [_written("good", "def test_passes(): ...")])])
    assert capsys.readouterr().out.splitlines()[-1].startswith("== good passed in ")


def test_what_is_left_to_test_all_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    file = _written("some", "def test_passes(): ...\ndef test_long(): ...\ndef test_long_too(): ...\n")
    assert run([Part("good", ["-k", "not long"], [file]), Part("all", [], [file])])
    said = "== left to `make test-all`: 2 tests, marked `long` or of programs that are not built"
    assert said in capsys.readouterr().out.splitlines()


def test_the_table_shows_what_was_spent_on_what(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [["etcd", 2], ["kube-apiserver", 30], ["kwok", 1], ["kuberay", 4], ["volcano-scheduler", 5]]
    lines += [["muster-controller-1", 6], [START, 0], [START, 0]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file = _written("some", f"import os, pathlib\ndef test(): pathlib.Path(os.environ[{COSTS!r}]).write_text({text!r})")
    assert run([Part("good", [], [file])])
    heading, row, *_ = [line.split() for line in capsys.readouterr().out.splitlines()][-5:]
    found = dict(zip([word for word in heading if word != "s"], row, strict=True))
    spent = {"etcd": "2", "apiserver": "30", "kubernetes": "1", "operators": "9", "muster": "6", "starts": "2"}
    assert {name: found[name] for name in spent} == spent


@pytest.fixture
def _checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_ROOT)


def _files(part: Part) -> set[Path]:
    """The files of tests that a part runs."""
    named = [_ROOT / path for path in part.paths]
    return {file for path in named for file in ([path] if path.is_file() else path.rglob("test_*.py"))}


@pytest.mark.usefixtures("_checkout")
@pytest.mark.parametrize("everything", [True, False])
def test_every_test_is_in_one_part(everything: bool) -> None:
    files = [file for part in [*quick(), *parts(everything=everything)] for file in _files(part)]
    assert sorted(files) == sorted((_ROOT / "tests").rglob("test_*.py"))


@pytest.mark.usefixtures("_checkout")
def test_long_tests_alone_are_left_to_test_all() -> None:
    left = [one.options[:3] for one in parts(everything=False)]
    assert left == [["-v", "-m", "not long"]] * len(left)
    assert not [one for one in [*quick(), *parts()] if "-m" in one.options]


@pytest.mark.usefixtures("_checkout")
@pytest.mark.parametrize(
    ("what", "said", "drawn"),
    [("quick", None, 25), ("quick", "few", 25), ("quick", "all", 100), ("test", None, 25), ("all", None, 100)],
)
def test_what_one_runs_all_day_draws_a_quarter_of_the_examples(
    monkeypatch: pytest.MonkeyPatch, what: str, said: str | None, drawn: int
) -> None:
    # So that what the command sets is taken back.
    monkeypatch.setenv("MUSTER_EXAMPLES", said or "")
    if said is None:
        monkeypatch.delenv("MUSTER_EXAMPLES")
    monkeypatch.setattr("sys.argv", ["check", what])
    monkeypatch.delenv("MUSTER_WITHOUT_NODE", raising=False)
    monkeypatch.setattr("hack.check.unbuilt", list)
    for name in ("binaries", "schemas"):
        monkeypatch.setattr(f"hack.check.{name}", lambda *_: None)
    seen: list[int] = []

    def pass_all(_: Sequence[Part]) -> bool:
        seen.extend([examples(100), examples(1)])
        return True

    monkeypatch.setattr("hack.check.run", pass_all)
    with pytest.raises(SystemExit):
        main()
    assert seen == [drawn, 1]


@pytest.mark.parametrize(("target", "drawn"), [("check", "unsaid"), ("test", "unsaid"), ("test-all", "all")])
def test_make_says_how_many_examples_are_drawn(tmp_path: Path, target: str, drawn: str) -> None:
    """With another Python, which does nothing but say what it was asked for."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$2 $3" = "hack.check quick" ] && echo "${MUSTER_EXAMPLES-unsaid}"; exit 0\n')
    python.chmod(0o755)
    (tmp_path / "site").mkdir()
    for name in ("pip", "site/bin"):
        (tmp_path / name).symlink_to(tmp_path if name.endswith("bin") else python)
    asked = ["make", "--silent", target, f"BIN={tmp_path}", f"VENV={tmp_path}", f"PYTHON={python}"]
    environment = {name: text for name, text in os.environ.items() if name not in ("MUSTER_EXAMPLES", "MAKEFLAGS")}
    done = subprocess.run(asked, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if not line.startswith("== ")] == [drawn]


@pytest.mark.usefixtures("_checkout")
def test_the_port_of_the_mpi_operator_is_wanted_once_at_a_time() -> None:
    """Parts of one lane run one after another, and each part is in one lane."""
    found = [[part.name for part in lane] for lane in lanes(parts())]
    assert ["operators", "conformance"] in found
    assert sorted(name for lane in found for name in lane) == sorted(part.name for part in parts())


@pytest.mark.usefixtures("_checkout")
def test_the_real_node_alone_can_be_left_out() -> None:
    """By no pytest without paths, which would run every test there is."""
    assert all(part.paths for part in parts(node=False))
    left = {file for part in parts(node=False) for file in _files(part)}
    assert {file for part in parts() for file in _files(part)} - left == set((_ROOT / "tests/node").glob("test_*.py"))


def _build_all() -> None:
    """Put something whole where each program of `SMOKE` is kept."""
    go = find_go()
    for part in (part for addons, kubernetes in SMOKE.values() for part in select(addons, kubernetes)):
        binary = binary_path(part, go)
        binary.parent.mkdir(parents=True, exist_ok=True)
        partial = binary.with_name("partial")
        partial.touch()
        finish(partial, binary)


def test_both_ways_to_start_the_training_operator_share_a_program() -> None:
    """Nothing builds one for `training-mpi` alone, but a test that adds it."""
    go = find_go()
    assert binary_path(PARTS["training-mpi"], go) == binary_path(PARTS["training"], go)
    facts = [(part.family, part.package, part.ldflags) for part in (PARTS["training-mpi"], PARTS["training"])]
    assert facts[0] == facts[1]


def test_what_is_not_built_is_known_by_its_programs() -> None:
    assert unbuilt() == list(SMOKE)
    _build_all()
    assert unbuilt() == []
    addons, kubernetes = SMOKE["coscheduling"]
    part = next(part for part in select(addons, kubernetes) if part.addon == "coscheduling")
    binary_path(part, find_go()).unlink()
    assert unbuilt() == ["coscheduling"]


@pytest.mark.usefixtures("_checkout")
def test_smoke_tests_of_what_is_not_built_are_left_out_and_it_is_said_first_and_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MUSTER_WITHOUT_NODE", raising=False)
    monkeypatch.setattr("sys.argv", ["check", "test"])
    options: set[tuple[str, ...]] = set()

    def pass_all(chosen: Sequence[Part]) -> bool:
        options.update(tuple(one.options[:3]) for one in chosen)
        return True

    monkeypatch.setattr("hack.check.run", pass_all)
    with pytest.raises(SystemExit):
        main()
    assert options == {("-v", "-m", " and ".join(f"not {mark}" for mark in ("long", *SMOKE)))}
    said = [f"== {mark} is NOT tested: its programs are not built, `make build-backends` does so" for mark in SMOKE]
    assert capsys.readouterr().out.splitlines() == said * 2


@pytest.mark.usefixtures("_checkout")
@pytest.mark.parametrize("mark", list(SMOKE))
def test_each_system_has_a_smoke_test(mark: str) -> None:
    decorated = [file for file in Path("tests").rglob("test_*.py") if f"\n@pytest.mark.{mark}\n" in file.read_text()]
    assert len(decorated) == 1


def test_nothing_is_left_out_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("MUSTER_WITHOUT_NODE", "1")
    monkeypatch.setattr("sys.argv", ["check", "test"])
    with pytest.raises(SystemExit, match="CI is set: unset MUSTER_WITHOUT_NODE"):
        main()


@pytest.mark.usefixtures("_checkout")
def test_who_leaves_the_node_out_is_told_so_first_and_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("MUSTER_WITHOUT_NODE", "1")
    monkeypatch.setattr("sys.argv", ["check", "test"])
    _build_all()
    asked: list[str] = []

    def pass_all(chosen: Sequence[Part]) -> bool:
        asked.extend(argument for one in chosen for argument in one.paths)
        return True

    monkeypatch.setattr("hack.check.run", pass_all)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [f"== {LEFT_OUT}"] * 2
    assert not [one for one in asked if "tests/node" in one]
