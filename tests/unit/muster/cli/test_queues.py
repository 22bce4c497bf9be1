"""What `muster queues` and `muster watch` show."""

import io
from dataclasses import replace
from typing import Any

from muster.cli.queues.entries import queue_entries, remarks, tree_lines
from muster.cli.snapshot import ClusterSnapshot
from muster.model.names import HOLD, MESSAGE, STATE
from muster.queueing.entries import Claim
from muster.queueing.ledger import EndKind, GangKey, Ledger, Run
from tests.support.controller.stores import filled
from tests.support.manifests.observed import JSON, pod_group, queue, ray_cluster, ray_owner, ray_pod

NOW = 1_800_000_000.0


def below(parent: str, name: str, **capability: str) -> JSON:
    manifest = queue(name)
    manifest["spec"] = {"capability": capability, "parent": parent}
    return manifest


def tree() -> ClusterSnapshot:
    """A gang runs in a queue below another one, and one waits there."""
    names = {"demo": False, "other": True}
    pods = [
        ray_pod(f"{name}-{pod}", role, held=held, cluster=name, owner_uid=f"uid-{name}")
        for name, held in names.items()
        for pod, role in (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
    ]
    labels = {"volcano.sh/queue-name": "q"}
    groups = []
    for name, state in (("demo", "Running"), ("other", "WaitingForQuota")):
        owner = ray_owner(name)
        said = {STATE: state, MESSAGE: f"about {name}"}
        admitted = "uid-demo" if name == "demo" else ""
        groups.append(pod_group(f"ray-{name}-pg", owner=owner, annotations=said, admitted=admitted))
    return ClusterSnapshot(
        filled(
            workloads=[ray_cluster(name=name, uid=f"uid-{name}", labels=labels) for name in names],
            pods=pods,
            groups=groups,
            queues=[
                queue("root"),
                below("org", "q", cpu="4"),
                below("root", "org", cpu="8"),
                queue("idle", state="Closed"),
            ],
        )
    )


def test_what_is_used_is_unknown_where_not_everything_was_seen() -> None:
    entries = queue_entries(tree().ledger_snapshot(NOW), whole=False)
    assert {entry["used"] for entry in entries} == {None}


def test_a_gang_of_which_a_pod_is_being_deleted_is_still_one_gang() -> None:
    """Beside its replacement that pod holds more than the gang was admitted for, until it is gone."""
    names, ended = (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers")), "2027-01-15T07:59:00Z"
    runs: dict[str, Any] = {"held": False, "nodeName": "node", "phase": "Running"}
    pods = [ray_pod(name, role, **runs) for name, role in names]
    pods.append(ray_pod("w-2", **runs, meta={"deletionTimestamp": ended}))
    groups = [pod_group(admitted="uid-demo", annotations={STATE: "Running"}, phase="Running")]
    visible = ClusterSnapshot(filled(workloads=[ray_cluster()], pods=pods, groups=groups, queues=[queue(cpu="8")]))
    (entry,) = queue_entries(visible.ledger_snapshot(NOW), whole=True)
    assert (entry["used"]["cpu"], entry["gangs"], entry["waiting"]) == ("4", 1, 0)


def test_a_queue_below_one_on_hold_names_it_and_only_that_one_is_remarked() -> None:
    org = below("root", "org")
    org["metadata"]["annotations"] = {HOLD: "true"}
    visible = ClusterSnapshot(filled(queues=[org, below("org", "q"), queue("other")]))
    entries = queue_entries(visible.ledger_snapshot(NOW), whole=True)
    assert {entry["name"]: entry["onHoldBy"] for entry in entries} == {"org": "org", "q": "org", "other": None}
    assert remarks(entries) == ["queue org: no gang starts, for it is on hold; muster resume queue/org"]


def test_queues_without_parents_and_in_circles_are_shown_once() -> None:
    visible = ClusterSnapshot(
        filled(queues=[queue("alone"), below("gone", "orphan"), below("b", "a"), below("a", "b")])
    )
    shown = [(entry["name"], entry["depth"]) for entry in queue_entries(visible.ledger_snapshot(NOW), whole=True)]
    assert sorted(name for name, _ in shown) == ["a", "alone", "b", "orphan"]
    assert shown[0] == ("alone", 0)


def test_a_queue_that_cannot_be_read_is_said_once() -> None:
    broken = queue("broken")
    broken["spec"]["capability"] = {"cpu": "lots"}
    visible = ClusterSnapshot(filled(queues=[broken]))
    visible.ledger_snapshot(NOW)
    visible.ledger_snapshot(NOW)
    (said,) = visible.missing
    assert said.startswith("queue broken is malformed, and no gang starts in it: spec.capability.cpu")


def test_annotations_that_cannot_be_read_are_said_with_what_holds_meanwhile() -> None:
    """Nobody else sees them but who reads the controller's log."""
    said = {"muster.dev/namespace-selector": "team in (ml", "muster.dev/queueing": "fair"}
    (entry,) = queue_entries(ClusterSnapshot(filled(queues=[queue(annotations=said)])).ledger_snapshot(NOW), whole=True)
    closed, ignored = sorted(entry["problems"])
    assert closed.startswith('metadata.annotations[muster.dev/namespace-selector]: "team in (ml" is neither key')
    assert closed.endswith("; the queue is closed to all namespaces")
    assert ignored == 'metadata.annotations[muster.dev/queueing]: "fair" is not known; use strict; it is ignored'


def held_until(ledger: Ledger, end: Run | None, *, bounds: bool = True) -> None:
    """Another gang of the tree ends so, and the one that waits has been passed for long."""
    waits = ledger.candidate(GangKey("team", "ray-other-pg"))
    q = ledger.tree.get("q")
    assert waits is not None
    assert q is not None
    ledger.set_queue(replace(q, trusts_estimates=not bounds, drain_after=1e12))
    ledger.wait(replace(waits, passed_since=0.0))
    ledger.hold(Claim(GangKey("team", "ray-demo-pg"), "q", waits.need, end=end.from_(NOW) if end is not None else None))


def test_room_that_is_reserved_is_shown_with_its_gang_its_time_and_what_is_spare() -> None:
    snapshot = tree().ledger_snapshot(NOW)
    held_until(snapshot.ledger, Run(600.0, EndKind.SAID))
    entries = queue_entries(snapshot, whole=True)
    assert {entry["name"]: entry["reservation"] for entry in entries if entry["name"] != "q"} == {
        "root": None,
        "org": None,
        "idle": None,
    }
    (reservation,) = [entry["reservation"] for entry in entries if entry["name"] == "q"]
    assert reservation == {
        "gang": "team/ray-other-pg",
        "startsBy": "2027-01-15T08:10:00Z",
        "basis": "said",
        "levels": ["q", "org"],
        "spare": {"q": {"cpu": "1"}, "org": {"cpu": "5"}},
    }
    *_, blank, head, row = tree_lines(entries, io.StringIO())
    assert (blank, head.split("  ")[0]) == ("", "RESERVED IN")
    assert row.split("  ")[:1] == ["q"]
    assert " ".join(row.split()) == "q team/ray-other-pg 2027-01-15 08:10 UTC limits that users set cpu 1"


def test_room_of_a_queue_that_drains_is_reserved_from_now_on() -> None:
    snapshot = tree().ledger_snapshot(NOW)
    held_until(snapshot.ledger, None)
    row = tree_lines(queue_entries(snapshot, whole=True), io.StringIO())[-1]
    assert " ".join(row.split()) == "q team/ray-other-pg now on no known end cpu 0"


def test_where_nothing_is_reserved_or_nobody_can_know_no_reservation_is_shown() -> None:
    """A gang that others may pass, for no end is known that estimates could tell, has none."""
    snapshot = tree().ledger_snapshot(NOW)
    held_until(snapshot.ledger, None, bounds=False)
    assert {entry["reservation"] for entry in queue_entries(snapshot, whole=True)} == {None}
    held_until(snapshot.ledger, Run(600.0, EndKind.SAID))
    assert {entry["reservation"] for entry in queue_entries(snapshot, whole=False)} == {None}
