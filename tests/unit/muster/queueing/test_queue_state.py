"""What the claims of one queue hold together."""

from muster.queueing.entries import Claim, GangKey
from muster.queueing.queue_state import QueueState
from muster.queueing.queue_view import QueueView
from tests.support.manifests.observed import amounts


def claim(name: str, priority: int, cpu: int, soft: int = 0) -> Claim:
    return Claim(GangKey("team", name), "q", amounts(cpu=str(cpu)), priority, soft=amounts(cpu=str(soft)))


def test_what_is_soft_of_less_urgent_claims_is_not_held_by_them() -> None:
    state = QueueState(QueueView("q", "Open", {}))
    for one in (claim("urgent", 10, 8), claim("low", 1, 4, soft=3), claim("lower", 0, 2)):
        state.hold(one)
    assert state.less_urgent(10) == {"cpu": 3 * 10**9}
    assert state.less_urgent(1) == {"cpu": 2 * 10**9}
    assert state.less_urgent(0) == {}
