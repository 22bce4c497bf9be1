"""Queues with one parent share its room: whose gang is first, and who waits."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.queueing.entries import Claim, EntryKey
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.shares import Shares, percent
from muster.queueing.usage import Usage, amounts_of
from muster.resources.amounts import Resources
from tests.support.cases import cases
from tests.support.examples import examples
from tests.support.manifests.observed import amounts
from tests.support.queueing.facts import Holder
from tests.support.queueing.world import World

NOW = 1_000_000.0
# Two organisations of two teams, and one team by itself.
PARENTS = {"t": ROOT, "t1": "t", "t2": "t", "u": ROOT, "u1": "u", "u2": "u", "v": ROOT}
TEAMS = ("t1", "t2", "u1", "u2", "v")


def key(name: str) -> EntryKey:
    return GangKey("team", name)


def both(cpu: int, gpu: int) -> Resources:
    """So much of both."""
    return amounts(cpu=str(cpu), gpu=str(gpu))


sizes = st.builds(both, st.integers(1, 4), st.sampled_from([0, 0, 1, 2]))
rooms = st.builds(both, st.integers(6, 30), st.integers(1, 8))
ages = st.sampled_from(["08:00", "09:00", "10:00", "11:00"])


# Hypothesis takes longer to make a strategy than to draw from it: they are made once.
limits_of_some = st.sampled_from([{}, {}, amounts(cpu="6"), amounts(cpu="9", gpu="2")])
deserved = st.sampled_from([{}, {}, {}, amounts(cpu="3"), amounts(cpu="0", gpu="2")])
weights = st.sampled_from([1, 1, 2, 5])
mostly_by_share = st.sampled_from([False, False, True])


@st.composite
def trees(
    draw: st.DrawFn, *, by_age: st.SearchStrategy[bool] = mostly_by_share, limits: bool = True
) -> list[QueueView]:
    """The queues, with different shares; `limits` where they may have limits of their own."""
    return [
        QueueView(
            name,
            "Open",
            draw(limits_of_some) if limits else {},
            parent=parent,
            deserved=draw(deserved),
            weight=draw(weights),
            by_age=draw(by_age),
        )
        for name, parent in {ROOT: "", **PARENTS}.items()
    ]


holders = st.lists(
    st.builds(
        Holder,
        *(st.sampled_from(TEAMS), sizes, st.just(0), ages, st.just({}), st.just(False), st.booleans()),
        spare=st.just({}),
        running=st.none(),
        end=st.none(),
    ),
    max_size=6,
)


teams, priorities, passed = st.sampled_from(TEAMS), st.sampled_from([0, 0, 5]), st.sampled_from([None, None, NOW - 700])
counts, booleans = st.integers(2, 9), st.booleans()


@st.composite
def waiting(draw: st.DrawFn, *, patient: bool = False) -> list[Candidate]:
    """Gangs of all teams; of some the patience is over."""
    return [
        Candidate(
            key(f"w{number}"),
            draw(teams),
            draw(priorities),
            draw(ages),
            draw(sizes),
            None if patient else draw(passed),
            lasts=draw(booleans),
        )
        for number in range(draw(counts))
    ]


def made(views: list[QueueView], nodes: Resources, held: list[Holder], waits: list[Candidate]) -> tuple[Ledger, World]:
    """A ledger, and the model of the same facts."""
    books, world = Ledger(), World()
    world.nodes = nodes
    world.queues = {view.name: view for view in views}
    world.held = {key(f"h{number}"): holder for number, holder in enumerate(held)}
    world.waits = {one.key: one for one in waits}
    for view in views:
        books.set_queue(view)
    books.bound(nodes)
    for gang, holder in world.held.items():
        books.hold(Claim(gang, holder.queue, holder.claim, since=holder.since, lasts=holder.lasts))
    for one in waits:
        books.wait(one)
    return books, world


@given(trees(), rooms, holders, waiting())
@settings(max_examples=examples(300), deadline=None)
def test_gangs_start_in_the_order_of_the_model(
    views: list[QueueView], nodes: Resources, held: list[Holder], waits: list[Candidate]
) -> None:
    books, world = made(views, nodes, held, waits)
    assert books.startable("v", NOW) == list(world.fitting(NOW))


@given(trees(), rooms, holders, waiting(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_whoever_starts_first_a_ledger_made_of_the_facts_says_the_same(
    views: list[QueueView], nodes: Resources, held: list[Holder], waits: list[Candidate], chance: Random
) -> None:
    books, world = made(views, nodes, held, waits)
    while promised := books.startable("v", NOW):
        chance.shuffle(promised)
        for one in [world.waits.pop(gang) for gang in promised]:
            books.hold(one.claim(NOW))
            held = [*held, Holder(one.queue, one.need, one.priority, one.since, {}, idle=False, lasts=one.lasts)]
        fresh, _ = made(views, nodes, held, list(world.waits.values()))
        assert books.startable("v", NOW) == fresh.startable("v", NOW)


@given(trees(), rooms, holders, waiting(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_same_objects_give_the_same_order_whenever_each_of_them_came(
    views: list[QueueView], nodes: Resources, held: list[Holder], waits: list[Candidate], chance: Random
) -> None:
    books, world = made(views, nodes, held, waits)
    other = Ledger()
    steps: list[Callable[[], object]] = [lambda: other.bound(nodes)]
    steps += [partial(other.set_queue, view) for view in views]
    steps += [partial(other.wait, one) for one in waits]
    steps += [
        partial(other.hold, Claim(gang, holder.queue, holder.claim, since=holder.since, lasts=holder.lasts))
        for gang, holder in world.held.items()
    ]
    chance.shuffle(steps)
    for step in steps:
        step()
    assert other.startable("v", NOW) == books.startable("v", NOW)
    for one in waits:
        assert other.decide(one.key, NOW) == books.decide(one.key, NOW)


@given(trees(by_age=st.just(False), limits=False), rooms, holders, waiting(patient=True))
@settings(max_examples=examples(200), deadline=None)
def test_nobody_waits_who_has_less_of_its_share_than_one_that_starts_in_its_place(
    views: list[QueueView], nodes: Resources, held: list[Holder], waits: list[Candidate]
) -> None:
    """At each start: no sibling with less has a gang for which there is room at that moment."""
    books, world = made(views, nodes, held, waits)
    shares, usage = Shares(books.tree), Usage(books.tree)
    for holder in held:
        usage.take(holder.queue, amounts_of(holder.claim))
    left = dict(world.waits)
    for gang in books.startable("v", NOW):
        starts = left.pop(gang)
        path = books.tree.path(starts.queue)[::-1]
        for other in left.values():
            beside = books.tree.path(other.queue)[::-1]
            level = next(
                (level for level, (one, two) in enumerate(zip(path, beside, strict=False)) if one != two), None
            )
            if level is not None and not usage.lacking(books.tree.path(other.queue), amounts_of(other.need)):
                mine, theirs = (shares.of(one, usage.taken(one)) for one in (path[level], beside[level]))
                assert mine <= theirs
        usage.take(starts.queue, amounts_of(starts.need))
    assert all(usage.lacking(books.tree.path(one.queue), amounts_of(one.need)) for one in left.values())


@given(trees(by_age=st.just(True)), rooms, holders, waiting(patient=True))
@settings(deadline=None)
def test_by_age_the_order_of_gangs_alone_counts(
    views: list[QueueView], nodes: Resources, held: list[Holder], waits: list[Candidate]
) -> None:
    """As it was before there were shares."""
    books, _ = made(views, nodes, held, waits)
    usage = Usage(books.tree)
    for holder in held:
        usage.take(holder.queue, amounts_of(holder.claim))
    fits = []
    for one in sorted(waits, key=lambda one: one.order):
        if not usage.lacking(books.tree.path(one.queue), amounts_of(one.need)):
            usage.take(one.queue, amounts_of(one.need))
            fits.append(one.key)
    assert books.startable("v", NOW) == fits


def flood(queue: str, count: int, since: str, **need: str) -> list[Candidate]:
    return [Candidate(key(f"{queue}-{number:02}"), queue, 0, since, amounts(**need)) for number in range(count)]


def started(books: Ledger, known: dict[EntryKey, Candidate]) -> list[str]:
    """Start all that may, as the controller does; gives their queues."""
    queues = []
    for gang in books.startable(next(iter(known.values())).queue, NOW):
        books.hold(known[gang].claim(NOW))
        queues.append(known[gang].queue)
    return queues


def beside(*views: QueueView, **nodes: str) -> Ledger:
    """Queues that compete for nodes."""
    books = Ledger()
    for view in views:
        books.set_queue(replace(view, trusts_estimates=False))
    books.bound(amounts(**nodes))
    return books


def test_a_queue_that_comes_late_gets_its_half_from_a_flood_beside_it() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="20")
    known = {one.key: one for one in (*flood("a", 30, "09:00", cpu="1"), *flood("b", 30, "10:00", cpu="1"))}
    for one in known.values():
        if one.queue == "a":
            books.wait(one)
    assert started(books, known) == ["a"] * 20
    for one in known.values():
        if one.queue == "b":
            books.wait(one)
    assert started(books, known) == []
    for _ in range(10):
        books.forget(next(iter(books.claims("a"))))
        assert started(books, known) == ["b"]
    # From then on whoever ends is followed by one of its own.
    books.forget(next(iter(books.claims("a"))))
    assert started(books, known) == ["a"]
    books.forget(next(iter(books.claims("b"))))
    assert started(books, known) == ["b"]


def test_floods_divide_the_room_by_weight_at_each_level() -> None:
    views = [
        QueueView("t", "Open", {}, weight=2),
        QueueView("t1", "Open", {}, parent="t"),
        QueueView("t2", "Open", {}, parent="t", weight=3),
        QueueView("v", "Open", {}),
    ]
    books = beside(*views, cpu="12")
    known = {one.key: one for queue in ("v", "t1", "t2") for one in flood(queue, 20, "09:00", cpu="1")}
    for one in known.values():
        books.wait(one)
    queues = started(books, known)
    assert {queue: queues.count(queue) for queue in ("t1", "t2", "v")} == {"t1": 2, "t2": 6, "v": 4}


def test_a_gang_of_high_priority_waits_for_a_sibling_below_its_share_and_for_nobody_of_its_own_queue() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="4")
    books.hold(Claim(key("runs"), "a", amounts(cpu="2")))
    urgent = replace(flood("a", 1, "11:00", cpu="2")[0], key=key("urgent"), priority=1000)
    for one in (urgent, *flood("a", 1, "09:00", cpu="2"), *flood("b", 1, "10:00", cpu="2")):
        books.wait(one)
    assert books.startable("a", NOW) == [key("b-00")]
    books.forget(key("b-00"))
    assert books.startable("a", NOW) == [key("urgent")]


def test_a_reservation_below_keeps_nothing_of_the_nodes_from_one_whose_patience_is_over() -> None:
    """The large one waits for its team's limit, and lasts: when it runs the other has no room, but now it has."""
    views = [
        QueueView(ROOT, "Open", {}, parent="", by_age=True),
        QueueView("t", "Open", amounts(cpu="9")),
        QueueView("t1", "Open", {}, parent="t"),
        QueueView("u", "Open", {}),
    ]
    held = [Holder("t1", both(cpu, 0), 0, "08:00", {}, idle=False, lasts=cpu == 4) for cpu in (4, 3)]
    large = Candidate(key("large"), "t1", 0, "08:00", both(4, 0), NOW - 700, lasts=True)
    small = Candidate(key("small"), "u", 0, "09:00", both(1, 0), NOW - 700)
    books, world = made(views, both(8, 1), held, [large, small])
    assert books.startable("u", NOW) == list(world.fitting(NOW)) == [small.key]


