"""Who holds, who is next, and why the others wait."""

from dataclasses import replace
from typing import Any

import pytest

from muster.model.gang_states import GangState
from muster.queueing.entries import Claim, Growth
from muster.queueing.ledger import Decision
from muster.queueing.queue_view import QueueView
from tests.support.cases import cases
from tests.support.manifests.observed import amounts
from tests.support.queueing.ledgers import NOW, admitted, decision, key, ledger, opened, waiting


@cases(
    "limit, held, need, fits",
    ("room enough", {"cpu": "4"}, {}, {"cpu": "3"}, True),
    ("exactly the rest", {"cpu": "4"}, {"cpu": "1"}, {"cpu": "3"}, True),
    ("a thousandth too much", {"cpu": "4"}, {"cpu": "1001m"}, {"cpu": "3"}, False),
    ("no limit", {}, {"cpu": "9"}, {"cpu": "9"}, True),
    ("what is not named is unlimited", {"gpu": "1"}, {}, {"cpu": "99"}, True),
    ("one resource lacks", {"cpu": "4", "gpu": "1"}, {"gpu": "1"}, {"cpu": "1", "gpu": "1"}, False),
    ("needs nothing", {"cpu": "4"}, {}, {}, True),
    ("what it does not need is over", {"cpu": "4", "gpu": "1"}, {"gpu": "2"}, {"cpu": "1"}, True),
)
def test_a_gang_fits_beside_what_is_held(
    limit: dict[str, str], held: dict[str, str], need: dict[str, str], fits: bool
) -> None:
    books = ledger(opened(**limit), held={"other": held})
    books.wait(waiting("mine", **need))
    assert decision(books, "mine").fits is fits


@cases(
    "one, other, first",
    ("priority before age", {"priority": 1, "since": "11:00"}, {"priority": 0, "since": "09:00"}, "one"),
    ("age before name", {"since": "11:00"}, {"since": "09:00"}, "other"),
    ("name last", {}, {}, "one"),
    ("negative priority", {"priority": -1}, {}, "other"),
)
def test_who_is_first(one: dict[str, Any], other: dict[str, Any], first: str) -> None:
    books = ledger(opened(cpu="1"))
    books.wait(replace(waiting("other", cpu="1"), **other))
    books.wait(replace(waiting("one", cpu="1"), **one))
    assert admitted(books, "one", "other") == [first]
    assert books.waiting("q")[0] == key(first)


def test_a_smaller_gang_bypasses_one_that_does_not_fit() -> None:
    books = ledger(opened(cpu="4"), held={"runs": {"cpu": "2"}})
    books.wait(waiting("large", since="09:00", cpu="3"))
    books.wait(waiting("small", since="10:00", cpu="2"))
    assert admitted(books, "large", "small") == ["small"]


def test_gangs_that_fit_together_are_all_admitted_and_no_more() -> None:
    books = ledger(opened(cpu="4"))
    for name in ("a", "b", "c"):
        books.wait(waiting(name, cpu="2"))
    assert admitted(books, "a", "b", "c") == ["a", "b"]


def test_queues_do_not_touch_each_other() -> None:
    books = ledger(opened(cpu="2"), opened("r", cpu="2"), held={"runs": {"cpu": "2"}})
    books.wait(waiting("here", cpu="1"))
    books.wait(waiting("there", queue="r", cpu="2"))
    assert admitted(books, "here", "there") == ["there"]


@cases(
    "view, state, message",
    (
        "no room now",
        opened(cpu="4", memory="6Gi"),
        GangState.WAITING_FOR_QUOTA,
        (
            'needs cpu 3 and memory 4Gi; queue "q" has cpu 1 and memory 2Gi free of cpu 4 and memory 6Gi; '
            "position 1 of 1 waiting"
        ),
    ),
    (
        "no room ever",
        opened(cpu="2", memory="6Gi"),
        GangState.EXCEEDS_CAPABILITY,
        'needs cpu 3, queue "q" has capability cpu 2',
    ),
    (
        "closed",
        QueueView("q", "Closed", amounts(cpu="9")),
        GangState.QUEUE_CLOSED,
        'queue "q" is Closed and takes no new work',
    ),
    (
        "too new",
        QueueView("q", "", amounts(cpu="9")),
        GangState.QUEUE_CLOSED,
        'queue "q" is not open yet and takes no new work',
    ),
    (
        "on hold",
        QueueView("q", "Open", {}, on_hold=True),
        GangState.ON_HOLD,
        'queue "q" is on hold (its annotation muster.dev/hold); to resume it: muster resume queue/q',
    ),
    (
        "closed and on hold",
        QueueView("q", "Closed", {}, on_hold=True),
        GangState.QUEUE_CLOSED,
        'queue "q" is Closed and takes no new work',
    ),
    ("not there", None, GangState.QUEUE_NOT_FOUND, 'queue "q" does not exist, or is not open to namespace "team"'),
)
def test_why_a_gang_waits(view: QueueView | None, state: GangState, message: str) -> None:
    """The story of two RayClusters of 3 cpu and 4Gi: the second waits with the numbers."""
    books = ledger(*([view] if view else []), held={"first": {"cpu": "3", "memory": "4Gi"}})
    books.wait(waiting("second", cpu="3", memory="4Gi"))
    assert decision(books, "second") == Decision(fits=False, state=state, message=message)


