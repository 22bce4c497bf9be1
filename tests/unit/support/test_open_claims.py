"""The judge of what muster opens, on made-up records: what it finds, and whom it lets pass."""

import itertools
import json
from typing import Any

import pytest

from muster.model.names import (
    ADMITTED,
    ADMITTED_FOR,
    GANG,
    GANG_SPEC,
    GATE,
    GATE_MODE,
    GROUP_NAME,
    PREEMPTION,
    QUEUE_LABEL,
    UNPLACED_AFTER,
)
from muster.model.resource import POD_GROUPS, PODS, QUEUES, Resource
from tests.support.cluster.backends import COSCHEDULING_POD_GROUPS, NATIVE_POD_GROUPS
from tests.support.cluster.claim_terms import GANG_QUEUES
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

    def gang_queue(self, capability: int, name: str = "q", **spec: str) -> None:
        """A queue of muster's own."""
        self.note(GANG_QUEUES, name, {"spec": {"capability": {"cpu": str(capability)}, **spec}, "metadata": {}})

    def workload(self, name: str, **status: Any) -> None:  # noqa: ANN401 - JSON
        """Its workload, a RayCluster to the record."""
        self.note(RAY_CLUSTERS, name, {"metadata": {"uid": name}, "status": status})

    def group(self, name: str, cpu: int = 0, queue: str = "q", *, needs: int = 0) -> None:
        """Its PodGroup, with the mark where it is admitted for so much cpu; its pods may need more."""
        terms = {"minMember": cpu, "minResources": {"cpu": str(cpu)}, "queue": queue}
        terms |= {"needs": {"cpu": str(needs)}} if needs else {}
        marks = {ADMITTED: name, ADMITTED_FOR: json.dumps(terms)} if cpu else {}
        meta = {
            "name": name,
            "uid": f"group-{name}",
            "annotations": marks,
            "ownerReferences": [{"uid": name}],
        }
        said = {"minMember": cpu, "minResources": {"cpu": str(cpu)}, "queue": queue}
        self.note(POD_GROUPS, name, {"metadata": meta, "spec": said})

    def native_group(self, gang: str, cpu: int) -> None:
        """A PodGroup of kube-scheduler's, with the mark as above."""
        said = json.dumps({"minResources": {"cpu": str(cpu)}, "queue": "q"})
        marks = {ADMITTED: gang, ADMITTED_FOR: json.dumps({"minMember": cpu, **json.loads(said)})}
        meta: dict[str, Any] = {
            "name": f"{gang}-1",
            "uid": f"group-{gang}-1",
            "annotations": {GROUP_NAME: gang, GANG_SPEC: said, **marks},
            "ownerReferences": [{"uid": gang}],
        }
        spec = {"schedulingPolicy": {"gang": {"minCount": cpu}}}
        self.note(NATIVE_POD_GROUPS, f"{gang}-1", {"metadata": meta, "spec": spec})

    def pod(self, gang: str, number: int = 0, *, held: bool = False, node: str = "n", **more: object) -> None:
        """A pod of 1 cpu; opened, it has a node. `more` are its `priority`, and whether it is being `deleted`.

        And its `preemptionPolicy`.
        """
        spec = {
            "schedulingGates": [{"name": GATE}] if held else [],
            "nodeName": "" if held else node,
            "priority": more.get("priority", 0),
            "preemptionPolicy": more.get("preemptionPolicy", "PreemptLowerPriority"),
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        }
        name = f"{gang}-{number}"
        meta = {
            "uid": name,
            "labels": {GANG: gang, QUEUE_LABEL: "q"},
            **({"deletionTimestamp": "now"} if more.get("deleted") else {}),
        }
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


def started(record: Record, name: str = "a", cpu: int = 3, *, node: str = "n") -> None:
    """A gang of one pod that was admitted for so much, in four states."""
    record.workload(name)
    record.pod(name, held=True)
    record.group(name, cpu)
    record.pod(name, node=node)


def test_what_fits_is_no_finding() -> None:
    record = Record()
    started(record, "a", 3)
    started(record, "b", 1)
    assert opened_above(record.states) == ([], 2)


def test_a_mark_beyond_the_room_is_found() -> None:
    """Before any of its gates is open: what a gang is admitted for is taken then."""
    record = Record()
    started(record, "a", 3)
    started(record, "b", 2)
    assert opened_above(record.states)[0] == ABOVE


def test_a_gate_opened_without_a_mark_is_found() -> None:
    record = Record(capability=3)
    started(record, "a", 3)
    record.group("b")
    record.pod("b", held=True)
    record.pod("b")
    assert opened_above(record.states)[0] == ['at version 8 b opened: cpu 4 of the 3 that queue "q" has']


def test_growth_beyond_the_room_is_found_and_a_replacement_is_not() -> None:
    record = Record()
    started(record, "a", 3)
    started(record, "b", 1)
    record.gone(PODS, "b-0")
    record.pod("b", 1, held=True)
    record.pod("b", 1)
    assert opened_above(record.states) == ([], 2)
    record.pod("b", 2, held=True)
    record.pod("b", 2)
    assert opened_above(record.states)[0] == ['at version 14 b opened: cpu 5 of the 4 that queue "q" has']