def test_a_start_passes_the_first_of_a_sibling_that_has_no_more_of_its_share() -> None:
    """However old what starts is: else a large gang beside a flood would never come to its patience."""
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "b", amounts(cpu="7")))
    books.wait(Candidate(key("large"), "a", 0, "10:00", amounts(cpu="4")))
    books.wait(Candidate(key("small"), "b", 0, "09:00", amounts(cpu="1")))
    assert books.startable("a", NOW) == [key("small")]
    assert books.passed_by(key("small"), NOW) == [key("large")]


def test_a_start_does_not_pass_siblings_that_have_more_of_their_share() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "a", amounts(cpu="6")))
    books.wait(Candidate(key("large"), "a", 0, "09:00", amounts(cpu="4")))
    books.wait(Candidate(key("small"), "b", 0, "10:00", amounts(cpu="1")))
    assert books.passed_by(key("small"), NOW) == []


def test_a_start_whose_turn_came_first_passes_no_sibling_that_has_less_once_it_has_started() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("a runs"), "a", amounts(cpu="3")))
    books.hold(Claim(key("b runs"), "b", amounts(cpu="2")))
    books.wait(Candidate(key("large"), "a", 0, "09:00", amounts(cpu="4")))
    for one in flood("b", 2, "10:00", cpu="2"):
        books.wait(one)
    assert books.startable("a", NOW) == [key("b-00")]
    assert books.passed_by(key("b-00"), NOW) == []
    # The next one is behind the large one, for which there is as little room.
    books.hold(Claim(key("b-00"), "b", amounts(cpu="2")))
    books.wait(Candidate(key("small"), "b", 0, "09:30", amounts(cpu="1")))
    assert books.startable("a", NOW) == [key("small")]
    assert books.passed_by(key("small"), NOW) == [key("large")]


