"""Who holds, who is next, and why the others wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from muster.ledger import Candidate, Decision, GangKey, Ledger
from muster.quantity import ZERO, Quantity
from muster.queues import QueueView
from muster.reasons import State
from muster.resources import Resources, total
from tests.unit.builders import amounts

if TYPE_CHECKING:
    from random import Random


def key(name: str) -> GangKey:
    return GangKey("team", name)


def waiting(name: str, *, queue: str = "q", since: str = "10:00", **need: str) -> Candidate:
    return Candidate(key(name), queue, 0, since, amounts(**need))


def opened(name: str = "q", **limit: str) -> QueueView:
    return QueueView(name, "Open", amounts(**limit))


def ledger(*views: QueueView, held: dict[str, dict[str, str]] | None = None) -> Ledger:
    """A ledger of these queues; what is held stands in queue q."""
    made = Ledger()
    for view in views:
        made.set_queue(view)
    for name, claim in (held or {}).items():
        made.hold(key(name), "q", amounts(**claim))
    return made


def decision(of: Ledger, name: str) -> Decision:
    found = of.decide(key(name))
    assert found is not None
    return found


def admitted(of: Ledger, *names: str) -> list[str]:
    return [name for name in names if decision(of, name).fits]


@pytest.mark.parametrize(
    ("limit", "held", "need", "fits"),
    [
        pytest.param({"cpu": "4"}, {}, {"cpu": "3"}, True, id="room enough"),
        pytest.param({"cpu": "4"}, {"cpu": "1"}, {"cpu": "3"}, True, id="exactly the rest"),
        pytest.param({"cpu": "4"}, {"cpu": "1001m"}, {"cpu": "3"}, False, id="a thousandth too much"),
        pytest.param({}, {"cpu": "9"}, {"cpu": "9"}, True, id="no limit"),
        pytest.param({"gpu": "1"}, {}, {"cpu": "99"}, True, id="what is not named is unlimited"),
        pytest.param({"cpu": "4", "gpu": "1"}, {"gpu": "1"}, {"cpu": "1", "gpu": "1"}, False, id="one resource lacks"),
        pytest.param({"cpu": "4"}, {}, {}, True, id="needs nothing"),
        pytest.param({"cpu": "4", "gpu": "1"}, {"gpu": "2"}, {"cpu": "1"}, True, id="what it does not need is over"),
    ],
)
def test_a_gang_fits_beside_what_is_held(
    limit: dict[str, str],
    held: dict[str, str],
    need: dict[str, str],
    fits: bool,  # noqa: FBT001
) -> None:
    books = ledger(opened(**limit), held={"other": held})
    books.wait(waiting("mine", **need))
    assert decision(books, "mine").fits is fits


@pytest.mark.parametrize(
    ("one", "other", "first"),
    [
        pytest.param(
            {"priority": 1, "since": "11:00"}, {"priority": 0, "since": "09:00"}, "one", id="priority before age"
        ),
        pytest.param({"since": "11:00"}, {"since": "09:00"}, "other", id="age before name"),
        pytest.param({}, {}, "one", id="name last"),
        pytest.param({"priority": -1}, {}, "other", id="negative priority"),
    ],
)
def test_who_is_first(one: dict[str, Any], other: dict[str, Any], first: str) -> None:
    books = ledger(opened(cpu="1"))
    books.wait(replace(waiting("other", cpu="1"), **other))
    books.wait(replace(waiting("one", cpu="1"), **one))
    assert admitted(books, "one", "other") == [first]
    assert books.waiting("q")[0] == key(first)


def test_a_smaller_gang_passes_one_that_does_not_fit() -> None:
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


@pytest.mark.parametrize(
    ("view", "state", "message"),
    [
        pytest.param(
            opened(cpu="4", memory="6Gi"),
            State.WAITING_FOR_QUOTA,
            'needs cpu 3 and memory 4Gi; queue "q" has cpu 1 and memory 2Gi free of cpu 4 and memory 6Gi; '
            "position 1 of 1 waiting",
            id="no room now",
        ),
        pytest.param(
            opened(cpu="2", memory="6Gi"),
            State.EXCEEDS_CAPABILITY,
            'needs cpu 3, queue "q" has capability cpu 2',
            id="no room ever",
        ),
        pytest.param(
            QueueView("q", "Closed", amounts(cpu="9")),
            State.QUEUE_CLOSED,
            'queue "q" is Closed and takes no new work',
            id="closed",
        ),
        pytest.param(
            QueueView("q", "", amounts(cpu="9")),
            State.QUEUE_CLOSED,
            'queue "q" is not open yet and takes no new work',
            id="too new",
        ),
        pytest.param(None, State.QUEUE_NOT_FOUND, 'queue "q" does not exist', id="not there"),
    ],
)
def test_why_a_gang_waits(view: QueueView | None, state: State, message: str) -> None:
    """The story of two RayClusters of 3 cpu and 4Gi: the second waits with the numbers."""
    books = ledger(*([view] if view else []), held={"first": {"cpu": "3", "memory": "4Gi"}})
    books.wait(waiting("second", cpu="3", memory="4Gi"))
    assert decision(books, "second") == Decision(fits=False, state=state, message=message)


def test_an_admission_says_what_of_which_queue() -> None:
    books = ledger(opened(cpu="4"))
    books.wait(waiting("mine", cpu="3"))
    assert decision(books, "mine") == Decision(fits=True, state=State.ADMITTED, message='cpu 3 of queue "q"')


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
    assert decision(books, "mine").state is State.QUEUE_NOT_FOUND
    assert books.holds(key("runs")) == amounts(cpu="3")
    books.set_queue(opened(cpu="4"))
    assert decision(books, "mine") == before


def test_a_gang_that_holds_no_longer_waits_and_the_other_way_round() -> None:
    books = ledger(opened(cpu="4"))
    books.wait(waiting("mine", cpu="3"))
    books.hold(key("mine"), "q", amounts(cpu="3"))
    assert books.decide(key("mine")) is None
    assert books.waiting("q") == []
    books.wait(waiting("mine", cpu="3"))
    assert books.holds(key("mine")) is None


def test_a_gang_that_moves_leaves_nothing_behind() -> None:
    books = ledger(opened(cpu="4"), opened("r", cpu="4"), held={"mine": {"cpu": "4"}})
    books.hold(key("mine"), "r", amounts(cpu="4"))
    books.wait(waiting("next", cpu="4"))
    assert decision(books, "next").fits
    assert books.queue_of(key("mine")) == "r"


@pytest.mark.parametrize(
    ("claim", "fits"),
    [
        pytest.param({"cpu": "3"}, True, id="up to the limit"),
        pytest.param({"cpu": "4"}, False, id="beyond it"),
        pytest.param({"cpu": "2", "gpu": "9"}, True, id="unlimited beside"),
    ],
)
def test_a_claim_may_grow_beside_what_others_hold(claim: dict[str, str], fits: bool) -> None:  # noqa: FBT001
    """Its own present claim does not count against it."""
    books = ledger(opened(cpu="4"), held={"mine": {"cpu": "2"}, "other": {"cpu": "1"}})
    assert books.fits_more(key("mine"), "q", amounts(**claim)) is fits


def test_a_claim_in_a_queue_that_is_gone_or_unknown_does_not_grow() -> None:
    books = ledger(held={"mine": {"cpu": "1"}})
    assert not books.fits_more(key("mine"), "q", amounts(cpu="2"))
    assert not books.fits_more(key("nobody"), "nowhere", amounts(cpu="1"))


def test_nobody_is_decided_about_who_does_not_wait() -> None:
    assert ledger(opened(cpu="4")).decide(key("nobody")) is None


def test_entering_tells_whether_it_changed_anything_for_others() -> None:
    books = ledger(opened(cpu="4"))
    mine = waiting("mine", cpu="3")
    assert books.wait(mine)
    assert not books.wait(waiting("mine", cpu="3"))
    assert books.wait(waiting("mine", cpu="2"))
    assert books.hold(key("mine"), "q", amounts(cpu="2"))
    assert not books.hold(key("mine"), "q", amounts(cpu="2"))
    assert books.hold(key("mine"), "q", amounts(cpu="3"))
    assert books.hold(key("mine"), "r", amounts(cpu="3"))
    assert books.forget(key("mine"))
    assert not books.forget(key("mine"))


NAMES = "abcdef"
QUEUES = "qr"
sizes = st.builds(
    lambda cpu, gpu: amounts(**({"cpu": f"{cpu}"} if cpu else {}), **({"gpu": f"{gpu}"} if gpu else {})),
    st.integers(0, 5),
    st.integers(0, 2),
)
limits = st.builds(
    lambda cpu, gpu: amounts(**({"cpu": f"{cpu}"} if cpu else {}), **({"gpu": f"{gpu}"} if gpu else {})),
    st.integers(0, 8),
    st.integers(0, 3),
)
views = st.builds(QueueView, st.sampled_from(QUEUES), st.sampled_from(["Open", "Open", "Open", "Closed", ""]), limits)
candidates = st.builds(
    Candidate,
    st.sampled_from(NAMES).map(key),
    st.sampled_from(QUEUES),
    st.integers(-1, 1),
    st.sampled_from(["09:00", "10:00"]),
    sizes,
)


class AnyHistory(RuleBasedStateMachine):
    """A ledger through any history, beside the plain facts that it should know by now."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.queues: dict[str, QueueView] = {}
        self.held: dict[GangKey, tuple[str, Resources]] = {}
        self.waits: dict[GangKey, Candidate] = {}

    def _known(self, gang: GangKey) -> object:
        return self.held.get(gang) or self.waits.get(gang)

    @rule(view=views)
    def a_queue_comes_or_changes(self, view: QueueView) -> None:
        """With any limit, open or not."""
        self.ledger.set_queue(view)
        self.queues[view.name] = view

    @rule(name=st.sampled_from(QUEUES))
    def a_queue_goes(self, name: str) -> None:
        """Whoever holds or waits there stays known."""
        self.ledger.drop_queue(name)
        self.queues.pop(name, None)

    @rule(candidate=candidates)
    def a_gang_waits(self, candidate: Candidate) -> None:
        """Anew, with other numbers, or in another queue."""
        new = self._known(candidate.key) != candidate
        assert self.ledger.wait(candidate) is new
        self.held.pop(candidate.key, None)
        self.waits[candidate.key] = candidate

    @rule(name=st.sampled_from(NAMES), queue=st.sampled_from(QUEUES), claim=sizes)
    def a_gang_holds(self, name: str, queue: str, claim: Resources) -> None:
        """Whether it fits or not: it runs."""
        new = self._known(key(name)) != (queue, claim)
        assert self.ledger.hold(key(name), queue, claim) is new
        self.waits.pop(key(name), None)
        self.held[key(name)] = queue, claim

    @rule(name=st.sampled_from(NAMES))
    def a_gang_ends(self, name: str) -> None:
        """Whether it was known or not."""
        assert self.ledger.forget(key(name)) is (self._known(key(name)) is not None)
        self.held.pop(key(name), None)
        self.waits.pop(key(name), None)

    @rule(name=st.sampled_from(NAMES))
    def an_admission_is_carried_out(self, name: str) -> None:
        """As the reconciler does: who fits, holds what it waited for."""
        found = self.ledger.decide(key(name))
        if found is not None and found.fits:
            candidate = self.waits.pop(key(name))
            self.ledger.hold(key(name), candidate.queue, candidate.need)
            self.held[key(name)] = candidate.queue, candidate.need

    def _used(self, queue: str) -> dict[str, Quantity]:
        return total(claim for place, claim in self.held.values() if place == queue)

    def _fitting(self, queue: str) -> list[Candidate]:
        asked = [candidate for candidate in self.waits.values() if candidate.queue == queue]
        return [candidate for candidate in asked if decision(self.ledger, candidate.key.name).fits]

    @invariant()
    def those_who_fit_fit_together(self) -> None:
        """Beside what is held, in every resource that one of them asks for."""
        for queue, view in self.queues.items():
            fitting = self._fitting(queue)
            together = total([self._used(queue), *(candidate.need for candidate in fitting)])
            for resource, most in view.limit.items():
                if any(candidate.need.get(resource, ZERO) for candidate in fitting):
                    assert together[resource] <= most

    @invariant()
    def nobody_fits_without_an_open_queue(self) -> None:
        """Gone, closed or too new."""
        for candidate in self.waits.values():
            view = self.queues.get(candidate.queue)
            if view is None or not view.open:
                assert not decision(self.ledger, candidate.key.name).fits

    @invariant()
    def who_waits_does_so_for_the_sake_of_those_before_it(self) -> None:
        """Whoever does not fit lacks room beside what is held and who fits ahead of it, never because of one behind."""
        for queue, view in self.queues.items():
            fitting = self._fitting(queue)
            for candidate in self.waits.values():
                if candidate.queue != queue or not view.open or candidate in fitting:
                    continue
                ahead = [other.need for other in fitting if other.order < candidate.order]
                together = total([self._used(queue), *ahead, candidate.need])
                assert any(
                    candidate.need.get(resource, ZERO) and together[resource] > most
                    for resource, most in view.limit.items()
                )

    @invariant()
    def only_the_facts_count(self) -> None:
        """A ledger made anew of the same facts, in another order, decides the same: a restart changes nothing."""
        fresh = Ledger()
        for candidate in sorted(self.waits.values(), key=lambda item: item.key.name, reverse=True):
            fresh.wait(candidate)
        for gang, (queue, claim) in sorted(self.held.items(), reverse=True):
            fresh.hold(gang, queue, claim)
        for view in self.queues.values():
            fresh.set_queue(view)
        for name in NAMES:
            assert fresh.decide(key(name)) == self.ledger.decide(key(name))
            assert fresh.holds(key(name)) == self.ledger.holds(key(name))
            assert fresh.queue_of(key(name)) == self.ledger.queue_of(key(name))
        for queue in QUEUES:
            assert fresh.waiting(queue) == self.ledger.waiting(queue)


AnyHistory.TestCase.settings = settings(max_examples=120, stateful_step_count=25, deadline=None)
TestAnyHistory = AnyHistory.TestCase


@given(st.lists(candidates, unique_by=lambda candidate: candidate.key), views, st.randoms())
def test_admitting_one_after_the_other_never_goes_above_the_limit(
    all_: list[Candidate],
    view: QueueView,
    random: Random,
) -> None:
    """Whoever is asked first: carrying out one decision never makes another one wrong."""
    books = ledger(view)
    for candidate in all_:
        books.wait(candidate)
    promised = {candidate.key for candidate in all_ if decision(books, candidate.key.name).fits}
    turns = list(all_)
    random.shuffle(turns)
    for candidate in turns:
        if decision(books, candidate.key.name).fits:
            books.hold(candidate.key, candidate.queue, candidate.need)
    assert {candidate.key for candidate in all_ if books.holds(candidate.key) is not None} == promised
