"""Gangs whose patience is over: for whom room is kept, and whom they hold up."""

from dataclasses import replace

import pytest

from muster.queueing.entries import Claim, Growth
from muster.queueing.ledger import Candidate, Ledger
from muster.queueing.queue_view import QueueView
from tests.support.cases import cases
from tests.support.manifests.observed import amounts
from tests.support.queueing.ledgers import NOW, admitted, decision, key, ledger, opened, waiting


def test_a_gang_that_its_queue_can_never_give_room_holds_up_nobody_in_a_strict_queue() -> None:
    """It is refused; its turn would never come."""
    books = ledger(replace(opened(cpu="4"), strict=True))
    books.wait(waiting("endless", since="09:00", cpu="5"))
    books.wait(waiting("next", cpu="4"))
    assert admitted(books, "endless", "next") == ["next"]


def test_the_patience_of_a_queue_ends_at_its_moment_and_not_before() -> None:
    """Nothing else happens then: what was settled holds until it."""
    books = ledger(replace(opened(cpu="4"), patience=60.0), held={"runs": {"cpu": "2"}})
    books.wait(replace(waiting("large", since="09:00", cpu="3"), passed_since=NOW - 50))
    books.wait(waiting("small", cpu="1"))
    fits = [found.fits for late in (0, 9, 10, 11) if (found := books.decide(key("small"), NOW + late))]
    assert fits == [True, True, False, False]


def tired(name: str, *, queue: str = "q", **need: str) -> Candidate:
    """One that was passed for longer than anybody's patience, and is older than all others."""
    return replace(waiting(name, queue=queue, since="08:00", **need), passed_since=NOW - 10_000)


def tree(*names: str, **org: str) -> list[QueueView]:
    """Queues below one of that limit."""
    return [QueueView("org", "Open", amounts(**org)), *(replace(opened(name), parent="org") for name in names)]


def hold(of: Ledger, name: str, queue: str = "q", *, lasts: bool = False, **claim: str) -> None:
    of.hold(Claim(key(name), queue, amounts(**claim), since="07:00", lasts=lasts))


@cases("since", ("older than who waits, as it is mostly", "07:00"), ("younger", "23:00"))
@pytest.mark.parametrize("strict", [True, False])
def test_growth_stands_behind_whom_nobody_passes(since: str, strict: bool) -> None:
    """However long the gang has run: an autoscaler that asks for more and more would keep the other from starting."""
    of = ledger(replace(opened(cpu="10"), strict=strict))
    of.hold(Claim(key("runs"), "q", amounts(cpu="5"), since=since))
    of.wait(waiting("large", cpu="6") if strict else tired("large", cpu="6"))
    assert not of.fits_more(Growth(key("runs"), "q"), amounts(cpu="6"), NOW)


def test_growth_that_nobody_forbids_has_passed_everybody_who_lacks_what_it_takes() -> None:
    of = ledger(opened(cpu="10", gpu="1"), held={"gpus": {"gpu": "1"}})
    hold(of, "runs", cpu="5")
    of.wait(waiting("large", cpu="6"))
    of.wait(waiting("gpu", gpu="1"))
    assert of.fits_more(Growth(key("runs"), "q"), amounts(cpu="9"), NOW)
    hold(of, "runs", cpu="9")
    assert of.passed_by(key("runs"), NOW) == []
    assert of.passed_by(key("runs"), NOW, growth=True) == [key("large")]


def test_nobody_waits_behind_one_that_lacks_something_else() -> None:
    """A gang short of GPUs holds up those who ask for GPUs, and keeps the cpu that it needs, and no more."""
    of = ledger(opened(cpu="10", gpu="2"), held={"runs": {"gpu": "2"}})
    of.wait(tired("large", cpu="4", gpu="2"))
    of.wait(waiting("cpus", since="10:00", cpu="6"))
    of.wait(waiting("more", since="11:00", cpu="1"))
    of.wait(waiting("gpus", since="12:00", gpu="0.5"))
    assert admitted(of, "large", "cpus", "more", "gpus") == ["cpus"]
    of.forget(key("runs"))
    assert admitted(of, "large", "cpus", "more", "gpus") == ["large", "cpus"]


def test_who_is_held_up_hears_by_whom_and_where() -> None:
    of = ledger(*tree("q", "r", cpu="10"))
    hold(of, "runs", queue="r", cpu="6")
    of.wait(tired("large", cpu="8"))
    of.wait(waiting("small", queue="r", cpu="1"))
    assert decision(of, "small").message == (
        'needs cpu 1; there is room, but queue "org" above "r" reserves cpu for gang "large"; position 1 of 1 waiting'
    )


