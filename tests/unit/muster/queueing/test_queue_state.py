"""What the claims of one queue hold together."""

from __future__ import annotations

from muster.queueing.entries import Claim, GangKey, Order
from muster.queueing.queue_state import QueueState
from muster.queueing.queue_view import QueueView


def claim(name: str, urgency: int, cpu: int, soft: int = 0) -> Claim:
    order = Order(urgency, "10:00", GangKey("team", name))
    return Claim({}, (("cpu", cpu),), order, soft_amounts=(("cpu", soft),) if soft else ())


def test_what_is_soft_of_less_urgent_claims_is_not_held_by_them() -> None:
    state = QueueState(QueueView("q", "Open", {}))
    for one in (claim("urgent", -10, 8), claim("low", -1, 4, soft=3), claim("lower", 0, 2)):
        state.hold(one.order.key, one)
    assert state.less_urgent(10) == {"cpu": 3}
    assert state.less_urgent(1) == {"cpu": 2}
    assert state.less_urgent(0) == {}
