"""When a waiting gang starts, as `muster explain` and the page say it."""

from typing import Any

import pytest

from muster.cli.when import ExpectedStarts, when_lines
from muster.model.times import seconds_of
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import QueueView
from tests.support.cases import cases
from tests.support.manifests.observed import amounts

NOW = seconds_of("2026-11-28T13:05:10Z") or 0.0
LARGE = GangKey("team", "large")
AN_HOUR = 3600.0


def scene(*runs: Run | None, tired: bool = True) -> Ledger:
    """Gangs of two cpus that have just started and fill their queue, and one that needs all that they have."""
    ledger = Ledger()
    ledger.set_queue(QueueView("q", "Open", amounts(cpu=str(2 * len(runs))), drain_after=1e9))
    for number, run in enumerate(runs):
        end = run.from_(NOW) if run is not None else None
        ledger.hold(Claim(GangKey("team", f"runs-{number}"), "q", amounts(cpu="2"), end=end))
    passed_since = NOW - 1000 if tired else None
    ledger.wait(Candidate(LARGE, "q", 0, "10:00", amounts(cpu=str(2 * len(runs))), passed_since=passed_since))
    return ledger


def about(seconds: float) -> Run:
    return Run(seconds, EndKind.ABOUT)


def of(ledger: Ledger, *, key: GangKey = LARGE, seconds: float = 5.0, whole: bool = True) -> dict[str, Any]:
    when = ExpectedStarts(ledger, NOW, seconds=seconds, whole=whole).when(key)
    assert when is not None
    return when


@pytest.mark.parametrize(
    ("kind", "starts_by", "words"),
    [
        (EndKind.ENFORCED, "2026-11-28T14:05:10Z", "2026-11-28 14:06 UTC, unless a gang before it starts first"),
        (EndKind.SAID, "2026-11-28T14:05:10Z", "for 2026-11-28 14:06 UTC, if what runs ends as it says"),
        (EndKind.ABOUT, "2026-11-28T14:05:10Z", None),
    ],
)
def test_the_start_of_its_reservation_is_told_with_what_it_rests_on(
    kind: EndKind, starts_by: str, words: str | None
) -> None:
    when = of(scene(Run(AN_HOUR, kind)))
    assert (when["startsBy"], when["basis"]) == (starts_by, kind.name.lower())
    told = dict(when_lines(when, "", NOW))
    assert told.get("starts by") or told.get("planned") == words
    assert "planned" not in dict(when_lines(when, "planned for 2026-11-28 14:06 UTC", NOW))


def test_without_a_reservation_only_the_forecast_knows_a_start() -> None:
    when = of(scene(Run(AN_HOUR, EndKind.ENFORCED), tired=False))
    assert (when["startsBy"], when["basis"]) == (None, None)
    assert when["expected"] is not None


@cases(
    "seconds, expected",
    ("minutes below an hour", 1200, "2026-11-28T13:27:00Z"),
    ("ten minutes below ten hours", 5 * AN_HOUR, "2026-11-28T18:10:00Z"),
    ("hours beyond", 20 * AN_HOUR, "2026-11-29T11:00:00Z"),
)
def test_an_expected_start_is_told_as_exactly_as_it_can_be_meant(seconds: float, expected: str) -> None:
    """The forecast itself rounds up by a tenth at most."""
    assert of(scene(about(seconds)))["expected"] == expected


def test_one_that_may_start_is_expected_now() -> None:
    ledger = scene(None)
    ledger.forget(GangKey("team", "runs-0"))
    when = of(ledger)
    assert when["expected"] == "2026-11-28T13:05:10Z"
    assert dict(when_lines(when, "", NOW)) == {"expected": "now"}


def test_with_fewer_than_half_of_the_run_times_no_start_is_told() -> None:
    few, half = scene(about(60), None, None), scene(about(60), about(60), None, None)
    for ledger, part in ((few, 0.33), (half, 0.5)):
        when = of(ledger)
        assert (when["expected"], when["knownRuns"]) == (None, part)
    assert dict(when_lines(of(few), "", NOW)) == {
        "expected": "not known: 2 of 3 gangs before it have neither a time limit nor a history"
    }
    # What it needs may come back before the others end.
    half.forget(LARGE)
    half.wait(Candidate(LARGE, "q", 0, "10:00", amounts(cpu="4")))
    assert dict(when_lines(of(half), "", NOW)) == {
        "expected": "about 2026-11-28 13:07 UTC, in 110 seconds; run times are known for 50% of what it waits for"
    }


def test_waiting_gangs_before_it_count_as_what_it_waits_for() -> None:
    ledger = scene(about(60), about(60))
    for number in range(3):
        ledger.wait(Candidate(GangKey("team", f"before-{number}"), "q", 1, "09:00", amounts(cpu="1")))
    assert of(ledger)["why"] == "3 of 5 gangs before it have neither a time limit nor a history"


def test_what_never_ends_is_known_not_to_end() -> None:
    ledger = scene(about(60))
    ledger.hold(Claim(GangKey("team", "runs-0"), "q", amounts(cpu="2"), lasts=True))
    when = of(ledger)
    assert (when["expected"], when["knownRuns"]) == (None, 1.0)
    assert when["why"] == "nothing that is known to end makes room for it"


def test_gangs_with_a_reservation_before_it_are_named() -> None:
    ledger = scene(about(60))
    other = GangKey("others", "behind")
    ledger.wait(Candidate(other, "q", 0, "11:00", amounts(cpu="1"), run=about(9000)))
    assert of(ledger, key=other)["behind"] == ["team/large"]
    assert of(ledger)["behind"] == []


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"whole": False}, "gangs of other namespaces cannot be read"),
        ({"seconds": 0.0}, "the forecast takes more than 0 s of CPU"),
    ],
)
def test_a_forecast_that_cannot_be_made_says_why(how: dict[str, Any], why: str) -> None:
    when = of(scene(about(60)), **how)
    assert (when["expected"], when["why"]) == (None, why)


def test_only_gangs_that_wait_and_can_start_have_a_start() -> None:
    ledger = scene(about(60))
    ledger.wait(Candidate(GangKey("team", "huge"), "q", 0, "11:00", amounts(cpu="99")))
    starts = ExpectedStarts(ledger, NOW, seconds=5.0, whole=True)
    assert [starts.when(GangKey("team", name)) for name in ("huge", "runs-0", "unknown")] == [None, None, None]
