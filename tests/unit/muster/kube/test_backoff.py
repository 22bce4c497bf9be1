import random

from hypothesis import given
from hypothesis import strategies as st

from muster.kube.backoff import Backoff, Rate


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


def test_a_burst_at_once_and_the_rest_in_step() -> None:
    """So many without a wait, each further one an interval later; no more than the burst is ever saved up."""
    rate = Rate(10.0, 3)
    assert [round(rate.reserve(100.0), 6) for _ in range(5)] == [0.0, 0.0, 0.0, 0.1, 0.2]
    assert [round(rate.reserve(1000.0), 6) for _ in range(4)] == [0.0, 0.0, 0.0, 0.1]


def test_what_may_not_happen_now_takes_no_moment() -> None:
    rate = Rate(2.0, 3)
    assert [rate.take(100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert (rate.take(100.5), rate.unused(100.6), rate.unused(102.0)) == (0.0, False, True)
    assert [rate.take(1000.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


@given(
    steps=st.lists(st.floats(0, 1), max_size=60),
    per_second=st.floats(0.5, 100),
    burst=st.integers(1, 10),
    data=st.data(),
)
def test_never_more_than_the_burst_and_the_rate(
    steps: list[float], per_second: float, burst: int, data: st.DataObject
) -> None:
    """Whoever waits as told keeps, in any stretch of time, to the burst and what the rate gives for its length."""
    rate, now, moments = Rate(per_second, burst), 0.0, []
    for step in steps:
        now += step
        moments.append(now + rate.reserve(now))
    moments.sort()
    begin = data.draw(st.integers(0, max(0, len(moments) - 1)))
    for count, moment in enumerate(moments[begin:], 1):
        assert count <= burst + (moment - moments[begin]) * per_second + 1e-6
