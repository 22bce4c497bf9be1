"""Gangs that leave a queue: what that takes of the apiserver, and how quick it is where only calls take time."""

from hack.bench.drain import Terms, drained
from tests.support.cases import cases

_GOAL = 0.95  # of a raw client that does the same writes; a real controller computes as well


@cases(
    "terms",
    ("the apiserver is busy", Terms()),
    ("it is far", Terms(cores=64, trip=0.1)),
    ("more gangs wait", Terms(waiting=300)),
)
def test_a_drain_waits_for_nothing_but_the_writes_that_it_needs(terms: Terms) -> None:
    found = drained(terms)
    assert found.muster >= _GOAL * found.raw
    assert {kind: found.calls.get(kind, 0) for kind in ("trial", "gate", "delete group", "list")} == {
        "trial": 1,
        "gate": 5,
        "delete group": 1,
        "list": 0,
    }
    # The mark, and now and then the words of those who wait.
    assert 1 <= found.calls["apply"] <= 1.2
