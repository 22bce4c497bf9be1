"""The judge of how much work a step took."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hack.testbed import Testbed
from tests.support.cases import cases
from tests.support.cluster.steps import MEDIANS, Meter, Work, counted_with_the_test, too_much

TESTS = Path(__file__).parents[2]


@cases(
    "work, usual, said",
    ("the usual", Work(20, 12), Work(20, 12), ""),
    ("three times as much, on a busy machine", Work(60, 40), Work(20, 12), ""),
    ("ten times the calls", Work(200, 12), Work(20, 12), "200 calls where 20 are usual"),
    ("ten times the looks", Work(20, 120), Work(20, 12), "120 looks where 12 are usual"),
    ("none", Work(11, 11), Work(0, 0), "11 calls where 0 are usual and 11 looks where 0 are usual"),
    ("nobody has recorded such a step", Work(900, 900), None, ""),
)
def test_ten_times_the_usual_work_is_too_much(work: Work, usual: Work | None, said: str) -> None:
    assert too_much(work, usual) == said


class _Counts:
    """The API of a testbed whose apiserver counts as many calls of muster's as the test says."""

    def __init__(self) -> None:
        self.calls = 0

    def apply(self, path: str, manifest: object) -> None:
        """Nothing is here that would count."""

    def __call__(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(message=f"PriorityLevelName, DispatchedRequests\nmuster-counted, {self.calls}\n")


def _meter(counts: _Counts, folder: Path) -> Meter:
    testbed = SimpleNamespace(state=folder, api=lambda: counts, processes=dict)
    return Meter(cast("Testbed", testbed), lambda: 0)


def test_a_test_is_judged_by_what_all_its_waits_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    medians = tmp_path / "medians.json"
    medians.write_text(json.dumps({"e2e/test_x.py::test_y": {"calls": 4, "looks": 0}}))
    monkeypatch.setattr("tests.support.cluster.steps.MEDIANS", medians)
    monkeypatch.setattr("tests.support.cluster.steps._recorded", {})
    monkeypatch.setattr("tests.support.cluster.steps._taken", {})
    counts = _Counts()

    def waits(times: int) -> None:
        with counted_with_the_test("e2e/test_x.py::test_y"):
            meter = _meter(counts, tmp_path)
            for _ in range(times):
                counts.calls += 15
                meter.step("")

    waits(2)
    with pytest.raises(AssertionError, match=r"test_y: muster took 45 calls where 4 are usual"):
        waits(3)
    # What a test before has counted is not in it.
    waits(1)


def test_every_recorded_test_is_there() -> None:
    """A test that was renamed takes its numbers with it."""
    recorded = [kind.partition("::") for kind in json.loads(MEDIANS.read_text()) if "::" in kind]
    gone = [
        name
        for file, _, name in recorded
        if not (TESTS / file).exists() or f"def {name.partition('[')[0]}(" not in (TESTS / file).read_text()
    ]
    assert not gone
