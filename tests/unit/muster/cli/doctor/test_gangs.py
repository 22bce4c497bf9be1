"""Gates of any age, which no apiserver can be made to show, and PodGroups of nobody."""

from typing import Any

import pytest
from msgspec.structs import replace

from muster.cli.doctor.diagnosis import MOST, Level, Unseen
from muster.cli.doctor.gangs import gates, pod_groups
from muster.cli.doctor.sight import GroupSeen
from muster.model.names import GATE, GROUP_NAME, MANAGED_BY, MESSAGE, MUSTER, STATE
from muster.model.objects import convert
from muster.model.pods import Pod
from muster.model.times import text_of
from muster.schedulers import PRODUCTS
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import HOUR, NOW, found, levels, messages


def held(name: str = "p", *, age: float = 2 * HOUR, group: str = "g", **more: Any) -> Pod:  # noqa: ANN401
    """A pod of a gang that is held, and has no node, unless told otherwise."""
    created, gates = text_of(NOW - age), [{"name": GATE}] if more.get("gated", True) else []
    meta = {"namespace": "ns", "name": name, "annotations": {GROUP_NAME: group}, "creationTimestamp": created}
    spec = {"schedulingGates": gates, "nodeName": "n" if more.get("placed") else ""}
    return convert({"metadata": meta, "spec": spec, "status": {"phase": more.get("phase", "")}}, Pod)


def group(name: str = "g", *, age: float = 2 * HOUR, minimum: int = 0, **more: Any) -> GroupSeen:  # noqa: ANN401
    """A PodGroup that is muster's, and has an owner, unless told otherwise."""
    scheduler = PRODUCTS[more.get("scheduler", "volcano")]()
    meta = {
        "namespace": "ns",
        "name": name,
        "creationTimestamp": text_of(NOW - age),
        "labels": {MANAGED_BY: MUSTER} if more.get("ours", True) else {},
        "annotations": {key: more[field] for key, field in ((STATE, "state"), (MESSAGE, "message")) if field in more},
        "ownerReferences": [{"name": "its-workload"}] if more.get("owned", True) else [],
    }
    status = {"phase": more.get("phase", "")}
    made = convert({"metadata": meta, "status": status}, scheduler.pod_groups)
    return GroupSeen(scheduler, replace(made, spec=replace(made.spec, min_member=minimum)))


@cases(
    "state, level",
    ("waits", "WaitingForQuota", Level.WARNING),
    ("needs a hand", "QueueNotFound", Level.WARNING),
    ("admitted, and not opened", "Admitted", Level.PROBLEM),
    ("muster says nothing", "", Level.PROBLEM),
)
def test_gates_older_than_an_hour_are_told_with_musters_own_words(state: str, level: Level) -> None:
    (said,) = found(gates, members=(held(),), groups=(group(state=state, message="why"),))
    assert said.level is level
    words = f"{state}: why" if state else "muster reports no state for it"
    assert said.message.startswith(f"PodGroup ns/g: 1 pod held for 2 hours; {words}")


@pytest.mark.parametrize(("minimum", "level"), [(2, Level.WARNING), (3, Level.PROBLEM)])
def test_pods_beyond_the_minimum_of_a_running_gang_wait_for_room_as_others_do(minimum: int, level: Level) -> None:
    """Who opened them by hand would have the queue hold more than it may."""
    members = (held(), *(held(name, gated=False, placed=True) for name in "qr"))
    (said,) = found(gates, members=members, groups=(group(state="Running", message="why", minimum=minimum),))
    assert said.level is level
    assert ("muster release" in said.command) is (level is Level.PROBLEM)


def test_younger_gates_are_counted_only() -> None:
    (said,) = found(gates, members=(held(age=HOUR - 1),), groups=(group(state="WaitingForQuota"),))
    assert said.message == "1 held gang, none held for more than 60 minutes"
    assert levels(found(gates, 60.0, members=(held(age=HOUR - 1),), groups=(group(state="X"),))) == {Level.WARNING}


