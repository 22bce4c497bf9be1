"""Gangs and queues in Python: as they read in a terminal and in a notebook."""

from datetime import UTC, datetime
from typing import Any

from muster.api.values import Queues, gang_of_entry, queue_of_entry

ENTRY: dict[str, Any] = {
    "workload": {"kind": "RayJob", "namespace": "team", "name": "train"},
    "state": "WaitingForQuota",
    "message": "needs cpu 4, and 2 is free <now>",
    "scheduling": {"queue": "research"},
    "position": {"position": 2, "waiting": 5},
    "when": {"expected": "2026-11-29T01:30:00Z", "startsBy": None},
    "needs": {"cpu": "4"},
    "holds": None,
    "onHold": None,
    "unknown": [],
}
QUEUE: dict[str, Any] = {
    "name": "research",
    "parent": "root",
    "depth": 1,
    "state": "Open",
    "onHoldBy": None,
    "limit": {"cpu": "8"},
    "used": {"cpu": "6", "memory": "1Gi"},
    "gangs": 2,
    "waiting": 5,
    "problems": [],
}


def test_a_gang_that_waits_has_its_position_and_its_start() -> None:
    gang = gang_of_entry(ENTRY)
    assert (gang.waits, gang.admitted, gang.running, gang.finished) == (True, False, False, False)
    assert (gang.position, gang.waiting, gang.queue) == (2, 5, "research")
    assert gang.expected_start == datetime(2026, 11, 29, 1, 30, tzinfo=UTC)
    assert repr(gang).splitlines() == [
        "RayJob team/train: WaitingForQuota",
        "  needs cpu 4, and 2 is free <now>",
        "  position 2 of 5 in queue research",
        "  expected to start at 2026-11-29 01:30 UTC",
    ]
    shown = gang._repr_html_()
    assert "2 of 5" in shown
    assert "&lt;now&gt;" in shown


def test_what_is_not_known_is_none() -> None:
    gang = gang_of_entry(ENTRY | {"scheduling": None, "position": None, "when": None, "needs": None, "state": ""})
    assert (gang.queue, gang.position, gang.expected_start, gang.starts_by, gang.needs) == ("", None, None, None, None)
    assert repr(gang).startswith("RayJob team/train: no state yet")


def test_states_of_a_gang_that_started_include_those_that_follow() -> None:
    found = {state: gang_of_entry(ENTRY | {"state": state}) for state in ("Admitted", "Running", "Finished")}
    assert [one.admitted for one in found.values()] == [True, True, True]
    assert [one.running for one in found.values()] == [False, True, True]
    assert [one.finished for one in found.values()] == [False, False, True]


def test_a_queue_reads_as_a_line_and_a_row() -> None:
    queue = queue_of_entry(QUEUE)
    assert repr(queue) == "queue research: Open, 2 running, 5 waiting, used cpu 6 of 8, memory 1Gi"
    assert repr(Queues([queue])) == f"  {queue!r}"
    assert "cpu 6 of 8" in Queues([queue])._repr_html_()
    assert "used unknown" in repr(queue_of_entry(QUEUE | {"used": None}))
    assert "on hold by root" in repr(queue_of_entry(QUEUE | {"onHoldBy": "root"}))
