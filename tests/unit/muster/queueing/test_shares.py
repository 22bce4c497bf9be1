"""How much a queue has of its share."""

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.shares import Shares, percent
from muster.queueing.usage import amounts_of
from tests.support.cases import cases
from tests.support.manifests.observed import amounts


def opened(name: str, parent: str = "org", **how: Any) -> QueueView:  # noqa: ANN401 - any field
    return QueueView(name, "Open", how.pop("limit", {}), parent=parent, **how)


def tree(*views: QueueView, **room: str) -> QueueTree:
    """The queues, below an organisation with so much room."""
    return QueueTree([opened("org", ROOT, limit=amounts(**room)), *views])


def share(of: QueueTree, queue: str, **taken: str) -> float:
    return Shares(of).of(queue, dict(amounts_of(amounts(**taken))))


def test_equal_queues_divide_the_room_of_their_parent() -> None:
    found = tree(opened("a"), opened("b"), cpu="10")
    assert share(found, "a", cpu="5") == share(found, "b", cpu="5") == 1.0
    assert share(found, "a") == 0.0


def test_a_queue_of_weight_three_may_have_three_times_as_much() -> None:
    found = tree(opened("a", weight=3), opened("b"), cpu="8")
    assert share(found, "a", cpu="6") == share(found, "b", cpu="2") == 1.0


def test_what_a_queue_deserves_goes_before_its_weight_for_the_resources_that_it_names() -> None:
    found = tree(opened("a", deserved=amounts(gpu="6"), weight=9), opened("b", weight=9), cpu="8", gpu="8")
    assert share(found, "a", gpu="6") == 1.0
    assert share(found, "a", cpu="4") == 1.0
    assert share(found, "b", gpu="4") == 1.0


def test_the_resource_of_which_it_has_most_counts() -> None:
    found = tree(opened("a"), opened("b"), cpu="8", gpu="8")
    assert share(found, "a", cpu="1", gpu="2") == 0.5


def test_a_guarantee_is_part_of_the_share() -> None:
    found = tree(opened("a", guarantee=amounts(cpu="6")), opened("b"), cpu="8")
    assert share(found, "a", cpu="6") == 1.0
    small = tree(opened("a", guarantee=amounts(cpu="1")), opened("b"), cpu="8")
    assert share(small, "a", cpu="4") == 1.0


def test_whoever_deserves_nothing_is_beyond_its_share_with_anything() -> None:
    found = tree(opened("a", deserved=amounts(cpu="0")), opened("b"), cpu="8")
    assert share(found, "a") == 0.0
    assert share(found, "a", cpu="1m") == float("inf")


def test_resources_for_which_nobody_competes_do_not_count() -> None:
    found = tree(opened("a", deserved=amounts(memory="1Gi")), opened("b"), cpu="8")
    assert share(found, "a", memory="64Gi") == 0.0


def test_where_the_parent_has_no_limit_the_one_above_it_counts() -> None:
    found = QueueTree([opened("org", ROOT), opened("a"), opened("b")])
    shares = Shares(found)
    assert shares.of("a", {"cpu": 2 * 10**9}) == 0.0
    found.bound(amounts(cpu="4"))
    assert shares.of("a", {"cpu": 2 * 10**9}) == 1.0
    found.set(opened("c"))
    assert shares.of("a", {"cpu": 2 * 10**9}) == 1.5


@cases(
    "org, root, by_age",
    ("by share", {}, {}, False),
    ("the parent says so", {"by_age": True}, {}, True),
    ("not of the queues further down", {}, {"by_age": True}, False),
    ("one strict line", {"strict": True}, {}, True),
    ("one strict line further up", {}, {"strict": True}, True),
)
def test_where_age_counts_and_not_the_share(org: dict[str, bool], root: dict[str, bool], *, by_age: bool) -> None:
    found = QueueTree([opened(ROOT, "", **root), opened("org", ROOT, **org), opened("a")])
    shares = Shares(found)
    # There is nothing to share.
    assert shares.by_age("org")
    found.bound(amounts(cpu="4"))
    assert shares.by_age("org") is by_age


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10**12)), min_size=2, max_size=5),
    st.integers(1, 10**12),
)
def test_shares_are_ordered_as_the_exact_fractions_of_usage_and_weight(
    queues: list[tuple[int, int]], room: int
) -> None:
    names = [f"q{number}" for number in range(len(queues))]
    found = tree(*(opened(name, weight=weight) for name, (weight, _) in zip(names, queues, strict=True)))
    found.set(opened("org", ROOT, limit=amounts(cpu=f"{room}n")))
    shares = Shares(found)
    said = [
        (shares.of(name, {"cpu": used}), Fraction(used, weight))
        for name, (weight, used) in zip(names, queues, strict=True)
    ]
    assert [one for one, _ in sorted(said)] == [one for one, _ in sorted(said, key=lambda both: both[1])]
    assert all((one[0] == other[0]) >= (one[1] == other[1]) for one in said for other in said)


def test_whole_percents_are_said_as_they_are_and_others_rounded_down() -> None:
    """Of 29, 57 and 58 cpu of 100 a hundred times the quotient is a bit less than that."""
    found = tree(opened("a", deserved=amounts(cpu="100")), opened("b"), cpu="200")
    assert [percent(share(found, "a", cpu=str(cpu))) for cpu in range(301)] == [f"{cpu}%" for cpu in range(301)]
    assert percent(share(found, "a", cpu="28999m")) == "28%"