def test_an_admission_says_what_of_which_queue() -> None:
    books = ledger(opened(cpu="4"))
    books.wait(waiting("mine", cpu="3"))
    assert decision(books, "mine") == Decision(fits=True, state=GangState.ADMITTED, message='cpu 3 of queue "q"')


def test_free_is_never_negative_in_words() -> None:
    books = ledger(opened(cpu="4"), held={"runs": {"cpu": "9"}})
    books.wait(waiting("mine", cpu="1"))
    assert 'queue "q" has cpu 0 free of cpu 4' in decision(books, "mine").message


def test_positions_count_those_who_stay() -> None:
    books = ledger(opened(cpu="2"), held={"runs": {"cpu": "1"}})
    books.wait(waiting("a", cpu="2"))
    books.wait(waiting("b", cpu="2"))
    assert decision(books, "a").message.endswith("position 1 of 2 waiting")
    assert decision(books, "b").message.endswith("position 2 of 2 waiting")


def test_a_queue_that_vanishes_and_returns_changes_nothing_else() -> None:
    books = ledger(opened(cpu="4"), held={"runs": {"cpu": "3"}})
    books.wait(waiting("mine", cpu="2"))
    before = decision(books, "mine")
    books.drop_queue("q")
    assert decision(books, "mine").state is GangState.QUEUE_NOT_FOUND
    assert books.holds(key("runs")) == amounts(cpu="3")
    books.set_queue(opened(cpu="4"))
    assert decision(books, "mine") == before


def test_a_gang_that_holds_no_longer_waits_and_the_other_way_round() -> None:
    books = ledger(opened(cpu="4"))
    books.wait(waiting("mine", cpu="3"))
    books.hold(Claim(key("mine"), "q", amounts(cpu="3")))
    assert books.decide(key("mine"), NOW) is None
    assert books.waiting("q") == []
    books.wait(waiting("mine", cpu="3"))
    assert books.holds(key("mine")) is None


def test_a_gang_that_moves_leaves_nothing_behind() -> None:
    books = ledger(opened(cpu="4"), opened("r", cpu="4"), held={"mine": {"cpu": "4"}})
    books.hold(Claim(key("mine"), "r", amounts(cpu="4")))
    books.wait(waiting("next", cpu="4"))
    assert decision(books, "next").fits
    assert books.queue_of(key("mine")) == "r"


@cases(
    "claim, fits",
    ("up to the limit", {"cpu": "3"}, True),
    ("beyond it", {"cpu": "4"}, False),
    ("unlimited beside", {"cpu": "2", "gpu": "9"}, True),
)
def test_a_claim_may_grow_beside_what_others_hold(claim: dict[str, str], fits: bool) -> None:
    """Its own present claim does not count against it."""
    books = ledger(opened(cpu="4"), held={"mine": {"cpu": "2"}, "other": {"cpu": "1"}})
    assert books.fits_more(Growth(key("mine"), "q"), amounts(**claim), NOW) is fits


@cases("others, fits", ("within the limit", "1", True), ("a place that is taken by now", "2", False))
def test_a_claim_grows_in_the_place_of_what_it_replaces(others: str, fits: bool) -> None:
    """What is replaced is free for it as far as the queue is not above its limit already."""
    books = ledger(opened(cpu="4"), held={"mine": {"cpu": "2"}, "other": {"cpu": others}})
    books.hold(Claim(key("mine").leaving, "q", amounts(cpu="1")))
    assert books.fits_more(Growth(key("mine"), "q"), amounts(cpu="3"), NOW) is fits
    assert not books.fits_more(Growth(key("mine"), "q"), amounts(cpu="4"), NOW)


def test_a_claim_in_a_queue_that_is_gone_or_unknown_does_not_grow() -> None:
    books = ledger(held={"mine": {"cpu": "1"}})
    assert not books.fits_more(Growth(key("mine"), "q"), amounts(cpu="2"), NOW)
    assert not books.fits_more(Growth(key("nobody"), "nowhere"), amounts(cpu="1"), NOW)


def test_nobody_is_decided_about_who_does_not_wait() -> None:
    assert ledger(opened(cpu="4")).decide(key("nobody"), NOW) is None