def test_a_start_passes_the_first_of_its_own_queue_though_that_has_more_than_before() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "a", amounts(cpu="4")))
    books.wait(Candidate(key("large"), "b", 0, "08:00", amounts(cpu="5")))
    books.wait(Candidate(key("small"), "b", 0, "09:00", amounts(cpu="1")))
    assert books.passed_by(key("small"), NOW) == [key("large")]


def test_a_start_passes_one_whose_queue_had_less_though_others_behind_it_have_started_since() -> None:
    """They take nothing that it lacks, and it is as far in front as before."""
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="10", gpu="8")
    books.hold(Claim(key("runs"), "b", amounts(gpu="5")))
    books.wait(Candidate(key("large"), "a", 0, "09:00", amounts(gpu="4")))
    books.wait(Candidate(key("beside"), "a", 0, "09:30", amounts(cpu="7")))
    books.wait(Candidate(key("small"), "b", 0, "10:00", amounts(gpu="1")))
    assert books.startable("a", NOW) == [key("beside"), key("small")]
    assert books.passed_by(key("beside"), NOW) == []
    assert books.passed_by(key("small"), NOW) == [key("large")]


def test_between_siblings_with_as_much_of_their_share_the_older_one_is_passed() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), QueueView("c", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "c", amounts(cpu="6")))
    books.wait(Candidate(key("old"), "a", 0, "09:00", amounts(cpu="4")))
    books.wait(Candidate(key("small"), "b", 0, "10:00", amounts(cpu="1")))
    books.wait(Candidate(key("young"), "c", 0, "11:00", amounts(cpu="4")))
    assert books.passed_by(key("small"), NOW) == [key("old")]
    books.forget(key("old"))
    books.wait(Candidate(key("young"), "a", 0, "11:00", amounts(cpu="4")))
    assert books.passed_by(key("small"), NOW) == []


