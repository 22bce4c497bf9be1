"""Who is told anew, and when."""

from __future__ import annotations

from collections import Counter

from controller.status_updates import StatusUpdateSchedule
from muster.queueing.ledger import GangKey

LINE = [GangKey("team", f"g{number:03}") for number in range(50)]


def line(_: str, start: int, stop: int | None) -> list[GangKey]:
    return LINE[start:stop]


def test_where_nothing_happened_nobody_is_told() -> None:
    assert StatusUpdateSchedule().due(0, line) == []


def test_a_change_is_told_to_everybody_and_to_the_head_first() -> None:
    rounds = StatusUpdateSchedule()
    rounds.touch(["q"])
    assert rounds.due(0, line) == LINE[:30]
    assert rounds.due(1, line) == LINE[30:]
    assert rounds.due(2, line) == []


def test_the_head_hears_of_every_change_and_the_rest_in_rounds() -> None:
    rounds = StatusUpdateSchedule()
    told: Counter[GangKey] = Counter()
    for second in range(60):
        rounds.touch(["q"])
        told.update(rounds.due(float(second), line))
    assert {told[key] for key in LINE[:10]} == {60}
    assert {told[key] for key in LINE[10:]} == {2}


def test_whoever_waits_hears_of_the_last_change_though_nothing_happens_after_it() -> None:
    rounds = StatusUpdateSchedule()
    rounds.touch(["q"])
    rounds.due(0, line)
    rounds.due(1, line)
    rounds.touch(["q"])
    assert rounds.due(2, line) == LINE[:10]
    assert rounds.due(29, line) == []
    assert rounds.due(30, line) == LINE[10:30]
    assert rounds.due(31, line) == LINE[30:]
    assert rounds.due(61, line) == []


def test_a_long_line_costs_no_more_a_second_than_a_short_one() -> None:
    """Two thousand wait, and something starts every second: thirty are told each second, and everybody in turn."""
    many = [GangKey("team", f"{number:04}") for number in range(2000)]
    rounds = StatusUpdateSchedule()
    told: Counter[GangKey] = Counter()
    for second in range(200):
        rounds.touch(["q"])
        keys = rounds.due(float(second), lambda _, start, stop: many[start:stop])
        assert len(keys) == 30 or not second % 100
        told.update(keys)
    assert {told[key] for key in many[10:]} <= {2, 3}


def test_queues_are_told_apart() -> None:
    rounds = StatusUpdateSchedule()
    rounds.touch(["q"])
    rounds.due(0, line)
    rounds.due(1, line)
    rounds.touch(["r"])
    assert rounds.due(2, lambda queue, start, stop: [GangKey(queue, "g")][start:stop]) == [GangKey("r", "g")]


def test_very_many_queues_take_turns() -> None:
    """One start may change the words in a thousand queues: each second some are told, and each in its turn."""
    queues = [f"q{number}" for number in range(1000)]
    rounds = StatusUpdateSchedule()
    told: Counter[GangKey] = Counter()
    for second in range(1000):
        rounds.touch(queues)
        keys = rounds.due(
            float(second),
            lambda queue, start, stop: [GangKey(queue, f"g{number:02}") for number in range(20)][start:stop],
        )
        assert len(keys) <= 120
        told.update(keys)
    assert {told[GangKey(queue, "g09")] for queue in queues} == {10}
    assert {told[GangKey(queue, "g19")] for queue in queues} == {2}
