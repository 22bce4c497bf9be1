from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.backoff import Backoff


def test_doubles_up_to_the_cap_and_begins_again() -> None:
    """Without jitter the delays are exactly base, twice, … cap."""
    backoff = Backoff(1.0, 5.0, jitter=0.0)
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.failures == 5
    backoff.reset()
    assert (backoff.failures, backoff.next()) == (0, 1.0)


@given(
    base=st.floats(0.001, 10),
    cap=st.floats(10, 1000),
    jitter=st.floats(0, 1),
    seed=st.integers(),
    attempts=st.integers(1, 2000),
)
def test_stays_in_bounds(base: float, cap: float, jitter: float, seed: int, attempts: int) -> None:
    """Every delay is at least the base and at most the cap with its jitter, however often it fails."""
    backoff = Backoff(base, cap, jitter=jitter, random=random.Random(seed))  # noqa: S311 - reproducible is the point
    assert all(base <= backoff.next() <= cap * (1 + jitter) for _ in range(attempts))


def test_refuses_delays_that_do_not_grow() -> None:
    """A base above the cap is a mistake of the caller."""
    with pytest.raises(ValueError, match="base 2"):
        Backoff(2.0, 1.0)
