"""What a waiting gang is told of reservations: when its own starts, and why that of another keeps it out."""

from dataclasses import replace

import pytest

from muster.model.times import seconds_of
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import QueueView
from tests.support.manifests.observed import amounts

NOW = seconds_of("2026-11-28T13:05:10Z") or 0.0
AN_HOUR = 3600.0


def scene(ends: EndKind | None, *, namespace: str = "team", run: Run | None = None, strict: bool = False) -> Ledger:
    """A gang for an hour, one that waits for its end, and a small one behind it for which there is room."""
    ledger = Ledger()
    view = QueueView(
        "q", "Open", amounts(cpu="10"), strict=strict, trusts_estimates=ends is EndKind.ABOUT, drain_after=1e9
    )
    ledger.set_queue(view)
    end = Run(AN_HOUR, ends).from_(NOW) if ends is not None else None
    ledger.hold(Claim(GangKey(namespace, "runs"), "q", amounts(cpu="6"), end=end))
    large = Candidate(GangKey(namespace, "large"), "q", 0, "10:00", amounts(cpu="8"), passed_since=NOW - 1000)
    ledger.wait(large)
    ledger.wait(Candidate(GangKey("team", "small"), "q", 0, "11:00", amounts(cpu="3"), run=run))
    return ledger


def told(ledger: Ledger, name: str, namespace: str = "team", now: float = NOW) -> str:
    decision = ledger.decide(GangKey(namespace, name), now)
    assert decision is not None
    return decision.message


@pytest.mark.parametrize(
    ("ends", "planned"),
    [
        (EndKind.ENFORCED, "; starts by 2026-11-28 14:06 UTC unless a gang before it starts first"),
        (EndKind.SAID, "; planned for 2026-11-28 14:06 UTC, if what runs ends as it says"),
        (EndKind.ABOUT, ""),
        (None, ""),
    ],
)
def test_a_gang_hears_when_it_starts_as_far_as_time_limits_tell(ends: EndKind | None, planned: str) -> None:
    """To the next minute; estimates change from one message to the next, and are not among them."""
    assert told(scene(ends), "large").partition("free of cpu 10")[2] == f"{planned}; position 1 of 2 waiting"


def test_while_nothing_happens_the_words_are_the_same() -> None:
    """Else each minute would write to every waiting gang."""
    ledger = scene(EndKind.ENFORCED, run=Run(2 * AN_HOUR, EndKind.SAID))
    for name in ("large", "small"):
        assert told(ledger, name) == told(ledger, name, now=NOW + AN_HOUR - 1)


def test_a_start_later_than_any_time_is_no_fault() -> None:
    ledger = scene(EndKind.ENFORCED)
    ledger.hold(Claim(GangKey("team", "runs"), "q", amounts(cpu="6"), end=Run(1e18, EndKind.ENFORCED).from_(NOW)))
    assert "starts by 9999-12-31 23:59 UTC" in told(ledger, "large")


@pytest.mark.parametrize(
    ("ends", "run", "reserved"),
    [
        pytest.param(
            *(EndKind.ENFORCED, Run(2 * AN_HOUR, EndKind.ENFORCED)),
            " from 2026-11-28 14:06 UTC, and this gang ends later",
            id="ends too late",
        ),
        pytest.param(
            *(EndKind.ENFORCED, Run(60, EndKind.SAID)),
            " from 2026-11-28 14:06 UTC; a gang that a limit such as activeDeadlineSeconds ends by then may start "
            "before",
            id="nothing enforces its end",
        ),
        pytest.param(
            *(EndKind.SAID, None),
            " from 2026-11-28 14:06 UTC; a gang that says with muster.dev/runs-at-most that it ends by then may start "
            "before",
            id="has no known end",
        ),
        pytest.param(
            *(EndKind.ABOUT, Run(2 * AN_HOUR, EndKind.ABOUT)),
            ", which is expected to start before this gang ends",
            id="is expected to end too late",
        ),
        pytest.param(None, Run(60, EndKind.ENFORCED), "", id="the queue drains"),
    ],
)
def test_a_gang_that_is_kept_out_hears_for_whom_until_when_and_what_would_help(
    ends: EndKind | None, run: Run | None, reserved: str
) -> None:
    said = f'needs cpu 3; there is room, but queue "q" reserves cpu for gang "large"{reserved}; position 2 of 2 waiting'
    assert told(scene(ends, run=run), "small") == said


def test_gangs_of_other_namespaces_are_not_named() -> None:
    assert 'queue "q" reserves cpu for a gang before it; position' in told(scene(None, namespace="others"), "small")


def test_in_a_strict_queue_no_end_helps_and_none_is_told() -> None:
    ledger = scene(EndKind.ENFORCED, run=Run(60, EndKind.ENFORCED), strict=True)
    assert 'there is room, but gang "large" is before it in a strict queue;' in told(ledger, "small")
    large = ledger.candidate(GangKey("team", "large"))
    assert large is not None
    ledger.wait(replace(large, passed_since=None))
    assert "starts by" not in told(ledger, "large")
