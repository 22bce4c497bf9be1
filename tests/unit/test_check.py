"""`make test` runs every test, and its end says which failed and what was left out."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hack.check import LEFT_OUT, SMOKE, main, parts, quick, run, unbuilt
from hack.part import Part
from hack.testbed.build import binary_path, finish
from hack.testbed.parts import select
from hack.testbed.toolchain import find_go

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
