import pytest

from muster.kube.backoff import Backoff
from muster.kube.errors import ApiError, Unreachable, error_from_response
from muster.kube.progress import Progress
from tests.support.cases import cases

GONE = ApiError(410, "Expired", "too old")
BUSY = ApiError(503, "ServiceUnavailable", "no")


def progress(version: str = "7", *, base: float = 1.0) -> Progress:
    begun = Progress(Backoff(base, 30.0, jitter=0.0), absent_retry=30.0)
    begun.listed(version)
    return begun


@cases(
    "error, version",
    ("connection reset", Unreachable("reset"), "7"),
    ("503", BUSY, "7"),
    ("429", ApiError(429, "TooManyRequests", "no"), "7"),
    ("410", GONE, ""),
    ("Expired", ApiError(0, "Expired", "an ERROR event"), ""),
    ("403", ApiError(403, "Forbidden", "no"), ""),
    ("a line that is no event", ApiError(0, "NotAnEvent", "no"), ""),
)
def test_goes_on_from_where_it_was_only_when_the_version_is_not_in_doubt(error: ApiError, version: str) -> None:
    """A fault of the way leaves the version as good as it was; any other answer means a list."""
    after = progress()
    after.failed(error)
    assert after.resource_version == version


def test_delays_grow_until_a_watch_was_of_use() -> None:
    """An event, or a second without a fault, begins them anew."""
    faults = progress()
    assert [faults.failed(BUSY) for _ in range(3)] == [1.0, 2.0, 4.0]
    faults.opened(now=100.0)
    assert not faults.closed(now=100.5)
    assert faults.failed(BUSY) == 8.0
    faults.opened(now=200.0)
    faults.moved("9")
    faults.closed(now=200.1)
    assert (faults.failed(BUSY), faults.resource_version) == (1.0, "9")
    faults.opened(now=300.0)
    assert faults.closed(now=301.0)
    assert faults.failed(BUSY) == 1.0


def test_what_the_server_asks_for_counts_when_it_is_longer() -> None:
    """Retry-After is a minimum."""
    asked = ApiError(429, "TooManyRequests", "no", retry_after=9.0)
    assert progress().failed(asked) == 9.0
    assert progress(base=20.0).failed(asked) == 20.0


@pytest.mark.parametrize("header", ["3600", "9" * 400])
def test_no_page_of_a_load_balancer_keeps_a_store_stale_for_an_hour(header: str) -> None:
    """The apiserver behind it may be back in a minute, and nobody would see why muster does nothing."""
    page = error_from_response(503, b"<html>maintenance</html>", header)
    assert progress().failed(page) == 60.0


def test_a_version_that_never_works_is_given_up() -> None:
    """Nobody resumes for ever in vain."""
    vain = progress()
    for _ in range(5):
        vain.failed(BUSY)
        assert vain.resource_version == "7"
    vain.failed(BUSY)
    assert vain.resource_version == ""


def test_the_first_expiry_is_listed_at_once() -> None:
    """After an outage the server is back, and the store stale; an expiry that follows on it waits."""
    old = progress()
    old.failed(BUSY)
    assert old.failed(GONE) == 0.0
    assert old.failed(GONE) > 0.0


@cases(
    "current, version",
    ("an older cluster", "6", ""),
    ("the same", "7", "7"),
    ("a newer one, compared as numbers", "10", "7"),
    ("none said", "", "7"),
    ("not a number", "x", "7"),
)
def test_a_version_of_the_future_is_given_up(current: str, version: str) -> None:
    """The cluster went back to a backup."""
    compared = progress()
    compared.compare(current)
    assert compared.resource_version == version


def test_a_404_is_believed_with_nothing_to_lose_or_the_second_time() -> None:
    """One confused answer does not empty a store."""
    assert progress().missing(held=0) is not None
    holding = progress()
    assert holding.missing(held=3) is None
    wait = holding.missing(held=3)
    assert wait is not None
    assert 30.0 <= wait <= 33.0
    assert holding.absent
    holding.listed("8")
    assert holding.missing(held=3) is None, "after a list the count begins anew"
