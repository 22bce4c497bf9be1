"""The ledger through any history, beside a model that looks at everything anew each time."""

from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from muster.queueing.entries import Claim, EntryKey
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, minus, total
from muster.resources.quantity import ZERO
from tests.support.examples import examples
from tests.support.manifests.observed import amounts
from tests.support.queueing.facts import Holder, deserved
from tests.support.queueing.world import World

NOW = 1_000_000.0
NAMES = "abcdef"
# Two teams of two, and one queue by itself; any of them may come to stand anywhere.
QUEUES = ("t", "t1", "t2", "u", "u1")
PARENTS = {"t": ROOT, "t1": "t", "t2": "t", "u": ROOT, "u1": "u"}


def key(name: str) -> EntryKey:
    return GangKey("team" if name < "d" else "other", name)


@cache
def sized(cpu: int, gpu: int) -> Resources:
    """So much of both, nothing named that is not asked for."""
    return amounts(**({"cpu": str(cpu)} if cpu else {}), **({"gpu": str(gpu)} if gpu else {}))


@cache
def sizes(most_cpu: int, most_gpu: int) -> st.SearchStrategy[Resources]:
    return st.builds(sized, st.integers(0, most_cpu), st.integers(0, most_gpu))


# Hypothesis takes longer to make a strategy than to draw from it: they are made once.
_names = st.sampled_from([*QUEUES, ROOT])
# Mostly the tree above; sometimes what makes no tree at all.
_parents = {name: st.sampled_from([parent] * 4 + [ROOT, *QUEUES]) for name, parent in PARENTS.items()}
_view: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "state": st.sampled_from(["Open", "Open", "Open", "Open", "Closed", ""]),
        "limit": sizes(8, 3),
        "guarantee": st.sampled_from([{}, {}, amounts(cpu="2")]),
        "deserved": st.sampled_from([{}, {}, amounts(cpu="3"), amounts(cpu="0", gpu="2")]),
        "weight": st.sampled_from([1, 1, 2]),
        "by_age": st.sampled_from([False, False, True]),
        "strict": st.sampled_from([False, False, False, True]),
        "patience": st.sampled_from([60.0, 600.0]),
        "trusts_estimates": st.booleans(),
        "drain_after": st.sampled_from([None, 600.0, 3600.0]),
        "preempts": st.sampled_from([False, False, True]),
        "on_hold": st.sampled_from([False] * 5 + [True]),
        "reclaims": st.booleans(),
    }
)


@st.composite
def views(draw: st.DrawFn) -> QueueView:
    name = draw(_names)
    return QueueView(name=name, parent=draw(_parents[name]) if name != ROOT else "", **draw(_view))


runs = st.one_of(
    st.none(),
    st.builds(Run, st.sampled_from([60.0, 300.0, 900.0, 2000.0]), st.sampled_from(EndKind), st.just((2500.0,))),
)
candidates = st.builds(
    Candidate,
    st.sampled_from(NAMES).map(key),
    st.sampled_from(QUEUES),
    st.integers(-1, 1),
    st.sampled_from(["09:00", "10:00"]),
    sizes(5, 2),
    st.sampled_from([None, None, NOW - 700, NOW - 100, NOW]),
    st.sampled_from([None, None, None, NOW + 50, NOW + 500]),
    st.sampled_from([False, False, True]),
    st.sampled_from([False, False, True]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([True, True, False]),
    st.booleans(),
    st.booleans(),
    runs,
)


_claims = sizes(5, 2)
_holder: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "priority": st.integers(-1, 1),
        "since": st.sampled_from(["09:00", "10:00"]),
        "lasts": st.booleans(),
        "end": st.one_of(
            st.none(),
            st.builds(lambda run, ago: run and run.from_(NOW - ago), runs, st.sampled_from([0.0, 100.0, 700.0])),
        ),
    }
)
_booleans, _thirds, _quarters = st.booleans(), st.integers(0, 2), st.integers(0, 3)


@st.composite
def holders(draw: st.DrawFn) -> Holder:
    claim = draw(_claims)
    soft = [{}, {}, claim, minus(claim, amounts(cpu="2"))][draw(_quarters)]
    spare = [{}, claim, minus(claim, amounts(cpu="1"))][draw(_thirds)]
    running = [{}, claim, minus(claim, amounts(cpu="2"))][draw(_thirds)]
    how: dict[str, Any] = {"soft": soft, "idle": bool(soft) and draw(_booleans), "spare": spare, "running": running}
    return Holder(claim=claim, **how, **draw(_holder))


