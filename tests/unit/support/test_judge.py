"""Every scene is judged at the end of its test, and the test that has it is the one that fails."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tests.conftest
from tests.support.cluster import testbed_fixtures
from tests.support.cluster.judge import Judge, judged_with_the_test
from tests.support.cluster.scene import open_scene
from tests.unit.support.test_open_claims import Record, started

_TESTS = Path(tests.conftest.__file__).parent

ABOVE = "b opened: cpu 5 of the 4"


@pytest.fixture
def record() -> Record:
    """A gang that fits."""
    record = Record()
    started(record, "a", 3)
    return record


@pytest.fixture
def judge(record: Record) -> Judge:
    return Judge(lambda: record.states)


def _too_much(record: Record, name: str = "b") -> None:
    started(record, name, 2)


def _fails(record: Record) -> None:
    _too_much(record)
    raise ValueError("its own")


def test_a_block_ends_with_a_judgement(record: Record, judge: Judge) -> None:
    with judge.on_duty():
        pass
    with pytest.raises(AssertionError, match=ABOVE), judge.on_duty():
        _too_much(record)


def test_what_one_test_has_done_does_not_fail_the_next_one_with_the_same_scene(record: Record, judge: Judge) -> None:
    with judge.on_duty():
        with pytest.raises(AssertionError, match=ABOVE), judged_with_the_test():
            _too_much(record)
        with judged_with_the_test():
            pass
        with pytest.raises(AssertionError, match=r"^at version 12 c opened[^;]*$"), judged_with_the_test():
            _too_much(record, "c")


def test_a_test_that_fails_says_why_and_leaves_its_scene_to_nobody(record: Record, judge: Judge) -> None:
    with judge.on_duty():
        with pytest.raises(ValueError, match="its own"), judged_with_the_test():
            _fails(record)
        with judged_with_the_test():
            pass


def test_who_is_excused_with_a_reason_must_be_in_need_of_it(record: Record, judge: Judge) -> None:
    judge.excuse("b", "somebody releases it")
    with pytest.raises(AssertionError, match=r"b was never open beyond its room, .*: somebody releases it"):
        judge.end()
    _too_much(record)
    judge.end()
    with pytest.raises(AssertionError, match="c"):
        judge.excuse("c", "")


_BODIES = """
import pytest

from tests.support.cluster.judge import Judge
from tests.unit.support.test_open_claims import Record, started

@pytest.fixture(scope="module")
def record():
    record = Record()
    with Judge(lambda: record.states).on_duty():
        yield record

def test_fits(record):
    started(record, "a", 3)

def test_does_not(record):
    started(record, "b", 2)

def test_is_the_last(record):
    pass
"""


def test_the_test_itself_fails_and_neither_the_next_one_nor_the_last(tmp_path: Path) -> None:
    """By the hook that tests/conftest.py has for all tests."""
    assert tests.conftest.pytest_pyfunc_call is testbed_fixtures.pytest_pyfunc_call
    (tmp_path / "test_bodies.py").write_text(_BODIES)
    options = ("-q", "-p", testbed_fixtures.__name__, "-p", "no:cacheprovider", f"--rootdir={tmp_path}")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        cwd=_TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.findall(r"^(FAILED|ERROR) \S+::(\w+)", ran.stdout, re.MULTILINE) == [("FAILED", "test_does_not")]
    assert "1 failed, 2 passed" in ran.stdout


def test_every_scene_has_a_judge() -> None:
    """No test makes one but by the function that sets its judge on duty."""
    assert "with scene.judge.on_duty():" in inspect.getsource(open_scene)
    made = {
        path.name
        for folder in ("e2e", "pairs")
        for path in (_TESTS / folder).glob("*.py")
        if re.search(r"(Scene|Recorder)\(", path.read_text())
    }
    assert made == set()


def test_who_may_open_gangs_beyond_their_room_stands_here() -> None:
    """With the reason beside each excuse; all other tests are judged by the rule."""
    excused = {
        f"{path.relative_to(_TESTS).as_posix()}::{function.name}"
        for folder in ("e2e", "node", "pairs")
        for path in (_TESTS / folder).glob("test_*.py")
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef) and "judge.excuse" in ast.unparse(function)
    }
    assert excused == {
        "e2e/test_release.py::test_released_gangs_run_and_stay_released",
        "e2e/test_release.py::test_while_muster_is_at_work_a_released_gang_starts_as_a_whole",
        "e2e/test_uninstall.py::test_everything_that_was_held_runs_and_nothing_is_held_again",
        "node/test_order.py::test_from_nothing_and_back_to_nothing",
    }
