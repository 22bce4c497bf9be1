"""How right planned starts were, over a week."""

import pytest

from muster.gangs.start_errors import PlannedStart, StartError, StartErrors
from muster.model.objects import InvalidObjectError
from tests.support.cases import cases

DAY = 86400.0
NOW = 1_800_000_000.0


def recorded(*factors: float, now: float = NOW, planned: float = 3600.0) -> StartErrors:
    """Gangs that waited so many times the planned hour."""
    errors = StartErrors()
    for factor in factors:
        add(errors, factor, now=now, planned=planned)
    return errors


def add(errors: StartErrors, factor: float, *, now: float = NOW, planned: float = 3600.0) -> None:
    since = now - factor * planned
    errors.record(PlannedStart(now, "said", since + planned, since), now)


@cases(
    "factors, factor",
    ("all as planned", [1.0] * 10, 1.1),
    ("half within twice the time", [1.0] * 4 + [1.9] + [20.0] * 5, 2.0),
    ("too early counts as too late", [1.0] * 4 + [1 / 1.9] + [1 / 20] * 5, 2.0),
    ("none of them", [20.0] * 10, None),
)
def test_half_of_the_gangs_started_within_the_factor(factors: list[float], factor: float | None) -> None:
    assert recorded(*factors).last_week(NOW) == StartError(10, factor)


def test_of_fewer_than_ten_gangs_nothing_is_said() -> None:
    assert recorded(*[1.0] * 9).last_week(NOW) is None
    assert StartErrors().last_week(NOW) is None


def test_waits_below_a_minute_are_as_planned() -> None:
    """A start after 50 seconds in place of 5 is no error that a user notices."""
    assert recorded(*[10.0] * 10, planned=5.0).last_week(NOW) == StartError(10, 1.1)


def test_what_is_older_than_a_week_counts_no_more_and_is_dropped() -> None:
    errors = recorded(*[20.0] * 10, now=NOW - 8 * DAY)
    assert errors.last_week(NOW) is None
    for _ in range(10):
        add(errors, 1.0)
    assert errors.last_week(NOW) == StartError(10, 1.1)
    assert errors.text().count("[") == 1


def test_it_is_small_however_many_gangs_start() -> None:
    errors = StartErrors()
    for hour in range(24 * 60):
        for factor in (1.0, 3.0, 30.0):
            add(errors, factor, now=NOW + hour * 3600)
    assert len(errors.text()) < 1000


def test_the_next_leader_goes_on_with_what_is_stored() -> None:
    errors = recorded(*[20.0] * 5)
    assert errors.changed
    later = recorded(*[1.0] * 6)
    later.read(errors.text())
    assert later.last_week(NOW) == StartError(11, 1.1)


@pytest.mark.parametrize("text", ["", "7", '{"2026-11-28": [1]}', '{"today": [0,0,0,0,0,0,0,0]}'])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidObjectError):
        StartErrors().read(text)


def test_it_reads_as_a_sentence() -> None:
    assert str(StartError(412, 2.0)) == "expected starts of the last week: half within x2 (412 gangs)"
    assert str(StartError(412, None)) == "expected starts of the last week: half beyond x10 (412 gangs)"
