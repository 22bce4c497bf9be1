"""Who is soft is kept, and is at any time what one finds who looks at every claim; most events look at none."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from muster.queueing.entries import Claim, EntryKey
from muster.queueing.growth import room_to_grow
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.unplaced_claims import soft_in
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources
from tests.support.calls import Calls
from tests.support.cases import cases
from tests.support.examples import examples
from tests.support.manifests.observed import amounts

NAMES = "abcdefgh"
QUEUES = ("t", "t1", "t2", "u", "u1")
PARENTS = {"t": ROOT, "t1": "t", "t2": "t", "u": ROOT, "u1": "u", ROOT: ""}


def key(name: str) -> EntryKey:
    return GangKey("team", name)


def sized(cpu: int, gpu: int = 0) -> Resources:
    """So much of both, nothing named that is not asked for."""
    return amounts(**({"cpu": str(cpu)} if cpu else {}), **({"gpu": str(gpu)} if gpu else {}))


def softened(tree: QueueTree, claims: Mapping[str, Mapping[EntryKey, Claim]]) -> set[EntryKey]:
    """The gangs whose soft part does not count: in order, as long as the queues' limits last."""
    sums: dict[str, dict[str, int]] = {}
    soft: set[EntryKey] = set()
    all_ = (claim for own in claims.values() for claim in own.values() if claim.soft_amounts)
    for claim in sorted(all_, key=lambda one: one.order):
        where = soft_in(tree, claim)
        if all(_stays_within(tree.ceiling(one), sums.get(one, {}), claim) for one in where):
            soft.add(claim.key)
            for one in where:
                so_far = sums.setdefault(one, {})
                for name, amount in claim.soft_amounts:
                    so_far[name] = so_far.get(name, 0) + amount
    return soft


def _stays_within(limit: Mapping[str, int], so_far: Mapping[str, int], claim: Claim) -> bool:
    return all(name not in limit or so_far.get(name, 0) + amount <= limit[name] for name, amount in claim.soft_amounts)


def makes_ring(tree: QueueTree) -> bool:
    """Whether a queue stands above itself: there changes are not told to all who compete."""
    return any(view.name in tree.path(view.parent) for view in tree if view.name != ROOT)


_sizes = st.builds(sized, st.integers(0, 5), st.integers(0, 2))
_limits = st.builds(sized, st.integers(0, 9), st.integers(0, 3))
_names, _queues = st.sampled_from(NAMES), st.sampled_from(QUEUES)