def test_nobody_passes_a_large_gang_of_a_queue_that_has_nothing_when_its_patience_is_over() -> None:
    """Not even older gangs of siblings."""
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "b", amounts(cpu="5")))
    books.wait(Candidate(key("large"), "a", 0, "10:00", amounts(cpu="7"), passed_since=NOW - 700))
    books.wait(Candidate(key("small"), "b", 0, "09:00", amounts(cpu="1")))
    assert books.startable("a", NOW) == []


@cases("b", ("closed", QueueView("b", "Closed", {})), ("on hold", QueueView("b", "Open", {}, on_hold=True)))
def test_a_sibling_in_which_nothing_starts_goes_before_nobody(b: QueueView) -> None:
    books = beside(QueueView("a", "Open", {}), b, cpu="8")
    books.hold(Claim(key("runs"), "a", amounts(cpu="7")))
    books.wait(Candidate(key("mine"), "a", 0, "09:00", amounts(cpu="2")))
    books.wait(Candidate(key("theirs"), "b", 0, "08:00", amounts(cpu="1")))
    assert words(books, "mine") == "needs cpu 2; the cluster has cpu 1 free of cpu 8; position 1 of 1 waiting"
    assert books.startable("b", NOW) == []


def test_who_waits_behind_siblings_hears_what_its_own_queue_has() -> None:
    """Not their names, and not what they have."""
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "a", amounts(cpu="6")))
    books.wait(Candidate(key("mine"), "a", 0, "09:00", amounts(cpu="2")))
    books.wait(Candidate(key("theirs"), "b", 0, "10:00", amounts(cpu="2")))
    assert words(books, "mine") == (
        'needs cpu 2; the cluster has cpu 0 free of cpu 8; queue "a" has 150% of its share, '
        "and siblings that have less go first; position 1 of 1 waiting"
    )
    books.forget(key("theirs"))
    books.wait(Candidate(key("mine"), "a", 0, "09:00", amounts(cpu="3")))
    assert "share" not in words(books, "mine")


