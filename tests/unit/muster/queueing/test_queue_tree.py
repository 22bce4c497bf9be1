"""Queues below queues: whom a limit binds, what a guarantee keeps from the others, and trees that are none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.objects import Queue
from muster.model.selectors import parse_selector
from muster.queueing.ledger import Ledger
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT, QueueView, read_queue
from muster.resources.amounts import as_text
from tests.support.cases import cases
from tests.support.manifests.observed import amounts, made, queue


def view(name: str, parent: str = ROOT, *, guarantee: str = "", **limit: str) -> QueueView:
    kept = amounts(cpu=guarantee) if guarantee else {}
    return QueueView(name, "Open", amounts(**limit), parent="" if name == ROOT else parent, guarantee=kept)


def levels(tree: QueueTree, name: str) -> list[tuple[str, dict[str, str]]]:
    """The limits that bind a queue's gangs, its own first."""
    place = tree.place(name)
    assert place is not None
    return [(level.queue, dict(as_text(level.limit))) for level in place.levels]


def test_a_gang_is_bound_by_its_queue_and_by_all_above_it() -> None:
    tree = QueueTree([view("org", cpu="10"), view("team", "org"), view("a", "team", cpu="4", memory="1Gi")])
    assert levels(tree, "a") == [("a", {"cpu": "4", "memory": "1Gi"}), ("org", {"cpu": "10"})]


def test_only_the_lowest_queues_take_gangs() -> None:
    tree = QueueTree([view(ROOT), view("org"), view("a", "org")])
    assert [tree.leaf(name) for name in (ROOT, "org", "a")] == [False, False, True]
    tree.drop("a")
    assert tree.leaf("org")


def test_the_queues_of_a_namespace_are_those_that_take_its_gangs() -> None:
    """Not those of others, nor closed ones, nor those with queues below; and none where there are too many."""
    kept = replace(view("kept"), namespaces=parse_selector("team=ml"))
    views = [view(ROOT), view("org"), view("a", "org"), replace(view("shut"), state="Closed"), kept]
    assert QueueTree(views).names_for({"team": "web"}) == ["a"]
    assert QueueTree(views).names_for({"team": "ml"}) == ["a", "kept"]
    assert QueueTree([*views, *(view(f"q{n}") for n in range(256))]).names_for({}) == []


def test_a_changed_root_binds_those_below_a_queue_that_is_not_there() -> None:
    """Only as their parent has that queue a place, and it has a limit there all the same."""
    tree = QueueTree([view(ROOT, cpu="3"), view("a", "absent"), view("b", guarantee="2")])
    assert tree.limit("absent") == amounts(cpu="1")
    tree.set(view(ROOT, cpu="6"))
    assert tree.limit("absent") == amounts(cpu="4")


def test_what_is_guaranteed_to_its_siblings_is_out_of_a_queues_reach() -> None:
    tree = QueueTree([view("org", cpu="10"), view("a", "org", guarantee="2"), view("b", "org", guarantee="3")])
    assert levels(tree, "a") == [("a", {"cpu": "7"}), ("org", {"cpu": "10"})]
    assert levels(tree, "b") == [("b", {"cpu": "8"}), ("org", {"cpu": "10"})]


@cases("own", ("no capability", {}), ("a larger one", {"cpu": "9"}))
def test_what_guarantees_leave_is_not_called_a_queues_own_capability(own: dict[str, str]) -> None:
    """Whoever raises that would raise it in vain."""
    tree = QueueTree([view("org", cpu="10"), view("a", "org", **own), view("b", "org", cpu="4", guarantee="6")])
    place = tree.place("a")
    assert place is not None
    level, above, *_ = place.levels
    assert level.exceeded(amounts(cpu="5")) == ("cpu 5", "cpu 4 apart from what is guaranteed to its siblings")
    assert above.exceeded(amounts(cpu="11")) == ("cpu 11", "cpu 10")
    assert level.exceeded(amounts(cpu="4")) is None
    beside = tree.place("b")
    assert beside is not None
    assert beside.levels[0].exceeded(amounts(cpu="5")) == ("cpu 5", "cpu 4")


def test_guarantees_of_more_than_there_is_leave_nothing_to_the_others() -> None:
    """Nothing is not unlimited: only a capability of 0 is."""
    tree = QueueTree([view("org", cpu="4"), view("a", "org"), view("b", "org", guarantee="5")])
    assert levels(tree, "a")[0] == ("a", {"cpu": "0"})


@cases("whole", ("the queue above", {"org": "10"}), ("the nodes", {ROOT: "10"}))
def test_where_more_is_guaranteed_than_there_is_a_queue_may_still_have_its_own_guarantee(whole: dict[str, str]) -> None:
    """Nodes that fail make it so: all would be free, and nobody could start."""
    (parent,) = whole
    tree = QueueTree([view("a", parent, guarantee="8"), view("b", parent, guarantee="8"), view("c", parent)])
    if parent == ROOT:
        tree.bound(amounts(cpu="10"))
    else:
        tree.set(view("org", cpu="10"))
    assert levels(tree, "a") == [("a", {"cpu": "8"}), (parent, {"cpu": "10"})]
    assert levels(tree, "b") == [("b", {"cpu": "8"}), (parent, {"cpu": "10"})]
    assert levels(tree, "c") == [("c", {"cpu": "0"}), (parent, {"cpu": "10"})]


