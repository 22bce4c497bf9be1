"""Ends of claims: an estimate never lies in the past."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.entries import End, EndKind

SECONDS = st.floats(0.001, 1e7)


@given(start=st.floats(0, 2e9), runs=SECONDS, ago=SECONDS)
def test_what_has_run_longer_than_estimated_is_estimated_to_end_later_than_now(
    start: float, runs: float, ago: float
) -> None:
    end = End(start, runs, EndKind.ABOUT)
    assert all(end.after(now) > now for now in (start + runs, start + ago, end.after(start + runs)))