class History(RuleBasedStateMachine):
    """A ledger through any history of gangs, and the facts that it should know by now."""

    def __init__(self) -> None:
        super().__init__()
        self.world = self.new_world()
        self.ledger = self.new_ledger()
        self.now = NOW
        self.told: set[EntryKey] = set()

    def new_world(self) -> World:
        """The facts before anything has happened."""
        return World()

    def new_ledger(self) -> Ledger:
        """A ledger that knows nothing but what holds for all gangs."""
        return Ledger()

    def has_room_in_namespace(self, candidate: Candidate) -> bool:
        """Whether no ElasticQuota keeps it waiting."""
        del candidate
        return True

    @rule(candidate=candidates)
    def a_gang_waits(self, candidate: Candidate) -> None:
        """Anew, with other numbers, or in another queue."""
        new = self.world.waits.get(candidate.key) != candidate
        assert self.ledger.wait(candidate) is new
        self.world.held.pop(candidate.key, None)
        self.world.waits[candidate.key] = candidate

    @rule(name=st.sampled_from(NAMES), holder=holders())
    def a_gang_holds(self, name: str, holder: Holder) -> None:
        """Whether it fits or not: it runs. What it can spare matters to others where queues reclaim."""
        before = self.world.held.get(key(name))
        new = before is None or before._replace(spare=holder.spare, running=holder.running) != holder
        if before is not None and amounts_of(before.spare) != amounts_of(holder.spare):
            new = new or self.world.tree().settings(ROOT).reclaims
        changed = self._hold(self.ledger, key(name), holder)
        # What runs matters to others where a queue is beyond its limit.
        assert changed is new or (changed and before is not None and before.running != holder.running)
        self.world.waits.pop(key(name), None)
        self.world.held[key(name)] = holder

    @staticmethod
    def _hold(ledger: Ledger, gang: EntryKey, holder: Holder) -> bool:
        return ledger.hold(
            Claim(
                gang,
                holder.queue,
                holder.claim,
                priority=holder.priority,
                since=holder.since,
                soft=holder.soft,
                idle=holder.idle,
                lasts=holder.lasts,
                spare=holder.spare,
                running=holder.running,
                end=holder.end,
            )
        )

    @rule(name=st.sampled_from(NAMES))
    def a_gang_ends(self, name: str) -> None:
        """Whether it was known or not."""
        known = key(name) in self.world.held or key(name) in self.world.waits
        assert self.ledger.forget(key(name)) is known
        self.world.held.pop(key(name), None)
        self.world.waits.pop(key(name), None)

    @rule(seconds=st.sampled_from([1.0, 60.0, 450.0]))
    def time_passes(self, seconds: float) -> None:
        """Patience ends and deadlines pass without anybody's doing."""
        self.now += seconds

    def _fits(self, gang: EntryKey) -> bool:
        found = self.ledger.decide(gang, self.now)
        assert found is not None
        return found.fits

    @invariant()
    def it_decides_as_the_model(self) -> None:
        """And whoever is told to start at once is exactly who may."""
        fitting = self.world.fitting(self.now)
        assert {gang for gang in self.world.waits if self._fits(gang)} == set(fitting)
        startable = {queue: self.ledger.startable(queue, self.now) for queue in QUEUES}
        assert {gang for gangs in startable.values() for gang in gangs} == set(fitting)
        for gangs in startable.values():
            assert gangs == [gang for gang in fitting if gang in gangs]

    @rule(queue=st.sampled_from(QUEUES), draw=st.randoms(use_true_random=False))
    def all_start_that_may(self, queue: str, draw: Random) -> None:
        """As the reconciler has them start, in any order: no start takes another decision back."""
        fitting = self.world.fitting(self.now)
        gangs = self.ledger.startable(queue, self.now)
        draw.shuffle(gangs)
        # The rest of a gang that has begun holds under another key, which is a change for all others.
        for gang in sorted(gangs, key=lambda one: fitting[one].begun):
            assert self._fits(gang) or fitting[gang].begun
            candidate = self.world.waits.pop(gang)
            holder = Holder(
                *(candidate.queue, candidate.need, candidate.priority, candidate.since, {}),
                idle=False,
                lasts=candidate.lasts,
                end=candidate.end(self.now),
            )
            self._hold(self.ledger, gang, holder)
            self.world.held[gang] = holder

    @invariant()
    def those_who_may_start_have_been_news_since_then(self) -> None:
        """Else no gang would be looked at; what starts as it was decided is no news for the others."""
        for queue in QUEUES:
            self.told |= set(self.ledger.newly_startable(queue, self.now) or ())
            assert self.ledger.newly_startable(queue, self.now) is None
        startable = {gang for queue in QUEUES for gang in self.ledger.startable(queue, self.now)}
        assert startable <= self.told
        self.told &= startable

    @invariant()
    def those_who_fit_fit_together(self) -> None:
        """Beside what is held, at every level, in every resource that one of them asks for; preemption apart.

        At the root they may take what others give back.
        """
        tree = self.world.tree()
        fitting = [*self.world.fitting(self.now).values()]
        for one in (*QUEUES, ROOT):
            below = [candidate for candidate in fitting if one in tree.path(candidate.queue)]
            if any(candidate.preempts and tree.settings(candidate.queue).preempts for candidate in below):
                continue
            together = self.world.used(tree, one, beside=fitting)
            given_back = self.world.given_back(tree) if one == ROOT else {}
            for resource, most in tree.limit(one).items():
                if any(candidate.need.get(resource, ZERO) for candidate in below):
                    assert together.get(resource, ZERO) <= most + given_back.get(resource, ZERO)

    @invariant()
    def nobody_overtakes_in_a_strict_queue(self) -> None:
        """Unless the one before it can never start there, or the rest of a gang that has begun comes behind it."""
        tree = self.world.tree()
        for strict in (view.name for view in self.world.queues.values() if view.strict):
            below = sorted(
                (one for one in self.world.waits.values() if strict in tree.path(one.queue)), key=lambda one: one.order
            )
            waits = [
                one
                for one in below
                if not self._fits(one.key)
                and not one.follows
                and self.has_room_in_namespace(one)
                and (found := self.ledger.decide(one.key, self.now))
                and found.state == "WaitingForQuota"
            ]
            if waits:
                behind = [one for one in below if one.order > waits[0].order and not one.begun]
                assert not any(self._fits(one.key) for one in behind)

    @invariant()
    def the_numbers_of_queues_are_the_facts(self) -> None:
        """Of each queue that is there and of the root, with all below it."""
        tree, names = self.world.tree(), ("cpu", "gpu")
        read = dict(found for found in self.ledger.numbers(names) if found is not None)
        assert set(read) == {ROOT, *self.world.queues}
        for queue, numbers in read.items():
            limit, used = tree.limit(queue), self.ledger.used(queue)
            assert dict(numbers.limit) == {name: limit[name].nano / 10**9 for name in names if name in limit}
            waiting = [one for one in self.world.waits.values() if queue in tree.path(one.queue)]
            needs = total(one.need for one in waiting)
            for name in names:
                assert numbers.used.get(name, 0) == used.get(name, ZERO).nano / 10**9
                assert numbers.waiting.get(name, 0) == needs.get(name, ZERO).nano / 10**9
                assert 0 <= numbers.reserved.get(name, 0) <= numbers.waiting.get(name, 0)
                if (share := deserved(tree, queue).get(name)) is not None and name in numbers.used:
                    assert numbers.deserved[name] == pytest.approx(float(share / 10**9))
            assert numbers.oldest == min((one.since for one in waiting if one.queue == queue), default="")

    @invariant()
    def only_the_facts_count(self) -> None:
        """A ledger made anew of the same facts, in another order, decides the same: a restart changes nothing."""
        fresh = self.new_ledger()
        for candidate in sorted(self.world.waits.values(), key=lambda item: item.key.name, reverse=True):
            fresh.wait(candidate)
        fresh.bound(self.world.nodes)
        for gang, holder in sorted(self.world.held.items(), reverse=True, key=lambda item: item[0]):
            self._hold(fresh, gang, holder)
        for view in self.world.queues.values():
            fresh.set_queue(view)
        for name in NAMES:
            assert fresh.decide(key(name), self.now) == self.ledger.decide(key(name), self.now)
            assert fresh.holds(key(name)) == self.ledger.holds(key(name))
            assert fresh.queue_of(key(name)) == self.ledger.queue_of(key(name))
            assert sorted(fresh.passed_by(key(name), self.now)) == sorted(self.ledger.passed_by(key(name), self.now))
        for queue in QUEUES:
            assert fresh.waiting(queue) == self.ledger.waiting(queue)