def test_pods_that_do_not_wait_are_none() -> None:
    opened, over = held(gated=False, placed=True), held("q", phase="Failed")
    assert levels(found(gates, members=(opened, over), groups=(group(state="Running"),))) == {Level.OK}


@pytest.mark.parametrize(
    ("gated", "age", "level"),
    [(True, 61.0, Level.PROBLEM), (False, 61.0, Level.PROBLEM), (True, 5.0, Level.OK)],
)
def test_pods_bound_to_a_podgroup_that_nobody_made(gated: bool, age: float, level: Level) -> None:
    """Volcano passes over them without a word, held or not."""
    assert levels(found(gates, members=(held(age=age, gated=gated),))) == {level}


def test_pods_with_a_node_need_no_podgroup_any_more() -> None:
    assert levels(found(gates, members=(held(gated=False, placed=True),))) == {Level.OK}


def test_of_many_the_longest_are_named_and_the_others_counted() -> None:
    members = tuple(held(f"p{n}", group=f"g{n}", age=HOUR * (2 + n)) for n in range(MOST + 5))
    groups = tuple(group(f"g{n}", state="WaitingForQuota") for n in range(MOST + 5))
    said = messages(found(gates, members=members, groups=groups))
    assert len(said) == MOST + 1
    assert f"ns/g{MOST + 4}: " in said[0]
    assert said[-1] == "5 more gangs are held for more than 60 minutes"
    lost = messages(found(gates, members=members))
    assert (len(lost), lost[-1]) == (MOST + 1, "5 more gangs have no PodGroup")


def test_without_a_look_at_the_podgroups_nothing_is_said_to_be_missing() -> None:
    said = found(gates, members=(held(),), groups=Unseen("you may not list them"))
    assert levels(said) == {Level.UNKNOWN, Level.WARNING}
    assert messages(said)[1].endswith("held for 2 hours; its state could not be read")


def test_the_cure_of_a_held_gang_is_a_whole_command() -> None:
    (said,) = found(gates, members=(held(),), groups=(group(state="WaitingForQuota"),))
    assert said.command == "muster explain -n ns pod/p"


@cases(
    "one, members, level",
    ("muster's", group(owned=False, phase="Inqueue"), (), Level.WARNING),
    ("owned", group(owned=True), (), Level.OK),
    ("of plain pods", group(owned=False), (held(),), Level.OK),
    ("somebody else's", group(owned=False, ours=False), (), Level.WARNING),
    ("somebody else's, and new", group(owned=False, ours=False, age=60.0), (), Level.OK),
    ("somebody else's, pods unread", group(owned=False, ours=False, scheduler="coscheduling"), (), Level.OK),
)
def test_podgroups_that_nobody_owns_and_no_pod_names(one: GroupSeen, members: tuple[Pod, ...], level: Level) -> None:
    assert levels(found(pod_groups, groups=(one,), members=members)) == {level}


@pytest.mark.parametrize(
    ("scheduler", "resource", "keeps"),
    [
        ("volcano", "podgroups.scheduling.volcano.sh", True),
        ("kubernetes", "podgroups.scheduling.k8s.io", False),
        ("coscheduling", "podgroups.scheduling.x-k8s.io", False),
    ],
)
def test_what_deletes_a_podgroup_of_nobody_names_its_own_kind_and_name(
    scheduler: str, resource: str, *, keeps: bool
) -> None:
    (said,) = found(pod_groups, groups=(group(owned=False, scheduler=scheduler),), members=())
    assert said.command == f"kubectl -n ns delete {resource} g"
    assert ("keep room" in said.message) is keeps


def test_of_many_podgroups_some_are_named() -> None:
    groups = tuple(group(f"g{n}", owned=False) for n in range(MOST + 1))
    assert messages(found(pod_groups, groups=groups))[-1] == "1 more PodGroups have neither owner nor pods"


@pytest.mark.parametrize("missing", ["groups", "members"])
def test_who_may_not_look_hears_no_all_clear(missing: str) -> None:
    assert levels(found(pod_groups, **{missing: Unseen("you may not list them")})) == {Level.UNKNOWN}