def test_one_that_waits_for_a_service_holds_up_nobody_and_says_so() -> None:
    of = ledger(opened(cpu="10"))
    hold(of, "serves", cpu="3", lasts=True)
    hold(of, "job", cpu="4")
    of.wait(tired("large", cpu="8"))
    of.wait(tired("fits in the end", cpu="7"))
    of.wait(waiting("small", cpu="3"))
    assert admitted(of, "large", "fits in the end", "small") == []
    assert (
        "smaller gangs may go first, for what does not end by itself leaves it no room" in decision(of, "large").message
    )
    assert "smaller gangs may go first" not in decision(of, "fits in the end").message
    of.forget(key("fits in the end"))
    assert admitted(of, "large", "small") == ["small"]


@pytest.mark.parametrize(("idle", "held_up"), [(False, []), (True, ["small"])])
def test_pods_without_a_node_do_not_end_by_themselves(*, idle: bool, held_up: list[str]) -> None:
    """A gang whose pods find no node freezes nobody in the queues beside it; between two waves it may run on."""
    of = ledger(*tree("q", "r", "s", cpu="10"))
    of.bound(amounts(cpu="10"))
    of.hold(Claim(key("unplaced"), "r", amounts(cpu="6"), soft=amounts(cpu="6"), idle=idle))
    of.wait(tired("large", cpu="8"))
    of.wait(waiting("small", queue="s", cpu="1"))
    assert ("smaller gangs may go first" in decision(of, "large").message) is not idle
    assert admitted(of, "large", "small") == [one for one in ("small",) if one not in held_up]


def test_a_service_that_starts_first_is_one_that_stays() -> None:
    """Of two whose patience is over the second could start only when the first had ended."""
    of = ledger(opened(cpu="10"))
    hold(of, "job", cpu="8")
    of.wait(replace(tired("service", cpu="6"), lasts=True))
    of.wait(replace(tired("younger", cpu="5"), since="09:00"))
    of.wait(waiting("small", cpu="2"))
    assert decision(of, "service").message.endswith("position 1 of 3 waiting")
    assert "smaller gangs may go first, for what does not end" in decision(of, "younger").message
    assert admitted(of, "service", "younger", "small") == []


@pytest.mark.parametrize("strict", [True, False])
def test_a_successor_that_waits_for_its_own_predecessor_holds_up_nobody(strict: bool) -> None:
    """A RayService that is upgraded in a full queue, for as long as that takes."""
    of = ledger(replace(opened(cpu="10"), strict=strict))
    hold(of, "svc-1", cpu="6")
    of.wait(replace(tired("svc-2", cpu="6"), follows=True))
    of.wait(waiting("one", cpu="1"))
    assert admitted(of, "svc-2", "one") == ["one"]
    if not strict:
        assert "smaller gangs may go first, for it waits for the end of the cluster" in decision(of, "svc-2").message


def test_siblings_are_not_held_up_by_one_whose_own_queue_is_full() -> None:
    of = ledger(
        QueueView("org", "Open", amounts(cpu="100")),
        QueueView("a", "Open", amounts(cpu="60"), parent="org"),
        QueueView("b", "Open", amounts(cpu="100"), parent="org"),
    )
    hold(of, "job", queue="a", cpu="20")
    hold(of, "all the rest", queue="b", cpu="75")
    of.wait(tired("large", queue="a", cpu="50"))
    of.wait(waiting("b", queue="b", cpu="5"))
    of.wait(waiting("a", queue="a", cpu="5"))
    assert admitted(of, "large", "a", "b") == ["b"]
    of.forget(key("job"))
    assert admitted(of, "large", "a", "b") == [], "now it is the queue above that is short, and its own is kept for it"


@pytest.mark.parametrize("bound", [True, False])
def test_one_that_waits_for_its_own_service_freezes_neither_siblings_nor_the_cluster(bound: bool) -> None:
    of = ledger(*tree("a", "b", **({} if bound else {"cpu": "100"})))
    of.bound(amounts(cpu="100") if bound else None)
    hold(of, "service", queue="a", cpu="20", lasts=True)
    of.wait(tired("large", queue="a", cpu="90"))
    of.wait(waiting("b", queue="b", cpu="5"))
    assert admitted(of, "large", "b") == ["b"]


def test_the_rest_of_a_gang_that_has_begun_starts_beside_a_reservation_for_a_service() -> None:
    """What is free now is free for it, though in the end the service takes all."""
    books = ledger(opened(cpu="8"), held={"runs": {"cpu": "2"}})
    books.hold(Claim(key("stays"), "q", amounts(cpu="3"), lasts=True))
    books.wait(replace(tired("service", cpu="5"), lasts=True, since="08:00"))
    books.wait(replace(tired("wave", cpu="1"), begun=True))
    assert admitted(books, "service", "wave") == ["wave"]