def test_entering_tells_whether_it_changed_anything_for_others() -> None:
    books = ledger(opened(cpu="4"))
    mine = waiting("mine", cpu="3")
    assert books.wait(mine)
    assert not books.wait(waiting("mine", cpu="3"))
    assert books.wait(waiting("mine", cpu="2"))
    assert books.hold(Claim(key("mine"), "q", amounts(cpu="2")))
    assert not books.hold(Claim(key("mine"), "q", amounts(cpu="2")))
    assert books.hold(Claim(key("mine"), "q", amounts(cpu="3")))
    assert books.hold(Claim(key("mine"), "r", amounts(cpu="3")))
    assert books.forget(key("mine"))
    assert not books.forget(key("mine"))


def test_what_is_told_of_a_queue_is_its_own_gangs_and_all_that_is_taken_below_it() -> None:
    """A soft claim is told, and takes nothing of its own queue."""
    of = ledger(QueueView("org", "Open", amounts(cpu="9")), replace(opened(cpu="4"), parent="org"))
    of.hold(Claim(key("a"), "q", amounts(cpu="3")))
    of.hold(Claim(key("b"), "q", amounts(cpu="2"), soft=amounts(cpu="2")))
    assert {one.name: claim.resources for one, claim in of.claims("q").items()} == {
        "a": amounts(cpu="3"),
        "b": amounts(cpu="2"),
    }
    assert of.claims("org") == {}
    assert of.used("q") == amounts(cpu="3")
    assert of.used("org") == of.used("root") == amounts(cpu="5")


def test_a_position_is_among_those_who_cannot_start_yet() -> None:
    """As in the sentence for people: who may start now is as good as gone."""
    of = ledger(opened(cpu="3"))
    for since, (name, cpu) in enumerate({"first": "2", "second": "2", "third": "2"}.items()):
        of.wait(waiting(name, since=f"10:0{since}", cpu=cpu))
    assert admitted(of, "first", "second", "third") == ["first"]
    assert (of.position(key("second"), NOW), of.position(key("third"), NOW)) == ((1, 3), (2, 3))
    assert decision(of, "third").message.endswith("position 2 of 3 waiting")
    of.hold(Claim(key("first"), "q", amounts(cpu="2")))
    assert of.position(key("first"), NOW) is None


@pytest.mark.parametrize("preempts", [False, True])
def test_growth_that_stands_in_line_takes_what_it_may_take_there(*, preempts: bool) -> None:
    """Of a queue of 5 it holds 2 itself, and a less urgent gang 2."""
    of = ledger(replace(opened(cpu="5"), preempts=preempts), held={"mine": {"cpu": "2"}})
    of.hold(Claim(key("low"), "q", amounts(cpu="2"), priority=-1))
    wave = key("mine").wave
    grown = {cpu: of.fits_more(Growth(key("mine"), "q"), amounts(cpu=cpu), NOW) for cpu in ("3", "4")}
    assert grown == {"3": True, "4": False}
    of.wait(replace(waiting("mine", cpu="2"), key=wave, preempts=True))
    of.wait(waiting("young", since="11:00", cpu="2"))
    assert of.fits_more(Growth(key("mine"), "q"), amounts(cpu="4"), NOW) is preempts
    assert admitted(of, "young") == []
    assert (wave.gang, key("mine").gang) == (key("mine"), key("mine"))


def test_where_nodes_come_there_is_room_for_one_that_had_none_beside_what_is_held() -> None:
    of = ledger(opened(), held={"runs": {"cpu": "2"}})
    of.bound(amounts(cpu="2"))
    of.wait(waiting("mine", cpu="2"))
    assert of.startable("q", NOW) == []
    of.bound(amounts(cpu="4"))
    assert of.startable("q", NOW) == [key("mine")]


def test_the_first_node_is_given_once_to_all_queues_together() -> None:
    """Where no node is, nothing is shared; from the first on all is."""
    of = ledger(opened("q"), opened("r"))
    of.bound({})
    for name, queue in (("mine", "q"), ("other", "r")):
        of.hold(Claim(key(f"runs in {queue}"), queue, amounts(cpu="1")))
        of.wait(waiting(name, queue=queue, cpu="2"))
    of.bound(amounts(cpu="4"))
    assert of.startable("q", NOW) == of.startable("r", NOW) == [key("mine")]
    of.hold(Claim(key("mine"), "q", amounts(cpu="2")))
    assert admitted(of, "other") == []


def test_when_the_last_node_has_gone_each_queue_is_by_itself_again() -> None:
    of = ledger(opened("q"), opened("r"), replace(opened("below"), parent="q"))
    of.bound(amounts(cpu="4"))
    of.hold(Claim(key("runs"), "q", amounts(cpu="4")))
    of.bound({})
    of.set_queue(replace(opened("below", cpu="1"), parent="q"))
    assert of.forget(key("runs"))
    of.drop_queue("below")
    of.wait(waiting("mine", cpu="9"))
    of.wait(waiting("other", queue="r", cpu="9"))
    assert of.startable("q", NOW) == [key("mine")]
    assert of.startable("r", NOW) == [key("other")]
