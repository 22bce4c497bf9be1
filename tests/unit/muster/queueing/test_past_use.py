"""What queues have held before counts in their shares, where their parent sets a half-life."""

import pytest

from muster.model.objects import InvalidObjectError
from muster.queueing.entries import Claim, EndKind, Run
from muster.queueing.forecast import forecast
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.past_use import PastUse
from muster.queueing.queue_view import ROOT, QueueView
from tests.support.manifests.observed import amounts

HOUR = 3600.0
HALF_LIFE = 24 * HOUR


def ledger(half_life: float | None = HALF_LIFE, past: PastUse | None = None) -> Ledger:
    """Queues `a` and `b` that share 20 CPUs, and a gang that waits in each, the one in `a` first by age."""
    new = Ledger(past=past)
    new.set_queue(QueueView(ROOT, "Open", amounts(cpu="20"), parent="", half_life=half_life))
    for name in "ab":
        new.set_queue(QueueView(name, "Open", {}))
    return new


def hold(of: Ledger, queue: str, cpu: int) -> None:
    of.hold(Claim(GangKey("x", f"runs-{queue}"), queue, amounts(cpu=f"{cpu}")))


def first(of: Ledger) -> str:
    """The queue whose gang takes the 4 CPUs that others leave; two gangs of 4 wait, and the older one in `a`."""
    of.set_queue(QueueView("c", "Open", {}))
    hold(of, "c", 12)
    for name, since in (("a", "10:00"), ("b", "11:00")):
        of.wait(Candidate(GangKey("x", name), name, 0, since, amounts(cpu="4")))
    (key,) = of.startable("a", 1e9)
    return key.gang.name


def days(of: Ledger, count: float, since: float = 0.0) -> float:
    """Minutes pass."""
    now = since
    while now <= since + count * 24 * HOUR:
        of.note_use(now)
        now += 60.0
    return now - 60.0


@pytest.mark.parametrize(("half_life", "expected"), [(HALF_LIFE, "b"), (None, "a")])
def test_the_queue_that_has_held_less_is_first(half_life: float | None, expected: str) -> None:
    books = ledger(half_life)
    hold(books, "a", 8)
    days(books, 2)
    hold(books, "a", 2)
    hold(books, "b", 2)
    assert first(books) == expected


def test_the_worked_example_of_the_document() -> None:
    """It is in docs/queues.md."""
    books = ledger()
    hold(books, "a", 12)
    hold(books, "b", 4)
    now = days(books, 40)
    hold(books, "a", 4)
    hold(books, "b", 12)
    assert (books.share("a"), books.share("b")) == pytest.approx((1.1, 0.5))
    assert books.share_by_past("a") == pytest.approx(1.05)
    days(books, 1, now)
    assert books.share_by_past("a") == pytest.approx(7 * (12 + 4) / 2 / 80)


def test_an_average_halves_after_each_half_life() -> None:
    past = PastUse()
    past.advance(0.0, [("a", HALF_LIFE, {"cpu": 0})])
    past.advance(HALF_LIFE, [("a", HALF_LIFE, {"cpu": 8 * 10**9})])
    past.advance(3 * HALF_LIFE, [("a", HALF_LIFE, {})])
    assert past.of("a") == {"cpu": 10**9}


def test_without_a_half_life_nothing_is_kept() -> None:
    books = ledger(None)
    hold(books, "a", 8)
    days(books, 1)
    assert (books.share("a"), books.share_by_past("a")) == (0.8, None)


def test_a_pass_is_made_again_when_averages_change() -> None:
    books = ledger()
    hold(books, "a", 8)
    now = days(books, 1)
    books.newly_startable("a", now)
    assert (books.note_use(now + 1), books.newly_startable("a", now)) == (False, None)
    assert books.note_use(now + 61)
    assert books.newly_startable("a", now) == []


def test_a_copy_is_advanced_by_itself() -> None:
    books = ledger()
    hold(books, "a", 8)
    now = days(books, 1)
    share, copy = books.share("a"), books.copy()
    assert copy.share("a") == share
    copy.note_use(now + 30 * HALF_LIFE)
    assert books.share("a") == share
    assert copy.share("a") == pytest.approx(0.8)


def test_a_new_leader_goes_on_with_what_was_stored() -> None:
    """It knows no more than what is held now: that stands for the time in between."""
    books = ledger()
    hold(books, "a", 8)
    now, past = days(books, 1), PastUse()
    past.read(books.past.text())
    heir = ledger(past=past)
    hold(heir, "a", 8)
    assert heir.share("a") == pytest.approx(books.share("a"), rel=1e-5)
    books.note_use(now + 90)
    heir.note_use(now + 90)
    assert heir.share("a") == pytest.approx(books.share("a"), rel=1e-5)


