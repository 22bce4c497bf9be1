"""Who is told anew, and when."""

from collections import Counter
from collections.abc import Callable, Sequence

from controller.admission_queue import StatusUpdateSchedule
from muster.queueing.entries import EntryKey, Order
from muster.queueing.ledger import GangKey

LINE = [GangKey("team", f"g{number:03}") for number in range(50)]


def waiting(keys: Sequence[EntryKey]) -> Callable[[str, Order | None], Order | None]:
    """A line of these, in that order."""
    places = [Order(0, f"{number:05}", key) for number, key in enumerate(keys)]

    def behind(_: str, place: Order | None) -> Order | None:
        return next((one for one in places if place is None or one > place), None)

    return behind


line = waiting(LINE)


def lines(queue: str, place: Order | None) -> Order | None:
    """Twenty wait in each queue."""
    return waiting([GangKey(queue, f"g{number:02}") for number in range(20)])(queue, place)


def rest_of(rounds: StatusUpdateSchedule) -> list[EntryKey]:
    """All who are told until nobody is left."""
    told: list[EntryKey] = []
    while now := rounds.due(line):
        told += now
    return told


def test_where_nothing_happened_nobody_is_told() -> None:
    assert StatusUpdateSchedule().due(line) == []


def test_a_change_is_told_to_everybody_once_five_at_a_time_and_to_the_head_first() -> None:
    rounds = StatusUpdateSchedule()
    rounds.touch(["q"])
    assert rounds.due(line) == [*LINE[:4], LINE[10]]
    assert rounds.due(line) == [*LINE[4:8], LINE[11]]
    assert sorted(rest_of(rounds)) == sorted([*LINE[8:10], *LINE[12:]])
    assert rounds.due(line) == []


def test_where_something_happens_every_second_the_head_hears_of_it_most_often() -> None:
    rounds = StatusUpdateSchedule()
    told: Counter[EntryKey] = Counter()
    for _ in range(100):
        rounds.touch(["q"])
        told.update(rounds.due(line))
    assert {told[key] for key in LINE[:10]} == {40}
    assert {told[key] for key in LINE[10:]} == {2, 3}


def test_whoever_waits_hears_of_the_last_change_though_nothing_happens_after_it() -> None:
    rounds = StatusUpdateSchedule()
    rounds.touch(["q"])
    for _ in range(3):
        rounds.due(line)
    rounds.touch(["q"])
    told = Counter(rest_of(rounds))
    assert set(told) == set(LINE)
    # Those who had been told before the change, and nobody else, are told by two rounds at most.
    assert max(told.values()) <= 2


def test_a_line_that_gets_shorter_meanwhile_is_told_as_far_as_it_goes() -> None:
    rounds = StatusUpdateSchedule()
    rounds.touch(["q"])
    rounds.due(line)
    assert rounds.due(waiting(LINE[:5])) == [LINE[4]]
    assert rounds.due(line) == []


def test_very_many_queues_take_turns() -> None:
    """One start may change the words in a hundred queues: each second some are told, and each in its turn."""
    queues = [f"q{number}" for number in range(100)]
    rounds = StatusUpdateSchedule()
    told: Counter[EntryKey] = Counter()
    for _ in range(1000):
        rounds.touch(queues)
        due = rounds.due(lines)
        assert len(due) == 5
        told.update(due)
    assert {told[GangKey(queue, "g09")] for queue in queues} == {4}
    assert {told[GangKey(queue, "g19")] for queue in queues} == {1}


def test_a_long_line_keeps_nobody_of_another_queue_waiting() -> None:
    many = [GangKey("long", f"{number:04}") for number in range(2000)]
    rounds = StatusUpdateSchedule()
    rounds.touch(["long"])
    rounds.due(waiting(many))
    rounds.touch(["short"])
    short = [GangKey("short", "first"), GangKey("short", "second")]
    due = rounds.due(lambda queue, place: waiting(short if queue == "short" else many)(queue, place))
    assert [key for key in due if key.namespace == "short"] == short