def test_a_queue_whose_guarantee_is_all_there_is_has_no_less_beside_its_siblings() -> None:
    """What is too little is what the queue above has, and so it is told."""
    views = [view("org", cpu="10"), view("a", "org", guarantee="12"), view("b", "org", guarantee="8", cpu="20")]
    assert levels(QueueTree(views), "a") == [("org", {"cpu": "10"})]
    assert levels(QueueTree(views), "b") == [("b", {"cpu": "8"}), ("org", {"cpu": "10"})]
    views[1] = view("a", "org", guarantee="12", cpu="10")
    assert levels(QueueTree(views), "a") == [("a", {"cpu": "10"}), ("org", {"cpu": "10"})]


@given(
    st.integers(1, 30),
    st.lists(st.tuples(st.integers(0, 20), st.none() | st.integers(1, 30)), min_size=1, max_size=5),
)
def test_a_queue_may_have_what_volcanos_hierarchical_capacity_gives_it(
    whole: int, queues: list[tuple[int, int | None]]
) -> None:
    """What all guarantees leave of the queue above, its own guarantee and nobody else's, and no more than it may."""
    promised = sum(guarantee for guarantee, _ in queues)
    tree = QueueTree([view("org", cpu=str(whole))])
    for number, (guarantee, own) in enumerate(queues):
        limit = {} if own is None else {"cpu": str(own)}
        tree.set(view(f"q{number}", "org", guarantee=str(guarantee) if guarantee else "", **limit))
    for number, (guarantee, own) in enumerate(queues):
        place = tree.place(f"q{number}")
        assert place is not None
        found = min(level.limit["cpu"] for level in place.levels)
        real = max(whole - promised, 0) + guarantee
        assert found == amounts(cpu=str(min(real, whole, whole if own is None else own)))["cpu"]


def test_a_guarantee_is_kept_from_siblings_whichever_queue_above_has_the_capability() -> None:
    tree = QueueTree([view("org", cpu="10"), view("through", "org"), view("a", "through"), view("b", "through")])
    tree.set(view("b", "through", guarantee="6"))
    assert levels(tree, "a") == [("a", {"cpu": "4"}), ("org", {"cpu": "10"})]
    assert levels(tree, "b") == [("org", {"cpu": "10"})]
    tree.set(view("org", cpu="9"))
    assert levels(tree, "a") == [("a", {"cpu": "3"}), ("org", {"cpu": "9"})]


def volcanos(tree: dict[str, tuple[str, int, int | None]], name: str) -> int:
    """The realCapability of a queue, in cpu (Volcano 1.14.1, capacity.go:779-831); the root has 20."""
    if name == ROOT:
        return 20
    parent, guarantee, own = tree[name]
    above = volcanos(tree, parent)
    promised = sum(one[1] for one in tree.values() if one[0] == parent)
    real = max(above - promised, 0) + guarantee
    # What no queue has is bounded by what the parent really has, which Volcano checks beside it.
    return min(real, above, above if own is None else own)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "a1", "a2", "b1", "a11", "a12", "a13"]),
        st.tuples(st.integers(0, 6), st.none() | st.integers(1, 25)),
    )
)
def test_a_queue_anywhere_in_a_tree_may_have_what_volcano_gives_it(
    drawn: dict[str, tuple[int, int | None]],
) -> None:
    """Of three levels, with a capability at any of them or none."""
    names = {name[:length] for name in drawn for length in range(1, len(name) + 1)}
    described = {name: (name[:-1] or ROOT, *drawn.get(name, (0, None))) for name in names}
    tree = QueueTree([view(ROOT, cpu="20")])
    for name, (parent, guarantee, own) in sorted(described.items()):
        limit = {} if own is None else {"cpu": str(own)}
        tree.set(view(name, parent, guarantee=str(guarantee) if guarantee else "", **limit))
    for name in names:
        place = tree.place(name)
        assert place is not None
        assert min(level.limit["cpu"] for level in place.levels) == amounts(cpu=str(volcanos(described, name)))["cpu"]


def test_guarantees_bind_nobody_where_the_queue_above_is_unlimited() -> None:
    tree = QueueTree([view("org"), view("a", "org"), view("b", "org", guarantee="5")])
    assert levels(tree, "a") == []


