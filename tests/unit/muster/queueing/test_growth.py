"""Running gangs that want more: the first who may have it is found, whatever else is in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.growth import Growing, Growth
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_state import Order
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.usage import amounts_of
from muster.resources.amounts import minus
from tests.support.manifests.observed import amounts

if TYPE_CHECKING:
    from muster.resources.amounts import Resources

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


def _growth(key: GangKey, one: _Wants) -> Growth:
    refused = tuple((claim, amounts_of(minus(claim, one.held))) for claim in one.claims)
    order = Order(-one.priority, "2026", key)
    return Growth(one.queue, order, refused, key.auxiliary("wave"), key.auxiliary("leaving"))


@given(
    st.lists(wants, max_size=8),
    st.lists(candidates, max_size=4),
    st.tuples(st.integers(5, 40), st.integers(3, 20), st.integers(3, 20)),
    st.booleans(),
)
def test_the_first_in_order_is_found_who_may_grow_and_nobody_else(
    gangs: list[_Wants],
    waiting: list[tuple[str, Resources, bool]],
    limits: tuple[int, int, int],
    strict: bool,  # noqa: FBT001
) -> None:
    ledger = Ledger()
    ledger.set_queue(QueueView(ROOT, "Open", amounts(cpu=str(limits[0])), parent=""))
    for name, limit in zip(QUEUES, limits[1:], strict=True):
        ledger.set_queue(QueueView(name, "Open", amounts(cpu=str(limit), gpu="4"), strict=strict))
    growing = Growing(ledger)
    wanted = {_name(number): one for number, one in enumerate(gangs)}
    for key, one in wanted.items():
        ledger.hold(key, one.queue, one.held, priority=one.priority, since="2026", soft=one.soft)
        growing.enter(key, _growth(key, one))
    for number, (queue, need, passed) in enumerate(waiting):
        since = NOW - 500 if passed else None
        ledger.wait(Candidate(GangKey("team", f"waits-{number}"), queue, 0, "2026", need, passed_since=since))

    def may_grow(key: GangKey) -> bool:
        return any(ledger.fits_more(key, wanted[key].queue, claim, NOW) for claim in wanted[key].claims)

    expected = sorted((key for key in wanted if may_grow(key)), key=lambda key: (-wanted[key].priority, key))
    found = []
    place = None
    while (place := growing.first(set(QUEUES), NOW, behind=place)) is not None:
        found.append(place.key.gang)
    assert list(dict.fromkeys(found)) == expected
    if expected:
        following = growing.first(set(QUEUES), NOW, but=expected[0])
        assert (following.key.gang if following else None) == (expected[1] if len(expected) > 1 else None)
    for key in wanted:
        growing.enter(key, None)
    assert growing.first(set(QUEUES), NOW) is None
