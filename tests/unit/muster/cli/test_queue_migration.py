"""A queue says the same in the words of Volcano and of muster."""

from typing import Any

import pytest

from muster.cli.migrate_queues import gang_queue_of, queue_of
from muster.model.names import HOLD, NAMESPACE_SELECTOR
from muster.model.objects import Queue, convert
from muster.model.selectors import InvalidSelectorError
from muster.queueing.queue_view import read_queue
from muster.queueing.sources import GangQueue

WHOLE: dict[str, Any] = {
    "metadata": {
        "name": "research",
        "annotations": {
            "muster.dev/queueing": "strict",
            "muster.dev/patience": "5m",
            "muster.dev/unplaced-after": "90s",
            "muster.dev/preemption": "lower-priority",
            "muster.dev/siblings": "age",
            "muster.dev/gate": "assemble",
            "muster.dev/hold": "true",
            NAMESPACE_SELECTOR: "team=ml,env in (dev, test),!legacy,tier notin (gold)",
        },
    },
    "spec": {
        "weight": 3,
        "parent": "org",
        "capability": {"cpu": "4"},
        "guarantee": {"resource": {"cpu": "1"}},
        "deserved": {"cpu": "2"},
    },
    "status": {"state": "Open"},
}


def test_there_and_back_a_queue_says_the_same() -> None:
    queue = convert(WHOLE, Queue)
    there = convert(gang_queue_of(queue), GangQueue)
    assert read_queue(there) == read_queue(queue)
    back = convert({**queue_of(there), "status": {"state": "Open"}}, Queue)
    assert read_queue(back) == read_queue(queue)
    assert queue_of(there)["spec"] == WHOLE["spec"]


@pytest.mark.parametrize(
    "key", [key for key in WHOLE["metadata"]["annotations"] if key not in (HOLD, NAMESPACE_SELECTOR)]
)
def test_an_annotation_that_is_empty_is_no_field(key: str) -> None:
    """It says nothing to muster, and the apiserver takes no GangQueue with a field that is empty."""
    queue = convert({"metadata": {"name": "q", "annotations": {key: ""}}, "status": {"state": "Open"}}, Queue)
    manifest = gang_queue_of(queue)
    assert manifest["spec"] == {}
    assert read_queue(convert(manifest, GangQueue)) == read_queue(queue)


def test_a_closed_queue_is_a_closed_one_there() -> None:
    closed = convert({**WHOLE, "status": {"state": "Closing"}}, Queue)
    assert gang_queue_of(closed)["spec"]["closed"] is True


def test_root_is_nobodys_parent_in_words() -> None:
    top = {"metadata": {"name": "org"}, "spec": {"parent": "root"}}
    assert gang_queue_of(convert(top, Queue))["spec"] == {}


def test_a_selector_that_cannot_be_read_is_not_copied_as_an_open_door() -> None:
    broken = {"metadata": {"name": "q", "annotations": {NAMESPACE_SELECTOR: "team=="}}}
    broken["metadata"]["annotations"] = {NAMESPACE_SELECTOR: "(("}
    with pytest.raises(InvalidSelectorError):
        gang_queue_of(convert(broken, Queue))
