"""How tests wait: soon when it is soon, and without asking all the time when it is not."""

import re
from collections import UserList
from collections.abc import Callable
from pathlib import Path

import pytest

from hack.testbed import TestbedError, wait_for


class _Clock(UserList[float]):
    """A clock that only sleep moves; its elements are the pauses."""

    def monotonic(self) -> float:
        return sum(self)

    def sleep(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr("hack.testbed.waiting.time", clock)
    return clock


def _true_after(clock: _Clock, seconds: float) -> Callable[[], bool]:
    return lambda: clock.monotonic() >= seconds


@pytest.mark.parametrize("seconds", [0.01, 0.3, 1.0, 5.0, 30.0, 170.0])
def test_what_comes_is_seen_a_twentieth_later_at_most(clock: _Clock, seconds: float) -> None:
    assert wait_for("it", _true_after(clock, seconds), 180)
    assert clock.monotonic() - seconds <= max(0.05, min(seconds / 20, 0.5))


def test_at_the_deadline_the_last_answer_is_said(clock: _Clock) -> None:
    with pytest.raises(TestbedError, match=r"waited 2 s for it; last seen: nothing yet"):
        wait_for("it", _nothing_yet, 2)
    assert 2.0 < clock.monotonic() < 2.2


def _nothing_yet() -> bool:
    raise TestbedError("nothing yet")


def test_every_deadline_is_the_same() -> None:
    """None of a test's own, which a machine at a tenth of the speed would break."""
    own = re.compile(r"^_?PATIENCE = \d|asyncio\.timeout\(\d", re.MULTILINE)
    tests = Path(__file__).parents[1]
    assert [str(file.relative_to(tests)) for file in tests.rglob("*.py") if own.search(file.read_text())] == []
