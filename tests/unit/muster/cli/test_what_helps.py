"""`muster explain --what-would-help`: each answer is a decision of the ledger that differs in one thing."""

from typing import Any

import pytest

from muster.cli.explain.what_helps import what_helps
from muster.gangs.roles import Role
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import QueueView
from tests.support.manifests.observed import amounts

NOW = 1_800_000_000.0
HOUR = 3600.0
DEMO = GangKey("team", "demo")
WORKERS = Role("workers", 8, 8, amounts(cpu="1"), leads=False)
HEAD = Role("head", 1, 1, amounts(cpu="1"), leads=True)


def ledger_of(*queues: QueueView, **claims: str) -> Ledger:
    """Gangs of namespace `team` in queue q, with a claim of so many cpus each."""
    ledger = Ledger()
    for view in queues or (QueueView("q", "Open", amounts(cpu="10")),):
        ledger.set_queue(view)
    for name, cpu in claims.items():
        ledger.hold(Claim(GangKey("team", name), "q", amounts(cpu=cpu)))
    return ledger


def waits(ledger: Ledger, cpu: str = "9", **rest: Any) -> None:  # noqa: ANN401 - fields of a candidate
    ledger.wait(Candidate(DEMO, "q", 0, "10:00", amounts(cpu=cpu), **rest))


def helps(ledger: Ledger, *roles: Role) -> list[dict[str, Any]]:
    return what_helps(ledger, DEMO, NOW, roles, {})


def texts(ledger: Ledger, *roles: Role) -> list[str]:
    return [one["text"] for one in helps(ledger, *roles)]


def test_fewer_pods_of_its_largest_role() -> None:
    ledger = ledger_of(other="4")
    waits(ledger)
    first = helps(ledger, HEAD, WORKERS)[0]
    assert first == {
        "by": "fewer",
        "role": "workers",
        "fewer": 3,
        "leaves": 5,
        "text": "with 3 fewer workers (5 of 8) it starts now",
    }


def test_a_role_keeps_one_pod() -> None:
    ledger = ledger_of(other="9")
    waits(ledger)
    assert texts(ledger, HEAD, WORKERS) == ["it starts when other has ended"]


def test_another_queue_that_has_room_and_is_open() -> None:
    views = [QueueView(name, "Open", amounts(cpu="10")) for name in ("q", "full", "small", "wide")]
    ledger = ledger_of(*views, QueueView("shut", "Closed", amounts(cpu="10")), other="4")
    ledger.set_queue(QueueView("small", "Open", amounts(cpu="2")))
    ledger.hold(Claim(GangKey("others", "fills"), "full", amounts(cpu="5")))
    waits(ledger)
    assert texts(ledger) == ["in queue wide it starts now", "it starts when other has ended"]


def test_the_fewest_gangs_that_would_have_to_end_by_name_only_in_its_own_namespace() -> None:
    ledger = ledger_of(small="1", middle="2", large="3")
    ledger.hold(Claim(GangKey("others", "secret"), "q", amounts(cpu="4")))
    waits(ledger)
    (ends,) = helps(ledger)
    # 9 of 10 cpus: all but the smallest.
    assert (ends["gangs"], ends["others"]) == (["large", "middle"], 1)
    assert ends["text"] == "it starts when large, middle and 1 gang of others have ended"
    assert "secret" not in str(ends)


def test_a_gang_whose_end_turns_out_not_to_be_needed_is_left_out() -> None:
    """The largest gang holds much memory, which is not what is short in the end."""
    ledger = Ledger()
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="10", memory="10")))
    ledger.hold(Claim(GangKey("team", "broad"), "q", amounts(cpu="3", memory="5")))
    ledger.hold(Claim(GangKey("team", "deep"), "q", amounts(cpu="7")))
    ledger.wait(Candidate(DEMO, "q", 0, "10:00", amounts(cpu="7", memory="5")))
    assert [one["gangs"] for one in helps(ledger)] == [["deep"]]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (EndKind.SAID, "with muster.dev/runs-at-most: 1h59m it starts now"),
        (EndKind.ENFORCED, "with a limit such as activeDeadlineSeconds that ends it within 1h59m it starts now"),
    ],
)
def test_a_time_limit_with_which_a_reservation_lets_it_pass(kind: EndKind, text: str) -> None:
    ledger = ledger_of()
    ledger.hold(Claim(GangKey("others", "runs"), "q", amounts(cpu="5"), end=Run(2 * HOUR - 1, kind).from_(NOW)))
    ledger.wait(Candidate(GangKey("others", "large"), "q", 0, "09:00", amounts(cpu="10"), passed_since=NOW - HOUR))
    waits(ledger, "4")
    assert texts(ledger)[0] == text


def test_a_gang_that_may_start_or_does_not_wait_needs_no_help() -> None:
    ledger = ledger_of(other="1")
    assert helps(ledger) == []
    waits(ledger)
    assert helps(ledger) == []


def test_no_more_than_twenty_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [0]
    copy = Ledger.copy

    def counted(self: Ledger) -> Ledger:
        asked[0] += 1
        return copy(self)

    monkeypatch.setattr(Ledger, "copy", counted)
    views = [QueueView(name, "Open", amounts(cpu="1000")) for name in ("q", *(f"q{number}" for number in range(30)))]
    ledger = ledger_of(*views, **{f"g{number}": "10" for number in range(95)})
    waits(ledger, "400")
    roles = [Role(name, 400, 400, amounts(cpu="1"), leads=False) for name in ("a", "b")]
    ways = [one["by"] for one in what_helps(ledger, DEMO, NOW, roles, {})]
    assert (ways, asked[0]) == (["fewer", "queue", "queue", "queue", "queue", "ends"], 20)
