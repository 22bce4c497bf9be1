"""`make test` runs every test, and its end says which failed and what was left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.check import LEFT_OUT, Part, main, parts, run

if TYPE_CHECKING:
    from collections.abc import Sequence

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
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytests that run here need no plugins, which take most of their time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_every_failed_test_is_named_with_its_reason_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(_SOME)
    passing = Part("good", [f"{file}::test_passes", f"--rootdir={tmp_path}"])
    failing = Part("bad", ["-v", str(file), f"--rootdir={tmp_path}", "--durations=3"])
    assert not run([failing, passing])
    *_, before, failed, error, last = capsys.readouterr().out.splitlines()
    assert "1 passed" in before or "1 failed" in before
    assert failed.startswith("bad      | FAILED ")
    assert failed.endswith("test_some.py::test_fails - AssertionError: a sum " + "x" * 60)
    assert error.startswith("bad      | ERROR ")
    assert error.endswith("test_some.py::test_has_no_fixture - OSError: no such machine")
    assert last.startswith("== bad failed (1) in ")
    assert ", good passed in " in last


_AT_FIRST = """
from pathlib import Path

def test_fails_once():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "something was slow"

def test_passes():
    with Path(__file__).with_suffix(".passed").open("a") as runs:
        runs.write("once\\n")
"""


def test_what_fails_beside_others_runs_once_more_by_itself_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(_AT_FIRST)
    assert run([Part("good", [str(file), f"--rootdir={tmp_path}"])])
    *_, unsteady, last = capsys.readouterr().out.splitlines()
    assert unsteady.startswith("good     | UNSTEADY, passed by itself: FAILED ")
    assert unsteady.endswith("test_some.py::test_fails_once - AssertionError: something was slow")
    assert last.startswith("== good passed (1 at the second attempt) in ")
    assert file.with_suffix(".passed").read_text() == "once\n"


def test_where_many_fail_there_is_no_second_attempt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "test_some.py"
    file.write_text("\n".join(f"def test_{number}(): assert not {number}" for number in range(1, 6)))
    assert not run([Part("bad", [str(file), f"--rootdir={tmp_path}"])])
    out = capsys.readouterr().out
    assert "once more" not in out
    assert out.splitlines()[-1].startswith("== bad failed (1) in ")


def test_a_part_without_any_test_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not run([Part("empty", [str(tmp_path), f"--rootdir={tmp_path}"])])
    assert capsys.readouterr().out.splitlines()[-1].startswith("== empty failed (5) in ")


def test_all_passed_when_each_part_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "test_some.py"
    file.write_text("def test_passes(): ...")
    assert run([Part("good", [str(file), f"--rootdir={tmp_path}"])])
    assert capsys.readouterr().out.splitlines()[-1].startswith("== good passed in ")


def _files(part: Part) -> set[Path]:
    """The files of tests that a part runs."""
    named = [_ROOT / argument for argument in part.arguments if argument.startswith("tests/")]
    return {file for path in named for file in ([path] if path.is_file() else path.rglob("test_*.py"))}


def test_every_test_is_in_one_part() -> None:
    files = [file for part in parts() for file in _files(part)]
    assert sorted(files) == sorted((_ROOT / "tests").rglob("test_*.py"))


def test_the_real_node_alone_can_be_left_out() -> None:
    left = {file for part in parts(node=False) for file in _files(part)}
    assert {file for part in parts() for file in _files(part)} - left == set((_ROOT / "tests/node").glob("test_*.py"))


def test_nothing_is_left_out_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("MUSTER_WITHOUT_NODE", "1")
    with pytest.raises(SystemExit, match="CI is set: unset MUSTER_WITHOUT_NODE"):
        main()


def test_who_leaves_the_node_out_is_told_so_first_and_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("MUSTER_WITHOUT_NODE", "1")
    asked: list[str] = []

    def pass_all(chosen: Sequence[Part]) -> bool:
        asked.extend(argument for one in chosen for argument in one.arguments)
        return True

    monkeypatch.setattr("hack.check.run", pass_all)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [f"== {LEFT_OUT}"] * 2
    assert not [one for one in asked if "tests/node" in one]