def test_a_queue_above_has_a_limit_too() -> None:
    record = Record(capability=9)
    record.queue(9, "q", "parent")
    record.queue(4, "parent")
    started(record, "a", 3)
    started(record, "b", 2)
    assert opened_above(record.states)[0] == ['at version 10 b opened: cpu 5 of the 4 that queue "parent" has']


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
    started(record, "a", 3, node="")
    record.passes(seconds)
    started(record, "b", 2)
    assert [words.partition("opened: ")[2] for words in opened_above(record.states)[0]] == found


@pytest.mark.parametrize(
    ("said", "priority", "finds"), [("lower-priority", 5, 0), ("lower-priority", 0, 1), ("", 5, 1)]
)
def test_lower_priorities_are_left_out_where_the_queue_says_so(said: str, priority: int, finds: int) -> None:
    record = Record(4, **{PREEMPTION: said})
    started(record, "a", 3)
    record.workload("b")
    record.pod("b", held=True, priority=priority)
    record.group("b", 2)
    assert len(opened_above(record.states)[0]) == finds


def test_an_owner_that_is_not_on_record_is_no_acquittal() -> None:
    record = Record()
    record.pod("a", held=True)
    record.group("a", 3)
    with pytest.raises(AssertionError, match="the owner of a is not on record"):
        opened_above([seen for seen in record.states if seen.resource != RAY_CLUSTERS])


@pytest.mark.parametrize(("minimum", "other", "finds"), [(3, 2, 1), (2, 2, 0)])
def test_kube_schedulers_pod_groups_say_what_they_ask_for_in_an_annotation(
    minimum: int, other: int, finds: int
) -> None:
    """Where a mark has no terms, because they were too many to write."""
    record = Record()
    record.workload("a")
    record.pod("a", held=True)
    record.native_group("a", 3)
    last = record.states[-1].object
    said = json.dumps({"minResources": {"cpu": str(minimum)}, "queue": "q"})
    annotations = {GANG_SPEC: said, GROUP_NAME: "a", ADMITTED: "a"}
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    record.note(NATIVE_POD_GROUPS, "a-1", {"metadata": {**last["metadata"], "annotations": annotations}, "spec": spec})
    record.workload("b")
    record.pod("b", held=True)
    record.native_group("b", other)
    assert len(opened_above(record.states)[0]) == finds


def test_a_pod_group_of_coscheduling_asks_for_its_resources_itself() -> None:
    """Its queue stands in the annotation, and its own name may be shorter than the gang's."""
    record = Record(capability=9)
    record.queue(4, "its-own")
    record.workload("a")
    record.pod("a", held=True)
    meta = {
        "name": "cut",
        "uid": "group",
        "annotations": {ADMITTED: "a", GROUP_NAME: "a", GANG_SPEC: json.dumps({"queue": "its-own"})},
        "ownerReferences": [{"uid": "a"}],
    }
    spec = {"minMember": 5, "minResources": {"cpu": "5"}}
    record.note(COSCHEDULING_POD_GROUPS, "cut", {"metadata": meta, "spec": spec})
    assert opened_above(record.states) == (['at version 5 a opened: cpu 5 of the 4 that queue "its-own" has'], 1)


@pytest.mark.parametrize(("said", "priority", "finds"), [({}, 5, 1), ({"preemption": "lower-priority"}, 5, 0)])
def test_a_queue_of_musters_own_says_in_fields_what_volcanos_says_in_annotations(
    said: dict[str, str], priority: int, finds: int
) -> None:
    record = Record()
    record.states.clear()
    record.gang_queue(4, **said)
    started(record, "a", 3)
    record.workload("b")
    record.pod("b", held=True, priority=priority)
    record.group("b", 2)
    assert len(opened_above(record.states)[0]) == finds


@pytest.mark.parametrize(("mode", "acts"), [("queue", 2), ("assemble", 0), ("off", 0)])
@pytest.mark.parametrize("own", [True, False])
def test_where_nobody_waits_for_room_what_is_opened_is_no_act(mode: str, acts: int, *, own: bool) -> None:
    record = Record(4, **{GATE_MODE: mode})
    if own:
        record.states.clear()
        record.gang_queue(4, gate=mode)
    started(record, "a", 3)
    started(record, "b", 2)
    above, judged = opened_above(record.states)
    assert (len(above), judged) == (acts // 2, acts)


def test_a_pod_group_that_is_not_on_record_is_no_acquittal() -> None:
    """Its pods name the queue, and a queue that is not on record is none, either."""
    record = Record()
    started(record, "a", 4)
    states = [seen for seen in record.states if seen.resource != POD_GROUPS]
    assert opened_above(states)[0] == ["at version 5 a opened: its PodGroup is not on record"]
    states = [seen for seen in record.states if seen.resource != QUEUES]
    assert opened_above(states)[0] == ['at version 4 a opened: its queue "q" is not on record']


def test_who_is_excused_is_not_judged_and_counts_for_the_others() -> None:
    record = Record()
    started(record, "a", 3)
    started(record, "b", 2)
    assert opened_above(record.states, {"b"}) == ([], 1)
    started(record, "c", 1)
    assert opened_above(record.states, {"b"})[0] == ['at version 12 c opened: cpu 6 of the 4 that queue "q" has']
