"""How many pytests of `make test` run side by side."""

from dataclasses import dataclass

import pytest

from hack.room import Machine
from tests.support.cases import cases

_GB = 10**9


@dataclass
class _Faked:
    """A machine on which a test says what happens; sleeping lets time pass."""

    cores: int = 2
    free: int = 100 * _GB
    others: float = 0.0
    own: float = 0.0
    now: float = 0.0
    busy: float = 0.0
    mine: float = 0.0

    def sleep(self, seconds: float) -> None:
        """Let so much time pass, in which others and this process take these shares of all processors."""
        self.now += seconds
        self.mine += self.own * self.cores * seconds
        self.busy += (self.own + self.others) * self.cores * seconds

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> _Faked:
    faked = _Faked()
    monkeypatch.setattr("hack.room.time", faked)
    monkeypatch.setattr("hack.room._spent", lambda: (faked.busy, faked.mine))
    monkeypatch.setattr("hack.room._free_memory", lambda: faked.free)
    monkeypatch.setattr("hack.room.os.sched_getaffinity", lambda _: range(faked.cores))
    return faked


@cases(
    "machine, room",
    ("two processors", _Faked(), 6),
    ("one processor", _Faked(cores=1), 3),
    ("busy with the tests themselves", _Faked(own=1.0), 6),
    ("another takes one of two processors", _Faked(others=0.5), 4),
    ("others take all", _Faked(others=1.0), 3),
    ("8 GB of memory", _Faked(free=7 * _GB), 2),
    ("hardly any memory", _Faked(free=_GB), 1),
)
def test_fewer_have_room_on_a_small_or_busy_machine(faked: _Faked, machine: _Faked, room: int) -> None:
    for name in ("cores", "free", "others", "own"):
        setattr(faked, name, getattr(machine, name))
    assert Machine().room(0) == room


def test_what_others_do_is_looked_at_while_tests_run(faked: _Faked) -> None:
    machine = Machine()
    assert machine.room(3) == 6
    faked.others = 1.0
    faked.sleep(60)
    assert machine.room(3) == 3
    faked.others = 0.0
    faked.sleep(60)
    assert machine.room(3) == 6
    assert 0.4 < machine.share_of_others() < 0.6


def test_memory_that_those_that_run_have_taken_already_is_theirs(faked: _Faked) -> None:
    machine = Machine()
    faked.free = 4 * _GB
    assert machine.room(4) == 5


def test_memory_that_is_taken_later_is_no_room_for_others(faked: _Faked) -> None:
    faked.free = 7 * _GB
    assert Machine().room(2) == 2


def test_this_process_is_told_from_all_others() -> None:
    """By the numbers of the kernel."""
    machine = Machine()
    assert 0 <= machine.share_of_others() <= 1
    assert machine.room(0) >= 1