def test_what_is_read_late_counts_with_what_was_held_since() -> None:
    """The ConfigMap did not answer when the leader began."""
    books = ledger()
    hold(books, "a", 8)
    now, past = days(books, 1), PastUse()
    stored, heir = books.past.text(), ledger(past=past)
    for one in (books, heir):
        hold(one, "a", 8)
        one.note_use(now)
        one.note_use(now + 2 * HOUR)
        hold(one, "a", 2)
        one.note_use(now + 4 * HOUR)
    past.read(stored)
    for one in (books, heir):
        assert one.note_use(now + 4 * HOUR + 60)
    assert heir.share("a") == pytest.approx(books.share("a"), rel=1e-5)


def test_averages_of_a_leader_that_had_counted_nothing_begin_now() -> None:
    past = PastUse()
    past.read(PastUse().text())
    books = ledger(past=past)
    hold(books, "a", 8)
    books.note_use(1e9)
    assert past.of("a") == {}


def test_queues_that_go_are_dropped() -> None:
    books = ledger()
    hold(books, "a", 8)
    now = days(books, 1)
    books.drop_queue("a")
    books.note_use(now + 60)
    assert books.past.of("a") == {}


def test_what_is_stored_is_bounded() -> None:
    past = PastUse()
    held = [(f"queue-{n:0240}", HALF_LIFE, {"cpu": 10**9, "memory": 10**21}) for n in range(10_000)]
    past.advance(0.0, held)
    past.advance(HOUR, held)
    assert len(past.text()) < 100_000
    other = PastUse()
    other.read(past.text())
    assert other.of(held[0][0])["cpu"] == pytest.approx(past.of(held[0][0])["cpu"], rel=1e-5)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"until":-1,"queues":{}}', '{"until":0,"queues":{"a":{"cpu":-1}}}', '{"until":0,"queues":[]}']
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidObjectError):
        PastUse().read(text)


def test_a_clock_that_is_put_back_takes_nothing_away() -> None:
    books = ledger()
    hold(books, "a", 8)
    now = days(books, 1)
    share = books.share("a")
    assert not books.note_use(now - HOUR)
    assert books.share("a") == share


def test_a_forecast_counts_what_gangs_will_have_held() -> None:
    """`b` has held its share for days and `a` nothing: `a` catches up, and then both have their turns."""
    books = ledger(HOUR)
    hold(books, "b", 10)
    now = days(books, 2)
    books.forget(GangKey("x", "runs-b"))
    for name in "ab":
        for number in range(20):
            key = GangKey("x", f"{name}-{number:02}")
            books.wait(Candidate(key, name, 0, "10:00", amounts(cpu="4"), run=Run(HOUR, EndKind.SAID)))
    starts = [one.key.gang.name[0] for one in forecast(books, now)]
    assert starts[:5] == ["a"] * 5
    assert starts.index("b") < 10


@pytest.mark.parametrize(("ago", "expected"), [(3 * HALF_LIFE - 120, "b"), (3 * HALF_LIFE, "a")])
def test_the_past_does_not_count_against_a_gang_that_was_passed_for_three_half_lives(ago: float, expected: str) -> None:
    books = ledger()
    hold(books, "a", 8)
    now = days(books, 2)
    books.forget(GangKey("x", "runs-a"))
    hold(books, "b", 2)
    books.set_queue(QueueView("c", "Open", {}))
    hold(books, "c", 14)
    for name, since in (("a", "10:00"), ("b", "11:00")):
        passed = now - ago if name == "a" else None
        books.wait(Candidate(GangKey("x", name), name, 0, since, amounts(cpu="4"), passed_since=passed))
    (key,) = books.startable("a", now)
    assert key.gang.name == expected


def test_the_past_counts_against_the_gangs_behind_one_that_was_passed_for_long() -> None:
    """Else whoever keeps a gang waiting that does not fit would share by what is held alone."""
    books = ledger(HOUR)
    hold(books, "a", 16)
    now = days(books, 1)
    books.forget(GangKey("x", "runs-a"))
    books.set_queue(QueueView("c", "Open", {}))
    hold(books, "c", 16)
    days(books, 1 / 24, now)
    for name, since, cpu in (("a-giant", "09:00", "10"), ("a", "10:00", "4"), ("b", "11:00", "4")):
        passed = now - 4 * HOUR if name == "a-giant" else None
        books.wait(Candidate(GangKey("x", name), name[0], 0, since, amounts(cpu=cpu), passed_since=passed))
    (key,) = books.startable("a", now)
    assert key.gang.name == "b"


def test_another_weight_counts_at_the_next_pass() -> None:
    books = ledger()
    hold(books, "a", 8)
    days(books, 2)
    hold(books, "a", 2)
    hold(books, "b", 2)
    assert first(books) == "b"
    books.set_queue(QueueView("a", "Open", {}, weight=90))
    (key,) = books.startable("a", 1e9)
    assert key.gang.name == "a"
