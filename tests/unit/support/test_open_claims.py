"""The judge of what muster opens, on made-up records: what it finds, and whom it lets pass."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from muster.kube.resource import POD_GROUPS, PODS, QUEUES, Resource
from muster.model.names import ADMITTED, ADMITTED_FOR, GANG, GATE, PREEMPTION, UNPLACED_AFTER
from tests.support.cluster.open_claims import opened_above
from tests.support.cluster.recorder import RAY_CLUSTERS, State

ABOVE = ['at version 8 b opened: cpu 5 of the 4 that queue "q" has']


class Record:
    """A record as a scene's watches would have it, of gangs of pods of 1 cpu; every step takes a second."""

    def __init__(self, capability: int = 4, **annotations: str) -> None:
        self.states: list[State] = []
        self._next = itertools.count(1)
        self.queue(capability, **annotations)

    def queue(self, capability: int, name: str = "q", parent: str = "root", **annotations: str) -> None:
        """A queue, or another state of it."""
        spec = {"capability": {"cpu": str(capability)}, "parent": parent}
        self.note(QUEUES, name, {"spec": spec, "metadata": {"annotations": annotations}})

    def workload(self, name: str, **status: Any) -> None:  # noqa: ANN401 - JSON
        """Its workload, a RayCluster to the record."""
        self.note(RAY_CLUSTERS, name, {"metadata": {"uid": name}, "status": status})

    def group(
        self, name: str, cpu: int = 0, queue: str = "q", *, owned: bool = True, needs: int = 0, spec: int | None = None
    ) -> None:
        """Its PodGroup, with the mark where it is admitted for so much cpu; its pods may need more.

        The `spec` asks for as much as the mark where nothing else is given.
        """
        terms = {"minMember": cpu, "minResources": {"cpu": str(cpu)}, "queue": queue}
        terms |= {"needs": {"cpu": str(needs)}} if needs else {}
        asks = cpu if spec is None else spec
        marks = {ADMITTED: name, ADMITTED_FOR: json.dumps(terms)} if cpu else {}
        meta = {
            "name": name,
            "uid": f"group-{name}",
            "annotations": marks,
            "ownerReferences": [{"uid": name}] if owned else [],
        }
        said = {"minMember": asks, "minResources": {"cpu": str(asks)}, "queue": queue}
        self.note(POD_GROUPS, name, {"metadata": meta, "spec": said})

    def pod(self, gang: str, number: int = 0, *, held: bool = False, node: str = "n", **more: int) -> None:
        """A pod of 1 cpu; opened, it has a node. `more` are its `priority`, and whether it is being `deleted`."""
        spec = {
            "schedulingGates": [{"name": GATE}] if held else [],
            "nodeName": "" if held else node,
            "priority": more.get("priority", 0),
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        }
        name = f"{gang}-{number}"
        meta = {"uid": name, "labels": {GANG: gang}, **({"deletionTimestamp": "now"} if more.get("deleted") else {})}
        self.note(PODS, name, {"metadata": meta, "spec": spec, "status": {}})

    def gone(self, resource: Resource, name: str) -> None:
        """The object is deleted."""
        last = next(seen for seen in reversed(self.states) if (seen.resource, seen.name) == (resource, name))
        self.note(resource, name, last.object, gone=True)

    def note(self, resource: Resource, name: str, item: dict[str, Any], *, gone: bool = False) -> None:
        """One more state."""
        version = next(self._next)
        self.states.append(State(resource, name, version, float(version), gone, item))

    def passes(self, seconds: int) -> None:
        """Nothing happens for so long."""
        for _ in range(seconds):
            next(self._next)


def _started(record: Record, name: str = "a", cpu: int = 3, *, node: str = "n") -> None:
    """A gang of one pod that was admitted for so much, in four states."""
    record.workload(name)
    record.pod(name, held=True)
    record.group(name, cpu)
    record.pod(name, node=node)


def test_what_fits_is_no_finding() -> None:
    record = Record()
    _started(record, "a", 3)
    _started(record, "b", 1)
    assert opened_above(record.states) == ([], 2)


def test_a_mark_beyond_the_room_is_found() -> None:
    """Before any of its gates is open: what a gang is admitted for is taken then."""
    record = Record()
    _started(record, "a", 3)
    _started(record, "b", 2)
    assert opened_above(record.states)[0] == ABOVE


