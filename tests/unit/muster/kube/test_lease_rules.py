"""Who may take a lease and until when a holder may trust it, as a function of what was seen and the time."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.lease import LeaseRules, LeaseTiming
from muster.model.objects import Lease, convert

NOW = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)


def lease(holder: str, version: int = 1, renewed: str = "t", seconds: int = 15) -> Lease:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds, "leaseTransitions": 4}
    return convert({"metadata": {"resourceVersion": str(version)}, "spec": spec}, Lease)


def test_waits_a_whole_lease_from_the_change_that_it_saw() -> None:
    """Whatever the record's own clock says, and whether or not other fields of the object change."""
    rules = LeaseRules("me", LeaseTiming())
    rules.observe(lease("other", 1, renewed="1999"), now=100.0)
    assert not rules.may_take(114.9)
    rules.observe(lease("other", 2, renewed="1999"), now=110.0)
    assert rules.may_take(115.0)
    rules.observe(lease("other", 3, renewed="2000"), now=115.0)
    assert not rules.may_take(129.9)


@pytest.mark.parametrize("holder", ["", "me"])
def test_takes_at_once_what_is_nobodys_or_its_own(holder: str) -> None:
    """A released lease costs no waiting."""
    rules = LeaseRules("me", LeaseTiming())
    rules.observe(lease(holder), now=100.0)
    assert rules.may_take(100.0)


def test_a_record_that_is_deleted_binds_for_as_long_as_it_did() -> None:
    """Its holder hears of that at its next renewal, and writes until then."""
    rules = LeaseRules("me", LeaseTiming())
    rules.missing(now=50.0)
    assert rules.may_take(50.0), "there never was one"
    rules.observe(lease("other", seconds=30), now=100.0)
    for now, may in ((110.0, False), (139.9, False), (140.0, True)):
        rules.missing(now)
        assert rules.may_take(now) == may
    rules.observe(lease(""), now=141.0)
    rules.missing(now=142.0)
    assert rules.may_take(142.0), "it was released before"


def test_the_holders_own_duration_counts() -> None:
    """It is the holder who must stop in time, by the duration that it promised."""
    rules = LeaseRules("me", LeaseTiming())
    rules.observe(lease("other", seconds=60), now=0.0)
    assert not rules.may_take(59.0)
    assert rules.may_take(60.0)


def test_trust_ends_counted_from_the_start_of_the_renewal() -> None:
    """A slow answer shortens the term; it never lengthens it."""
    rules = LeaseRules("me", LeaseTiming())
    rules.won(lease("me"), started=100.0, now=107.0)
    assert rules.valid_for(107.0) == 3.0
    assert rules.valid_for(110.0) == 0.0


@given(renewed=st.floats(0, 1e6), latency=st.floats(0, 9), delay=st.floats(0, 100))
def test_never_two_at_once(renewed: float, latency: float, delay: float) -> None:
    """Whenever a follower may take over, the leader has stopped trusting its lease for the whole margin."""
    timing = LeaseTiming()
    leader, follower = LeaseRules("a", timing), LeaseRules("b", timing)
    leader.won(lease("a"), started=renewed, now=renewed + latency)
    # The follower sees it at the earliest when the apiserver has it, which is after the leader began.
    follower.observe(lease("a"), now=renewed + delay)
    takes = renewed + delay + timing.lease
    assert follower.may_take(takes)
    assert leader.valid_for(takes - timing.margin + 1e-3) == 0.0


def test_what_is_written() -> None:
    """MicroTime in UTC; transitions count changes of holder; a renewal keeps the time of acquisition."""
    rules = LeaseRules("me", LeaseTiming())
    assert rules.claim(NOW) == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-21T12:00:00.123456Z",
        "renewTime": "2026-11-21T12:00:00.123456Z",
        "leaseTransitions": 0,
    }
    rules.observe(lease("other"), 0.0)
    assert rules.claim(NOW)["leaseTransitions"] == 5
    rules.observe(convert({"spec": {"holderIdentity": "me", "acquireTime": "then", "leaseTransitions": 5}}, Lease), 1.0)
    renewal = rules.claim(NOW)
    assert (renewal["acquireTime"], renewal["leaseTransitions"]) == ("then", 5)
    assert rules.release(NOW)["holderIdentity"] == ""


def test_timings_that_cannot_be_safe_are_refused() -> None:
    """A leader that trusts its lease as long as others wait has no time to stop."""
    with pytest.raises(ValueError, match="lease > renew"):
        LeaseTiming(lease=10, renew=10)