def test_siblings_that_wait_for_their_own_limit_go_before_nobody() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", amounts(cpu="2")), cpu="8")
    books.hold(Claim(key("runs"), "a", amounts(cpu="6")))
    books.hold(Claim(key("too"), "b", amounts(cpu="1")))
    books.wait(Candidate(key("mine"), "a", 0, "09:00", amounts(cpu="2")))
    books.wait(Candidate(key("theirs"), "b", 0, "10:00", amounts(cpu="2")))
    assert "share" not in words(books, "mine")


def test_the_words_of_one_that_is_below_its_share_name_no_sibling() -> None:
    books = beside(QueueView("a", "Open", {}), QueueView("b", "Open", {}), cpu="8")
    books.hold(Claim(key("runs"), "a", amounts(cpu="6")))
    books.wait(Candidate(key("mine"), "b", 0, "09:00", amounts(cpu="3")))
    books.wait(Candidate(key("theirs"), "a", 0, "10:00", amounts(cpu="3")))
    assert "share" not in words(books, "mine")


def words(of: Ledger, name: str) -> str:
    found = of.decide(key(name), NOW)
    assert found is not None
    return found.message


def test_a_queue_has_a_part_of_its_share_where_siblings_share() -> None:
    views = [QueueView("t", "Open", amounts(cpu="8")), QueueView("t1", "Open", {}, parent="t")]
    books = beside(*views, QueueView("t2", "Open", {}, parent="t", deserved=amounts(cpu="0")), cpu="8")
    books.hold(Claim(key("runs"), "t1", amounts(cpu="2")))
    books.hold(Claim(key("more"), "t2", amounts(cpu="1")))
    assert [books.share(name) for name in ("t1", "t2", "t", ROOT)] == [0.5, float("inf"), None, None]
    assert percent(0.5) == "50%"
    assert percent(float("inf")) == "more than 100%"
    books.set_queue(replace(views[0], by_age=True))
    assert books.share("t1") is None