class AnyHistory(RuleBasedStateMachine):
    """Claims and queues through any history; whether anybody asks meanwhile makes no difference."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        for name, parent in PARENTS.items():
            self.ledger.set_queue(QueueView(name, "Open", {}, parent=parent))

    @rule(
        name=_names,
        queue=_queues,
        claim=_sizes,
        soft=st.sampled_from(["", "all", "all", "all", "a part"]),
        priority=st.integers(-1, 1),
        idle=st.booleans(),
        lasts=st.booleans(),
    )
    def a_gang_holds(
        self, *, name: str, queue: str, claim: Resources, soft: str, priority: int, idle: bool, lasts: bool
    ) -> None:
        """Also in another queue than before, or with another soft part."""
        part = {"": {}, "all": claim, "a part": {one: claim[one] for one in list(claim)[:1]}}[soft]
        # All of it runs: how much less a queue hands up is another matter (test_handing_up.py).
        self.ledger.hold(
            Claim(key(name), queue, claim, priority, soft=part, idle=idle and bool(part), lasts=lasts, running=claim)
        )

    @rule(name=_names, spare=_sizes)
    def only_what_may_be_taken_back_changes(self, name: str, spare: Resources) -> None:
        """Then the ledger has another claim, of which as much is soft."""
        queue = self.ledger.queue_of(key(name))
        if queue is not None:
            self.ledger.hold(replace(self.ledger.claims(queue)[key(name)], spare=spare))

    @rule(name=_names)
    def a_gang_ends(self, name: str) -> None:
        """Whether it was known or not."""
        self.ledger.forget(key(name))

    @rule(name=st.sampled_from([*QUEUES, ROOT]), limit=_limits, guarantee=st.sampled_from([{}, {}, sized(2)]))
    def a_queue_has_other_limits(self, name: str, limit: Resources, guarantee: Resources) -> None:
        """Where it stands, if it is there."""
        view = self.ledger.tree.get(name)
        parent = view.parent if view is not None else PARENTS[name]
        self.ledger.set_queue(QueueView(name, "Open", limit, parent=parent, guarantee=guarantee))

    @rule(name=_queues, parent=st.sampled_from([ROOT, *QUEUES]), strict=st.booleans())
    def a_queue_moves(self, name: str, parent: str, *, strict: bool) -> None:
        """To any place, also where there is no tree any more."""
        view = self.ledger.tree.get(name)
        limit = view.limit if view is not None else {}
        self.ledger.set_queue(QueueView(name, "Open", limit, parent=parent, strict=strict))

    @rule(name=st.sampled_from([*QUEUES, ROOT]))
    def a_queue_goes(self, name: str) -> None:
        """What is held there is held on."""
        self.ledger.drop_queue(name)

    @rule(nodes=st.one_of(st.none(), _limits))
    def nodes_come_and_go(self, nodes: Resources | None) -> None:
        """Where the cluster is bound by them."""
        self.ledger.bound(nodes)

    @rule()
    def anybody_asks(self) -> None:
        """What every queue's usage is, whose claims are soft, and how much is left to others."""
        tree, claims = self.ledger.tree, {queue: self.ledger.claims(queue) for queue in QUEUES}
        soft = softened(tree, claims)
        used = {one: self._used(one, claims, soft) for one in (*QUEUES, ROOT)}
        for one, taken in used.items():
            assert dict(amounts_of(self.ledger.used(one))) == {name: amount for name, amount in taken.items() if amount}
        if makes_ring(tree):
            return
        assert {gang for own in claims.values() for gang in own if self.ledger.soft(gang, 0.0)} == soft
        for queue in QUEUES:
            room = room_to_grow(self.ledger.outcome(queue, 0.0), queue)
            free = [
                (what, most - self._used(one, claims, soft).get(what, 0))
                for one in tree.gang_path(queue)
                for what, most in self._limit(one)
            ]
            assert room is None or room == {what: min(n for w, n in free if w == what) for what, _ in free}

    def teardown(self) -> None:
        """At the end somebody asks in any case."""
        self.anybody_asks()

    def _limit(self, queue: str) -> list[tuple[str, int]]:
        return list(self.ledger.tree.ceiling(queue).items())

    def _used(
        self, queue: str, claims: Mapping[str, Mapping[EntryKey, Claim]], soft: set[EntryKey]
    ) -> Mapping[str, int]:
        tree, used = self.ledger.tree, dict[str, int]()
        for other, own in claims.items():
            for gang, claim in own.items() if queue in tree.gang_path(other) else ():
                spared = gang in soft and queue in soft_in(tree, claim)
                for name, amount in (*claim.amounts, *((n, -a) for n, a in claim.soft_amounts if spared)):
                    used[name] = used.get(name, 0) + amount
        return used


AnyHistory.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=30, deadline=None)
TestAnyHistory = AnyHistory.TestCase


FEW, MANY = 50, 800


def without_nodes(claims: int, limit: int, *, organisations: int = 1) -> Ledger:
    """So many soft claims of 1 cpu in each organisation, of which each may hold this much, and one gang that runs."""
    books = Ledger()
    for one in range(organisations):
        books.set_queue(QueueView(f"org{one}", "Open", sized(limit)))
        for number in range(4):
            books.set_queue(QueueView(f"q{one}{number}", "Open", {}, parent=f"org{one}"))
        for number in range(claims):
            soft(books, f"q{one}{number % 4}", f"gang{one}-{number:04}")
    books.hold(Claim(key("runs"), "q00", sized(1)))
    books.newly_startable("q00", 0.0)
    return books


