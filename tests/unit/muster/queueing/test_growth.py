"""Running gangs that want more: the first who may have it is found, whatever else is in the ledger."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.entries import Claim, Growth
from muster.queueing.growth import GrowthQueue
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, minus
from tests.support.manifests.observed import amounts

NOW = 1000.0
QUEUES = ("a", "b")


class _Wants(NamedTuple):
    """A gang that holds something, and the claims that it would like to have instead."""

    queue: str
    priority: int
    held: Resources
    soft: Resources
    claims: list[Resources]


resources = st.builds(lambda cpu, gpu: amounts(cpu=str(cpu), gpu=str(gpu)), st.integers(1, 6), st.integers(0, 2))
wants = st.builds(
    _Wants,
    st.sampled_from(QUEUES),
    st.integers(0, 1),
    resources,
    st.sampled_from([{}, {}, amounts(cpu="1")]),
    st.lists(resources, min_size=1, max_size=3),
)
candidates = st.tuples(st.sampled_from(QUEUES), resources, st.booleans())


def _name(number: int) -> GangKey:
    return GangKey("team", f"gang-{number}")


def _waits(number: int) -> GangKey:
    return GangKey("team", f"waits-{number}")


def _growth(key: GangKey, one: _Wants) -> Growth:
    refused = tuple((claim, amounts_of(minus(claim, one.held))) for claim in one.claims)
    return Growth(key, one.queue, one.priority, "2026", refused=refused)


@given(
    st.lists(wants, max_size=8),
    st.lists(candidates, max_size=4),
    st.tuples(st.integers(5, 40), st.integers(3, 20), st.integers(3, 20)),
    st.booleans(),
    st.booleans(),
)
def test_they_are_found_who_may_grow_and_nobody_else_by_their_queues_shares_or_by_age(
    gangs: list[_Wants],
    waiting: list[tuple[str, Resources, bool]],
    limits: tuple[int, int, int],
    strict: bool,
    by_age: bool,
) -> None:
    ledger = Ledger()
    ledger.set_queue(QueueView(ROOT, "Open", amounts(cpu=str(limits[0])), parent="", by_age=by_age))
    for name, limit in zip(QUEUES, limits[1:], strict=True):
        ledger.set_queue(QueueView(name, "Open", amounts(cpu=str(limit), gpu="4"), strict=strict))
    growing = GrowthQueue()
    wanted = {_name(number): one for number, one in enumerate(gangs)}
    for key, one in wanted.items():
        ledger.hold(Claim(key, one.queue, one.held, priority=one.priority, since="2026", soft=one.soft))
        growing.enter(key, _growth(key, one))
    for number, (queue, need, passed) in enumerate(waiting):
        since = NOW - 500 if passed else None
        ledger.wait(Candidate(_waits(number), queue, 0, "2026", need, passed_since=since))

    def may_grow(key: GangKey) -> bool:
        return any(ledger.fits_more(Growth(key, wanted[key].queue), claim, NOW) for claim in wanted[key].claims)

    # Nobody takes what it may, so that shares stay as they are: of cpu, which the root limits, to equal parts. What is
    # held softly is no part of it.
    starting = set(ledger.startable("a", NOW))
    taken: list[tuple[str, Resources]] = [(one.queue, minus(one.held, one.soft)) for one in gangs]
    taken += [(queue, need) for number, (queue, need, _) in enumerate(waiting) if _waits(number) in starting]
    cpu = {
        queue: sum(need["cpu"].nano if "cpu" in need else 0 for where, need in taken if where == queue)
        for queue in QUEUES
    }

    def turn(key: GangKey) -> tuple[int, int, GangKey]:
        return (0 if by_age else cpu[wanted[key].queue], -wanted[key].priority, key)

    expected = sorted(filter(may_grow, wanted), key=turn)
    found = []
    outcome = ledger.outcome("a", NOW)
    one_turn = growing.first(outcome)
    while one_turn is not None:
        found.append(one_turn.gang)
        one_turn = growing.first(outcome, passed=one_turn.passed)
    assert list(dict.fromkeys(found)) == expected
    if expected:
        following = growing.first(outcome, but=expected[0])
        assert (following.gang if following else None) == (expected[1] if len(expected) > 1 else None)
    for key in wanted:
        growing.enter(key, None)
    assert growing.first(outcome) is None
