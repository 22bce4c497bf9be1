"""GangQueues, which are read as if they were Volcano's Queues."""

from typing import Any

import pytest

from muster.model.modes import GateMode
from muster.model.objects import InvalidObjectError, convert
from muster.queueing.queue_view import QueueView, read_queue
from muster.queueing.sources import GangQueue


def view(annotations: dict[str, str] | None = None, **spec: Any) -> QueueView:  # noqa: ANN401 - any field
    manifest = {"metadata": {"name": "q", "annotations": annotations or {}}, "spec": spec}
    return read_queue(convert(manifest, GangQueue))


def test_an_empty_one_is_an_open_queue_below_root() -> None:
    found = view()
    assert (found.name, found.parent, found.closed, dict(found.limit)) == ("q", "root", False, {})
    assert not found.problems


def test_what_annotations_of_a_queue_say_are_its_fields() -> None:
    found = view(
        parent="org",
        capability={"cpu": 4},
        guarantee={"resource": {"cpu": "1"}},
        queueing="strict",
        patience="5m",
        reserves="bounds",
        drainAfter="6h",
        unplacedAfter="90s",
        preemption="lower-priority",
        gate="assemble",
        deserved={"cpu": "2"},
        weight=3,
        siblings="age",
        halfLife="12h",
    )
    assert (found.parent, str(found.limit["cpu"]), str(found.guarantee["cpu"])) == ("org", "4", "1")
    assert (found.strict, found.patience, found.unplaced_after) == (True, 300.0, 90.0)
    assert (found.trusts_estimates, found.drain_after) == (False, 21600.0)
    assert found.half_life == 43200.0
    assert (found.preempts, found.gate) == (True, GateMode.ASSEMBLE)
    assert (str(found.deserved["cpu"]), found.weight, found.by_age) == ("2", 3, True)


def test_a_hold_alone_is_an_annotation_of_both_kinds() -> None:
    """It is set and taken off by hand, beside manifests that say nothing of it."""
    found = view({"muster.dev/hold": "true", "muster.dev/patience": "1s"})
    assert (found.on_hold, found.patience) == (True, 600.0)


def test_backfill_is_the_other_word_of_queueing() -> None:
    found = view(queueing="backfill")
    assert (found.strict, found.problems) == (False, ())


def test_share_is_the_other_word_of_siblings() -> None:
    found = view(siblings="share")
    assert (found.by_age, found.problems) == (False, ())


def test_one_is_closed_by_its_field_and_nobody_elses_word() -> None:
    assert view(closed=True).closed
    manifest = {"metadata": {"name": "q"}, "status": {"state": "Closed"}}
    assert not read_queue(convert(manifest, GangQueue)).closed


def test_annotations_say_nothing_there() -> None:
    """Or a queue would have two words for one thing."""
    assert not view({"muster.dev/queueing": "strict"}).strict


@pytest.mark.parametrize(
    ("selector", "team", "open_"),
    [
        ({"matchLabels": {"team": "ml"}}, "ml", True),
        ({"matchLabels": {"team": "ml"}}, "web", False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["ml", "cv"]}]}, "cv", True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["ml"]}]}, "ml", False),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, "ml", True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, "ml", False),
        ({}, "ml", True),
    ],
)
def test_it_is_open_to_the_namespaces_that_its_selector_selects(
    selector: dict[str, Any], team: str, *, open_: bool
) -> None:
    namespaces = view(namespaceSelector=selector).namespaces
    assert (namespaces is None or namespaces.matches({"team": team})) is open_


def test_a_selector_that_cannot_be_read_closes_it_to_all() -> None:
    found = view(namespaceSelector={"matchExpressions": [{"key": "team", "operator": "Maybe", "values": ["ml"]}]})
    assert found.problems
    assert found.namespaces is not None
    assert not found.namespaces.matches({"team": "ml"})


def test_a_field_of_the_wrong_type_is_named() -> None:
    with pytest.raises(InvalidObjectError, match=r"spec\.closed"):
        view(closed="yes")