class AnyHistory(History):
    """In any queues."""

    @rule(view=views())
    def a_queue_comes_or_changes(self, view: QueueView) -> None:
        """With any limit, anywhere in the tree, open or not."""
        self.ledger.set_queue(view)
        self.world.queues[view.name] = view

    @rule(name=st.sampled_from([*QUEUES, ROOT]))
    def a_queue_goes(self, name: str) -> None:
        """Whoever holds or waits there stays known."""
        self.ledger.drop_queue(name)
        self.world.queues.pop(name, None)

    @rule(nodes=st.one_of(st.none(), sizes(9, 4)))
    def nodes_come_and_go(self, nodes: Resources | None) -> None:
        """Where the cluster is bound by them."""
        self.ledger.bound(nodes)
        self.world.nodes = nodes

    @rule(more=sizes(9, 4))
    def nodes_are_added(self, more: Resources) -> None:
        """Also the first ones."""
        self.nodes_come_and_go(total([self.world.nodes or {}, more]))


AnyHistory.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=30, deadline=None)
TestAnyHistory = AnyHistory.TestCase


def team(**view: object) -> list[QueueView]:
    """Two queues of a team that may hold 8 cpu."""
    top = replace(QueueView("t", "Open", amounts(cpu="8")), **view)  # type: ignore[arg-type]
    return [top, QueueView("t1", "Open", {}, parent="t"), QueueView("t2", "Open", amounts(cpu="6"), parent="t")]