def test_the_nodes_bound_the_root() -> None:
    tree = QueueTree([view("a", cpu="4")])
    tree.bound(amounts(cpu="3", memory="1Gi"))
    assert levels(tree, "a") == [("a", {"cpu": "4"}), (ROOT, {"cpu": "3", "memory": "1Gi"})]
    tree.bound(None)
    assert levels(tree, "a") == [("a", {"cpu": "4"})]
    assert levels(tree, "a") == [("a", {"cpu": "4"})]


def test_a_queue_that_moves_is_bound_by_its_new_place_only() -> None:
    tree = QueueTree([view("x", cpu="1"), view("y", cpu="2"), view("a", "x")])
    tree.set(view("a", "y"))
    assert levels(tree, "a") == [("y", {"cpu": "2"})]
    assert (tree.leaf("x"), tree.leaf("y")) == (True, False)


def test_a_parent_that_is_not_there_limits_nothing() -> None:
    tree = QueueTree([view("a", "gone", cpu="1")])
    assert tree.path("a") == ("a", "gone", ROOT)
    assert levels(tree, "a") == [("a", {"cpu": "1"})]


def test_parents_that_make_a_circle_are_each_there_once() -> None:
    tree = QueueTree([view("a", "b", cpu="1"), view("b", "a", cpu="2"), view("c", "c", cpu="3")])
    assert tree.path("a") == ("a", "b", ROOT)
    assert tree.path("c") == ("c", ROOT)
    assert levels(tree, "a") == [("a", {"cpu": "1"}), ("b", {"cpu": "2"})]


def test_a_tree_with_one_more_queue_leaves_the_first_alone() -> None:
    tree = QueueTree([view("org", cpu="4")])
    more = tree.having(view("a", "org"))
    assert (tree.place("a"), tree.leaf("org")) == (None, True)
    assert levels(more, "a") == [("org", {"cpu": "4"})]


def annotated(**annotations: str) -> QueueView:
    manifest = queue()
    manifest["metadata"]["annotations"] = {f"muster.dev/{key}": text for key, text in annotations.items()}
    return read_queue(made(Queue, manifest))


@cases(
    "text, seconds",
    ("seconds", "30s", 30.0),
    ("minutes", "10m", 600.0),
    ("hours and minutes", "1h30m", 5400.0),
    ("no patience at all", "0s", 0.0),
)
def test_patience_is_a_duration_as_kubernetes_writes_it(text: str, seconds: float) -> None:
    assert annotated(patience=text).patience == seconds


def test_a_queue_says_how_its_gangs_wait() -> None:
    said = annotated(queueing="strict", preemption="lower-priority", bound="nodes")
    assert (said.strict, said.preempts, said.bound_by_nodes, said.problems) == (True, True, True, ())
    silent = annotated()
    assert (silent.strict, silent.preempts, silent.bound_by_nodes, silent.patience) == (False, False, False, 600.0)


@cases(
    "key, text, problem",
    ("no duration", "patience", "soon", '"soon" is not a duration such as 30s, 10m or 1h30m'),
    ("a book", "patience", "x" * 9000, f'"{"x" * 80}" is not a duration such as 30s, 10m or 1h30m'),
    ("a book of an order", "queueing", "x" * 9000, f'"{"x" * 80}" is not known; use strict'),
    ("a negative one", "patience", "-5m", '"-5m" is not a duration such as 30s, 10m or 1h30m'),
    ("other digits", "patience", "٣m", '"٣m" is not a duration such as 30s, 10m or 1h30m'),
    ("unknown order", "queueing", "fifo", '"fifo" is not known; use strict'),
    ("unknown preemption", "preemption", "all", '"all" is not known; use lower-priority'),
)
def test_what_cannot_be_read_counts_for_nothing_and_is_said(key: str, text: str, problem: str) -> None:
    said = annotated(**{key: text})
    assert tuple(map(str, said.problems)) == (f"metadata.annotations[muster.dev/{key}]: {problem}",)
    assert (said.patience, said.strict, said.preempts) == (600.0, False, False)


@pytest.mark.parametrize("first", ["a", "b", "below"])
def test_queues_in_a_ring_have_the_same_limits_whoever_is_asked_first(first: str) -> None:
    tree = QueueTree(
        [
            QueueView("a", "Open", amounts(cpu="4"), parent="b"),
            QueueView("b", "Open", {}, parent="a"),
            QueueView("below", "Open", {}, parent="a", guarantee=amounts(cpu="2")),
        ]
    )
    tree.limit(first)
    assert {name: tree.limit(name) for name in ("a", "b")} == {"a": amounts(cpu="4"), "b": {}}


def test_entering_the_same_queue_again_changes_nothing() -> None:
    tree = QueueTree([view("q", cpu="4")])
    assert not tree.set(view("q", cpu="4"))
    assert tree.set(view("q", cpu="5"))


def test_nodes_that_are_not_known_bound_nothing() -> None:
    """Nor do nodes that are known and give nothing that is named."""
    ledger = Ledger()
    assert not ledger.bound(None)
    assert ledger.bound({})
    assert not ledger.bound({})
    assert ledger.tree.limit(ROOT) == {}
