"""What former runs tell of the next one, and what one tenant's runs cannot do to another's."""

import json

import pytest

from muster.gangs.history import History, Lineage, lineage_of, sample
from muster.model.objects import InvalidObjectError
from muster.queueing.entries import Run
from tests.support.cases import cases

MINUTE, HOUR = 60.0, 3600.0
OWN = lineage_of("team", "RayCronJob", "nightly")


def recorded(*runs: float, lineage: Lineage = OWN, queue: str = "q", history: History | None = None) -> History:
    history = history or History()
    for seconds in runs:
        history.record(lineage, queue, seconds)
    return history


def read(text: str) -> History:
    history = History()
    history.read(text)
    return history


def about(history: History, lineage: Lineage, queue: str) -> float:
    run = Run.about(history.estimates(lineage, queue))
    assert run is not None
    return run.seconds


@cases(
    "name, same",
    ("the name itself", "train", True),
    ("a number", "train-7", True),
    ("a date", "train-20261128-1733", True),
    ("a CronJob's number and a generated name", "train-29384761-x7k2d", True),
    ("a hash", "train-3f2a9c01", True),
    ("a UUID", "train-0b6ee0b5-9c2f-4e0e-8a39-b7f3c1d5e2aa", True),
    ("a word", "train-small", False),
    ("a model of GPU", "train-a100", False),
    ("a number that belongs to the word", "train7", False),
    ("another name that is only a number", "7", False),
)
def test_runs_of_one_lineage_differ_in_a_trailing_number_or_hash(name: str, same: bool) -> None:
    assert (lineage_of("team", "Job", name) == lineage_of("team", "Job", "train")) is same


def test_a_lineage_is_of_one_namespace_and_one_kind() -> None:
    assert (
        len({lineage_of("team", "Job", "train"), lineage_of("a", "Job", "train"), lineage_of("team", "A", "train")})
        == 3
    )


@cases(
    "runs, expected",
    ("none", [], ()),
    ("each counts", [600] * 3, (600, 600, 600)),
    ("whole minutes, rounded up", [61, 62, 63], (120, 120, 120)),
    ("in order", [9 * HOUR, HOUR, 4 * HOUR], (HOUR, 4 * HOUR, 9 * HOUR)),
    ("of many nine, at even distances", range(27 * 60, 0, -60), tuple(range(2 * 60, 27 * 60, 3 * 60))),
)
def test_former_runs_are_told_by_a_sample_of_them(runs: list[float], expected: tuple[float, ...]) -> None:
    assert sample(runs) == expected


def test_of_fewer_than_three_runs_the_next_level_counts() -> None:
    history = recorded(*[10 * HOUR] * 9, lineage=lineage_of("a", "Job", "x"))
    assert about(history, OWN, "q") == 10 * HOUR, "those of the queue"
    recorded(*[2 * HOUR] * 3, lineage=lineage_of("team", "Job", "y"), history=history)
    assert about(history, OWN, "q") == 2 * HOUR, "those of the namespace in the queue"
    recorded(HOUR, HOUR, history=history)
    assert about(history, OWN, "q") == 2 * HOUR
    recorded(HOUR, history=history)
    assert about(history, OWN, "q") == HOUR, "its own"
    assert history.estimates(lineage_of("new", "Job", "x"), "another") == ()


def test_the_last_twenty_runs_count() -> None:
    assert recorded(*[HOUR] * 30, *[MINUTE] * 20).estimates(OWN, "q") == (MINUTE,) * 9


def test_what_fails_at_once_is_not_recorded() -> None:
    assert recorded(*[59.9] * 20).estimates(OWN, "q") == ()


def test_a_tenant_with_more_runs_than_all_others_has_no_more_of_the_queue() -> None:
    history = History()
    for number in range(9):
        recorded(*[HOUR] * 20, lineage=lineage_of(f"team-{number}", "Job", "x"), history=history)
    for number in range(1000):
        recorded(100 * HOUR, lineage=lineage_of("flood", "Job", f"word{number}"), history=history)
    assert about(history, lineage_of("new", "Job", "x"), "q") == HOUR
    assert about(history, lineage_of("team-0", "Job", "x"), "q") == HOUR


def test_a_tenant_with_too_many_lineages_loses_his_own() -> None:
    history = recorded(*[HOUR] * 3)
    for number in range(5000):
        history.record(lineage_of("flood", "Job", f"word{number}"), "q", 60)
    assert about(history, OWN, "q") == HOUR
    assert sum(map(len, json.loads(history.text()).values())) == 1400
    assert len(history.text()) < 300_000


@cases(
    "runs, expected",
    ("too few", [600] * 19, None),
    ("short runs: half a day at least", [600] * 20, 12 * HOUR),
    ("five times the p95", [4 * HOUR] * 20, 20 * HOUR),
    ("one long run of twenty", [*[3 * HOUR] * 19, 50 * HOUR], 15 * HOUR),
    ("three days at most", [50 * HOUR] * 20, 72 * HOUR),
)
def test_a_queue_is_drained_after_several_of_its_runs(runs: list[float], expected: float | None) -> None:
    history = recorded(*runs)
    assert history.drain_after("q") == expected
    assert history.drain_after("another") is None


def test_what_is_stored_is_read_again() -> None:
    history = recorded(HOUR, 2 * HOUR, 3 * HOUR)
    for number in range(40):
        recorded(60 + number, lineage=lineage_of(f"team-{number}", "Job", "x"), queue="other", history=history)
    assert history.changed
    again = read(history.text())
    assert again.text() == history.text()
    assert not again.changed, "nothing to write"
    assert "nightly" not in history.text()
    assert "team" not in history.text()


def test_runs_that_ended_before_it_was_read_come_after_the_stored_ones() -> None:
    late = recorded(*[HOUR] * 15)
    late.read(recorded(*[MINUTE] * 20).text())
    assert about(late, OWN, "q") == HOUR


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"team": {"nightly": [60]}}',
        '{"0123456789abcdef": {"0123456789abcdef": [1e400]}}',
        '{"0123456789abcdef": {"0123456789abcdef": [-60]}}',
        '{"0123456789abcdef": {"0123456789abcdef": ["60"]}}',
        '{"0123456789abcdef": {"0123456789abcdef": [99999999999999999999]}}',
        "[" * 10**5,
    ],
)
def test_what_muster_has_not_written_is_refused_whole(text: str) -> None:
    history = recorded(*[HOUR] * 3)
    with pytest.raises(InvalidObjectError):
        history.read(text)
    assert about(history, OWN, "q") == HOUR


def test_more_than_is_kept_is_cut() -> None:
    name = "0123456789abcdef"
    history = read(json.dumps({name: {f"{number:016x}": [60] * 30 for number in range(5000)} | {name: []}}))
    kept = json.loads(history.text())[name]
    assert (len(kept), max(map(len, kept.values())), min(map(len, kept.values()))) == (1400, 20, 20)