def test_a_gate_opened_without_a_mark_is_found() -> None:
    record = Record(capability=3)
    _started(record, "a", 3)
    record.group("b")
    record.pod("b", held=True)
    record.pod("b")
    assert opened_above(record.states)[0] == ['at version 8 b opened: cpu 4 of the 3 that queue "q" has']


def test_growth_beyond_the_room_is_found_and_a_replacement_is_not() -> None:
    record = Record()
    _started(record, "a", 3)
    _started(record, "b", 1)
    record.gone(PODS, "b-0")
    record.pod("b", 1, held=True)
    record.pod("b", 1)
    assert opened_above(record.states) == ([], 2)
    record.pod("b", 2, held=True)
    record.pod("b", 2)
    assert opened_above(record.states)[0] == ['at version 14 b opened: cpu 5 of the 4 that queue "q" has']


@pytest.mark.parametrize(("spec", "finds"), [(2, 0), (3, 1), (4, 1)])
def test_a_gang_that_becomes_smaller_leaves_room_as_soon_as_its_pod_group_says_so(spec: int, finds: int) -> None:
    """And no PodGroup that says less than the mark makes room for more than the gang has become smaller by."""
    record = Record()
    _started(record, "a", 3)
    record.group("a", 3, spec=spec)
    _started(record, "b", 2)
    assert len(opened_above(record.states)[0]) == finds


def test_a_queue_above_has_a_limit_too() -> None:
    record = Record(capability=9)
    record.queue(9, "q", "parent")
    record.queue(4, "parent")
    _started(record, "a", 3)
    _started(record, "b", 2)
    assert opened_above(record.states)[0] == ['at version 10 b opened: cpu 5 of the 4 that queue "parent" has']


@pytest.mark.parametrize("how", ["gone", "succeeded"])
def test_a_workload_that_has_ended_holds_what_still_runs(how: str) -> None:
    record = Record()
    _started(record, "a", 4)
    if how == "gone":
        record.gone(RAY_CLUSTERS, "a")
    else:
        record.workload("a", conditions=[{"type": "Succeeded", "status": "True"}])
    _started(record, "b", 3)
    assert opened_above(record.states) == ([], 2)
    _started(record, "c", 1)
    assert opened_above(record.states)[0] == ['at version 13 c opened: cpu 5 of the 4 that queue "q" has']


@pytest.mark.parametrize(
    ("said", "seconds", "found"),
    [
        ({}, 310, []),
        ({}, 200, ['cpu 5 of the 4 that queue "q" has']),
        ({UNPLACED_AFTER: "30s"}, 40, []),
        ({UNPLACED_AFTER: "10m"}, 310, ['cpu 5 of the 4 that queue "q" has']),
    ],
)
def test_who_finds_no_node_is_soft_after_as_long_as_its_queue_says(
    said: dict[str, str], seconds: int, found: list[str]
) -> None:
    record = Record(4, **said)
    _started(record, "a", 3, node="")
    record.passes(seconds)
    _started(record, "b", 2)
    assert [words.partition("opened: ")[2] for words in opened_above(record.states)[0]] == found


def test_above_its_own_queue_nothing_open_is_soft() -> None:
    record = Record(capability=9)
    record.queue(9, "q", "parent")
    record.queue(4, "parent")
    _started(record, "a", 3, node="")
    record.passes(310)
    _started(record, "b", 2)
    assert [words.partition("opened: ")[2] for words in opened_above(record.states)[0]] == [
        'cpu 5 of the 4 that queue "parent" has'
    ]


def test_a_third_queue_full_is_found_however_long_the_others_find_no_node() -> None:
    record = Record()
    for name in "abc":
        _started(record, name, 4, node="")
        record.passes(310)
    assert [words.partition("opened: ")[2] for words in opened_above(record.states)[0]] == [
        'cpu 8 of the 4 that queue "q" has'
    ]


@pytest.mark.parametrize(("seconds", "finds"), [(310, 0), (200, 1)])
def test_surplus_that_finds_no_node_is_soft_as_well(seconds: int, finds: int) -> None:
    record = Record()
    _started(record, "a", 1)
    for number in (1, 2):
        record.pod("a", number, held=True)
        record.pod("a", number, node="")
    record.passes(seconds)
    _started(record, "b", 2)
    assert len(opened_above(record.states)[0]) == finds


