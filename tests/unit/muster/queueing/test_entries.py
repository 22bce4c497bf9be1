"""Ends of claims: an estimate never lies in the past, and what has gone is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.entries import Claim, End, EndKind, GangKey
from muster.queueing.run_ends import RunEnds
from tests.support.manifests.observed import amounts

SECONDS = st.floats(0.001, 1e7)


@given(start=st.floats(0, 2e9), runs=SECONDS, ago=SECONDS)
def test_what_has_run_longer_than_estimated_is_estimated_to_end_later_than_now(
    start: float, runs: float, ago: float
) -> None:
    end = End(start, runs, EndKind.ABOUT)
    assert all(end.after(now) > now for now in (start + runs, start + ago, end.after(start + runs)))


def test_an_estimate_is_the_median_of_the_former_runs_that_took_longer() -> None:
    end = End(1000, 30, EndKind.ABOUT, (10, 30, 50, 90))
    expected = {1000: 1040, 1010: 1050, 1029: 1050, 1030: 1070, 1050: 1090, 1089: 1090, 1090: 1180, 1200: 1360}
    assert {now: end.after(now) for now in expected} == expected


@given(former=st.lists(SECONDS, min_size=1, max_size=9).map(sorted), start=st.floats(0, 2e9), ago=SECONDS)
def test_an_estimate_holds_until_it_is_said_to(former: list[float], start: float, ago: float) -> None:
    end, now = End(start, former[0], EndKind.ABOUT, tuple(former)), start + ago
    until = end.holds_until(now)
    assert until > now
    assert end.after(until) > end.after(now) or until in map(start.__add__, former)


def test_claims_that_come_and_go_leave_nothing_behind() -> None:
    ends = RunEnds()
    for number in range(1000):
        key = GangKey("team", f"{number}")
        claim = Claim(key, "q", amounts(cpu="1"), end=End(number, 1e6, EndKind.ABOUT, (1e5, 1e6)))
        ends.enter(claim)
        ends.enter(claim, -1)
    ends.enter(Claim(GangKey("team", "last"), "q", amounts(cpu="1"), end=End(0, 50, EndKind.ENFORCED)))
    assert len(ends._changes) < 200
    assert ends.advance(20) == 50
    assert ends.ended(49, EndKind.ABOUT) == {}
    assert ends.ended(50, EndKind.ABOUT) == {"cpu": 10**9}
