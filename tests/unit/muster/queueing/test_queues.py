"""A queue as the rules see it."""

from collections.abc import Mapping

import pytest

from muster.model.objects import InvalidObjectError, Queue
from muster.queueing.queue_tree import exceeding
from muster.queueing.queue_view import read_queue
from tests.support.cases import cases
from tests.support.manifests.observed import amounts, made, queue


@cases(
    "state, is_open, closed",
    ("open", "Open", True, False),
    ("too new to have a state", "", False, False),
    ("closed", "Closed", False, True),
    ("being closed", "Closing", False, True),
    ("unknown", "Unknown", False, True),
)
def test_only_an_open_queue_takes_work_and_a_new_one_is_not_closed(state: str, is_open: bool, closed: bool) -> None:
    view = read_queue(made(Queue, queue(state=state)))
    assert (view.open, view.closed) == (is_open, closed)


def having(capability: Mapping[str, str]) -> Queue:
    return made(Queue, {"metadata": {"name": "q"}, "spec": {"capability": capability}, "status": {"state": "Open"}})


@pytest.mark.parametrize("zero", ["0", "0Gi", "-1"])
@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_cpu_or_memory_of_zero_is_unlimited_as_in_volcano(name: str, zero: str) -> None:
    view = read_queue(having({"pods": "4", name: zero}))
    assert view.limit == amounts(pods="4")
    assert view.zeros == (() if zero == "-1" else (name,))


@pytest.mark.parametrize("zero", ["0", "0Gi", "-1"])
@pytest.mark.parametrize("name", ["nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi"])
def test_zero_of_any_other_resource_is_none_of_it_as_in_volcano(name: str, zero: str) -> None:
    """Volcano takes no gang that asks for it: admitted by muster, it would keep others from the room for ever."""
    view = read_queue(having({"cpu": "4", name: zero}))
    assert view.limit == amounts(**{"cpu": "4", name: "0"})
    assert exceeding(amounts(**{name: "1"}), view.limit) == (f"{name} 1", f"{name} 0")
    assert view.zeros == ()


def test_a_capability_that_is_no_amount_is_refused_by_field() -> None:
    with pytest.raises(InvalidObjectError, match=r'^spec\.capability\.cpu: "four" is not a quantity'):
        read_queue(made(Queue, queue(cpu="four")))


@cases(
    "need, limit, words",
    ("over", {"cpu": "6"}, {"cpu": "4"}, ("cpu 6", "cpu 4")),
    ("exactly", {"cpu": "4"}, {"cpu": "4"}, None),
    ("not limited", {"gpu": "1"}, {"cpu": "4"}, None),
    ("not needed", {"cpu": "1"}, {"gpu": "1"}, None),
    (
        "names those that are over, and no others",
        {"cpu": "6", "memory": "1Gi", "gpu": "9"},
        {"cpu": "4", "memory": "6Gi", "gpu": "8"},
        ("cpu 6 and nvidia.com/gpu 9", "cpu 4 and nvidia.com/gpu 8"),
    ),
)
def test_what_is_more_than_a_queue_can_ever_give(
    need: dict[str, str], limit: dict[str, str], words: tuple[str, str] | None
) -> None:
    assert exceeding(amounts(**need), amounts(**limit)) == words


def test_what_a_queue_has_among_its_siblings() -> None:
    plain = read_queue(made(Queue, {"metadata": {"name": "q"}}))
    assert (plain.weight, plain.deserved, plain.by_age) == (1, {}, False)
    spec = {"weight": 0, "deserved": {"cpu": "2"}}
    said = {"metadata": {"name": "q", "annotations": {"muster.dev/siblings": "age"}}, "spec": spec}
    view = read_queue(made(Queue, said))
    assert (view.weight, view.deserved, view.by_age) == (1, amounts(cpu="2"), True)


@cases(
    "said, unread",
    (
        "misspelled",
        {"muster.dev/patienc": "20m"},
        ["metadata.annotations[muster.dev/patienc]: unknown annotation; did you mean muster.dev/patience?"],
    ),
    (
        "a workload's",
        {"muster.dev/requeue-after": "20m"},
        ["metadata.annotations[muster.dev/requeue-after]: unknown annotation; remove it"],
    ),
    ("beside the right one", {"muster.dev/patience": "20m", "muster.dev/patience-was": "1h"}, None),
    ("others'", {"muster.dev/patience": "20m", "example.com/patience": "1h"}, []),
)
def test_annotations_that_are_not_read_are_named(said: dict[str, str], unread: list[str] | None) -> None:
    view = read_queue(made(Queue, {"metadata": {"name": "q", "annotations": said}}))
    assert view.problems == ()
    if unread is None:
        unread = ["metadata.annotations[muster.dev/patience-was]: unknown annotation; remove it"]
    assert list(map(str, view.unread)) == unread


def test_an_order_of_siblings_that_is_not_known_is_named_and_ignored() -> None:
    view = read_queue(made(Queue, {"metadata": {"name": "q", "annotations": {"muster.dev/siblings": "fair"}}}))
    assert not view.by_age
    assert [str(problem) for problem in view.problems] == [
        'metadata.annotations[muster.dev/siblings]: "fair" is not known; use age or share'
    ]