def soft(books: Ledger, queue: str, name: str) -> None:
    """A gang holds 1 cpu there, and has no node."""
    books.hold(Claim(key(name), queue, sized(1), since=name, soft=sized(1), idle=True))


def calls(books: Ledger, *events: Callable[[Ledger], object]) -> int:
    """The calls for all these events, and the one decision that follows."""
    with Calls() as counted:
        for event in events:
            event(books)
        books.newly_startable("q00", 0.0)
    return counted.count


def one_ends(books: Ledger) -> None:
    """A gang that ran, on nodes."""
    assert books.forget(key("runs"))


@cases("limit", ("more than the limit is soft", FEW // 2), ("less is soft", MANY * 2))
def test_an_event_costs_as_much_however_many_claims_are_soft(limit: int) -> None:
    """Unless it is about one of them. Python may clean up meanwhile, which is a call or two."""
    assert calls(without_nodes(MANY, limit), one_ends) <= calls(without_nodes(FEW, limit), one_ends) + 10


def test_where_no_limit_is_exceeded_a_claim_turns_soft_without_a_look_at_the_others() -> None:
    """Only its place is looked for."""

    def turns_soft(claims: int) -> int:
        return calls(without_nodes(claims, MANY * 2), lambda books: soft(books, "q00", "runs"))

    assert turns_soft(MANY) <= turns_soft(FEW) + 10


def test_many_claims_that_turn_soft_at_once_are_judged_in_one_walk() -> None:
    """One for all that come before somebody asks."""

    def come(number: int) -> int:
        events = [lambda books, name=f"new{one}": soft(books, "q00", name) for one in range(number)]
        return calls(without_nodes(MANY, FEW), *events)

    assert come(1) >= MANY
    assert come(5) < come(1) + MANY


def test_a_claim_that_turns_soft_has_those_alone_judged_that_compete_with_it() -> None:
    """Not those below other limits, though these are exceeded as well."""

    def turns_soft(organisations: int) -> int:
        books = without_nodes(FEW, FEW // 2, organisations=organisations)
        for one in range(organisations):
            books.newly_startable(f"q{one}0", 0.0)
        return calls(books, lambda books: soft(books, "q00", "runs"))

    assert turns_soft(8) < turns_soft(2) + 2 * FEW


def test_who_is_soft_follows_each_change_of_what_is_before_it() -> None:
    """The first two of three fit below the limit of 2 cpu; when the first has a node, the third is soft as well."""
    books = Ledger()
    books.set_queue(QueueView("q", "Open", sized(2)))
    for name in "abc":
        soft(books, "q", name)
    assert [books.soft(key(name), 0.0) for name in "abc"] == [True, True, False]
    books.hold(Claim(key("a"), "q", sized(1), since="a"))
    assert [books.soft(key(name), 0.0) for name in "abc"] == [False, True, True]
    books.set_queue(QueueView("q", "Open", sized(1)))
    assert [books.soft(key(name), 0.0) for name in "abc"] == [False, True, False]


def test_a_queue_that_moves_is_judged_by_the_limits_above_its_new_place() -> None:
    """Also where the same limits are exceeded as before."""
    books = Ledger()
    for name in ("org", "other"):
        books.set_queue(QueueView(name, "Open", sized(1)))
    for name, parent in (("q", "org"), ("moves", ROOT)):
        books.set_queue(QueueView(name, "Open", {}, parent=parent))
    for queue, name in (("q", "b"), ("q", "c"), ("moves", "a")):
        soft(books, queue, name)
    assert [books.soft(key(name), 0.0) for name in "abc"] == [True, True, False]
    books.set_queue(QueueView("moves", "Open", {}, parent="org"))
    assert [books.soft(key(name), 0.0) for name in "abc"] == [True, False, False]