@given(
    st.lists(candidates.map(lambda one: replace(one, queue="t1", deadline=None)), unique_by=lambda one: one.key),
    st.randoms(use_true_random=False),
)
def test_admitting_one_after_the_other_never_makes_another_decision_wrong(
    all_: list[Candidate], random: Random
) -> None:
    """Whoever is asked first."""
    books = Ledger()
    for view in team():
        books.set_queue(view)
    for candidate in all_:
        books.wait(candidate)
    promised = set(books.startable("t1", NOW))
    turns = list(all_)
    random.shuffle(turns)
    for candidate in turns:
        found = books.decide(candidate.key, NOW)
        if found is not None and found.fits:
            books.hold(candidate.claim(NOW))
    assert {candidate.key for candidate in all_ if books.holds(candidate.key) is not None} == promised


@given(
    st.integers(4, 8),
    st.lists(st.tuples(st.sampled_from(["t1", "t2"]), st.integers(1, 3)), min_size=5, max_size=60),
    st.integers(1, 3),
)
def test_nobody_waits_for_ever_behind_smaller_ones(large: int, small: list[tuple[str, int]], per_turn: int) -> None:
    """However many come, in either queue of the team: once its patience is over, what ends makes room for it."""
    books = Ledger()
    for view in team(patience=600.0):
        books.set_queue(view)
    first = Candidate(key("first"), "t1", 0, "09:00", amounts(cpu="8"))
    mine = Candidate(key("large"), "t1", 0, "10:00", amounts(cpu=str(large)))
    coming = [
        Candidate(key(f"small-{number}"), queue, 0, "11:00", amounts(cpu=str(cpu)))
        for number, (queue, cpu) in enumerate(small)
    ]
    known = {one.key: one for one in (first, mine, *coming)}
    books.wait(first)
    running: list[EntryKey] = []
    for turn in range(20 + len(small)):
        now = NOW + 61 * turn
        for candidate in (*([mine] if turn == 1 else []), *coming[:per_turn]):
            books.wait(candidate)
        del coming[:per_turn]
        for gang in books.startable("t1", now):
            for passed in books.passed_by(gang, now):
                known[passed] = replace(known[passed], passed_since=now)
                books.wait(known[passed])
            found = books.decide(gang, now)
            if found is not None and found.fits:
                books.hold(known[gang].claim(NOW))
                running.append(gang)
        if mine.key in running:
            return
        books.forget(running.pop(0))
    raise AssertionError("it waits for ever")