def test_a_pod_that_is_being_deleted_counts_until_it_is_gone_but_for_those_that_come_in_its_place() -> None:
    record = Record(capability=2)
    _started(record, "a", 1)
    record.pod("a", 1, held=True)
    record.pod("a", 1)
    record.pod("a", 1, deleted=True)
    record.pod("a", 2, held=True)
    record.pod("a", 2)
    record.pod("a", 2, deleted=True)
    assert opened_above(record.states)[0] == []
    _started(record, "b", 1)
    assert [words.partition("opened: ")[2] for words in opened_above(record.states)[0]] == [
        'cpu 4 of the 2 that queue "q" has'
    ]
    record.gone(PODS, "a-1")
    record.gone(PODS, "a-2")
    _started(record, "c", 1)
    assert len(opened_above(record.states)[0]) == 2


@pytest.mark.parametrize(
    ("said", "priority", "finds"), [("lower-priority", 5, 0), ("lower-priority", 0, 1), ("", 5, 1)]
)
def test_lower_priorities_are_left_out_where_the_queue_says_so(said: str, priority: int, finds: int) -> None:
    record = Record(4, **{PREEMPTION: said})
    _started(record, "a", 3)
    record.workload("b")
    record.pod("b", held=True, priority=priority)
    record.group("b", 2)
    assert len(opened_above(record.states)[0]) == finds


@pytest.mark.parametrize(("seconds", "finds"), [(2, 0), (20, 1)])
def test_a_queue_that_was_lowered_counts_when_muster_must_have_heard(seconds: int, finds: int) -> None:
    record = Record(capability=8)
    _started(record, "a", 3)
    record.queue(4)
    record.passes(seconds)
    _started(record, "b", 2)
    assert len(opened_above(record.states)[0]) == finds


def test_what_a_queue_held_when_it_was_lowered_is_no_act() -> None:
    record = Record(capability=8)
    _started(record, "a", 3)
    _started(record, "b", 3)
    record.queue(4)
    record.passes(60)
    record.pod("a", node="other")
    assert opened_above(record.states) == ([], 2)


def test_an_owner_that_is_not_on_record_is_no_acquittal() -> None:
    record = Record()
    record.pod("a", held=True)
    record.group("a", 3)
    with pytest.raises(AssertionError, match="the owner of a is not on record"):
        opened_above([seen for seen in record.states if seen.resource != RAY_CLUSTERS])


@pytest.mark.parametrize(("after_a_gap", "finds"), [(False, 1), (True, 0)])
def test_what_was_done_while_nobody_looked_is_not_judged(*, after_a_gap: bool, finds: int) -> None:
    """The first pod was gone before the second gang was admitted; the list shows both at once."""
    record = Record()
    _started(record, "a", 3)
    record.workload("b")
    record.pod("b", held=True)
    record.group("b", 2)
    record.gone(RAY_CLUSTERS, "a")
    record.gone(PODS, "a-0")
    states = [*record.states[:-1], replace(record.states[-1], after_a_gap=after_a_gap)]
    assert len(opened_above(states)[0]) == finds


def test_plain_pods_claim_what_they_were_admitted_for_as_long_as_one_of_them_lives() -> None:
    record = Record()
    for number in range(3):
        record.pod("a", number, held=True)
    record.group("a", 3, owned=False)
    record.gone(PODS, "a-0")
    _started(record, "b", 1)
    assert opened_above(record.states) == ([], 2)
    _started(record, "c", 1)
    assert opened_above(record.states)[0] == ['at version 13 c opened: cpu 5 of the 4 that queue "q" has']
    record.gone(PODS, "a-1")
    record.gone(PODS, "a-2")
    _started(record, "d", 1)
    assert len(opened_above(record.states)[0]) == 1


def test_what_pods_really_ask_for_is_claimed_when_they_have_crashed() -> None:
    record = Record()
    record.workload("a")
    record.pod("a", held=True)
    record.group("a", 2, needs=3)
    _started(record, "b", 2)
    assert opened_above(record.states)[0] == ['at version 7 b opened: cpu 5 of the 4 that queue "q" has']
